"""Scores from records, by seed and round."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.experiment import Column
from benchmarks.measures import Metric, metric, of_clients
from benchmarks.results import RunResult
from reports import ReportError
from reports.evidence.corrections import AS_ANSWERED, OF_ANSWERS, corrected
from reports.evidence.statistics import mean, root_mean_square

SCORE_AT = ("chosen", "last", "late", "best")
# The campaign's rule (docs/protocol.md), for both sides of a comparison: the mean of the last LATE_ROUNDS rounds if
# every run has ENOUGH_ROUNDS, else the last round.
PROTOCOL, LATE_ROUNDS, ENOUGH_ROUNDS = "protocol", 3, 6
WORST = "worst"
_KINDS_OF_CLIENTS = ("label-table", "sorted-by-score")  # schemes that describe each client
# A mean of equal scores may differ from them in the last bit; one example counts for more in every test set.
_ROUNDING = 1e-9


def score_label(column: Column, score: str) -> str:
    """Short name of a score in a column: "test/f1" -> "F1", "mismatched/accuracy" -> "Acc (mm)"."""
    evaluation = score.rpartition("/")[0]
    name = column.evaluations.get(evaluation, evaluation)
    return metric(score).label + (f" ({name})" if name else "")


def round_scores(record: RunResult, score: str) -> tuple[float | None, ...]:
    """A score ("test/accuracy") or the training loss after every round, as recorded; None if undefined.

    Scores of OF_ANSWERS that the record lacks are computed from its stored predictions in each round, and are undefined
    without them. ReportError if the record lacks any other score.
    """
    try:
        return record.by_round(score)
    except (KeyError, IndexError):
        if score.rpartition("/")[2].partition("@")[0] in OF_ANSWERS:
            answered = corrected(record, AS_ANSWERED)
            return answered.by_round(score) if answered else (None,) * len(record.rounds)
        raise ReportError(
            f"record {record.file_name}: expected the score {score!r} of every round, found none. "
            "Move the record away to compute the cell again."
        ) from None


@dataclass(frozen=True)
class Scores:
    """One score of a cell's records. values: per seed, one value per round, as recorded: None if undefined."""

    name: str
    metric: Metric
    seeds: tuple[int, ...]
    values: tuple[tuple[float | None, ...], ...]
    sampling: tuple[float | None, ...]  # one per seed, in the chosen round, as recorded: None if unknown
    chosen_rounds: tuple[int, ...]  # one per seed: best on validation data, or the last without validation data

    @property
    def is_run(self) -> bool:
        return bool(self.seeds)

    def _shown(self, values: Sequence[float | None]) -> tuple[float | None, ...]:
        return tuple(None if value is None else self.metric.shown(value) for value in values)

    @property
    def last(self) -> tuple[float | None, ...]:
        return tuple(values[-1] for values in self.values)

    def at(self, which: str = "chosen") -> tuple[float | None, ...]:
        """The score at the chosen or last round, the mean of the late rounds, or the best one, in its unit."""
        return self._shown(self.recorded(which))

    def recorded(self, which: str) -> tuple[float | None, ...]:
        """As `at`, without the unit."""
        if which == "best":
            return tuple(map(self.metric.best, self.values))
        if which == "late":
            return tuple(_whole_mean(values[-LATE_ROUNDS:]) for values in self.values)
        if which == "last":
            return self.last
        return tuple(values[number - 1] for values, number in zip(self.values, self.chosen_rounds, strict=True))

    @property
    def errors(self) -> tuple[float | None, ...]:
        return self._shown(self.sampling)

    @property
    def error(self) -> float | None:
        """The root mean square of the known errors; None without any."""
        return root_mean_square(defined(self.errors))

    @property
    def shown(self) -> tuple[tuple[float | None, ...], ...]:
        return tuple(map(self._shown, self.values))

    @property
    def by_round(self) -> tuple[tuple[float, ...], ...]:
        return tuple(defined(values) for values in zip(*self.shown, strict=True))

    @property
    def means(self) -> tuple[float | None, ...]:
        return tuple(mean(values) if values else None for values in self.by_round)


