"""What all figures share: colours, marks, captions, and files that are the same bytes for the same numbers."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from benchmarks.experiment import Column
from reports.pages.styles import MARKS, colour_of, lighter, mark_of
from reports.pages.text import NOT_RUN

# Okabe and Ito's palette, told apart with all common kinds of colour vision; hatches and marks for print in grey.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
DIAMOND: Any = {"marker": "D", "color": "white", "markeredgecolor": "black", "linestyle": "none"}
# Fixed, or every drawing of the same numbers would be another file.
_STYLE: Any = {
    "svg.hashsalt": "reports",
    "svg.fonttype": "none",  # text stays text, there and in PDF
    "pdf.fonttype": 42,
    "font.family": ["DejaVu Sans", "sans-serif"],
    "hatch.linewidth": 0.5,
}
_CANVASES = {"png": FigureCanvasAgg, "svg": FigureCanvasSVG, "pdf": FigureCanvasPdf}
KINDS = tuple(_CANVASES)
_UNDATED = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}
DECADES = 30.0  # from this ratio on, lengths stand on a logarithmic axis


def new_figure(width_inches: float, height_inches: float) -> Figure:
    """An empty figure that needs no display."""
    figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def fill(place: int, method: str = "") -> dict[str, Any]:
    """Colour and hatch of the bars that come at that place; the colour is a method's own where one is named."""
    return shade(colour_of(method) if method else PALETTE[place % len(PALETTE)], place)


def variant_fill(place: int, method: str = "") -> dict[str, Any]:
    """Shade and hatch of a method's variant that comes at that place, or of it whatever the method, in grey."""
    return shade(lighter(colour_of(method) if method else "#666666", place), place)


def shade(colour: str, place: int) -> dict[str, Any]:
    """A colour with the hatch of a place."""
    colours = {"facecolor": colour, "edgecolor": "black", "linewidth": 0.5}
    return colours | {"hatch": HATCHES[place % len(HATCHES)]}


def method_mark(method: str) -> dict[str, Any]:
    """Colour and mark of a method, the same in every figure."""
    return {"color": colour_of(method), "marker": mark_of(method)}


def mark(place: int) -> dict[str, Any]:
    """Colour and mark of the line that comes at that place."""
    return {"color": PALETTE[place % len(PALETTE)], "marker": MARKS[place % len(MARKS)]}


def methods_down(axes: Axes, names: Sequence[str]) -> None:
    """Methods from top to bottom, for horizontal bars."""
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), list(names), fontsize=8.5)
    tidy(axes, grid="x")


def tidy(axes: Axes, grid: str = "y") -> None:
    """Faint lines behind the data, and no frame above and to the right."""
    axes.set_axisbelow(True)
    axes.grid(axis=grid, linewidth=0.4, color="0.8")  # type: ignore[arg-type]
    axes.spines[["top", "right"]].set_visible(False)


def panels_of(
    count: int, across: int, inches: tuple[float, float], xlabel: str, least: float, room: float, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure of so many panels, at most `across` side by side, and xlabel below the lowest ones.

    inches: of a panel. least: inches that the figure is wide at least. room: inches above and below the panels.
    """
    across = min(across, count)
    down = -(-count // across)
    figure = new_figure(max(least, inches[0] * across), room + inches[1] * down)
    every = list(figure.subplots(down, across, squeeze=False, sharey=sharey).flat)
    for axes in every[count:]:
        axes.set_axis_off()
    for axes in every[count - across : count]:
        axes.set_xlabel(xlabel, fontsize=9)
    return figure, every[:count]


def measured(
    columns: Sequence[Column], has_point: Callable[[Column], bool], why: str = "Not run"
) -> tuple[list[Column], str]:
    """Columns that have a point to draw, or all where none has; and which were left out and why, for the caption."""
    shown = [column for column in columns if has_point(column)] or list(columns)
    missing = ", ".join(column.name for column in columns if column not in shown)
    return shown, f" {why}: {missing}." if missing else ""


def say_not_run(axes: Axes) -> None:
    """An empty panel that says so."""
    axes.text(0.5, 0.5, NOT_RUN, transform=axes.transAxes, ha="center", va="center", color="0.35")


def beside(axes: Axes, text: str, x: float, y: float, points: int = 6) -> None:
    """A text to the right of a bar or a mark."""
    axes.annotate(text, (x, y), (points, 0), textcoords="offset points", va="center", fontsize=7.5)


def digits(value: float) -> str:
    """A number with three digits, or all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def lengths_along(axes: Axes, lengths: Iterable[float], room: float) -> float:
    """Scale the axis of horizontal bars, logarithmic over decades, with room for texts; returns where it begins."""
    positive = [length for length in lengths if length > 0]
    low, high = min(positive, default=0.0), max(positive, default=0.0)
    if high < DECADES * low or not positive:
        axes.set_xlim(0, room * high or 1.0)
        return 0.0
    axes.set_xscale("log")
    start = low / 3
    axes.set_xlim(start, start * (high / start) ** room)
    return start


def wrapped(text: str, inches: float, points: float) -> str:
    """A text broken into lines that fit that many inches at that size."""
    return "\n".join(textwrap.wrap(text, max(20, int(inches * 120 / points)), break_on_hyphens=False))


def finish(figure: Figure, heading: str, handles: Sequence[Any], caption: str, columns: int = 3) -> Figure:
    """The figure with its heading above the panels, and below them the legend under what explains the drawing."""
    figure.suptitle(wrapped(heading, figure.get_figwidth(), 11), fontsize=11)
    title: Any = {"title": wrapped(caption, figure.get_figwidth(), 8.5), "title_fontsize": 8}
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    fitting = max(1, int(figure.get_figwidth() / (0.75 + 0.078 * longest)))  # inches of a key, and of a letter
    columns = min(columns, fitting)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9, **title)
    return figure


def render(figure: Callable[[], Figure], *kinds: str) -> list[bytes]:
    """A figure as files of some of KINDS, laid out once: the same bytes for the same numbers."""
    found = []
    with mpl.rc_context(_STYLE):
        drawn = figure()
        if (layout := drawn.get_layout_engine()) is not None:
            layout.execute(drawn)
            drawn.set_layout_engine("none")
        for kind in kinds:
            file = io.BytesIO()
            drawn.set_dpi(150)
            # Not by savefig, which lays out and draws everything once more for each file.
            getattr(_CANVASES[kind](drawn), f"print_{kind}")(file, metadata=_UNDATED[kind])
            found.append(file.getvalue())
    return found
