"""Whether scores on a column are evidence of an ordering: only where the encoder learns the task.

On all clients' test examples together, as means over clients reward knowing a client's label shares, central training
has to beat a linear model and the overall majority by more than the error of the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.measures import metric
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark, Column, Scale
from reports.evidence.inference import resampled
from reports.evidence.records import DEMO, Request, by_definition, select
from reports.evidence.statistics import mean, printed

CENTRAL = "central"
RIVALS = {"linear": "linear", "overall-majority": "overall majority"}  # row -> its name in a reason
NOT_RUN = "reference rows not run"
Index = Mapping[str, Sequence[RunRecord]]  # definition id -> records of one scale


@dataclass(frozen=True)
class Gate:
    """Whether a column's scores are evidence. why: in words, where they are not. is_known: whether that is settled."""

    is_open: bool
    why: str = ""
    is_known: bool = True


OPEN = Gate(True)


def split_ratio(record: RunRecord, evaluation: str = "test") -> float:
    """n_test / n_train of the splits that seeds redraw; 0 where they share one, or the test set is central."""
    clients = record.clients
    if record.cell.data_seed is not None or any(evaluation not in client for client in clients):
        return 0.0
    trained = sum(int(client["train"]) for client in clients)
    return sum(record.own_examples(evaluation)) / trained if trained else 0.0


def home(benchmark: Benchmark) -> Benchmark:
    """The benchmark whose reference rows judge a benchmark's columns."""
    return benchmark.gate or benchmark


def has_references(benchmark: Benchmark) -> bool:
    """Whether there are rows that could judge its columns."""
    return {CENTRAL, *RIVALS} <= {row.id for row in home(benchmark).rows}


def gate_of(benchmark: Benchmark, column: Column, scale: Scale, index: Index) -> Gate:
    """The gate of a column at a scale. index: the scale's records by definition."""
    reference = home(benchmark)
    if _leaks(benchmark, column, scale):
        return Gate(False, f"its test examples {column.leak}")
    judged = next((own for own in reference.columns if own.task == column.task), None)
    if judged is None or not has_references(benchmark) or scale.id not in {known.id for known in reference.scales}:
        return Gate(False, NOT_RUN, is_known=False)
    rows = {row.id: row for row in reference.rows}
    scored = {
        name: _pooled(select(reference, scale, rows[name], judged, index).records, judged.averaged)
        for name in (CENTRAL, *RIVALS)
    }
    return _decided(scored, judged.averaged)


def gates(request: Request) -> dict[str, Gate]:
    """Task -> gate of a request's columns; none at the demo scale, and where no rows could judge them."""
    if request.scale.id == DEMO or not has_references(request.benchmark):
        return {}
    index = by_definition(record for record in request.records if record.cell.scale == request.scale.id)
    return {column.task: gate_of(request.benchmark, column, request.scale, index) for column in request.columns}


@dataclass(frozen=True)
class _Pooled:
    """The score of one seed on all clients' test examples together, in its unit, and the split's n_test / n_train."""

    value: float
    ratio: float


def _leaks(benchmark: Benchmark, column: Column, scale: Scale) -> bool:
    """Whether a column's declared leak is there: a split by group has none."""
    if not column.leak:
        return False
    return not benchmark.cell(benchmark.rows[0], column, scale, 0).partition.get("group")


def _pooled(records: Sequence[RunRecord], score: str) -> dict[tuple[str, int], _Pooled]:
    """Data's digest and seed -> pooled score at the chosen round, of records that hold it.

    A correlation that is undefined, as with constant answers, is none: 0.
    """
    evaluation, name = score.split("/")
    found = {}
    for record in records:
        scores = record.rounds[record.chosen_round - 1].pooled_scores.get(evaluation, {})
        if name in scores:
            value = metric(name).shown(scores[name] or 0.0)
            key = record.inputs["data"]["digest"], record.cell.seed
            found[key] = _Pooled(value, split_ratio(record, evaluation))
    return found


def _decided(scored: Mapping[str, Mapping[tuple[str, int], _Pooled]], score: str) -> Gate:
    measured, central = metric(score), scored[CENTRAL]
    failing, seeds = [], []
    for name, words in RIVALS.items():
        shared = sorted(central.keys() & scored[name].keys())
        if not shared:
            return Gate(False, NOT_RUN, is_known=False)
        gains = [measured.gain(central[key].value, scored[name][key].value) for key in shared]
        found = resampled(gains, max(central[key].ratio for key in shared))
        if found.interval is None:
            return Gate(False, "reference rows have one seed, which shows no error", is_known=False)
        if found.interval[0] <= 0:
            failing.append(f"{words} {_shown([scored[name][key].value for key in shared])}")
            seeds.append(len(shared))
    if not failing:
        return OPEN
    level = _shown([entry.value for entry in central.values()])
    return Gate(False, f"the encoder is too weak here: central {level}, {', '.join(failing)}, n = {min(seeds)}")


def _shown(values: Sequence[float]) -> str:
    return f"{printed(mean(values), places=1)}".replace("-", "−")
