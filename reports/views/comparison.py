"""A comparison: a benchmark's definition joined with records and with what the paper prints, and judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.measures import metric
from benchmarks.publication import Published
from benchmarks.results import RunResult
from reports import ReportError
from reports.evidence.inference import LEVEL, average_of, confidence, smallest_margin
from reports.evidence.paired import level
from reports.evidence.published import AVERAGE, derivation_in_words, published_for
from reports.evidence.records import DEMO, PAPER, Request, is_partial
from reports.evidence.scores import SCORE_AT, known, round_scores, score_label, scores_of
from reports.evidence.statistics import Estimate, average, mean, printed, sample_sd
from reports.evidence.traffic import Cost, measured_cost
from reports.pages.text import DERIVED, at_round, in_units, notes_under, number, over_clients
from reports.views.reproduced import RULE, UNDECIDED, is_comparable, verdict

INTERVAL = "95 % CI"
BOUNDS = f"{100 * (1 - 2 * LEVEL):g} % bounds"  # of the one-sided tests that verdicts are


@dataclass(frozen=True)
class ScoreResult:
    """One score of one cell: all numbers in its metric's unit; of percent, errors and differences are points.

    ours: mean over seeds, None where not run or undefined; sd: over seeds (n - 1); estimate: what verdicts rest on.
    sampling_error: of the finite test sets, root mean square over seeds. difference: ours - published, of the two as
    printed to two decimals; None where they are not comparable. derivation: how `published` follows from the paper's
    text; "" where it is printed.
    """

    score: str
    ours: float | None = None
    seeds: int = 0
    sd: float | None = None
    estimate: Estimate | None = None
    sampling_error: float | None = None
    published: float | None = None
    difference: float | None = None
    verdict: str | None = None  # by RULE; None where nothing was printed or run
    derivation: str = ""
    last: float | None = None  # at the last round, where `ours` is at the chosen one
    is_held: bool = True  # False: its records are older than the score

    @property
    def interval(self) -> tuple[float, float] | None:
        return self.estimate.interval if self.estimate else None

    @property
    def ci(self) -> tuple[float, float] | None:
        """The 95 % interval, within what a score can be; None below three seeds."""
        return _ci([self])

    @property
    def margin(self) -> float | None:
        """Of a verdict that is undecided: the smallest margin that these seeds could have shown."""
        return smallest_margin(self.estimate) if self.estimate and self.verdict == UNDECIDED else None

    @property
    def is_derived(self) -> bool:
        """Whether `published`, and what rests on it, has to be marked: the paper does not print it."""
        return bool(self.derivation)

    @property
    def error(self) -> float:
        return (self.sd if self.sd is not None else self.sampling_error) or 0.0


def _ci(found: Sequence[ScoreResult]) -> tuple[float, float] | None:
    estimates = [result.estimate for result in found if result.estimate]
    return confidence(estimates, [metric(result.score).limits for result in found])


@dataclass(frozen=True)
class CellResult:
    """One method on one task; cost is None where no record of it exists."""

    row: Row
    column: Column
    scores: tuple[ScoreResult, ...]  # in the order of Comparison.scores_of
    seeds: tuple[int, ...] = ()
    cost: Cost | None = None

    @property
    def is_run(self) -> bool:
        return bool(self.seeds)

    @property
    def headline(self) -> ScoreResult:
        return next(result for result in self.scores if result.score == self.column.averaged)


@dataclass(frozen=True)
class AverageResult:
    """A row's average by the paper's rule; ours is None unless every column of the table was run."""

    row: Row
    ours: float | None = None
    published: float | None = None  # as printed
    difference: float | None = None
    interval: tuple[float, float] | None = None  # of the mean over the columns, each of two seeds or more
    ci: tuple[float, float] | None = None  # the same at 95 %, of three seeds or more


@dataclass(frozen=True)
class Comparison:
    """Ours and the paper's numbers for what a request asks for."""

    request: Request
    cells: tuple[CellResult, ...]
    averages: tuple[AverageResult, ...]
    notes: tuple[str, ...]

    @property
    def shows_published(self) -> bool:
        """Whether published values stand beside ours: never at the demo scale."""
        return self.request.scale.id != DEMO

    @property
    def shows_verdicts(self) -> bool:
        return self.request.scale.id == PAPER

    @property
    def partial(self) -> frozenset[str]:
        selections = self.request.selections.items()
        return frozenset(task for (_, task), found in selections if any(map(is_partial, found.records)))

    @property
    def columns_shown(self) -> tuple[Column, ...]:
        """Those that were run, or all where none was."""
        run = {task for (_, task), found in self.request.selections.items() if found.is_run}
        return tuple(column for column in self.request.columns if column.task in run) or self.request.columns

    @property
    def has_average(self) -> bool:
        return len(self.request.columns) > 1 and any(result.ours is not None for result in self.averages)

    def scores_of(self, column: Column) -> tuple[str, ...]:
        return scores_shown(self.request, column)

    def cell(self, row: Row, column: Column) -> CellResult:
        return next(cell for cell in self.cells if (cell.row.id, cell.column.task) == (row.id, column.task))

    def average_of(self, row: Row) -> AverageResult:
        return next(result for result in self.averages if result.row.id == row.id)


