"""A report as files."""

from __future__ import annotations

from pathlib import Path

from benchmarks.record import write_bytes
from reports.page import Page
from reports.plots import render
from reports.render.latex import latex
from reports.render.markdown import markdown


def write_report(page: Page, folder: Path) -> list[Path]:
    """Write table.md, table.tex, table.csv, and plot.png and plot.svg; each appears whole or not at all."""
    contents = {"table.md": markdown(page).encode(), "table.tex": latex(page).encode(), "table.csv": page.csv.encode()}
    if page.figure is not None:
        contents |= {f"plot.{kind}": render(page.figure, kind) for kind in ("png", "svg")}
    for name, content in contents.items():
        write_bytes(folder / name, content)
    return [folder / name for name in contents]