def scores_of(records: Sequence[RunResult], score: str, clients: Mapping[int, int] | None = None) -> Scores:
    """A score ("test/f1"), or TRAIN_LOSS, of a cell's records; ReportError if one lacks it.

    clients: seed -> client, for the score of one client. For "test/f1@worst" the default is `worst_clients`.
    """
    base, _, of = score.partition("@")
    if of == WORST and clients is None:
        clients = worst_clients(records, base)
    names = [of_clients(base, f"client{clients[one.cell.seed]}") if clients else score for one in records]
    values = tuple(map(round_scores, records, names))
    sampling = tuple(record.sampling_error(score) for record in records)
    seeds, chosen = tuple(record.cell.seed for record in records), tuple(record.chosen_round for record in records)
    return Scores(score, metric(score), seeds, values, sampling, chosen)


def score_at(record: RunResult, score: str, which: str) -> float | None:
    """One run's score, as in `Scores.recorded`; None if it is undefined or unknown, or if training diverged."""
    try:
        return None if record.diverged else scores_of([record], score).recorded(which)[0]
    except ReportError:  # an old record, from before its table had this score
        return None


def worst_clients(records: Sequence[RunResult], score: str) -> dict[int, int]:
    """Seed -> the client that scores worst in the late rounds of the other seeds' runs.

    The minimum of noisy scores is biased, as the client may have had bad luck. Other seeds' choice is independent of
    the luck in this one (docs/statistics.md). {} below two seeds, or if each seed draws new clients.
    """
    if not all(map(keeps_clients, records)):
        return {}
    count, sign = min((len(record.clients) for record in records), default=0), metric(score).sign

    def late_or_last(values: Sequence[float | None]) -> float | None:
        return values[-1] if (late := _whole_mean(values[-LATE_ROUNDS:])) is None else late

    late = [
        [late_or_last(round_scores(record, of_clients(score, f"client{client}"))) for record in records]
        for client in range(count)
    ]
    if len(records) < 2 or any(None in values for values in late):
        return {}
    places = {
        place: [math.fsum(defined(values[:place] + values[place + 1 :])) for values in late]
        for place in range(len(records))
    }
    return {
        records[place].cell.seed: min(range(count), key=lambda client: sign * others[client])
        for place, others in places.items()
    }


def is_trained(record: RunResult) -> bool:
    """Whether a run trains in any round; others, such as the majority class, have the same score in all rounds."""
    return any(entry.train_loss is not None for entry in record.rounds)


def keeps_clients(record: RunResult) -> bool:
    """Whether a client's number denotes the same client with every seed: the same examples, or the same kind."""
    return record.cell.data_seed is not None or record.cell.partition.get("scheme") in _KINDS_OF_CLIENTS


def _whole_mean(values: Sequence[float | None]) -> float | None:
    """The mean of values that are all defined; None otherwise."""
    return None if None in values else mean(defined(values))


def defined(values: Sequence[float | None]) -> tuple[float, ...]:
    """The defined values."""
    return tuple(value for value in values if value is not None)


def best_by_seed(records: Sequence[RunResult], score: str) -> dict[int, float]:
    """Seed -> the best score after any round, as recorded; seeds without any are left out."""
    best = {record.cell.seed: metric(score).best(round_scores(record, score)) for record in records}
    return {seed: value for seed, value in best.items() if value is not None}


def round_reaching(record: RunResult, score: str, target: float) -> int | None:
    """The first round with a score as good as the target, as recorded; None for a run that is censored."""
    measured = metric(score)
    goal = target - measured.sign * _ROUNDING
    values = enumerate(round_scores(record, score), start=1)
    return next((number for number, value in values if value is not None and measured.reaches(value, goal)), None)


def unit_of(columns: Sequence[Column]) -> str:
    """The unit that the averaged scores of columns share: "%" or "" for none."""
    units = {metric(column.averaged).unit for column in columns}
    return units.pop() if len(units) == 1 else ""