def scores_shown(request: Request, column: Column) -> tuple[str, ...]:
    """A column's scores, with those beside them that some of its records hold."""
    records = [record for row in request.rows for record in request.records_of(row, column)]
    return column.scores + tuple(score for score in column.beside if _holding(records, score))


def _holding(records: Sequence[RunResult], score: str) -> list[RunResult]:
    return [record for record in records if set(round_scores(record, score)) != {None}]


def _difference(ours: float | None, published: float | None) -> float | None:
    """Of the numbers as printed, so that a reader who subtracts finds it."""
    if ours is None or published is None:
        return None
    return float(printed(ours) - printed(published))


def _score(
    records: Sequence[RunResult], score: str, score_at: str, entry: Published | None, comparable: bool, beside: bool
) -> ScoreResult:
    published, derivation = (entry.value, entry.derivation) if entry else (None, "")
    found = scores_of(records, score)
    values = known(found.at(score_at))
    if not values:
        is_held = not beside or bool(_holding(records, score))
        return ScoreResult(score, published=published, derivation=derivation, is_held=is_held)
    over = level(records, score, score_at)
    ours, n, sd = mean(values), len(values), sample_sd(values)
    difference = _difference(ours, published) if comparable else None
    judged = verdict(over, published, comparable, found.metric.unit)
    at_last = known(found.at("last"))
    last = mean(at_last) if at_last and score_at == "chosen" else None
    of_ours = (score, ours, n, sd, over, found.error)
    return ScoreResult(*of_ours, published, difference, judged, derivation, last)


def _average(
    benchmark: Benchmark, scale: Scale, row: Row, cells: Sequence[CellResult], published: float | None
) -> AverageResult:
    headlines: dict[str, ScoreResult | None] = dict.fromkeys(column.task for column in benchmark.columns_at(scale))
    headlines |= {cell.column.task: cell.headline for cell in cells if cell.row.id == row.id}
    found = [headline for headline in headlines.values() if headline is not None and headline.ours is not None]
    if len(found) < len(headlines):
        return AverageResult(row, published=published)
    exact = average([printed(headline.ours) for headline in found if headline.ours is not None], benchmark.average)
    ours = None if exact is None else float(exact)
    difference = _difference(ours, published) if all(headline.difference is not None for headline in found) else None
    estimates = [headline.estimate for headline in found if headline.estimate]
    return AverageResult(row, ours, published, difference, average_of(estimates).interval, _ci(found))


