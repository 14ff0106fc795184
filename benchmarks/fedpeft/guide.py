"""Which method for which communication budget, clients and labels: the best rows of several tables within a budget.

Options of the view: tables, id -> its clients and labels; megabytes, of one client in both directions over the whole
run; without, rows that are not choices; alone, the row of clients that train alone; constant, the row whose score
stands next to the best ones; named, the methods that a cell names; scores, score -> the examples that it is on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product, takewhile
from typing import Any, NamedTuple

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


def methods_of(request: Request, options: Mapping[str, Any]) -> dict[str, Row]:
    """The methods to choose from, by id."""
    left_out = (*options["without"], options["constant"])
    return {row.id: row for row in request.rows if row.id not in left_out}


@dataclass(frozen=True)
class Setting:
    """One task of a table with its own clients and labels, by one score: the methods within each budget."""

    options: Mapping[str, Any]
    request: Request
    column: Column
    score: str

    @property
    def rows(self) -> dict[str, Row]:
        return methods_of(self.request, self.options)

    def scores(self, row: Row, size: float = float("inf")) -> dict[int, float]:
        """The row's score by seed, without seeds whose rounds all exceed the bytes."""
        records = self.request.records_of(row, self.column)
        each = {
            one.cell.seed: score_within(one, self.score, size * MEGABYTE, self.request.find, WAYS) for one in records
        }
        return {seed: value for seed, value in each.items() if value is not None}

    def lead(self, row: Row, scores: Mapping[int, float], others: Mapping[int, float]) -> tuple[float, float]:
        """The interval of a row's lead in scores by seed, paired by seed; without bounds for too few seeds."""
        ratio, gain = resplit_ratio(self.request.records_of(row, self.column)), metric(self.score).gain
        gains = [gain(scores[seed], others[seed]) for seed in sorted(scores.keys() & others.keys())]
        return resampled(gains, ratio).interval or (-math.inf, math.inf)

    @cached_property
    def constants(self) -> dict[int, float]:
        """The majority class's score by seed."""
        return self.scores(self.request.benchmark.row(self.options["constant"]))

    @property
    def constant(self) -> float | None:
        """The mean score of the per-client majority class; None if it was not run."""
        return mean(self.constants.values()) if self.constants else None

    @cached_property
    def choices(self) -> dict[float, Sequence[Choice]]:
        """Megabytes -> the methods within them, the best first."""
        return {size: self._ranked(size) for size in self.options["megabytes"]}

    def _ranked(self, size: float) -> Sequence[Choice]:
        rows = self.rows
        scores = {id: by_seed for id, row in rows.items() if (by_seed := self.scores(row, size))}
        order = sorted(scores, key=lambda id: -metric(self.score).sign * mean(scores[id].values()))
        # A correction that changes no prediction is not a further choice.
        order = [id for place, id in enumerate(order) if scores[id] not in [scores[other] for other in order[:place]]]
        # A noisy row is not a choice below a row that is not one.
        close = {*takewhile(lambda id: self.lead(rows[order[0]], scores[order[0]], scores[id])[0] <= 0, order)}
        return [Choice(rows[id], mean(scores[id].values()), len(scores[id]), id in close) for id in order]

    def close(self, size: float) -> list[Choice]:
        """The best method and those not shown to be below it, without those below the per-client majority class."""
        constant = -math.inf if self.constant is None else self.constant
        return [one for one in self.choices[size] if one.is_close and one.value > constant]

    @property
    def evidence(self) -> str:
        """How many methods were run, for how many rounds, with how many seeds."""
        records = [runs for row in self.rows.values() if (runs := self.request.records_of(row, self.column))]
        rounds = span([run.cell.training.last_round for runs in records for run in runs])
        n = seed_counts(map(len, records)).strip(" ()")
        return f"{len(records)} of {len(self.rows)} methods run, {rounds} rounds, {n}"

    @property
    def advice(self) -> str:
        """The best method by budget with its score, then the score of clients that train alone."""
        sentences, close = [], [(size, self.close(size)) for size, choices in self.choices.items() if choices]
        for name, group in groupby(close, lambda entry: entry[1][0].row.name if entry[1] else NOTHING_BETTER):
            sizes, budgets = zip(*group, strict=True)
            budget = f"Within {span(sizes)} MB" if sizes[-1] < close[-1][0] else f"From {sizes[0]:g} MB"
            shown = " to ".join(dict.fromkeys(number(each[0].value, places=1) for each in budgets if each))
            others = span([max(0, len(each) - 1) for each in budgets])
            also = f" ({others} other{'' if others == '1' else 's'} not significantly worse)" if others != "0" else ""
            sentences.append(f"{budget}: {name}{f', {shown} %' if shown else ''}{also}")
        alone = self.request.benchmark.row(self.options["alone"])
        if scores := self.scores(alone):
            level = self._not_worse(scores)
            equal = f", not significantly worse than the best method {_within_any(level)}" if level else ""
            sentences.append(f"{alone.name}, which sends nothing: {number(mean(scores.values()), places=1)} %{equal}")
        return f"{'. '.join(sentences) or 'No run'}."

    def _not_worse(self, scores: Mapping[int, float]) -> list[float]:
        """The budgets whose best method is not significantly better than these scores by seed."""
        firsts = ((size, choices[0].row) for size, choices in self.choices.items() if choices)
        return [size for size, row in firsts if -math.inf < self.lead(row, self.scores(row, size), scores)[0] <= 0]

    @property
    def caution(self) -> str:
        """That no best method is shown to beat the per-client majority class; "" if one is."""
        firsts = [(size, close[0]) for size in self.options["megabytes"] if (close := self.close(size))]
        best = [(first.row, self.scores(first.row, size)) for size, first in firsts]
        if not self.constants or not best or any(self.lead(*each, self.constants)[0] > 0 for each in best):
            return ""

        def wins_of(scores: Mapping[int, float]) -> int:
            shared = scores.keys() & self.constants.keys()
            return sum(metric(self.score).gain(scores[seed], self.constants[seed]) > 0 for seed in shared)

        wins = min(wins_of(scores) for _, scores in best)
        seeds = max(first.seeds for _, first in firsts)
        reached, sd = number(mean(self.constants.values()), places=1), sample_sd([*self.constants.values()])
        spread = "" if sd is None else f" ± {number(sd, places=1)} % (sd over label draws, one per seed)"
        return (
            f"Caution: the per-client majority class reaches {reached}{spread or ' %'}. So no lead of the best methods "
            f"over it is significant ({CONFIDENCE} interval, paired by seed), although the best of each budget leads "
            f"in {'' if wins == seeds else 'at least '}{wins} of {plural(seeds, 'seed')}."
        )

    @property
    def line(self) -> Line:
        """The per-client majority class, and the first methods within each budget by name with their scores."""
        most, cells = int(self.options["named"]), []
        for size, choices in self.choices.items():
            texts = [f"{choice.row.name} {number(choice.value, places=1)}" for choice in self.close(size)]
            texts[most:] = [f"{len(texts) - most} more"] if len(texts) > most else []
            cells.append("; ".join(texts) or (NOTHING_BETTER if choices else NOTHING))
        return Line(self.column.name, (number(self.constant, places=1), *cells), True)


