"""Shared parts of figures: dot plots, colours, marks, captions, and files with equal bytes for equal numbers."""

from __future__ import annotations

import io
import re
import textwrap
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.experiment import Column
from reports.evidence.records import DAGGER
from reports.pages.text import NOT_RUN

# Okabe and Ito's colours for the methods that occur most often; all are visible on white and on near-black.
_COLOURS = {
    "#0072B2": ("FedAvg", "BERT-FL", "FedAvg · ordinary"),
    "#E69F00": ("FedProx", "Head-Emd Avg"),
    "#009E73": ("FedAdam", "EmdAvg", "FedSplitBERT · ordinary"),
    "#D55E00": ("FedSplitBERT", "FEDBFPT", "C-FedFreezeBERT · P-SUM"),
    "#CC79A7": ("FedSplitBERT + qat", "Head-Emd Share", "C-FedFreezeBERT · H-SUM"),
    "#B07AA1": ("FedPer",),
    "#8C6D31": ("Local only", "Single Client"),
    "#5F86A6": ("Centralised training", "Centralized", "BERT-C"),
    "#A08060": ("Linear model",),
    "#868686": ("Majority class, per client", "Majority class", "Majority-class baseline"),
    "#BDBDBD": ("Majority class, global",),
    "#56B4E9": ("FedAvg + fp16", "Parallel FedAvg"),
    "#8B3A62": ("FedSplitBERT, c chosen on test data",),
    "#3C6FD0": ("FedAvg + local fine-tuning",),
    "#7A4FBF": ("FedAvg + prior", "FedAvg + prior, strength 1"),
}
_METHODS = {method: colour for colour, methods in _COLOURS.items() for method in methods}
_OTHERS = (
    *("#4E79A7", "#F28E2B", "#59A14F", "#E15759", "#76B7B2", "#B07AA1", "#FF9DA7", "#9C755F", "#56B4E9", "#C4A000"),
    *("#1F9E89", "#6A6ACD"),
)
_LAYERS = ("#7B5EA7", "#5B6FB5", "#3C8DBC", "#2BA6A0", "#3FB97A", "#86C440", "#C9B400")  # c = 0 … 12
_LAYER = re.compile(r"c = (\d+)\b")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Okabe and Ito's palette, safe for all common kinds of colour vision.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
LEVELS = ("--", ":", "-.")
HOLLOW: Any = {"marker": "D", "markerfacecolor": "none"}
# Fixed, so that equal numbers give equal files.
_STYLE: Any = {
    "svg.hashsalt": "reports",
    "svg.fonttype": "none",  # text stays text, there and in PDF
    "pdf.fonttype": 42,
    "font.family": ["DejaVu Sans", "sans-serif"],
}
_CANVASES = {"png": FigureCanvasAgg, "svg": FigureCanvasSVG, "pdf": FigureCanvasPdf}
KINDS = tuple(_CANVASES)
_UNDATED = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}
_LEGEND_LINES = 4  # for which figures have room
_DECADES = 30.0  # from this ratio on, the axis is logarithmic


