"""A paired bootstrap over seeds and test examples, for seeds that share their test examples.

A resample of examples is a row of weights: how often each example was drawn. So every metric here is a function of
weighted sums, and all resamples are scored at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from reports.evidence.inference import estimate
from reports.evidence.statistics import Component, Estimate, sample_sd

RESAMPLES = 1000
KINDS = 2**8  # more entity kinds than any task has
SPANS = KINDS * 2**32  # more entities than any text has
# (outputs [m, ...], gold [m], weights [B, m]) -> the metric of each resample, float64 [B]; NaN if undefined.
# A resample has as many examples as the test set: each row of weights sums to m.
Measure = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _labels(outputs: np.ndarray) -> np.ndarray:
    """Label ids [m] of logits [m, C]; label ids are returned unchanged."""
    return outputs.argmax(axis=-1) if outputs.ndim > 1 else outputs


def accuracy(outputs: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The share of correct predictions."""
    return np.asarray(weights @ (_labels(outputs) == gold) / len(gold))


def f1(outputs: np.ndarray, gold: np.ndarray, weights: np.ndarray, labels: Sequence[int] = (1,)) -> np.ndarray:
    """F1 of label 1, or the mean over several labels; 0 for a label that never occurs."""
    predicted, ids = _labels(outputs)[:, None] == np.asarray(labels), gold[:, None] == np.asarray(labels)
    # One product for all counts: whole numbers, so their sums are exact in any order.
    counts = weights @ np.hstack([predicted & ids, predicted, ids]).astype(np.float64)
    hits, named, true = np.split(counts, 3, axis=1)
    return np.asarray(np.mean(2 * hits / np.maximum(named + true, 1), axis=1))


