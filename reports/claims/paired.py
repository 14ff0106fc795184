"""Two rows' records, paired by seed: differences of scores in the round that counts, or of training losses."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measures import TRAIN_LOSS, Metric, metric
from benchmarks.record import RunRecord
from reports.evidence.gate import split_ratio
from reports.evidence.inference import resampled
from reports.evidence.scores import round_scores
from reports.evidence.statistics import Estimate

Paired = Sequence[tuple[RunRecord, RunRecord]]


def score_of(record: RunRecord, score: str) -> float | None:
    """A score of a run at the round that is best on its validation data, the last one where it has none."""
    round_scores(record, score)  # ReportError where the record does not hold it
    return record.score(score, "last" if score == TRAIN_LOSS else "chosen")


def ratio_of(records: Sequence[RunRecord], score: str) -> float:
    """n_test / n_train of the splits that seeds redraw; those of a training loss share examples as their tests do."""
    evaluation = "test" if score == TRAIN_LOSS else score.partition("/")[0]
    return max((split_ratio(record, evaluation) for record in records), default=0.0)


def gains(pairs: Paired, score: str, relative: bool = False) -> list[float | None]:
    """By how much the first of each pair is better: in the score's unit, or in percent of the other's."""
    measured = metric(score)
    return [_gain(measured, score_of(own, score), score_of(its, score), relative) for own, its in pairs]


def _gain(measured: Metric, own: float | None, its: float | None, relative: bool) -> float | None:
    if own is None or its is None or (relative and its == 0):
        return None
    gain = measured.gain(own, its)
    return 100 * gain / its if relative else measured.shown(gain)


def mean_gain(pairs: Paired, score: str, relative: bool = False) -> Estimate:
    """The mean of what `gains` has, by the corrected resampled t."""
    records = [record for pair in pairs for record in pair]
    return resampled(gains(pairs, score, relative), ratio_of(records, score))