def compare(request: Request, printed_in: str = "") -> Comparison:
    """Join a table's definition with records and published values.

    request.score_at: the "chosen" round (best on validation data, the last one where none was held back), the "last"
    one, or the "best" one by the test score itself. printed_in: the table that prints the values, where it is another
    one. ReportError for another word, for a record that lacks a score and for published values that cannot be read.
    """
    benchmark, scale, score_at = request.benchmark, request.scale, request.score_at
    if score_at not in SCORE_AT:
        raise ReportError(f"score_at: expected one of {', '.join(SCORE_AT)}, found {score_at!r}")
    published = published_for(request, printed_in)
    cells = []
    for row, column in product(request.rows, request.columns):
        records = request.records_of(row, column)
        places = {score: published.get((row.id, column.task, score)) for score in scores_shown(request, column)}
        comparable, seeds = is_comparable(scale, records), tuple(record.cell.seed for record in records)
        scores = tuple(
            _score(records, score, score_at, entry, comparable, score in column.beside)
            for score, entry in places.items()
        )
        cells.append(CellResult(row, column, scores, seeds, measured_cost(benchmark, column, records)))
    printed_averages = {row.id: published.get((row.id, AVERAGE, "")) for row in request.rows}
    known_averages = {name: entry.value if entry else None for name, entry in printed_averages.items()}
    averaged = request.rows if benchmark.average else ()
    averages = tuple(_average(benchmark, scale, row, cells, known_averages[row.id]) for row in averaged)
    about = (*_last_round(request, cells), *_undefined(request, cells))
    notes = notes_under(request, _method(request), _derivations(request, published), about)
    return Comparison(request, tuple(cells), averages, tuple(notes))


_RULE_WORDS = {"truncate": "truncated", "round": "rounded"}


def _method(request: Request) -> Iterator[str]:
    benchmark = request.benchmark
    yield (
        f"Scores{in_units(request.columns)}: {over_clients(request.columns)} {at_round(request.scored_at)}, then "
        f"over n seeds; ± sd over seeds (n - 1); {INTERVAL}: Student's t over seeds, corrected for splits that overlap "
        "(docs/statistics.md; of the average: variances of the tasks added), within what a score can be, from three "
        f"seeds on; ± SE (test set): sampling error of the finite test sets, root mean square over seeds; test: "
        "examples in all clients' test sets, partial where the data were."
    )
    if request.scale.id == PAPER:
        yield from (f"{BOUNDS}: the interval between the one-sided bounds of the tests that verdicts are.", RULE)
    if benchmark.average and len(benchmark.columns) > 1:
        averaged = ", ".join(f"{column.name} {column.averaged}" for column in benchmark.columns)
        yield (
            f"Average: one score a task ({averaged}), {_RULE_WORDS[benchmark.average]} to two decimals "
            "as the paper's; given only where every task was run."
        )
    yield (
        f"Bytes per round: {benchmark.paper.bytes_convention}; mean over rounds. Uplink and downlink: all clients, "
        "rounds and tasks run, mean over seeds. The one-time model distribution is in no other number. Training is "
        "wall time of each cell's last start, beside whatever else its machine did: no comparison of methods."
    )


def _derivations(request: Request, published: Mapping[tuple[str, str, str], Published]) -> Iterator[str]:
    names, shown = {row.id: row.name for row in request.benchmark.rows}, {row.id for row in request.rows}
    texts = [
        f"{names[entry.row]} = {derivation_in_words(entry.derivation, names)}"
        for entry in published.values()
        if entry.derivation and entry.row in shown
    ]
    if texts:
        yield (
            f"{DERIVED} derived from the text's relative gains, the printed table was not at hand: "
            f"{'; '.join(texts)}. What rests on such a number is marked too."
        )


def _last_round(request: Request, cells: Sequence[CellResult]) -> Iterator[str]:
    """How far scores at the last round lie from those at the chosen one, where some record chose its round."""
    if request.scored_at != "chosen":
        return
    gaps = [
        (
            abs(result.last - result.ours),
            f"{cell.row.name}, {cell.column.name} {score_label(cell.column, result.score)}",
        )
        for cell in cells
        for result in cell.scores
        if result.last is not None and result.ours is not None
    ]
    gap, where = max(gaps, default=(0.0, ""))
    if gap:
        yield f"The last round's means differ from these by {number(gap)} at most ({where}); the long form has each."


def _undefined(request: Request, cells: Sequence[CellResult]) -> Iterator[str]:
    for column in request.columns:
        for cell in (cell for cell in cells if cell.column.task == column.task):
            for result in cell.scores:
                undefined = len(cell.seeds) - result.seeds
                if undefined and result.is_held:
                    seeds = f"{undefined} of {len(cell.seeds)} seeds, which the mean leaves out"
                    yield f"{cell.row.name}, {column.name}: {result.score} undefined in {seeds}."
