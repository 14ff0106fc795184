"""Which method for how many bytes, clients and which labels: the best rows of several tables within a client's bytes.

Options of the view: tables, id -> its clients and labels; megabytes, of one client in both directions over the whole
run; without, rows that are no choice; constant, the row whose score stands next to the best ones; named, the methods
that a cell names; scores, score -> the examples that it is on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import NamedTuple

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.registry import benchmark
from benchmarks.run_config import JSON
from reports.evidence.budgets import score_within
from reports.evidence.inference import CONFIDENCE, resampled
from reports.evidence.paired import resplit_ratio
from reports.evidence.published import MEGABYTE
from reports.evidence.records import Request, request_for
from reports.evidence.statistics import mean
from reports.frame import TableView
from reports.pages.page import Grid, Group, Line, keys_of
from reports.pages.text import NOTHING, in_units, number

WAYS = ("up", "down")


class Choice(NamedTuple):
    """A row's mean score within a budget. is_close: its difference from the best row is not shown to lie below 0."""

    row: Row
    value: float
    seeds: int
    is_close: bool


class Guide(TableView):
    """Groups are clients and labels, lines tasks, columns budgets; a cell has the methods to choose from."""

    @cached_property
    def settings(self) -> Sequence[Request]:
        """The tables with runs, each with its own clients and labels."""
        tables = (benchmark(name) for name in self.options["tables"])
        at = [(table, scale) for table in tables for scale in table.scales if scale.id == self.request.scale.id]
        requests = [request_for(*each, self.request.records) for each in at]
        return [request for request in requests if request.columns_run]

    @cached_property
    def choices(self) -> Mapping[tuple[str, str, str, float], Sequence[Choice]]:
        """(table, task, score, megabytes) -> its methods, the best first."""
        return {
            (request.benchmark.id, column.task, score, size): self._ranked(request, column, score, size)
            for request in self.settings
            for column, score, size in product(request.columns_run, self.options["scores"], self.options["megabytes"])
        }

    def _ranked(self, request: Request, column: Column, score: str, size: float) -> Sequence[Choice]:
        left_out = (*self.options["without"], self.options["constant"])
        rows = {row.id: row for row in request.rows if row.id not in left_out}
        scores = {
            id: by_seed for id, row in rows.items() if (by_seed := self._scores(request, row, column, score, size))
        }
        order = sorted(scores, key=lambda id: -metric(score).sign * mean(scores[id].values()))
        if not order:
            return ()
        best = scores[order[0]]
        ratio = resplit_ratio(request.records_of(rows[order[0]], column))

        def is_close(id: str) -> bool:
            shared = sorted(best.keys() & scores[id].keys())
            gaps = [metric(score).gain(best[seed], scores[id][seed]) for seed in shared]
            ends = resampled(gaps, ratio).interval
            return ends is None or ends[0] <= 0

        return [Choice(rows[id], mean(scores[id].values()), len(scores[id]), is_close(id)) for id in order]

    def _scores(
        self, request: Request, row: Row, column: Column, score: str, size: float = float("inf")
    ) -> dict[int, float]:
        """The row's score by seed, without seeds whose rounds all exceed the bytes."""
        records = request.records_of(row, column)
        each = {one.cell.seed: score_within(one, score, size * MEGABYTE, request.find, WAYS) for one in records}
        return {seed: value for seed, value in each.items() if value is not None}

    def _constant(self, request: Request, column: Column, score: str) -> float | None:
        """The mean score of the constant answers; None if they were not run."""
        scores = self._scores(request, request.benchmark.row(self.options["constant"]), column, score)
        return mean(scores.values()) if scores else None

    def lines(self) -> Iterator[dict[str, JSON]]:
        """A line for each table, task, score, budget and method that fits."""
        for request in self.settings:
            for column, score, size in product(request.columns_run, self.options["scores"], self.options["megabytes"]):
                ranked = self.choices[request.benchmark.id, column.task, score, size]
                for rank, (row, value, n, close) in enumerate(ranked, 1):
                    numbers = {"value": value, "rank": rank, "n_seeds": n, "is_close": close}
                    yield keys_of(request, row, column) | {"megabytes": size, "score": score} | numbers

    def conclusions(self) -> Iterator[str]:
        """For each score the best method, and the smallest budget in which it is a choice."""
        for request in self.settings:
            for column in request.columns_run:
                texts = (self._conclusion(request, column, *score) for score in self.options["scores"].items())
                if said := [text for text in texts if text]:
                    yield f"{self.options['tables'][request.benchmark.id]}, {column.name}: {'; '.join(said)}."

    def _conclusion(self, request: Request, column: Column, score: str, examples: str) -> str:
        sizes, of = self.options["megabytes"], (request.benchmark.id, column.task, score)
        ranked = {size: choices for size in sizes if (choices := self.choices[(*of, size)])}
        if not ranked:
            return ""
        best, constant = ranked[max(ranked)][0], self._constant(request, column, score)
        if constant is not None and best.value <= constant:
            return f"{examples}, constant answers ({number(constant, places=1)})"
        close = ((size, each) for size, choices in ranked.items() for each in choices if each.is_close)
        first = next(size for size, each in close if each.row.id == best.row.id)
        return f"{examples}, {best.row.name} ({number(best.value, places=1)}; a choice from {first:g} MB on)"

    def grids(self) -> Iterator[Grid]:
        """A table for each score: the methods to choose from, and each client's most frequent label."""
        constant = self.request.benchmark.row(self.options["constant"])
        sizes = [(f"within {size:g} MB",) for size in self.options["megabytes"]]
        for score, examples in self.options["scores"].items():
            groups = tuple(
                Group(
                    self.options["tables"][request.benchmark.id],
                    tuple(self._line(request, column, score) for column in request.columns_run),
                )
                for request in self.settings
            )
            title = f"Methods to choose from {examples}, by bytes of one client"
            yield Grid(title, ((constant.name,), *sizes), groups, "Clients", is_whole=True)

    def _line(self, request: Request, column: Column, score: str) -> Line:
        constant, id = self._constant(request, column, score), request.benchmark.id
        ranked = (self.choices[id, column.task, score, size] for size in self.options["megabytes"])
        first = NOTHING if constant is None else number(constant, places=1)
        return Line(column.name, (first, *map(self._cell, ranked)), True)

    def _cell(self, choices: Sequence[Choice]) -> str:
        close, most = [choice for choice in choices if choice.is_close], int(self.options["named"])
        texts = [f"{choice.row.name} {number(choice.value, places=1)}" for choice in close[:most]]
        return "; ".join([*texts, *([f"{len(close) - most} more"] if len(close) > most else [])]) or NOTHING

    def method(self) -> Iterator[str]:
        """How the numbers were obtained."""
        yield (
            f"Accuracy{in_units(self.request.columns)}, the mean of up to the last three rounds that fit into the "
            "bytes that one client sends and receives in the whole run, without the one-time model. A cell names the "
            f"best method and those whose difference from it, paired by seed, has a {CONFIDENCE} interval that "
            "includes 0; with one seed that is every method."
        )
