"""Whether a column's scores are evidence for an ordering: only if a row beats the rows that it has to beat.

A benchmark's yardstick names these rows. By default central training has to beat a linear model and the global
majority class, on all clients' test examples together, by more than the error of the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.experiment import Benchmark, Column, Scale
from benchmarks.publication import Yardstick
from benchmarks.results import POOLED, RunResult
from reports.evidence.paired import Pairs, difference, level, rule_for
from reports.evidence.records import DEMO, Index, Request, select
from reports.evidence.scores import defined, scores_of
from reports.evidence.statistics import Estimate, mean, printed

NOT_RUN = "reference rows not run"
NOT_TUNED = "reference rows are not tuned there yet"
NO_ERROR = "reference rows have one seed, so their error is unknown"
# The three states of a column are "shown to learn" (its gate is open), "shown not to learn" and "unknown".
SHOWN_NOT, UNKNOWN = "shown not to learn", "unknown whether"
SETTLED = 3  # seeds after which claims leave out a column that central training has not learned
Key = tuple[str, int]  # the data's digest, and a seed


@dataclass(frozen=True)
class Gate:
    """Whether a column's scores count as evidence. why: the reason if they do not; "" if they do.

    is_settled: whether it is shut after SETTLED or more seeds, or by a leak.
    """

    why: str = ""
    is_settled: bool = False

    @property
    def is_shut(self) -> bool:
        """Whether they are known not to count as evidence; False while runs are missing."""
        return self.why not in ("", NOT_RUN, NOT_TUNED, NO_ERROR)


def home(benchmark: Benchmark) -> Benchmark:
    """The benchmark whose reference rows judge a benchmark's columns."""
    return benchmark.gate or benchmark


def _has_references(benchmark: Benchmark, yardstick: Yardstick | None = None) -> bool:
    reference = home(benchmark)
    return set((yardstick or reference.yardstick).rows) <= {row.id for row in reference.rows}


def gate_of(
    benchmark: Benchmark, column: Column, scale: Scale, index: Index, yardstick: Yardstick | None = None
) -> Gate:
    """The gate of a column at a scale. index: the scale's records by place. yardstick: a row's own, if any."""
    reference = home(benchmark)
    yardstick = yardstick or reference.yardstick
    # A split by group keeps equal first texts together, so nothing leaks.
    if column.leak and not benchmark.cell(benchmark.rows[0], column, scale, 0).grouped:
        return Gate(f"its test examples {column.leak}", is_settled=True)
    judged = next((other for other in reference.columns if other.task == column.task), None)
    if (
        judged is None
        or not _has_references(benchmark, yardstick)
        or scale.id not in {other.id for other in reference.scales}
    ):
        return Gate(NOT_RUN)
    records = {name: select(reference, scale, reference.row(name), judged, index).records for name in yardstick.rows}
    scored = {
        name: {(one.inputs["data"]["digest"], one.cell.seed): one for one in runs if _holds(one, yardstick.evaluation)}
        for name, runs in records.items()
    }
    if not all(scored.values()):
        return Gate(NOT_RUN)
    if {row.id for row in reference.untuned(judged, scale)} & set(yardstick.rows):
        return Gate(NOT_TUNED)
    return _decided(yardstick, scored, _score(yardstick, judged))


def _decided(yardstick: Yardstick, scored: Mapping[str, Mapping[Key, RunResult]], score: str) -> Gate:
    failing, seeds, states, learner = [], [], [], scored[yardstick.row]
    for name, rival in yardstick.rivals.items():
        shared = sorted(learner.keys() & scored[name].keys())
        if not shared:
            return Gate(NOT_RUN)
        gap = lead([(learner[key], scored[name][key]) for key in shared], score)
        if gap.interval is None:
            return Gate(NO_ERROR)
        if gap.interval[0] <= 0:
            ends = ", ".join(map(_signed, gap.interval))
            by = "" if gap.value is None else f" ({_signed(gap.value)} [{ends}])"
            failing.append(f"{rival} {_mean_text([scored[name][key] for key in shared], score)}{by}")
            seeds.append(len(shared))
            states.append(gap.interval[1] < 0)
    if not failing:
        return Gate()
    best = _mean_text(list(learner.values()), score)
    state = f"{SHOWN_NOT} ({yardstick.fails})" if any(states) else f"{UNKNOWN} {yardstick.learns}"
    why = f"{state}: {yardstick.name} {best}, {', '.join(failing)}, n = {min(seeds)}"
    return Gate(why, is_settled=min(seeds) >= SETTLED)


