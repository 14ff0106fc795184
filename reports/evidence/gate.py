"""Whether scores on a column are evidence of an ordering: only where a row beats others that it has to beat.

A benchmark's yardstick says which, and where: as a rule central training has to beat a linear model and the overall
majority, on all clients' test examples together, by more than the error of the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.experiment import Benchmark, Column, Scale
from benchmarks.publication import Yardstick
from benchmarks.results import POOLED, RunResult
from reports.evidence.paired import Pairs, difference, level
from reports.evidence.records import DEMO, Index, Request, by_definition, select
from reports.evidence.scores import known, scores_of
from reports.evidence.statistics import Estimate, mean, printed

NOT_RUN = "reference rows not run"
NOT_TUNED = "reference rows are not tuned there yet"
NO_ERROR = "reference rows show no error yet, as one seed does"
SETTLED = 3  # seeds after which what central training has not learned is left out of claims about all columns
Key = tuple[str, int]


@dataclass(frozen=True)
class Gate:
    """Whether a column's scores are evidence. why: in words, where they are not.

    is_known: whether the rows that say so have run. is_settled: whether SETTLED seeds or more leave it shut, or a leak.
    """

    is_open: bool
    why: str = ""
    is_known: bool = True
    is_settled: bool = False

    @property
    def is_shut(self) -> bool:
        return self.is_known and not self.is_open


OPEN = Gate(True)


def home(benchmark: Benchmark) -> Benchmark:
    """The benchmark whose reference rows judge a benchmark's columns."""
    return benchmark.gate or benchmark


def has_references(benchmark: Benchmark) -> bool:
    """Whether there are rows that could judge its columns."""
    reference = home(benchmark)
    return set(reference.yardstick.rows) <= {row.id for row in reference.rows}


def gate_of(benchmark: Benchmark, column: Column, scale: Scale, index: Index) -> Gate:
    """The gate of a column at a scale. index: the scale's records by definition."""
    reference = home(benchmark)
    yardstick = reference.yardstick
    if _leaks(benchmark, column, scale):
        return Gate(False, f"its test examples {column.leak}", is_settled=True)
    judged = next((own for own in reference.columns if own.task == column.task), None)
    if judged is None or not has_references(benchmark) or scale.id not in {known.id for known in reference.scales}:
        return Gate(False, NOT_RUN, is_known=False)
    scored = {
        name: _by_data(select(reference, scale, reference.row(name), judged, index).records, yardstick.evaluation)
        for name in yardstick.rows
    }
    if not all(scored.values()):
        return Gate(False, NOT_RUN, is_known=False)
    if {row.id for row in reference.untuned(judged, scale)} & set(yardstick.rows):
        return Gate(False, NOT_TUNED, is_known=False)
    return _decided(yardstick, scored, _score(yardstick, judged))


def failed(name: str, pairs: Pairs, yardstick: Yardstick, column: Column) -> str:
    """Why it proves nothing to beat a row: its scores are those of answers without learning, but for the error.

    pairs: its records and those of the yardstick's `least`. Empty where they are better, and where nobody knows.
    """
    score = _score(yardstick, column)
    holds = [pair for pair in pairs if all(_holds(record, yardstick.evaluation) for record in pair)]
    asked = [(own, its) for own, its in holds if _split(own) == _split(its)]
    if not asked:
        return ""
    found = lead(asked, score)
    if found.interval is None or found.interval[0] > 0:
        return ""
    own = _shown(_values([record for record, _ in asked], score))
    words = f"{yardstick.rivals[yardstick.least]} {_shown(_values([record for _, record in asked], score))}"
    return f"{name} has learned nothing here: {own}, {words}, n = {len(asked)}"


def gates(request: Request) -> dict[str, Gate]:
    """Task -> gate of a request's columns; none at the demo scale, and where no rows could judge them."""
    if request.scale.id == DEMO or not has_references(request.benchmark):
        return {}
    index = by_definition(record for record in request.records if record.cell.scale == request.scale.id)
    return {column.task: gate_of(request.benchmark, column, request.scale, index) for column in request.columns}


def levels(request: Request) -> dict[str, tuple[str, float, float, int]]:
    """Task -> score, what the yardstick's own row reaches of it, what others report, and over how many seeds.

    Of a benchmark with reference rows of its own, at a scale of which others report something.
    """
    benchmark, scale = request.benchmark, request.scale
    if scale.elsewhere is None or scale.changed or benchmark.gate or not has_references(benchmark):
        return {}
    index, row = by_definition(request.records), benchmark.row(benchmark.yardstick.row)
    found = {}
    for column in request.columns:
        records = select(benchmark, scale, row, column, index).records
        if records and column.task in scale.elsewhere.scores:
            name, reported = scale.elsewhere.scores[column.task]
            score = f"{benchmark.yardstick.evaluation or column.evaluation}/{name}"
            found[column.task] = score, mean(known(scores_of(records, score).at())), reported, len(records)
    return found


def _leaks(benchmark: Benchmark, column: Column, scale: Scale) -> bool:
    """Whether a column's declared leak is there: a split by group has none."""
    if not column.leak:
        return False
    # The field of cells whose split keeps first texts together, where they have it.
    return not benchmark.cell(benchmark.rows[0], column, scale, 0).grouped


def _holds(record: RunResult, evaluation: str) -> bool:
    """Whether a record has the scores that are asked for."""
    return evaluation != POOLED or bool(record.rounds[-1].pooled_scores)


def _by_data(records: Sequence[RunResult], evaluation: str) -> dict[Key, RunResult]:
    """Data's digest and seed -> record, of those that hold the scores that are asked for."""
    kept = (record for record in records if _holds(record, evaluation))
    return {(record.inputs["data"]["digest"], record.cell.seed): record for record in kept}


def _split(record: RunResult) -> tuple[object, ...]:
    """How the record's clients came to their examples."""
    return record.cell.clients, record.cell.partition, record.cell.data_seed, record.cell.test_share


def _score(yardstick: Yardstick, column: Column) -> str:
    return f"{yardstick.evaluation or column.evaluation}/{column.averaged.rpartition('/')[2]}"


def lead(pairs: Pairs, score: str) -> Estimate:
    """By how much the first records of pairs are better than others that may answer without having learned."""
    own, its = zip(*pairs, strict=True)
    # A constant answer has no correlation: against it, the row that has to learn has to have one.
    return difference(pairs, score) if _values(its, score) else level(own, score)


def _values(records: Sequence[RunResult], score: str) -> Sequence[float]:
    return known(scores_of(records, score).at())


def _decided(yardstick: Yardstick, scored: Mapping[str, Mapping[Key, RunResult]], score: str) -> Gate:
    failing, seeds = [], []
    for name, words in yardstick.rivals.items():
        own, its = scored[yardstick.row], scored[name]
        shared = sorted(own.keys() & its.keys())
        if not shared:
            return Gate(False, NOT_RUN, is_known=False)
        found = lead([(own[key], its[key]) for key in shared], score)
        if found.interval is None:
            return Gate(False, NO_ERROR, is_known=False)
        if found.interval[0] <= 0:
            failing.append(f"{words} {_shown(_values([its[key] for key in shared], score))}")
            seeds.append(len(shared))
    if not failing:
        return OPEN
    best = _shown(_values(list(scored[yardstick.row].values()), score))
    why = f"{yardstick.fails}: {yardstick.name} {best}, {', '.join(failing)}, n = {min(seeds)}"
    return Gate(False, why, is_settled=min(seeds) >= SETTLED)


def _shown(values: Sequence[float]) -> str:
    return f"{printed(mean(values), places=1)}".replace("-", "−") if values else "undefined"