def colour_of(method: str) -> str:
    """The colour of a method by its name, with or without a dagger: the same in every table and figure."""
    method = method.removesuffix(f" {DAGGER}")
    if method in _METHODS:
        return _METHODS[method]
    if layer := _LAYER.match(method):
        return _LAYERS[min(int(layer[1]) // 2, len(_LAYERS) - 1)]
    return _OTHERS[zlib.crc32(method.encode()) % len(_OTHERS)]


@dataclass(frozen=True)
class Dots:
    """One series of a dot plot.

    Args:
        values: Name on the axis -> value.
        style: The style of its marks; their colour is the method's unless it is set.
        whiskers: Name on the axis -> lower and upper end.
    """

    label: str
    values: Mapping[str, float]
    style: Mapping[str, Any] = field(default_factory=dict)
    whiskers: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Panel:
    """A panel of a dot plot: names from top to bottom. texts: name -> text at the right of its line.

    levels: label -> position of a vertical line.
    """

    title: str
    names: Sequence[str]
    series: Sequence[Dots]
    texts: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, float] = field(default_factory=dict)


def dot_plot(heading: str, panels: Sequence[Panel], xlabel: str, caption: str, across: int = 3) -> Figure:
    """Panels in a grid: a line for each name, a mark for each series; logarithmic if values span decades."""
    names = max((len(panel.names) for panel in panels), default=1)
    inches = (5.0 if any(panel.texts for panel in panels) else 4.0), 0.7 + 0.26 * names
    figure, axes_of = panels_of(len(panels), across, inches, xlabel, least=6.5, room=1.6, sharey=True)
    handles: dict[str, Any] = {}
    for axes, panel in zip(axes_of, panels, strict=True):
        _draw_dots(axes, panel, handles)
    return finish(figure, heading, list(handles.values()), caption)


def _draw_dots(axes: Axes, panel: Panel, handles: dict[str, Any]) -> None:
    axes.set_title(mathtext(panel.title), fontsize=9.5)
    axes.set_ylim(len(panel.names) - 0.4, -0.6)
    axes.set_yticks(range(len(panel.names)), list(panel.names), fontsize=8.5)
    axes.tick_params(axis="x", labelsize=8)
    tidy(axes, grid="x")
    for series in panel.series:
        style: Any = {"linestyle": "none", "marker": "o", "markersize": 5.5} | dict(series.style)
        if series.values:  # a legend explains what is drawn
            handles.setdefault(series.label, Line2D([], [], label=series.label, **({"color": "0.35"} | style)))
        for name in (name for name in panel.names if name in series.values):
            value, low, high = series.values[name], *series.whiskers.get(name, (series.values[name],) * 2)
            errors = [[value - low], [high - value]] if low != high else None
            shown = {"color": colour_of(name)} | style
            axes.errorbar(value, panel.names.index(name), xerr=errors, capsize=2, elinewidth=0.9, **shown)
    for dashes, (label, level) in zip(cycle(LEVELS), panel.levels.items(), strict=False):
        line = axes.axvline(level, color="0.25", linestyle=dashes, linewidth=1.0, label=label)
        handles.setdefault(label, line)
    values = [value for series in panel.series for value in series.values.values()]
    log_axis(axes, "x", values)
    if not values and not panel.texts:
        say_not_run(axes)
    for name, text in panel.texts.items():
        place: Any = {"x": 1.01, "y": panel.names.index(name), "transform": axes.get_yaxis_transform()}
        axes.text(s=f"{text} ", va="center", fontsize=7.5, **place)
    if panel.texts and (layout := axes.figure.get_layout_engine()) is not None:
        layout.set(wspace=0.08)  # type: ignore[call-arg]  # so that a text does not touch the next panel


def log_axis(axes: Axes, which: Literal["x", "y"], values: Sequence[float], ratio: float = _DECADES) -> None:
    """Make an axis logarithmic if the ratio of its largest to its smallest value is large, with plain tick labels."""
    if values and min(values) > 0 and max(values) > ratio * min(values):
        axes.set(**{f"{which}scale": "log"})
        axis = axes.xaxis if which == "x" else axes.yaxis
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if max(values) < 300 * min(values) else (1.0,)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())


def mathtext(text: str) -> str:
    """Text with F1^PN as a formula."""
    return text.replace("F1^PN", "$F_1^{PN}$")


def new_figure(width_inches: float, height_inches: float) -> Figure:
    """An empty figure that needs no display."""
    figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def method_mark(method: str) -> dict[str, Any]:
    """Colour and mark of a method, the same in every figure."""
    place = list(_METHODS).index(method) if method in _METHODS else zlib.crc32(method.encode())
    return {"color": colour_of(method), "marker": MARKS[place % len(MARKS)]}


