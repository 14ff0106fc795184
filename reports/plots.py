"""What all figures share: colours, marks, captions, and files that are the same bytes for the same numbers."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart with all common kinds of colour vision; hatches and marks for print in grey.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Fixed, or every drawing of the same numbers would be another file.
_STYLE: Any = {
    "svg.hashsalt": "reports",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "hatch.linewidth": 0.5,
}


def new_figure(width_inches: float, height_inches: float) -> Figure:
    """An empty figure that needs no display."""
    figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def tidy(axes: Axes, grid: str = "y") -> None:
    """Faint lines behind the data, and no frame above and to the right."""
    axes.set_axisbelow(True)
    axes.grid(axis=grid, linewidth=0.4, color="0.8")  # type: ignore[arg-type]
    axes.spines[["top", "right"]].set_visible(False)


def wrapped(text: str, inches: float, points: float) -> str:
    """A text broken into lines that fit that many inches at that size."""
    return "\n".join(textwrap.wrap(text, max(20, int(inches * 120 / points))))


def add_legend(figure: Figure, handles: Sequence[Any], caption: str, columns: int = 3) -> None:
    """A legend below the panels, under what explains the drawing."""
    figure.legend(
        handles=handles,
        title=wrapped(caption, figure.get_figwidth(), 8.5),
        title_fontsize=8,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
    )


def render(figure: Callable[[], Figure], kind: str) -> bytes:
    """A figure as a "png" or "svg" file: the same bytes for the same numbers."""
    metadata = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
    file = io.BytesIO()
    with mpl.rc_context(_STYLE):
        figure().savefig(file, format=kind, dpi=150, metadata=metadata)
    return file.getvalue()
