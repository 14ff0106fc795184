"""Differences between two cells' scores, paired by seed, with the rule of inference that suits their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.measures import TRAIN_LOSS
from benchmarks.predictions import IGNORED, stored_predictions
from benchmarks.results import INDEPENDENT, POOLED, ROUND, RunResult
from reports.evidence.inference import is_flat, on_test_sets, resampled, with_sampling
from reports.evidence.resampling import MEASURES, Answered, hierarchical, sampling_error
from reports.evidence.scores import ENOUGH_ROUNDS, PROTOCOL, Scores, is_trained, scores_of
from reports.evidence.statistics import Estimate, root_mean_square

Pairs = Sequence[tuple[RunResult, RunResult]]
# Evaluation -> the redrawn examples that it depends on.
_REDRAWN = {"test": "test", POOLED: "test", INDEPENDENT: "test", "train": "train", ROUND: "train"}
UNPAIRED = "no stored predictions: test sets' errors unpaired"


def resplit_ratio(records: Sequence[RunResult], evaluation: str = "test") -> float:
    """The odds of the correlation of two seeds: n_test / n_train of the splits that seeds redraw.

    "train" and ROUND for quantities on training examples. The whole pool without test examples counts as trained on,
    even if each seed draws a subset of a large pool. 0 if seeds redraw no split: the test set is not part of the
    clients' pool, or a data seed fixes the partition.
    """
    if not records or all(record.cell.data_seed is not None for record in records):
        return 0.0
    if evaluation not in _REDRAWN or not any(sum(record.held_out_counts("test")) for record in records):
        return 0.0
    used = sum(sum(record.held_out_counts(_REDRAWN[evaluation])) for record in records)
    pool = sum(int(record.partition["n_examples"]) for record in records)
    return used / (pool - used)


def rule_for(at: str, pairs: Pairs) -> str:
    """The scored rounds of both sides. PROTOCOL: the late rounds if every run has enough rounds, else the last one.

    Runs without training do not count.
    """
    if at != PROTOCOL:
        return at
    trained = [record for pair in pairs for record in pair if is_trained(record)]
    is_long = all(len(record.rounds) >= ENOUGH_ROUNDS for record in trained)
    return "late" if trained and is_long else "last"


def difference(pairs: Pairs, score: str, at: str = "chosen") -> Estimate:
    """The advantage of the pairs' first records over the second ones, in the metric's unit; above 0 is better.

    With redrawn splits: corrected resampled t. With a shared test set: the paired bootstrap over seeds and examples,
    or, without stored predictions, the t over seeds with the test set's unpaired error added, which is wider.

    Args:
        pairs: One per seed, on the same data.
        score: "test/f1", "pooled/pearson", …, or TRAIN_LOSS.
        at: The scored round; see `rule_for`.
    """
    first, second = _scores(pairs, score)
    values, records = gains(pairs, score, "last" if score == TRAIN_LOSS else at), [pair[0] for pair in pairs]
    if score == TRAIN_LOSS:
        return resampled(values, resplit_ratio(records, "train"), floor=0.0)  # of the training examples
    ratio = resplit_ratio(records, score.partition("/")[0])
    if ratio:
        estimate = resampled(values, ratio)
        return resampled(values, ratio, floor=paired_error(pairs, score, at)) if is_flat(estimate) else estimate
    factor = first.metric.sign * first.metric.factor
    sides = _answers(pairs, score, rule_for(at, pairs))
    if sides is not None and None not in values:
        return hierarchical(*sides, MEASURES[first.metric.name], factor=factor, is_common=_is_common(pairs, score))
    return on_test_sets(values, 0.0, unpaired_error(first, second), UNPAIRED)


def is_distinguishable(pairs: Pairs, score: str, at: str) -> bool:
    """Whether the pairs' first records are better: the interval of `difference` lies above 0.

    The error lies between the seeds' spread and the unpaired error, so most cases need no bootstrap.
    """
    values, ratio = gains(pairs, score, at), resplit_ratio([pair[0] for pair in pairs], score.partition("/")[0])
    least = resampled(values, ratio, floor=0.0)
    if least.interval is None or least.interval[0] <= 0:
        return False
    most = with_sampling(least, unpaired_error(*_scores(pairs, score)))
    if most.interval is not None and most.interval[0] > 0:
        return True
    estimate = difference(pairs, score, at)
    return estimate.interval is not None and estimate.interval[0] > 0


def gains(pairs: Pairs, score: str, at: str = "chosen") -> list[float | None]:
    """Each pair's advantage of the first record, in the metric's unit; None if a score is undefined."""
    first, second = _scores(pairs, score)
    rule = rule_for(at, pairs)
    both = zip(first.at(rule), second.at(rule), strict=True)
    return [None if one is None or other is None else first.metric.gain(one, other) for one, other in both]


def paired_error(pairs: Pairs, score: str, at: str) -> float | None:
    """The sampling error of one seed's difference, in the metric's unit: the `floor` of `resampled`.

    From stored predictions; without them, as if both scores were on different examples. None if unknown.
    """
    first, second = _scores(pairs, score)
    rule = rule_for(at, pairs)
    sides = _answers(pairs, score, "last" if rule == "late" else rule)
    if sides is None:
        return unpaired_error(first, second)
    measure, is_common = MEASURES[first.metric.name], _is_common(pairs, score)
    errors = [sampling_error(measure, *pair, is_common) for pair in zip(*sides, strict=True)]
    return first.metric.shown(root_mean_square(errors) or 0.0)


def _scores(pairs: Pairs, score: str) -> tuple[Scores, Scores]:
    first, second = (scores_of([pair[side] for pair in pairs], score) for side in (0, 1))
    return first, second


def unpaired_error(first: Scores, second: Scores) -> float | None:
    """The root of both squared errors; conservative, as both predict the same examples. None if one is unknown."""
    entries = [*first.errors, *second.errors]
    errors = [error for error in entries if error is not None]
    return (root_mean_square(errors) or 0.0) * 2**0.5 if errors and len(errors) == len(entries) else None


def _is_common(pairs: Pairs, score: str) -> bool:
    """Whether clients share one test set."""
    evaluation = score.partition("/")[0]
    return not any(pairs[0][0].held_out_counts("test" if evaluation == POOLED else evaluation))


def _answers(pairs: Pairs, score: str, at: str) -> tuple[list[Answered], list[Answered]] | None:
    """The predictions of both sides, by seed; None if one was not stored, or if the metric cannot score them here."""
    if at not in ("last", "chosen") or score.rpartition("/")[2] not in MEASURES:
        return None
    sides: tuple[list[Answered], list[Answered]] = ([], [])
    for pair in pairs:
        for record, side in zip(pair, sides, strict=True):
            answered = answered_by(record, score.partition("/")[0], at)
            if answered is None:
                return None
            side.append(answered)
    both = zip(*sides, strict=True)
    are_same = all(
        len(one.gold) == len(other.gold) and all(map(np.array_equal, one.gold, other.gold)) for one, other in both
    )
    return sides if are_same else None


def answered_by(record: RunResult, evaluation: str, at: str) -> Answered | None:
    """The predictions of a record's clients on their test sets, or pooled, after the last or the chosen round.

    None without a file of predictions next to the record; UserError if it is damaged.
    """
    predictions = sorted(stored_predictions(record).items())
    parts = [part for (_, name), part in predictions if name == ("test" if evaluation == POOLED else evaluation)]
    outputs = tuple(part.chosen if at == "chosen" else part.last for part in parts)
    gold = tuple(part.gold for part in parts)
    if not parts:
        return None
    if evaluation != POOLED:
        return Answered(outputs, gold)
    copies = 1 if any(record.held_out_counts("test")) else len(gold)  # clients share a central test set
    return Answered((_stacked(outputs),), (_stacked(gold),), copies)


def _stacked(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Clients' rows below each other; tags are padded to the widest row with ids that are not scored."""
    if parts[0].ndim > 1:
        widest = max(part.shape[1] for part in parts)
        parts = [np.pad(part, ((0, 0), (0, widest - part.shape[1])), constant_values=IGNORED) for part in parts]
    return np.concatenate(parts)


def level(records: Sequence[RunResult], score: str, at: str = "chosen") -> Estimate:
    """The mean of a score over seeds, in the metric's unit, with the error for its kind of test sets.

    The interval is cut to the score's range; the error, which tests use, is not.
    """
    scores = scores_of(records, score)
    values, ratio = scores.at(at), resplit_ratio(records, score.partition("/")[0])
    error = scores.error if None not in scores.errors else None
    estimate = on_test_sets(values, ratio, error)
    if estimate.interval is None:
        return estimate
    least, most = scores.metric.limits
    return replace(estimate, interval=(max(estimate.interval[0], least), min(estimate.interval[1], most)))