def failed(name: str, pairs: Pairs, yardstick: Yardstick, column: Column) -> str:
    """Why beating a row proves nothing: within the error, it scores no more than predictions without learning.

    pairs: its records and those of the yardstick's `least`. "" if the row scores more, or if that is unknown.
    """
    score = _score(yardstick, column)
    scored = [pair for pair in pairs if all(_holds(record, yardstick.evaluation) for record in pair)]
    alike = [(one, other) for one, other in scored if _split(one) == _split(other)]
    gap = lead(alike, score) if alike else None
    if gap is None or gap.interval is None or gap.interval[0] > 0:
        return ""
    one, other = (_mean_text([pair[side] for pair in alike], score) for side in (0, 1))
    return f"{name} has learned nothing here: {one}, {yardstick.rivals[yardstick.least]} {other}, n = {len(alike)}"


def gates(request: Request, yardstick: Yardstick | None = None) -> dict[str, Gate]:
    """Task -> gate of a request's columns; {} at the demo scale, and without rows that could judge them."""
    if request.scale.id == DEMO or not _has_references(request.benchmark, yardstick):
        return {}
    return {at.task: gate_of(request.benchmark, at, request.scale, request.index, yardstick) for at in request.columns}


def levels(request: Request) -> dict[str, tuple[str, float, float, int]]:
    """Task -> score, the yardstick's row's level, the level that others report, and the number of seeds.

    Only for a benchmark with its own reference rows, at a scale with levels reported by others.
    """
    benchmark, scale = request.benchmark, request.scale
    if scale.elsewhere is None or scale.changed or benchmark.gate or not _has_references(benchmark):
        return {}
    row, by_task = benchmark.row(benchmark.yardstick.row), {}
    for column in request.columns:
        records = select(benchmark, scale, row, column, request.index).records
        if records and column.task in scale.elsewhere.scores:
            name, reported = scale.elsewhere.scores[column.task]
            score = f"{benchmark.yardstick.evaluation or column.evaluation}/{name}"
            by_task[column.task] = score, mean(_values(records, score)), reported, len(records)
    return by_task


def _holds(record: RunResult, evaluation: str) -> bool:
    return evaluation != POOLED or bool(record.rounds[-1].pooled_scores)


def _split(record: RunResult) -> tuple[object, ...]:
    """The record's split over clients."""
    return record.cell.clients, record.cell.partition, record.cell.data_seed, record.cell.test_share


def _score(yardstick: Yardstick, column: Column) -> str:
    return f"{yardstick.evaluation or column.evaluation}/{column.averaged.rpartition('/')[2]}"


def lead(pairs: Pairs, score: str, at: str = "chosen") -> Estimate:
    """The advantage of the pairs' first records over others that may predict without learning."""
    records, others = zip(*pairs, strict=True)
    # A single class has no correlation, so the other row's own correlation counts.
    return difference(pairs, score, at) if _values(others, score) else level(records, score, rule_for(at, pairs))


def _values(records: Sequence[RunResult], score: str) -> Sequence[float]:
    return defined(scores_of(records, score).at())


def _signed(value: float) -> str:
    return f"{printed(value, places=1):+}".replace("-", "−")


def _mean_text(records: Sequence[RunResult], score: str) -> str:
    values = _values(records, score)
    return f"{printed(mean(values), places=1)}".replace("-", "−") if values else "undefined"