def method_marks(methods: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Colour and mark of each method of a figure: its own ones, or the next mark that its colour does not have yet."""
    styles: dict[str, dict[str, Any]] = {}
    for method in dict.fromkeys(methods):
        own = method_mark(method)
        place = MARKS.index(own["marker"])
        marks = (own | {"marker": each} for each in (*MARKS[place:], *MARKS[:place]))
        styles[method] = next((style for style in marks if style not in styles.values()), own)
    return styles


def mark(place: int) -> dict[str, Any]:
    """Colour and mark of the line at this position."""
    return {"color": PALETTE[place % len(PALETTE)], "marker": MARKS[place % len(MARKS)]}


def tidy(axes: Axes, grid: str = "y") -> None:
    """Faint lines behind the data, and no frame above and to the right."""
    axes.set_axisbelow(True)
    axes.grid(axis=grid, linewidth=0.4, color="0.8")  # type: ignore[arg-type]
    axes.spines[["top", "right"]].set_visible(False)


def panels_of(
    count: int, across: int, inches: tuple[float, float], xlabel: str, least: float, room: float, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure of panels in rows of equal length.

    Args:
        count: The number of panels.
        across: The most panels in a row.
        inches: A panel's width and height in inches.
        xlabel: The label below the lowest panels.
        least: The figure's smallest width in inches.
        room: The height above and below the panels in inches.
        sharey: Whether the panels share a y axis.
    """
    down = -(-count // across)
    across = -(-count // down)
    figure = new_figure(max(least, inches[0] * across), room + inches[1] * down)
    every = list(figure.subplots(down, across, squeeze=False, sharey=sharey).flat)
    for axes in every[count:]:
        axes.set_axis_off()
    for axes in every[count - across : count]:
        axes.set_xlabel(xlabel, fontsize=9)
    return figure, every[:count]


def with_points(
    columns: Sequence[Column], has_point: Callable[[Column], bool], why: str = "Not run"
) -> tuple[list[Column], str]:
    """Columns with a point to draw, or all without any; and for the caption, the omitted ones with the reason."""
    shown = [column for column in columns if has_point(column)] or list(columns)
    missing = ", ".join(column.name for column in columns if column not in shown)
    return shown, f" {why}: {missing}." if missing else ""


def say_not_run(axes: Axes) -> None:
    """Label an empty panel as not run."""
    axes.text(0.5, 0.5, NOT_RUN, transform=axes.transAxes, ha="center", va="center", color="0.35")


def digits(value: float) -> str:
    """A number with three digits, or with all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def wrapped(text: str, inches: float, points: float) -> str:
    """A text broken into lines that fit a width in inches at a font size."""
    return "\n".join(textwrap.wrap(text, max(20, int(inches * 120 / points)), break_on_hyphens=False))


def finish(figure: Figure, heading: str, handles: Sequence[Any], caption: str) -> Figure:
    """The figure with its heading above the panels, and below them the caption and the legend.

    A long legend makes the figure higher, not its panels lower.
    """
    figure.suptitle(wrapped(heading, figure.get_figwidth(), 11), fontsize=11)
    title: Any = {"title": wrapped(caption, figure.get_figwidth(), 8.5), "title_fontsize": 8}
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    fitting = max(1, int(figure.get_figwidth() / (0.75 + 0.078 * longest)))  # inches of a key, and of a letter
    columns = min(3, fitting)
    figure.set_figheight(figure.get_figheight() + 0.19 * max(0, -(-len(handles) // columns) - _LEGEND_LINES))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9, **title)
    return figure


def render(figure: Callable[[], Figure], *kinds: str) -> list[bytes]:
    """A figure as files of some of KINDS, laid out once: the same bytes for the same numbers."""
    files = []
    with mpl.rc_context(_STYLE):
        drawn = figure()
        drawn.set_dpi(150)  # before the layout, as the width of a text depends on it
        if (layout := drawn.get_layout_engine()) is not None:
            layout.execute(drawn)
            drawn.set_layout_engine("none")
        for kind in kinds:
            file = io.BytesIO()
            drawn.set_dpi(150)
            # Not by savefig, which lays out and draws everything once more for each file.
            getattr(_CANVASES[kind](drawn), f"print_{kind}")(file, metadata=_UNDATED[kind])
            files.append(file.getvalue())
    return files
