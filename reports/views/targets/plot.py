"""Megabytes to a target as bars: a panel a task, a bar a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks.spec import Column
from reports.layout import DAGGER, NOT_RUN, number, row_name, score_label
from reports.page import Request
from reports.plots import PALETTE, add_legend, new_figure, tidy, wrapped
from reports.views.targets.outcomes import Kind, Outcome, Outcomes, baseline_of
from reports.views.targets.stated import Stated, is_comparable, stated_of
from reports.views.targets.tables import MEGABYTE, factor

NO_TARGET = "no target"
_PAPER = "paper"  # the scale of the printed targets
_ACROSS = 2
_PANEL_INCHES = 5.0
_BAR_INCHES = 0.36
_ROOM = 2.0  # length of the axis over the longest bar's, for the texts
_COLOR = PALETTE[0]  # names tell the methods apart, so one colour does
_BAR: Any = {"facecolor": _COLOR, "edgecolor": "black", "linewidth": 0.7}
_CENSORED: Any = {"facecolor": "white", "edgecolor": "0.35", "hatch": "////", "linewidth": 0.7}
_STATED: Any = {"marker": "D", "markersize": 6, "color": "white", "markeredgecolor": "black", "linestyle": "none"}


def kind_drawn(request: Request) -> Kind:
    """The printed target at the paper's scale; the scale-free one with another encoder."""
    return "printed" if request.scale.id == _PAPER else "baseline"


def _megabytes(outcome: Outcome) -> float:
    """Length of a bar."""
    return 0.0 if outcome.sent is None else float(outcome.sent.bytes) / MEGABYTE


def _text(outcome: Outcome) -> str:
    """Megabytes and rounds of a bar."""
    if outcome.sent is None:
        return NO_TARGET if outcome.is_run else NOT_RUN
    size = f"{_megabytes(outcome):.4g} MB"
    if outcome.is_complete:
        rounds = factor(outcome.sent.rounds)
        return f"{size}, {rounds} round{'' if rounds == '1' else 's'}"
    if not outcome.sent.bytes:
        return "not reached"
    missed = f" by {len(outcome.attempts) - outcome.reached} of {len(outcome.attempts)} seeds"
    return f"> {size}: not reached{missed if outcome.reached else ''}"


def _title(found: Outcomes, column: Column) -> str:
    """The task with its target."""
    kind = kind_drawn(found.request)
    target = found.of(kind, column)[0].target
    if target is None:
        return f"{column.name}: {baseline_of(found.request).name}, which sets the target, was not run"
    whose = "printed" if kind == "printed" else f"{baseline_of(found.request).name}'s last round"
    return f"{column.name}: {score_label(column.averaged)} ≥ {number(100 * target)} % ({whose})"


def _draw_panel(axes: Axes, found: Outcomes, column: Column, stated: Mapping[tuple[str, str], Stated]) -> None:
    """One task, methods from top to bottom in the order of the rows; texts right of bars and marks."""
    outcomes = found.of(kind_drawn(found.request), column)
    is_marked = is_comparable(found.request)
    axes.set_ylim(len(outcomes) - 0.4, -0.6)
    axes.set_yticks(range(len(outcomes)), [row_name(outcome.row) for outcome in outcomes], fontsize=8.5)
    tidy(axes, grid="x")
    if not any(outcome.is_run for outcome in outcomes):
        axes.set_title(column.name, fontsize=9.5)
        axes.text(0.5, 0.5, NOT_RUN, transform=axes.transAxes, ha="center", va="center", color="0.35")
        axes.set_xticks([])
        return
    axes.set_title(_title(found, column), fontsize=9.5)
    axes.tick_params(axis="x", labelsize=8)
    longest = 0.0
    for place, outcome in enumerate(outcomes):
        end, text, fact = _megabytes(outcome), _text(outcome), stated.get((outcome.row.id, column.task))
        if outcome.sent is not None:
            axes.barh(place, end, 0.62, **(_BAR if outcome.is_complete else _CENSORED))
        if fact is not None:
            text = f"{text}\nstated: {fact.text}"
            if is_marked:
                axes.plot([fact.megabytes], [place], **_STATED)
                end = max(end, fact.megabytes)
        axes.annotate(text, (end, place), (6, 0), textcoords="offset points", va="center", fontsize=7.5)
        longest = max(longest, end)
    axes.set_xlim(0, _ROOM * longest or 1.0)


def _caption(request: Request) -> str:
    """What bars, hatches and marks are."""
    text = (
        "Bars: uploads of all clients until the first round at the target, mean over seeds; hatched: bytes of all "
        "rounds where some seed does not reach it (its other seeds until they do)."
    )
    if any(not row.printed for row in request.rows):
        text += f" {DAGGER} not in the paper."
    if stated_of(request):
        text += " Stated: in the paper's text, its MBits read as megabytes"
        text += "." if is_comparable(request) else "; not comparable: other encoder, scale or target."
    return text


def _handles(request: Request) -> list[Any]:
    """What the legend shows."""
    handles: list[Any] = [Patch(label="target reached", **_BAR), Patch(label="not reached", **_CENSORED)]
    if is_comparable(request) and stated_of(request):
        handles.append(Line2D([], [], label="stated", **_STATED))
    return handles


def target_plot(found: Outcomes) -> Figure:
    """A panel for each task, with "not run" in it or beside every method without a record."""
    request = found.request
    stated = {(fact.row.id, fact.column.task): fact for fact in stated_of(request)}
    across = min(_ACROSS, len(request.columns))
    down = -(-len(request.columns) // across)
    inches = max(6.5, _PANEL_INCHES * across)
    figure = new_figure(inches, 1.5 + down * (0.6 + _BAR_INCHES * len(request.rows)))
    panels = figure.subplots(down, across, squeeze=False, sharey=True)
    for number_, axes in enumerate(panels.flat):
        if number_ >= len(request.columns):
            axes.set_axis_off()
            continue
        _draw_panel(axes, found, request.columns[number_], stated)
        if number_ + across >= len(request.columns):
            axes.set_xlabel("MB uploaded until the target", fontsize=9)
    figure.suptitle(wrapped(request.heading, inches, 11), fontsize=11)
    add_legend(figure, _handles(request), _caption(request))
    return figure