class Guide(TableView):
    """Groups are clients and labels, lines tasks, columns budgets; a cell has the methods to choose from."""

    @cached_property
    def tables(self) -> Sequence[Request]:
        """The tables with runs, each with its own clients and labels."""
        tables = (benchmark(name) for name in self.options["tables"])
        at = [(table, scale) for table in tables for scale in table.scales if scale.id == self.request.scale.id]
        requests = [request_for(*each, self.request.records) for each in at]
        return [request for request in requests if request.columns_run]

    @cached_property
    def settings(self) -> Mapping[tuple[str, str, str], Setting]:
        """(table, task, score) -> what is chosen there."""
        return {
            (request.benchmark.id, column.task, score): Setting(self.options, request, column, score)
            for request in self.tables
            for column, score in product(request.columns_run, self.options["scores"])
        }

    def lines(self) -> Iterator[dict[str, JSON]]:
        """A line for each table, task, score, budget and method that fits."""
        for one in self.settings.values():
            for size, ranked in one.choices.items():
                for rank, (row, value, n, close) in enumerate(ranked, 1):
                    numbers = {"value": value, "rank": rank, "n_seeds": n, "is_close": close}
                    yield keys_of(one.request, row, one.column) | {"megabytes": size, "score": one.score} | numbers

    def conclusions(self) -> Iterator[str]:
        """For each setting, a paragraph on each score, and a caution."""
        texts = [text for request in self.tables for at in request.columns_run for text in self._about(request, at)]
        if texts:
            texts.append(
                "The tables name the best method within each budget and those that are not significantly worse, "
                f"{self.options['named']} at most."
            )
        yield from (f"{PARAGRAPH if place else ''}{text}" for place, text in enumerate(texts))

    def _about(self, request: Request, column: Column) -> Iterator[str]:
        """The paragraphs on a task of a table."""
        named = f"{self.options['tables'][request.benchmark.id]}, {column.name}"
        by_text: dict[str, list[Setting]] = {}  # scores of the same numbers share a paragraph
        for score in self.options["scores"]:
            one = self.settings[request.benchmark.id, column.task, score]
            by_text.setdefault(one.advice, []).append(one)
        for place, (text, settings) in enumerate(by_text.items()):
            examples = " and ".join(self.options["scores"][one.score] for one in settings)
            evidence = "" if place else f" ({settings[0].evidence})"
            yield f"{named}{evidence}, {examples}. {text}"
            yield from filter(None, (one.caution for one in settings))

    def grids(self) -> Iterator[Grid]:
        """A table for each score: the methods to choose from, and the per-client majority class."""
        constant = self.request.benchmark.row(self.options["constant"])
        sizes = [(f"within {size:g} MB",) for size in self.options["megabytes"]]
        for score, examples in self.options["scores"].items():
            by_table: dict[str, list[Line]] = {}
            for (table, _, scored), one in self.settings.items():
                if scored == score:
                    by_table.setdefault(self.options["tables"][table], []).append(one.line)
            title = (
                f"Methods to choose from, {examples}, by the communication budget of one client (uplink and "
                "downlink in the whole run, without the one-time model)"
            )
            groups = tuple(Group(name, tuple(lines)) for name, lines in by_table.items())
            yield Grid(title, ((constant.name,), *sizes), groups, "Clients", is_whole=True)

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
        first, counts = next(iter(self.options["scores"])), []
        everywhere = {id: row.name for id, row in methods_of(self.request, self.options).items()}
        for (table, _, score), one in self.settings.items():
            if score == first:
                run = {id for id, row in one.rows.items() if one.request.records_of(row, one.column)}
                setting = f"{self.options['tables'][table]}, {one.column.name}"
                counts.append(f"{setting}: {len(one.rows) - len(run)} of {len(one.rows)} methods")
                everywhere = {id: name for id, name in everywhere.items() if id not in run}
        if counts:
            names = f". In no setting: {', '.join(everywhere.values())}" if everywhere else ""
            yield f"Not run, so not ranked: {'; '.join(counts)}{names}."


def _within_any(sizes: Sequence[float]) -> str:
    """Budgets in MB as text: "within 8 or 40 MB"."""
    *most, last = (f"{size:g}" for size in sizes)
    first = f"{', '.join(most)} or " if most else ""
    return f"within {first}{last} MB"