def matthews_correlation(outputs: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The correlation of predicted and true membership in label 1; 0 of a constant."""
    correlation = _correlation(_labels(outputs) == 1, gold == 1, weights)
    return np.where(np.isnan(correlation), 0.0, correlation)


def pearson(outputs: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The correlation of predicted scores, [m] or [m, 1], and true ones; NaN of a constant."""
    return _correlation(outputs.reshape(len(gold)), gold, weights)


def _correlation(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    x, y = (np.asarray(values, np.float64) - np.mean(values, dtype=np.float64) for values in (x, y))
    mean_x, mean_y, xx, yy, xy = (weights @ column / len(x) for column in (x, y, x * x, y * y, x * y))
    spread_x, spread_y = xx - mean_x**2, yy - mean_y**2
    constant = (spread_x <= 1e-12 * np.mean(x * x)) | (spread_y <= 1e-12 * np.mean(y * y))
    spread = np.sqrt(np.where(constant, 1.0, spread_x * spread_y))
    return np.where(constant, np.nan, (xy - mean_x * mean_y) / spread)


def entity_f1(outputs: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """F1 of entities in tag ids [m, words], read as by conlleval; 0 without entities."""
    answers, truths = (_entities(np.where(gold < 0, 0, tags)) for tags in (outputs, gold))
    counts = (
        np.bincount(entities // SPANS, minlength=len(gold))
        for entities in (np.intersect1d(answers, truths), answers, truths)
    )
    hits, predicted, true = (weights @ each for each in counts)
    return np.asarray(2 * hits / np.maximum(predicted + true, 1))


def _entities(tags: np.ndarray) -> np.ndarray:
    """A number per entity in tag ids [m, words], which encodes row, first and last word, and kind.

    0 is outside, 2k + 1 and 2k + 2 are B- and I- of kind k < KINDS; an I- that follows no tag of its kind begins an
    entity.
    """
    padded = np.pad(tags, ((0, 0), (1, 1))).astype(np.int64)
    tag, kind, width = padded.ravel(), (padded.ravel() + 1) // 2, padded.shape[1]
    goes_on = (tag[1:] > 0) & (tag[1:] % 2 == 0) & (kind[1:] == kind[:-1])
    firsts, lasts = np.flatnonzero((tag[1:] > 0) & ~goes_on) + 1, np.flatnonzero((tag[:-1] > 0) & ~goes_on)
    row, first = np.divmod(firsts, width)
    return np.asarray(row * SPANS + (first * width + lasts - firsts) * KINDS + kind[firsts])


MEASURES: Mapping[str, Measure] = {
    "accuracy": accuracy,
    "entity_f1": entity_f1,
    "f1": f1,
    "f1_pn": partial(f1, labels=(0, 2)),
    "matthews_correlation": matthews_correlation,
    "pearson": pearson,
}


@lru_cache(maxsize=12)  # at most 30 MB each, as clients' parts differ in length
def drawn(examples: int, seed: int = 0) -> np.ndarray:
    """Bootstrap weights of m examples, float64 [B, m] (integers have no fast products); the same in each call."""
    counts = np.random.default_rng(seed).multinomial(examples, [1 / examples] * examples, size=RESAMPLES)
    return counts.astype(np.float64)


@dataclass(frozen=True)
class Answered:
    """One seed's predictions: outputs [m, ...] and gold [m] for each client's test set, or for the shared one.

    For tokens, both are tag ids [m, words]. copies: how often the examples of a shared test set stand in a part, once
    per client.
    """

    outputs: tuple[np.ndarray, ...]
    gold: tuple[np.ndarray, ...]
    copies: int = 1


def _weights(answered: Answered, is_common: bool) -> list[np.ndarray]:
    """Resamples of each client's test set, or of the shared one."""
    copies = answered.copies
    once = [drawn(len(gold) // copies, seed=0 if is_common else part) for part, gold in enumerate(answered.gold)]
    return once if copies == 1 else [np.tile(weights, copies) for weights in once]


def _difference(measure: Measure, answered: Answered, other: Answered, weights: Sequence[np.ndarray]) -> np.ndarray:
    """The mean over clients of the metric, minus the other's, under each resample; [B]."""
    first, second = (
        np.mean([measure(*part) for part in zip(side.outputs, side.gold, weights, strict=True)], axis=0)
        for side in (answered, other)
    )
    return np.asarray(first - second)


def sampling_error(measure: Measure, answered: Answered, other: Answered, is_common: bool = False) -> float:
    """The sampling error of a seed's paired difference (is_common: one test set); at least one example's weight."""
    spread = np.nanstd(_difference(measure, answered, other, _weights(answered, is_common)), ddof=1)
    return max(float(spread), _one_example(answered, is_common))


def _one_example(answered: Answered, is_common: bool) -> float:
    return answered.copies / (min(map(len, answered.gold)) * (1 if is_common else len(answered.gold)))


def hierarchical(
    answers: Sequence[Answered],
    others: Sequence[Answered],
    measure: Measure,
    factor: float = 1.0,
    is_common: bool = True,
) -> Estimate:
    """The mean difference over n seeds scored on the same examples, with its variation over both.

    Seeds and examples are crossed, so both vary (Owen 2007). The variance over examples is bootstrapped, with the same
    resample for all seeds. The variance over seeds is exact, s^2 / n: resampling few seeds would shrink it by
    (n - 1) / n, and percentiles would assume a normal distribution. Each has its own quantile (`inference.reach`). The
    error is at least one example's weight.

    Args:
        answers: Each seed's predictions, for one method.
        others: The same for the other method.
        measure: The metric.
        factor: The metric's unit, 100 for percent; negative if lower is better.
        is_common: Whether clients share one test set, or each has its own.

    Returns:
        The difference; without an interval below two seeds.
    """
    n, pairs = len(answers), list(zip(answers, others, strict=True))
    if not pairs:
        return Estimate(None)
    whole, weights = [np.ones((1, len(gold))) for gold in answers[0].gold], _weights(answers[0], is_common)
    values = [factor * float(_difference(measure, *pair, whole)[0]) for pair in pairs]
    value, sd = float(np.mean(values)), sample_sd(values)
    if math.isnan(value) or sd is None:
        return Estimate(None if math.isnan(value) else value, None, n)
    means = factor * np.mean([_difference(measure, *pair, weights) for pair in pairs], axis=0)
    sampling = max(float(np.nanstd(means, ddof=1)), abs(factor) * _one_example(answers[0], is_common))
    return estimate(value, [Component(sd / math.sqrt(n), n - 1, 0.0), Component(sampling)], n)
