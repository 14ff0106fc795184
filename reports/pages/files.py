"""A page as files: Markdown, LaTeX, CSV and its figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fedsim.files import write_bytes
from reports.pages.latex import latex, latex_notes
from reports.pages.page import Page
from reports.pages.plots import KINDS, render
from reports.pages.render import markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(figure: Callable[[], Figure], files: Mapping[Path, str]) -> None:
    """Write a figure as files, each of one of KINDS; each appears whole or not at all."""
    for path, content in zip(files, render(figure, *files.values()), strict=True):
        write_bytes(path, content)


def write_report(page: Page, folder: Path, draw: Callable[..., None] = draw) -> list[Path]:
    """Write table.md, table.tex, notes.tex, table.csv and the plot as PNG, SVG and PDF, each file atomically.

    draw: writes the plots, at once or in other processes.
    """
    texts = {
        "table.md": markdown(page),
        "table.tex": latex(page),
        "notes.tex": latex_notes(page),
        "table.csv": page.csv,
    }
    for name, text in texts.items():
        write_bytes(folder / name, text.encode())
    plots = {folder / f"plot.{kind}": kind for kind in KINDS if page.figure is not None}
    if page.figure is not None:
        draw(page.figure, plots)
    return [*(folder / name for name in texts), *plots]
