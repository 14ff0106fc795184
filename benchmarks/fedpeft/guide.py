"""The best rows of several tables within a client's bytes: recommendations by budget, clients and labels.

Options of the view: tables, id -> its clients and labels; megabytes, of one client in both directions over the whole
run; without, rows that are not candidates; alone, the row of clients that train alone; constant, the row whose score
stands next to the best ones; named, the methods that a cell names; scores, score -> its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, product, takewhile
from typing import NamedTuple

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.registry import benchmark
from benchmarks.run_config import JSON
from fedsim.errors import plural
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
NOTHING_BETTER = "no method above the per-client majority class"


class Choice(NamedTuple):
    """A row's mean score within a budget. is_close: neither it nor a row above it is shown to be below the best."""

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

    def _rows(self, request: Request) -> list[Row]:
        """The methods to choose from."""
        left_out = (*self.options["without"], self.options["constant"])
        return [row for row in request.rows if row.id not in left_out]

    def _ranked(self, request: Request, column: Column, score: str, size: float) -> Sequence[Choice]:
        rows = {row.id: row for row in self._rows(request)}
        scores = {
            id: by_seed for id, row in rows.items() if (by_seed := self._scores(request, row, column, score, size))
        }
        order = sorted(scores, key=lambda id: -metric(score).sign * mean(scores[id].values()))
        # A correction that changes no prediction is not a further choice.
        order = [id for place, id in enumerate(order) if scores[id] not in [scores[other] for other in order[:place]]]
        if not order:
            return ()
        best, ratio = scores[order[0]], resplit_ratio(request.records_of(rows[order[0]], column))
        # A noisy row is not a choice below a row that is not one.
        close = {*takewhile(lambda id: not _is_better(score, best, scores[id], ratio), order)}
        return [Choice(rows[id], mean(scores[id].values()), len(scores[id]), id in close) for id in order]

    def _scores(
        self, request: Request, row: Row, column: Column, score: str, size: float = float("inf")
    ) -> dict[int, float]:
        """The row's score by seed, without seeds whose rounds all exceed the bytes."""
        records = request.records_of(row, column)
        each = {one.cell.seed: score_within(one, score, size * MEGABYTE, request.find, WAYS) for one in records}
        return {seed: value for seed, value in each.items() if value is not None}

    def _constants(self, request: Request, column: Column, score: str) -> dict[int, float]:
        """The per-client majority class's score by seed."""
        return self._scores(request, request.benchmark.row(self.options["constant"]), column, score)

    def _constant(self, request: Request, column: Column, score: str) -> float | None:
        """The mean score of the per-client majority class; None if it was not run."""
        scores = self._constants(request, column, score)
        return mean(scores.values()) if scores else None

    def _against_constants(
        self, request: Request, column: Column, score: str, size: float, row: Row
    ) -> tuple[bool, int]:
        """Whether a row within a budget is shown to beat the per-client majority class, and in how many seeds."""
        ratio = resplit_ratio(request.records_of(row, column))
        scores, constants = self._scores(request, row, column, score, size), self._constants(request, column, score)
        wins = sum(metric(score).gain(scores[seed], constants[seed]) > 0 for seed in scores.keys() & constants.keys())
        return _is_better(score, scores, constants, ratio), wins

    def lines(self) -> Iterator[dict[str, JSON]]:
        """A line for each table, task, score, budget and method that fits."""
        for request in self.settings:
            for column, score, size in product(request.columns_run, self.options["scores"], self.options["megabytes"]):
                ranked = self.choices[request.benchmark.id, column.task, score, size]
                for rank, (row, value, n, close) in enumerate(ranked, 1):
                    numbers = {"value": value, "rank": rank, "n_seeds": n, "is_close": close}
                    yield keys_of(request, row, column) | {"megabytes": size, "score": score} | numbers

    def conclusions(self) -> Iterator[str]:
        """For each setting and score, the best methods by budget."""
        for request in self.settings:
            for column in request.columns_run:
                run = sum(bool(request.records_of(row, column)) for row in self._rows(request))
                of = f"{run} of {len(self._rows(request))} methods run"
                texts = (self._conclusion(request, column, *score) for score in self.options["scores"].items())
                yield f"{self.options['tables'][request.benchmark.id]}, {column.name} ({of}). {' '.join(texts)}"

    def _conclusion(self, request: Request, column: Column, score: str, called: str) -> str:
        """The best methods by budget, with the scores of the best one within the smallest and the largest of them."""
        constant, of, texts = self._constant(request, column, score), (request.benchmark.id, column.task, score), []
        ranked = [(size, choices) for size in self.options["megabytes"] if (choices := self.choices[(*of, size)])]
        for names, group in groupby(ranked, lambda entry: self._named(self._close(entry[1], constant))):
            sizes = [*group]
            least, most = sizes[0][0], sizes[-1][0]
            until = "MB on" if most == ranked[-1][0] else f"to {most:g} MB"
            budget = f"within {least:g} MB" if least == most else f"from {least:g} {until}"
            values = (sizes[0][1][0].value, sizes[-1][1][0].value) if names else (constant,)
            shown = " to ".join(dict.fromkeys(number(value, places=1) for value in values))
            either = " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
            texts.append(f"{budget} {either or NOTHING_BETTER} ({'best ' if len(names) > 1 else ''}{shown})")
        firsts = [(size, choices[0]) for size, choices in ranked]
        against = [self._against_constants(request, column, score, size, first.row) for size, first in firsts]
        caveat = ""
        if ranked and constant is not None and not any(is_clear for is_clear, _ in against):
            wins, seeds = min(wins for _, wins in against), max(first.seeds for _, first in firsts)
            caveat = (
                " None of the best methods clearly beats the per-client majority class "
                f"({number(constant, places=1)}; paired by seed, {CONFIDENCE} interval); "
                f"each is above it in {'' if wins == seeds else 'at least '}"
                f"{wins} of {plural(seeds, 'seed')}."
            )
        alone = request.benchmark.row(self.options["alone"])
        if scores := self._scores(request, alone, column, score):
            caveat += f" {alone.name}, which sends nothing: {number(mean(scores.values()), places=1)}."
        return f"{called.capitalize()}: {'; '.join(texts) or 'not measured'}.{caveat}"

    @staticmethod
    def _close(choices: Sequence[Choice], constant: float | None) -> list[Choice]:
        """The best method and those not shown to be below it, without those below the per-client majority class."""
        return [one for one in choices if one.is_close and (constant is None or one.value > constant)]

    def _named(self, choices: Sequence[Choice], with_score: bool = False) -> list[str]:
        """The first methods by name, and how many others there are."""
        most = int(self.options["named"])
        scores = [f" {number(choice.value, places=1)}" if with_score else "" for choice in choices]
        texts = [f"{choice.row.name}{score}" for choice, score in zip(choices, scores, strict=True)]
        return [*texts[:most], *([f"{len(texts) - most} more"] if len(texts) > most else [])]

    def grids(self) -> Iterator[Grid]:
        """A table for each score: the methods to choose from, and the per-client majority class."""
        constant = self.request.benchmark.row(self.options["constant"])
        sizes = [(f"within {size:g} MB",) for size in self.options["megabytes"]]
        for score, called in self.options["scores"].items():
            groups = tuple(
                Group(
                    self.options["tables"][request.benchmark.id],
                    tuple(self._line(request, column, score) for column in request.columns_run),
                )
                for request in self.settings
            )
            title = (
                f"Methods to choose from, {called}: by one client's uplink and downlink in the whole run, without "
                "the one-time model"
            )
            yield Grid(title, ((constant.name,), *sizes), groups, "Clients", is_whole=True)

    def _line(self, request: Request, column: Column, score: str) -> Line:
        constant, id = self._constant(request, column, score), request.benchmark.id
        ranked = (self.choices[id, column.task, score, size] for size in self.options["megabytes"])
        first = NOTHING if constant is None else number(constant, places=1)
        return Line(column.name, (first, *(self._cell(choices, constant) for choices in ranked)), True)

    def _cell(self, choices: Sequence[Choice], constant: float | None) -> str:
        texts = self._named(self._close(choices, constant), with_score=True)
        return "; ".join(texts) or (NOTHING_BETTER if choices else NOTHING)

    def method(self) -> Iterator[str]:
        """How the numbers were obtained."""
        yield (
            f"Accuracy{in_units(self.request.columns)}, the mean of up to the last three rounds that fit into the "
            "bytes that one client sends and receives in the whole run, without the one-time model. Other encoders "
            "send other bytes. A cell lists the best method, then lower ones down to the first that is clearly worse "
            f"(paired by seed, {CONFIDENCE} interval above 0); the sentences above join them by “or”. A single seed "
            "gives no interval. Methods whose mean is not above that of the per-client majority class are left out, "
            "and so are corrections that change no prediction."
        )
        for request in self.settings:
            for column in request.columns_run:
                missing = [row.name for row in self._rows(request) if not request.records_of(row, column)]
                if missing:
                    setting = self.options["tables"][request.benchmark.id]
                    yield f"{setting}, {column.name}: not run, so not listed here: {', '.join(missing)}."


def _is_better(score: str, one: Mapping[int, float], other: Mapping[int, float], ratio: float) -> bool:
    """Whether one row's scores by seed are shown to be better than another's, paired by seed."""
    shared = sorted(one.keys() & other.keys())
    ends = resampled([metric(score).gain(one[seed], other[seed]) for seed in shared], ratio).interval
    return ends is not None and ends[0] > 0
