"""A comparison: a benchmark's definition joined with records and with what the paper prints. Plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark, Column, Paper, Published, Row, Scale
from reports.cost import Cost, measure
from reports.errors import ReportError
from reports.notes import notes
from reports.page import Request
from reports.published import AVERAGE, by_place, read_published
from reports.selection import is_partial
from reports.statistics import average, mean, printed, root_mean_square, sample_sd, stratified_bootstrap, t_interval
from reports.verdicts import is_comparable, verdict

SCORE_AT = ("last", "best")
DEMO = "demo"  # the scale whose numbers are never set beside a paper's


@dataclass(frozen=True)
class ScoreResult:
    """One score of one cell: all numbers in percent, so that errors and differences are points.

    ours: mean over seeds, None where not run or undefined; sd: over seeds (n - 1); interval: 95 % t interval.
    sampling_error: of the finite test sets, root mean square over seeds.
    difference: ours - published, of the two as printed to two decimals.
    derivation: how `published` follows from the paper's text; "" where it is printed.
    """

    score: str
    ours: float | None = None
    seeds: int = 0
    sd: float | None = None
    interval: tuple[float, float] | None = None
    sampling_error: float | None = None
    published: float | None = None
    difference: float | None = None
    verdict: str | None = None  # by reports.verdicts.RULE; None where nothing was printed or run
    values: tuple[float, ...] = ()  # one a seed, those that are defined
    derivation: str = ""

    @property
    def is_derived(self) -> bool:
        """Whether `published`, and what rests on it, has to be marked: the paper does not print it."""
        return bool(self.derivation)


@dataclass(frozen=True)
class CellResult:
    """One method on one task; cost is None where no record of it exists."""

    row: Row
    column: Column
    scores: tuple[ScoreResult, ...]  # in the order of column.scores
    seeds: tuple[int, ...] = ()
    cost: Cost | None = None

    @property
    def is_run(self) -> bool:
        """Whether a record of this cell exists."""
        return bool(self.seeds)

    @property
    def headline(self) -> ScoreResult:
        """The score that enters the average."""
        return next(result for result in self.scores if result.score == self.column.averaged)


@dataclass(frozen=True)
class AverageResult:
    """A row's average by the paper's rule; ours is None unless every column of the table was run.

    interval: 95 % stratified bootstrap over the seeds of each column; None below two in one.
    """

    row: Row
    ours: float | None = None
    published: float | None = None  # as printed
    difference: float | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Comparison:
    """Ours and the paper's numbers for a part of a table, at one scale."""

    benchmark_id: str
    heading: str  # what is compared, with the scale that labels every number
    title: str
    place: str
    paper: Paper
    scale: Scale
    score_at: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    cells: tuple[CellResult, ...]
    averages: tuple[AverageResult, ...]
    notes: tuple[str, ...]
    partial: frozenset[str] = frozenset()  # tasks whose data were partial for some record

    @property
    def shows_published(self) -> bool:
        """Whether published values stand beside ours: never at the demo scale."""
        return self.scale.id != DEMO

    @property
    def shows_verdicts(self) -> bool:
        """Whether single scores are judged: only at the paper's own scale."""
        return self.scale.id == "paper"

    @property
    def run_columns(self) -> tuple[Column, ...]:
        """The columns with at least one record."""
        run = {cell.column.task for cell in self.cells if cell.is_run}
        return tuple(column for column in self.columns if column.task in run)

    @property
    def has_average(self) -> bool:
        """Whether some row was run on every column of the table; one column has none."""
        return len(self.columns) > 1 and any(result.ours is not None for result in self.averages)

    def cell(self, row: Row, column: Column) -> CellResult:
        """The result of a method on a task."""
        return next(cell for cell in self.cells if (cell.row.id, cell.column.task) == (row.id, column.task))

    def average_of(self, row: Row) -> AverageResult:
        """The average of a method."""
        return next(result for result in self.averages if result.row.id == row.id)


