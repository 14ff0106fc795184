"""Which method for which communication budget, clients and labels: the best rows of several tables within a budget.

Options of the view: tables, id -> its clients and labels; megabytes, of one client in both directions over the whole
run; without, rows that are not choices; alone, the row of clients that train alone; constant, the row whose score
stands next to the best ones; named, the methods that a cell names; scores, score -> the examples that it is on.
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
from reports.evidence.statistics import mean, sample_sd
from reports.frame import TableView
from reports.pages.page import Grid, Group, Line, keys_of
from reports.pages.text import NOTHING, in_units, number, seed_counts, span

WAYS = ("up", "down")
NOTHING_BETTER = "no method above the per-client majority class"
PARAGRAPH = "\n\n"


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
        """The majority class's score by seed."""
        return self._scores(request, request.benchmark.row(self.options["constant"]), column, score)

    def _constant(self, request: Request, column: Column, score: str) -> float | None:
        """The mean score of the per-client majority class; None if it was not run."""
        scores = self._constants(request, column, score)
        return mean(scores.values()) if scores else None

    def _against_constants(
        self, request: Request, column: Column, score: str, size: float, row: Row
    ) -> tuple[bool, int]:
        """Whether a row within a budget significantly beats the per-client majority class, and in how many seeds."""
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
        """For each setting, a paragraph on each score, and a caution."""
        texts = [text for request in self.settings for text in self._about(request)]
        if texts:
            texts.append(
                "The tables name the best method within each budget and those that are not significantly worse, "
                f"{self.options['named']} at most."
            )
        yield from (f"{PARAGRAPH if place else ''}{text}" for place, text in enumerate(texts))

    def _about(self, request: Request) -> Iterator[str]:
        """The paragraphs on a setting."""
        for column in request.columns_run:
            named = f"{self.options['tables'][request.benchmark.id]}, {column.name}"
            evidence = f" ({self._evidence(request, column)})"
            by_text: dict[str, list[str]] = {}  # scores of the same numbers share a paragraph
            for score in self.options["scores"]:
                by_text.setdefault(self._advice(request, column, score), []).append(score)
            for text, scores in by_text.items():
                examples = " and ".join(self.options["scores"][score] for score in scores)
                yield f"{named}{evidence}, {examples}. {text}"
                yield from filter(None, (self._caution(request, column, score) for score in scores))
                evidence = ""

    def _evidence(self, request: Request, column: Column) -> str:
        """How many methods were run, for how many rounds, with how many seeds."""
        records = [runs for row in self._rows(request) if (runs := request.records_of(row, column))]
        rounds = span([run.cell.training.last_round for runs in records for run in runs])
        n = seed_counts(map(len, records)).strip(" ()")
        return f"{len(records)} of {len(self._rows(request))} methods run, {rounds} rounds, {n}"

    def _closest(self, request: Request, column: Column, score: str) -> list[tuple[float, list[Choice]]]:
        """The budgets with runs, each with its methods that are not significantly below the best one."""
        constant, of = self._constant(request, column, score), (request.benchmark.id, column.task, score)
        ranked = ((size, self.choices[(*of, size)]) for size in self.options["megabytes"])
        return [(size, self._close(choices, constant)) for size, choices in ranked if choices]

    def _advice(self, request: Request, column: Column, score: str) -> str:
        """The best method by budget with its score, then the score of clients that train alone."""
        sentences, close = [], self._closest(request, column, score)
        for name, group in groupby(close, lambda entry: entry[1][0].row.name if entry[1] else NOTHING_BETTER):
            sizes, budgets = zip(*group, strict=True)
            budget = f"Within {span(sizes)} MB" if sizes[-1] < close[-1][0] else f"From {sizes[0]:g} MB"
            shown = " to ".join(dict.fromkeys(number(each[0].value, places=1) for each in budgets if each))
            others = span([max(0, len(each) - 1) for each in budgets])
            also = f" ({others} other{'' if others == '1' else 's'} not significantly worse)" if others != "0" else ""
            sentences.append(f"{budget}: {name}{f', {shown} %' if shown else ''}{also}")
        alone = request.benchmark.row(self.options["alone"])
        if scores := self._scores(request, alone, column, score):
            level = self._not_worse(request, column, score, scores)
            equal = f", not significantly worse than the best method {_within_any(level)}" if level else ""
            sentences.append(f"{alone.name}, which sends nothing: {number(mean(scores.values()), places=1)} %{equal}")
        return f"{'. '.join(sentences) or 'No run'}."

    def _not_worse(self, request: Request, column: Column, score: str, scores: Mapping[int, float]) -> list[float]:
        """The budgets whose best method is not significantly better than these scores by seed."""
        sizes = []
        for size in self.options["megabytes"]:
            for first in self.choices[request.benchmark.id, column.task, score, size][:1]:
                best = self._scores(request, first.row, column, score, size)
                ends = _lead(score, best, scores, resplit_ratio(request.records_of(first.row, column)))
                sizes += [size] if ends is not None and ends[0] <= 0 else []
        return sizes

    def _caution(self, request: Request, column: Column, score: str) -> str:
        """That no best method is shown to beat the per-client majority class; "" if one is."""
        constants = self._constants(request, column, score)
        firsts = [(size, choices[0]) for size, choices in self._closest(request, column, score) if choices]
        against = [self._against_constants(request, column, score, size, first.row) for size, first in firsts]
        if not constants or not against or any(is_clear for is_clear, _ in against):
            return ""
        wins, seeds = min(wins for _, wins in against), max(first.seeds for _, first in firsts)
        reached, sd = number(mean(constants.values()), places=1), sample_sd([*constants.values()])
        spread = "" if sd is None else f" ± {number(sd, places=1)} % (sd over label draws, one per seed)"
        return (
            f"Caution: the per-client majority class reaches {reached}{spread or ' %'}. So no lead of the best methods "
            f"over it is significant ({CONFIDENCE} interval, paired by seed), although the best of each budget leads "
            f"in {'' if wins == seeds else 'at least '}{wins} of {plural(seeds, 'seed')}."
        )

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
        for score, examples in self.options["scores"].items():
            groups = tuple(
                Group(
                    self.options["tables"][request.benchmark.id],
                    tuple(self._line(request, column, score) for column in request.columns_run),
                )
                for request in self.settings
            )
            title = (
                f"Methods to choose from, {examples}, by the communication budget of one client (uplink and "
                "downlink in the whole run, without the one-time model)"
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
            "communication budget: the bytes that one client sends and receives in the whole run, without the one-time "
            "model. Other encoders send other bytes. A cell names the best method, then lower ones down to the first "
            f"that is significantly worse (paired by seed, {CONFIDENCE} interval above 0), at most "
            f"{self.options['named']} by name. A single seed gives no interval. Methods whose mean is not above that "
            "of the per-client majority class are left out, and so are corrections that change no prediction. "
            "Corrections need the predictions of a run's chosen round or of its last three, so they have no score "
            "within a budget that these rounds exceed."
        )
        yield from self._missing()

    def _missing(self) -> Iterator[str]:
        """How many methods each setting lacks, and the names of those that all settings lack."""
        counts, everywhere = [], {row.id: row.name for row in self._rows(self.request)}
        for request in self.settings:
            for column in request.columns_run:
                rows = {row.id: row for row in self._rows(request)}
                run = {id for id, row in rows.items() if request.records_of(row, column)}
                setting = self.options["tables"][request.benchmark.id]
                counts.append(f"{setting}, {column.name}: {len(rows) - len(run)} of {len(rows)} methods")
                everywhere = {id: name for id, name in everywhere.items() if id not in run}
        if counts:
            names = f". In no setting: {', '.join(everywhere.values())}" if everywhere else ""
            yield f"Not run, so not ranked: {'; '.join(counts)}{names}."


def _within_any(sizes: Sequence[float]) -> str:
    """Budgets in MB as text: "within 8 or 40 MB"."""
    *most, last = (f"{size:g}" for size in sizes)
    first = f"{', '.join(most)} or " if most else ""
    return f"within {first}{last} MB"


def _lead(score: str, one: Mapping[int, float], other: Mapping[int, float], ratio: float) -> tuple[float, float] | None:
    """The interval of one row's lead over another, from scores by seed; None with too few seeds."""
    shared = sorted(one.keys() & other.keys())
    return resampled([metric(score).gain(one[seed], other[seed]) for seed in shared], ratio).interval


def _is_better(score: str, one: Mapping[int, float], other: Mapping[int, float], ratio: float) -> bool:
    """Whether one row's scores by seed are significantly better than another's, paired by seed."""
    ends = _lead(score, one, other, ratio)
    return ends is not None and ends[0] > 0
