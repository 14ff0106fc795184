"""A report as files."""

from __future__ import annotations

from pathlib import Path

from benchmarks.record import write_bytes
from reports.comparison import Comparison
from reports.plots import render_plot
from reports.render.csv import csv
from reports.render.latex import latex
from reports.render.markdown import markdown


def write_report(comparison: Comparison, folder: Path) -> list[Path]:
    """Write table.md, table.tex, table.csv, plot.png and plot.svg; each appears whole or not at all."""
    contents = {
        "table.md": markdown(comparison).encode(),
        "table.tex": latex(comparison).encode(),
        "table.csv": csv(comparison).encode(),
        "plot.png": render_plot(comparison, "png"),
        "plot.svg": render_plot(comparison, "svg"),
    }
    for name, content in contents.items():
        write_bytes(folder / name, content)
    return [folder / name for name in contents]