def _value(record: RunRecord, score: str, score_at: str) -> float | None:
    """A record's score as a fraction; ReportError where the record does not hold it."""
    try:
        return record.score(score, score_at)
    except (KeyError, IndexError):
        raise ReportError(
            f"record {record.file_name}: expected the score {score!r} of every round, found none. "
            "Move the record away to compute the cell again."
        ) from None


def _difference(ours: float | None, published: float | None) -> float | None:
    """Of the numbers as printed, so that a reader who subtracts finds it."""
    if ours is None or published is None:
        return None
    return float(printed(ours) - printed(published))


def _score(
    records: Sequence[RunRecord], score: str, score_at: str, entry: Published | None, comparable: bool
) -> ScoreResult:
    """One score over the seeds at hand."""
    published, derivation = (entry.value, entry.derivation) if entry else (None, "")
    values = [100 * value for record in records if (value := _value(record, score, score_at)) is not None]
    if not values:
        return ScoreResult(score, published=published, derivation=derivation)
    evaluation, metric = score.split("/")
    errors = [record.sampling_errors.get(evaluation, {}).get(metric) for record in records]
    interval = t_interval(values)
    ours = mean(values)
    difference = _difference(ours, published)
    sampling_error = root_mean_square([100 * error for error in errors if error is not None])
    return ScoreResult(
        score,
        ours,
        len(values),
        sample_sd(values),
        interval,
        sampling_error,
        published,
        difference,
        verdict(difference, len(values), interval, published, sampling_error, comparable),
        tuple(values),
        derivation,
    )


def _average(benchmark: Benchmark, row: Row, cells: Iterable[CellResult], published: float | None) -> AverageResult:
    """The paper's rule applied to our numbers as a paper would print them."""
    headlines: dict[str, ScoreResult | None] = dict.fromkeys(column.task for column in benchmark.columns)
    headlines |= {cell.column.task: cell.headline for cell in cells if cell.row.id == row.id}
    found = [headline for headline in headlines.values() if headline is not None and headline.ours is not None]
    if len(found) < len(headlines):
        return AverageResult(row, published=published)
    exact = average([printed(headline.ours) for headline in found if headline.ours is not None], benchmark.average)
    ours = None if exact is None else float(exact)
    interval = stratified_bootstrap([headline.values for headline in found], lambda means: means.mean(axis=0))
    return AverageResult(row, ours, published, _difference(ours, published), interval)


def compare(request: Request) -> Comparison:
    """Join a table's definition with records and published values.

    request.score_at: "last" round, or "best" (the best round by the test score itself). ReportError for another word,
    for a record that lacks a score and for published values that cannot be read.
    """
    benchmark, scale, score_at = request.benchmark, request.scale, request.score_at
    if score_at not in SCORE_AT:
        raise ReportError(f"score_at: expected one of {', '.join(SCORE_AT)}, found {score_at!r}")
    printed_values = () if scale.id == DEMO else read_published(benchmark.published_csv)
    published = by_place(printed_values, benchmark.place)
    cells = []
    for row in request.rows:
        for column in request.columns:
            records = request.records_of(row, column)
            comparable = is_comparable(scale, records)
            scores = tuple(
                _score(records, score, score_at, published.get((row.id, column.task, score)), comparable)
                for score in column.scores
            )
            own_seeds = tuple(record.cell.seed for record in records)
            cells.append(CellResult(row, column, scores, own_seeds, measure(records, benchmark.paper.directions)))
    averages = tuple(
        _average(benchmark, row, cells, entry.value if (entry := published.get((row.id, AVERAGE, ""))) else None)
        for row in request.rows
    )
    return Comparison(
        benchmark.id,
        request.heading,
        benchmark.title,
        benchmark.place,
        benchmark.paper,
        scale,
        score_at,
        request.rows,
        request.columns,
        tuple(cells),
        averages,
        tuple(notes(request, published.values())),
        frozenset(
            column.task
            for column in request.columns
            for row in request.rows
            if any(is_partial(record) for record in request.records_of(row, column))
        ),
    )
