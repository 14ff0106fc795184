"""The scores of a benchmark: measured means joined with published values, and judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.publication import Published
from benchmarks.results import ROUND, RunResult
from reports import ReportError
from reports.evidence.answered import lacks_a_label
from reports.evidence.inference import CONFIDENCE, LEVEL, average_of, confidence, smallest_margin
from reports.evidence.paired import is_distinguishable, level
from reports.evidence.published import RULE, UNDECIDED, is_comparable, published_for, verdict
from reports.evidence.published_files import AVERAGE, derivation_text
from reports.evidence.records import DEMO, PAPER, Request, is_partial, paired
from reports.evidence.scores import SCORE_AT, defined, round_scores, score_label, scores_of
from reports.evidence.statistics import Estimate, average, mean, printed, sample_sd
from reports.evidence.traffic import Cost, measured_cost
from reports.frame import TableView
from reports.pages.text import DERIVED, NOTHING, at_round, in_units, not_run, notes_under, number, over_clients, span

INTERVAL = f"{CONFIDENCE} CI"
BOUNDS = f"{100 * (1 - 2 * LEVEL):g} % bounds"  # of the one-sided tests that verdicts are
_BOLD = " Bold: the best of the paper's methods, and those that the paired test does not distinguish from it."
_ROUNDING = {"truncate": "truncated", "round": "rounded"}


@dataclass(frozen=True)
class ScoreResult:
    """One score of one cell or of a row's average, in the metric's unit; errors of percentages are in points.

    Args:
        ours: The mean over seeds; None if the cell was not run or the score is undefined.
        sd: The standard deviation over seeds (n - 1).
        estimate: The basis of verdicts.
        ci: The interval, cut to the score's range; None below three seeds.
        sampling_error: The error due to finite test sets: the root mean square over seeds.
        difference: `ours` - `published`, both rounded to two decimals; None if they are not comparable.
        verdict: By RULE.
        derivation: How `published` follows from the paper's text; "" if the paper prints it.
        last: The score in the last round, if `ours` is from the chosen round.
    """

    score: str
    ours: float | None = None
    seeds: int = 0
    sd: float | None = None
    estimate: Estimate | None = None
    ci: tuple[float, float] | None = None
    sampling_error: float | None = None
    published: float | None = None
    difference: float | None = None
    verdict: str | None = None
    derivation: str = ""
    last: float | None = None
    is_held: bool = True

    @property
    def interval(self) -> tuple[float, float] | None:
        return self.estimate.interval if self.estimate else None

    @property
    def margin(self) -> float | None:
        """Of a verdict that is undecided: the smallest margin that these seeds could have shown."""
        return smallest_margin(self.estimate) if self.estimate and self.verdict == UNDECIDED else None

    @property
    def is_derived(self) -> bool:
        """Whether `published`, and what rests on it, is marked: the paper does not print it."""
        return bool(self.derivation)

    @property
    def error(self) -> float:
        return (self.sd if self.sd is not None else self.sampling_error) or 0.0


@dataclass(frozen=True)
class CellResult:
    """One method on one task, or its average. missing: what tables show where there is no number."""

    row: Row
    column: Column
    scores: tuple[ScoreResult, ...]  # in the order of scores_shown
    seeds: tuple[int, ...] = ()
    cost: Cost | None = None
    missing: str = NOTHING

    @property
    def is_run(self) -> bool:
        return bool(self.seeds)

    @property
    def headline(self) -> ScoreResult:
        return self.score(self.column.averaged)

    def score(self, name: str) -> ScoreResult:
        return next(result for result in self.scores if result.score == name)


class Comparison(TableView):
    """Measured and published numbers of a table.

    ReportError for an unknown `score_at`, for a record that lacks a score and for unreadable published values.
    """

    averages = True  # whether the table has the paper's average

    @property
    def shows_published(self) -> bool:
        """Whether published values are shown next to measured ones: never at the demo scale."""
        return self.request.scale.id != DEMO

    @property
    def columns_shown(self) -> tuple[Column, ...]:
        """Columns with runs, or all columns if nothing was run."""
        return self.request.columns_run or self.request.columns

    @cached_property
    def published(self) -> Mapping[tuple[str, str, str], Published]:
        """Of the table, or of the one that prints its values."""
        return published_for(self.request, str(self.options.get("printed_in", "")))

    @cached_property
    def cells(self) -> tuple[CellResult, ...]:
        request = self.request
        if request.scored_at not in SCORE_AT:
            raise ReportError(f"score_at: expected one of {', '.join(SCORE_AT)}, found {request.scored_at!r}")
        return tuple(self._cell(row, column) for row, column in product(request.rows, request.columns))

    def _cell(self, row: Row, column: Column) -> CellResult:
        request, records = self.request, self.request.records_of(row, column)
        scores = tuple(self._score(row, column, score) for score in self.scores_shown(column))
        cost = measured_cost(request.benchmark, column, records, request.find)
        seeds = tuple(record.cell.seed for record in records)
        return CellResult(row, column, scores, seeds, cost, not_run(request, row, column))

    def scores_shown(self, column: Column) -> tuple[str, ...]:
        """A column's scores, and those of `extra` that some of its records have."""
        records = [record for row in self.request.rows for record in self.request.records_of(row, column)]
        return column.scores + tuple(score for score in column.extra if _is_held(records, score))

    def _score(self, row: Row, column: Column, score: str) -> ScoreResult:
        request, records = self.request, self.request.records_of(row, column)
        entry = self.published.get((row.id, column.task, score))
        published, derivation = (entry.value, entry.derivation) if entry else (None, "")
        scores, comparable = scores_of(records, score), is_comparable(request.scale, records)
        values, at_last = defined(scores.at(request.scored_at)), defined(scores.at("last"))
        if not values:
            is_held = score not in column.extra or _is_held(records, score)
            return ScoreResult(score, published=published, derivation=derivation, is_held=is_held)
        estimate, ours = level(records, score, request.scored_at), mean(values)
        return ScoreResult(
            score,
            ours,
            len(values),
            sample_sd(values),
            estimate,
            estimate.ends,
            scores.error,
            published,
            difference(ours, published) if comparable else None,
            verdict(estimate, published, comparable, scores.metric.unit),
            derivation,
            mean(at_last) if at_last and request.scored_at == "chosen" else None,
        )

    @cached_property
    def means(self) -> tuple[CellResult, ...]:
        """Each row's average by the paper's rule; () without a rule."""
        rows = self.request.rows if self.request.benchmark.average and self.averages else ()
        return tuple(_average(self.request, row, self.cells, self.published.get((row.id, AVERAGE, ""))) for row in rows)

    @property
    def has_average(self) -> bool:
        return len(self.request.columns) > 1 and any(
            cell.row.printed and cell.headline.ours is not None for cell in self.means
        )

    @cached_property
    def by_place(self) -> dict[tuple[str, str], CellResult]:
        return {(cell.row.id, cell.column.task): cell for cell in (*self.cells, *self.means)}

    def cell(self, row: Row, column: Column) -> CellResult:
        return self.by_place[row.id, column.task]

    def examples(self, column: Column) -> str:
        """Test examples of a column, as a range where the methods' differ."""
        cells = [cell for cell in self.cells if cell.column.task == column.task]
        counts = [round(cell.cost.test_examples) for cell in cells if cell.cost is not None]
        if not counts:
            return ""
        records = (record for cell in cells for record in self.request.records_of(cell.row, column))
        partly = ", partial" if any(map(is_partial, records)) else ""
        return f"test: {span(counts, '–')}{partly}"

    @cached_property
    def bold(self) -> dict[tuple[str, str], frozenset[str]]:
        """(task, score) -> ids of the rows with a bold score."""
        return {
            (column.task, score): self.best(column, score)
            for column in self.columns_shown
            for score in self.scores_shown(column)
        }

    def best(self, column: Column, score: str) -> frozenset[str]:
        """Ids of the rows with a bold score: the best of the paper's methods, and rows not distinguishable from it.

        A row is distinguishable if the interval of the difference paired by seed (the bounds of two one-sided tests)
        excludes 0. One seed has no interval, so only the best row is bold.
        """
        request = self.request
        rows = [row for row in request.rows if row.printed]
        means = {row.id: self.cell(row, column).score(score).ours for row in rows}
        top = metric(score).best([value for value in means.values() if value is not None])
        if top is None or sum(value is not None for value in means.values()) < 2:
            return frozenset()
        first = next(row for row in rows if means[row.id] == top)
        best = request.records_of(first, column)

        def is_close(row: Row) -> bool:
            pairs = paired(best, request.records_of(row, column))
            return len(pairs) > 1 and not is_distinguishable(pairs, score, request.score_at)

        return frozenset(name for name, value in means.items() if value == top) | frozenset(
            row.id for row in rows if means[row.id] not in (None, top) and is_close(row)
        )

    def method(self) -> Iterator[str]:
        """What the numbers are, and how verdicts and averages are computed."""
        request, benchmark = self.request, self.request.benchmark
        yield (
            f"Scores{in_units(request.columns)}: {over_clients(request.columns)} {at_round(request)}, then "
            f"over n seeds. ± sd: over seeds (n - 1). {INTERVAL}: Student's t, corrected for overlapping splits, from "
            "three seeds on (docs/statistics.md). ± SE: sampling error of the finite test sets. test: examples in all "
            "clients' test sets." + (_BOLD if any(row.printed for row in request.rows) else "")
        )
        if request.scale.id == PAPER:
            yield from (f"{BOUNDS}: the interval between the one-sided bounds of the tests behind the verdicts.", RULE)
        if benchmark.average and len(benchmark.columns) > 1 and any(row.printed for row in request.rows):
            averaged = ", ".join(f"{column.name} {column.averaged}" for column in benchmark.columns)
            rule = _ROUNDING[benchmark.average]
            yield f"Average: one score per task ({averaged}), {rule} to two decimals; only where every task was run."
        yield (
            f"Bytes per round: {benchmark.paper.bytes_convention}; mean over rounds. Uplink and downlink: all clients, "
            "rounds and tasks run, mean over seeds, without the one-time model distribution. Training is wall time on "
            "a shared machine, so it does not compare methods."
        )

    def notes(self) -> Iterable[str]:
        """Every note under a table of scores."""
        request, cells = self.request, self.cells
        about = (*_last_round(request, cells), *_undefined(cells), *_one_sided(request, cells))
        return notes_under(request, self.method(), _derivations(request, self.published), about)


