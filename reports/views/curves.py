"""The view of a figure of curves: scores or training loss against rounds.

Options: quantity, "score" (each column's averaged one) or "train_loss"; references, ids of rows with the same
predictions after every round. A statement of the paper's text about a curve is a line of the published CSV with the
score's id, and another with the score "rounds".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from benchmarks.experiment import Column, Row
from benchmarks.measures import TRAIN_LOSS, metric
from benchmarks.results import ROUND
from benchmarks.run_config import JSON
from reports.evidence.published import published_for
from reports.evidence.records import DEMO, PAPER, Request
from reports.evidence.scores import Scores, score_label, scores_of
from reports.evidence.statistics import sample_sd
from reports.frame import TableView
from reports.pages.page import Grid, Group, Line, keys_of
from reports.pages.plots import finish, log_axis, mathtext, method_marks, panels_of, say_not_run, tidy, with_points
from reports.pages.text import (
    NOTHING,
    UNDEFINED,
    dagger_note,
    in_units,
    not_run,
    notes_under,
    number,
    over_clients,
    seed_counts,
    with_unit,
)

_LEVEL: Any = {"color": "0.35", "linestyle": "--", "linewidth": 1.2}
_STATED: Any = {"color": "black", "linestyle": ":", "linewidth": 1.3}


class Curves(TableView):
    """Curves by row and task. ReportError if a record lacks the score."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.is_loss = self.options["quantity"] == TRAIN_LOSS  # whether the curves show the training loss, not scores
        self.references: tuple[str, ...] = self.options.get("references", ())  # ids of the rows that are levels

    @cached_property
    def by_cell(self) -> dict[tuple[str, str], Scores]:
        request = self.request
        cells = product(request.rows, request.columns)
        return {(row.id, at.task): scores_of(request.records_of(row, at), self.measure(at)) for row, at in cells}

    @cached_property
    def stated(self) -> dict[tuple[str, str], tuple[str, float, int]]:
        """(row id, task) -> the text's statement: a sign (">", or "<" if lower is better), a level, and rounds."""
        values, statements = published_for(self.request), {}
        for row, column in product(self.request.rows, self.request.columns):
            level = values.get((row.id, column.task, self.measure(column)))
            if level is not None:
                sign = ">" if metric(self.measure(column)).higher_is_better else "<"
                rounds = int(values[row.id, column.task, "rounds"].value)
                statements[row.id, column.task] = sign, level.value, rounds
        return statements

    def measure(self, column: Column) -> str:
        """The quantity of a task as a score id: "test/accuracy", …, or TRAIN_LOSS."""
        return TRAIN_LOSS if self.is_loss else column.averaged

    def label(self, column: Column) -> str:
        measured = metric(self.measure(column))
        name = measured.label if self.is_loss else score_label(column, column.averaged)
        return with_unit(name, measured.unit)

    @property
    def over_decades(self) -> bool:
        return any(metric(self.measure(column)).over_decades for column in self.request.columns)

    def text(self, value: float | None) -> str:
        if self.over_decades and value is not None:
            return f"{value:.1e}"
        return number(value, places=3 if self.is_loss else 2)

    @cached_property
    def step(self) -> str:
        """What the curves count: rounds, or epochs of training in one place."""
        request = self.request
        runs = (request.benchmark.cell(row, at, request.scale, 0) for row in request.rows for at in request.columns)
        return "round" if any(run.clients > 1 or run.training.local_epochs != 1 for run in runs) else "epoch"

    @property
    def best_word(self) -> str:
        directions = {metric(self.measure(column)).higher_is_better for column in self.request.columns}
        return "best" if len(directions) > 1 else "highest" if directions.pop() else "lowest"

    def method(self) -> Iterator[str]:
        """How the curves are computed."""
        columns, step = self.request.columns, self.step
        is_measured = all(column.averaged.startswith(f"{ROUND}/") for column in columns)  # no score
        after = "" if step == "epoch" else f"'s aggregation: {over_clients(columns)}"
        if self.is_loss:
            yield (
                "Training loss: the task's own, mean over the examples that the clients of a round trained on, "
                "measured during training and so before the round's aggregation; then mean over n seeds; ± sd over "
                "seeds (n - 1). lowest: of these means."
            )
        else:
            yield (
                f"Scores{in_units(columns)} after each {step}{after}, then mean over n seeds; ± sd over seeds (n - 1). "
                f"{self.best_word}: of these means{'' if is_measured else ', so chosen on the test score itself'}."
            )
        if self.stated:
            yield "stated: the level that the paper's text names; its figure has no numbers."

    def notes(self) -> Iterator[str]:
        """Every note under the curves."""
        undefined = []
        for row, column in product(self.request.rows, self.request.columns):
            curve = self.by_cell[row.id, column.task]
            missing = [str(place) for place, scores in enumerate(curve.by_round, 1) if len(scores) < len(curve.seeds)]
            if missing:
                seeds = "undefined for some seeds, which the mean leaves out, in rounds"
                undefined.append(f"{row.name}, {column.name}: {seeds} {', '.join(missing)}.")
        return notes_under(self.request, self.method(), cells=undefined)

    def _lines_of(self, row: Row) -> Iterator[Line]:
        columns = self.request.columns
        curves = {column.task: self.by_cell[row.id, column.task] for column in columns}
        longest = max(1, *(len(curve.means) for curve in curves.values()))
        is_run, is_level = any(curve.is_run for curve in curves.values()), row.id in self.references

        def at(place: int, column: Column) -> str:
            curve = curves[column.task]
            if not curve.is_run:
                return NOTHING if place else not_run(self.request, row, column)
            if place >= len(curve.means):
                return NOTHING
            return UNDEFINED if curve.means[place] is None else self.text(curve.means[place])

        def best(curve: Scores) -> str:
            value = curve.metric.best(curve.means)
            return NOTHING if value is None else f"{self.text(value)} ({curve.means.index(value) + 1})"

        for place in range(1 if is_level else longest):
            label = f"every {self.step}" if is_level else f"{self.step} {place + 1}"
            yield Line(label, tuple(at(place, column) for column in columns))
        if is_run:
            if not is_level:
                yield Line(f"{self.best_word} ({self.step})", tuple(map(best, curves.values())))
            if any(len(curve.seeds) > 1 for curve in self.by_cell.values()):
                sds = (sample_sd(curve.by_round[-1]) if curve.is_run else None for curve in curves.values())
                yield Line(f"± sd, last {self.step}", tuple(map(self.text, sds)))
            counts = (str(len(curve.seeds)) if curve.is_run else NOTHING for curve in curves.values())
            yield Line("seeds (n)", tuple(counts))
        stated = [self.stated.get((row.id, column.task)) for column in columns]
        if any(stated):
            texts = (f"{fact[0]} {number(fact[1])} ({fact[2]})" if fact else NOTHING for fact in stated)
            yield Line("stated (within rounds)", tuple(texts))

    def grids(self) -> tuple[Grid, ...]:
        """Groups are methods, columns tasks, lines rounds."""
        request = self.request
        groups = tuple(Group(request.name_of(row), tuple(self._lines_of(row))) for row in request.rows)
        headers = tuple((column.name, self.label(column)) for column in request.columns)
        title = metric(TRAIN_LOSS).label if self.is_loss else "scores"
        return (Grid(f"{request.heading}: {title} after every {self.step}", headers, groups),)

    def lines(self) -> Iterator[dict[str, JSON]]:
        """Scores and losses in their units, a line for each round and seed."""
        for row, column in product(self.request.rows, self.request.columns):
            common = keys_of(self.request, row, column) | {"quantity": self.measure(column)}
            curve = self.by_cell[row.id, column.task]
            if not curve.is_run:
                yield common | {"status": not_run(self.request, row, column)}
            for seed, values in zip(curve.seeds, curve.shown, strict=True):
                for place, value in enumerate(values, start=1):
                    yield common | {"status": "run", "round": place, "seed": seed, "value": value}

    @property
    def _drawn(self) -> list[Row]:
        return [row for row in self.request.benchmark.rows if row.id not in self.references]

    @cached_property
    def _marks(self) -> dict[str, dict[str, Any]]:
        return method_marks(row.name for row in self._drawn)

    def _style(self, row: Row) -> dict[str, Any]:
        """A method's colour and mark, whatever rows are shown; later ones slimmer, so that equal curves show."""
        if row.id in self.references:
            return _LEVEL
        drawn = [entry.id for entry in self._drawn]
        slimmer = drawn.index(row.id) / len(drawn)
        sizes = {"linewidth": 3.0 - 2.0 * slimmer, "markersize": 10 - 5 * slimmer, "markeredgewidth": 1.4}
        return self._marks[row.name] | sizes | {"markerfacecolor": "none"}

    def _draw_panel(self, axes: Axes, column: Column) -> None:
        axes.set_title(mathtext(f"{column.name}: {self.label(column)}"), fontsize=10)
        tidy(axes)
        axes.tick_params(labelsize=8)
        # Levels are drawn last, so no curve covers them.
        for row in sorted(self.request.rows, key=lambda row: row.id in self.references):
            curve, style = self.by_cell[row.id, column.task], self._style(row)
            means = [math.nan if value is None else value for value in curve.means]
            rounds = range(1, len(means) + 1)
            if row.id in self.references and means:
                axes.axhline(means[0], **style)
            elif means:
                axes.plot(rounds, means, **style)
                low, high = ([end(values, default=math.nan) for values in curve.by_round] for end in (min, max))
                axes.fill_between(rounds, low, high, color=style["color"], alpha=0.18, linewidth=0)
            if (row.id, column.task) in self.stated:
                _, level, within = self.stated[row.id, column.task]
                axes.axhline(level, **_STATED)
                axes.axvline(within, **_STATED)
                axes.annotate("stated", (within, level), (4, 3), textcoords="offset points", fontsize=7.5)
        drawn = (self.by_cell[row.id, column.task].means for row in self.request.rows)
        if self.is_loss or self.over_decades:  # one first round would flatten the others
            log_axis(axes, "y", [value for means in drawn for value in means if value], 10.0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if not axes.has_data():
            say_not_run(axes)

    def _handles(self, columns: Sequence[Column]) -> Iterator[Line2D]:
        run = {row_id for (row_id, _), curve in self.by_cell.items() if curve.is_run} | {*self.references}
        for row in (row for row in self.request.rows if row.id in run):
            yield Line2D([], [], label=self.request.name_of(row), **self._style(row))
        for row, column in product(self.request.rows, columns):
            if (row.id, column.task) in self.stated:
                sign, level, within = self.stated[row.id, column.task]
                label = f"stated: {row.name} on {column.name} {sign} {level:g} within {within} rounds"
                yield Line2D([], [], label=label, **_STATED)

    def plot(self) -> Figure:
        """A panel for each task with runs; without any run, all panels say "not run"."""
        request = self.request
        drawn = [row.id for row in request.rows if row.id not in self.references]
        columns, left_out = with_points(
            request.columns, lambda at: any(self.by_cell[row_id, at.task].means for row_id in drawn)
        )
        figure, panels = panels_of(len(columns), 3, (3.3, 2.7), self.step, least=5.5, room=1.6)
        for axes, column in zip(panels, columns, strict=True):
            self._draw_panel(axes, column)
        n = seed_counts([len(curve.seeds) for curve in self.by_cell.values()])
        caption = f"Lines: mean over seeds{n}, band from the lowest to the highest seed; no line: not run."
        if any(row.id in self.references for row in request.rows):
            caption += f" Dashed: the same predictions after every {self.step}.{dagger_note(self.request)}"
        if request.benchmark.place.startswith("Figure") and request.scale.id != DEMO:
            caption += " The paper prints these curves without numbers."
        if self.stated:
            level = "." if request.scale.id == PAPER else "; score levels are comparable at the paper scale only."
            caption += f" Dotted: stated in the paper's text{level}"
        return finish(figure, request.heading, list(self._handles(columns)), caption + left_out)
