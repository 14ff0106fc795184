"""Megabytes to a target as bars: a panel a task, a bar a method."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks.experiment import Column
from reports.evidence.records import PAPER
from reports.evidence.targets import Kind, Outcome, Targets, is_comparable
from reports.pages.plots import (
    DIAMOND,
    beside,
    digits,
    finish,
    lengths_along,
    measured,
    methods_down,
    panels_of,
    say_not_run,
)
from reports.pages.styles import colour_of
from reports.pages.text import NOT_RUN, dagger_note, row_name
from reports.views.targets import MEGABYTE, factor, target_text

NO_TARGET = "no target"
_LEFT_OUT = "Left out, as what sets the target or all methods were not run"
_BAR_INCHES = 0.36
_WAYS = {("up",): "uplink", ("down",): "downlink", ("up", "down"): "uplink and downlink"}
_ROOM = 2.0  # length of the axis over the longest bar's, for the texts
_BAR: Any = {"facecolor": "0.6", "edgecolor": "black", "linewidth": 0.7}  # in a method's own colour beside its name
_CENSORED: Any = {"facecolor": "white", "edgecolor": "0.35", "hatch": "////", "linewidth": 0.7}
_STATED: Any = DIAMOND | {"markersize": 6}


def _kind_drawn(found: Targets) -> Kind:
    return "printed" if found.request.scale.id == PAPER else "baseline"


def _megabytes(outcome: Outcome) -> float:
    return 0.0 if outcome.sent is None else float(outcome.sent.bytes) / MEGABYTE


def _text(outcome: Outcome) -> str:
    if outcome.sent is None:
        return NO_TARGET if outcome.is_run else NOT_RUN
    size = f"{digits(_megabytes(outcome))} MB"
    if outcome.is_complete:
        rounds = factor(outcome.sent.rounds)
        return f"{size}, {rounds} round{'' if rounds == '1' else 's'}"
    if not outcome.sent.bytes:
        return "not reached"
    missed = f" by {len(outcome.attempts) - outcome.reached} of {len(outcome.attempts)} seeds"
    return f"> {size}: not reached{missed if outcome.reached else ''}"


def _title(found: Targets, column: Column) -> str:
    kind = _kind_drawn(found)
    target = found.of(kind, column)[0].target_shown
    if target is None:
        return f"{column.name}: {found.baseline.name}, which sets the target, was not run"
    whose = "printed" if kind == "printed" else f"{found.baseline.name}'s best round"
    return f"{column.name}: {target_text(column, target)} ({whose})"


def _style(outcome: Outcome) -> dict[str, Any]:
    colour = colour_of(outcome.row.name)
    return _BAR | {"facecolor": colour} if outcome.is_complete else _CENSORED | {"edgecolor": colour}


def _is_measured(found: Targets, column: Column) -> bool:
    """Whether some method's bytes until the target are known: not where what sets the target was not run."""
    return any(outcome.sent is not None for outcome in found.of(_kind_drawn(found), column))


def _draw_panel(axes: Axes, found: Targets, column: Column, run: Sequence[str]) -> None:
    outcomes = [outcome for outcome in found.of(_kind_drawn(found), column) if outcome.row.id in run]
    stated = {fact.row.id: fact for fact in found.stated if fact.column.task == column.task}
    is_marked = is_comparable(found.request)
    methods_down(axes, [row_name(outcome.row) for outcome in outcomes])
    if not any(outcome.is_run for outcome in outcomes):
        axes.set_title(column.name, fontsize=9.5)
        say_not_run(axes)
        axes.set_xticks([])
        return
    axes.set_title(_title(found, column), fontsize=9.5)
    axes.tick_params(axis="x", labelsize=8)
    marked = [fact.megabytes for fact in stated.values() if is_marked and fact.row.id in run]
    start = lengths_along(axes, [*map(_megabytes, outcomes), *marked], _ROOM)
    for place, outcome in enumerate(outcomes):
        end, text, fact = _megabytes(outcome), _text(outcome), stated.get(outcome.row.id)
        if outcome.sent is not None:
            axes.barh(place, max(0.0, end - start), 0.62, start, **_style(outcome))
        if fact is not None:
            text = f"{text}\nstated: {fact.text}"
            if is_marked:
                axes.plot([fact.megabytes], [place], **_STATED)
                end = max(end, fact.megabytes)
        beside(axes, text, max(end, start), place)


def _caption(found: Targets, columns: Sequence[Column]) -> str:
    text = (
        f"Bars: {_WAYS[found.request.benchmark.paper.directions]} of all clients until "
        "the first round at the target, mean over seeds; hatched: bytes of all "
        "rounds where some seed does not reach it (its other seeds until they do)."
    )
    text += dagger_note(found.request.rows)
    if any(fact.column in columns for fact in found.stated):
        text += " Stated: in the paper's text, its MBits read as megabytes"
        text += "." if is_comparable(found.request) else "; not comparable: other encoder, scale or target."
    return text


def plot(found: Targets) -> Figure:
    """A panel for each task that has a target, "not run" beside methods without a record; empty ones where none has."""
    request = found.request
    columns, left_out = measured(request.columns, partial(_is_measured, found), _LEFT_OUT)
    outcomes = [outcome for column in columns for outcome in found.of(_kind_drawn(found), column)]
    ran = {outcome.row.id for outcome in outcomes if outcome.is_run}
    rows = [row.id for row in request.rows if row.id in ran] or [row.id for row in request.rows]
    inches = (5.0, 0.6 + _BAR_INCHES * len(rows))
    label = f"{_WAYS[request.benchmark.paper.directions]} until the target, MB"
    figure, panels = panels_of(len(columns), 2, inches, label, least=6.5, room=1.5, sharey=True)
    for axes, column in zip(panels, columns, strict=True):
        _draw_panel(axes, found, column, rows)
    handles: list[Any] = [Patch(label="target reached", **_BAR), Patch(label="not reached", **_CENSORED)]
    if is_comparable(request) and found.stated:
        handles.append(Line2D([], [], label="stated", **_STATED))
    return finish(figure, request.heading, handles, _caption(found, columns) + left_out)