def _is_held(records: Sequence[RunResult], score: str) -> bool:
    return any(set(round_scores(record, score)) != {None} for record in records)


def difference(ours: float | None, published: float | None) -> float | None:
    """Of the numbers as printed, so that a reader who subtracts finds it."""
    return None if ours is None or published is None else float(printed(ours) - printed(published))


def _average(request: Request, row: Row, cells: Sequence[CellResult], entry: Published | None) -> CellResult:
    """A row's average; a number only where every column of the table was run."""
    benchmark, published = request.benchmark, entry.value if entry else None
    results = [cell.headline for cell in cells if cell.row.id == row.id and cell.headline.ours is not None]
    exact = average([printed(result.ours) for result in results if result.ours is not None], benchmark.average)
    column = Column(AVERAGE, "Average", ("",), "")
    if exact is None or len(results) < len(benchmark.columns_at(request.scale)):
        return CellResult(row, column, (ScoreResult("", published=published),))
    estimates = [result.estimate for result in results if result.estimate]
    ci = confidence(estimates, [metric(result.score).limits for result in results if result.estimate])
    is_comparable_row = all(result.difference is not None for result in results)
    gap = difference(float(exact), published) if is_comparable_row else None
    whole = ScoreResult("", float(exact), estimate=average_of(estimates), ci=ci, published=published, difference=gap)
    return CellResult(row, column, (whole,))


def _derivations(request: Request, published: Mapping[tuple[str, str, str], Published]) -> Iterator[str]:
    names, shown = {row.id: row.name for row in request.benchmark.rows}, {row.id for row in request.rows}
    texts = [
        f"{names[entry.row]} = {derivation_text(entry.derivation, names)}"
        for entry in published.values()
        if entry.derivation and entry.row in shown
    ]
    if texts:
        yield (
            f"{DERIVED} derived from the relative gains in the text, as the printed table was not available: "
            f"{'; '.join(texts)}. Every number that rests on such a value is marked too."
        )


def _last_round(request: Request, cells: Sequence[CellResult]) -> Iterator[str]:
    """How far scores at the last round lie from those at the chosen one, where some record chose its round."""
    results = [(cell, result) for cell in cells for result in cell.scores] if request.scored_at == "chosen" else []
    gaps = [
        (
            abs(result.last - result.ours),
            f"{cell.row.name}, {cell.column.name} {score_label(cell.column, result.score)}",
        )
        for cell, result in results
        if result.last is not None and result.ours is not None
    ]
    gap, where = max(gaps, default=(0.0, ""))
    if gap:
        each = "column “last” of table.csv, written by `python -m benchmarks report`, has each"
        yield f"The last round's means differ from these by {number(gap)} at most ({where}); {each}."


def _undefined(cells: Sequence[CellResult]) -> Iterator[str]:
    for cell in cells:
        for result in cell.scores:
            undefined = len(cell.seeds) - result.seeds
            if undefined and result.is_held:
                seeds = f"{undefined} of {len(cell.seeds)} seeds, which the mean leaves out"
                what = "not measured" if result.score.startswith(f"{ROUND}/") else "undefined"  # by older runs
                yield f"{cell.row.name}, {cell.column.name}: {result.score} {what} in {seeds}."


def _one_sided(request: Request, cells: Sequence[CellResult]) -> Iterator[str]:
    """The cells with runs that never predict one of the labels."""
    texts = []
    for cell in cells if request.scored_at != "best" else ():
        records = request.records_of(cell.row, cell.column)
        lacking = sum(lacks_a_label(record, cell.column.evaluation, request.scored_at) for record in records)
        if lacking:
            texts.append(f"{cell.row.name}, {cell.column.name} ({lacking} of {len(records)})")
    if texts:
        yield (
            "Runs that never predict one of the labels in a scored round (of two labels: they predict a single class): "
            f"{'; '.join(texts)}."
        )
