"""Computes metrics: functions, each wrapped as a local `evaluate` module; measures.py has their names and units."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import datasets
import evaluate
import numpy as np
from seqeval.metrics.sequence_labeling import get_entities

IGNORED = -100  # in references: skip this position
Ids = np.ndarray | list[list[int]]  # one row per text, of equal length; `evaluate` passes them as lists
_ID, _SCORE = datasets.Value("int64"), datasets.Value("float64")
INPUTS = {  # kind of input -> its description, and the types of predictions and references
    "labels": ("label ids, one or more", _ID, _ID),
    "scores": ("scores, one or more", _SCORE, _SCORE),
    "ids": ("ids of tokens or tags, one row per text", datasets.Sequence(_ID), datasets.Sequence(_ID)),
    "likelihoods": ("the summed log-likelihood of each text, and the number of its tokens", _SCORE, _ID),
}


@dataclass(frozen=True)
class Definition:
    """A metric: a function of predictions and references, with its description in the docstring.

    Args:
        inputs: A key of INPUTS.
        url: The address of its definition.
        counts: Hits, and predicted plus true items, per text, [n, 2], if the metric is `f1_of_counts` of their sums.
    """

    compute: Callable[[Any, Any], float]
    inputs: str
    url: str
    counts: Callable[[Any, Any], np.ndarray] | None = None


DEFINITIONS: dict[str, Definition] = {}


class LocalMetric(evaluate.Metric):
    """A metric as an `evaluate` module. folder: for its lock files."""

    def __init__(self, name: str, folder: str) -> None:
        self.definition = DEFINITIONS[name]
        super().__init__(cache_dir=folder, keep_in_memory=True)
        self.info.module_name = name

    def _info(self) -> evaluate.MetricInfo:
        inputs, predictions, references = INPUTS[self.definition.inputs]
        return evaluate.MetricInfo(
            description=self.definition.compute.__doc__,
            citation=self.definition.url,
            inputs_description=f"Predictions and references: {inputs}.",
            features=datasets.Features({"predictions": predictions, "references": references}),
            # The NumPy format would pass single precision, and tables as arrays of arrays.
            format="numpy" if self.definition.inputs == "labels" else None,
            reference_urls=[self.definition.url],
        )

    def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
        return {self.name: self.definition.compute(predictions, references)}


def metric(inputs: str, url: str, counts: Callable[[Any, Any], np.ndarray] | None = None) -> Callable[..., Any]:
    """Register the decorated function as a metric under its name; see Definition."""

    def register(compute: Callable[[Any, Any], float]) -> Callable[[Any, Any], float]:
        DEFINITIONS[compute.__name__] = Definition(compute, inputs, url, counts)
        return compute

    return register


def f1_of_counts(hits: float, named: float) -> float:
    """F1 from hits and the number of items in predictions and references: 2 TP / (2 TP + FP + FN)."""
    return float(2 * hits / named) if named else 0.0


def label_f1(label: int, predictions: np.ndarray, references: np.ndarray) -> float:
    """F1 of a label; 0 if it never occurs."""
    predicted, true = predictions == label, references == label
    return f1_of_counts(np.sum(predicted & true), np.sum(predicted) + np.sum(true))


@metric("labels", "https://scikit-learn.org/stable/modules/generated/sklearn.metrics.accuracy_score.html")
def accuracy(predictions: np.ndarray, references: np.ndarray) -> float:
    """The share of predictions that equal their references."""
    return float(np.mean(predictions == references))


@metric("labels", "https://scikit-learn.org/stable/modules/generated/sklearn.metrics.f1_score.html")
def f1(predictions: np.ndarray, references: np.ndarray) -> float:
    """F1 of label 1: 2 TP / (2 TP + FP + FN); 0 if label 1 never occurs."""
    return label_f1(1, predictions, references)


@metric("labels", "https://scikit-learn.org/stable/modules/generated/sklearn.metrics.f1_score.html")
def macro_f1(predictions: np.ndarray, references: np.ndarray) -> float:
    """The mean F1 over the labels that occur in predictions or references."""
    labels = np.union1d(predictions, references)
    return float(np.mean([label_f1(label, predictions, references) for label in labels]))


@metric("labels", "https://aclanthology.org/2021.wanlp-1.36")
def f1_pn(predictions: np.ndarray, references: np.ndarray) -> float:
    """The mean F1 of labels 0 (negative) and 2 (positive); 0 for a class that never occurs.

    The F1 of label 1 (neutral) does not enter, but confusing it with another label is an error (Abu Farha et al. 2021).
    """
    return float(np.mean([label_f1(label, predictions, references) for label in (0, 2)]))


@metric("labels", "https://scikit-learn.org/stable/modules/generated/sklearn.metrics.matthews_corrcoef.html")
def matthews_correlation(predictions: np.ndarray, references: np.ndarray) -> float:
    """Matthews correlation (1975) of label 1; 0 if predictions or references are constant."""
    predicted, true = predictions == 1, references == 1
    p, t = np.mean(predicted), np.mean(true)
    deviations = np.sqrt(p * (1 - p) * t * (1 - t))
    covariance = np.mean(predicted & true) - p * t
    return float(np.clip(covariance / deviations, -1, 1)) if deviations > 0 else 0.0


@metric("scores", "https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.pearsonr.html")
def pearson(predictions: Sequence[float], references: Sequence[float]) -> float:
    """Pearson's r between predicted and true scores; NaN if either is constant."""
    x, y = np.asarray(predictions, np.float64), np.asarray(references, np.float64)
    # The mean of equal values can differ from them by rounding errors, which would give a false spread.
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    x, y = x - np.mean(x), y - np.mean(y)
    r = np.dot(x / np.linalg.norm(x), y / np.linalg.norm(y))
    return float(np.clip(r, -1, 1))


@metric("likelihoods", "https://doi.org/10.1121/1.2016299")
def perplexity(predictions: np.ndarray, references: np.ndarray) -> float:
    """The exponential of the mean negative log-likelihood, in nats, over the tokens of all texts.

    A masked language model counts masked tokens, a causal one all but the first (Jelinek et al. 1977). NaN without any
    token, infinite beyond the largest float.
    """
    tokens = int(np.sum(references))
    loss = -float(np.sum(predictions)) / tokens if tokens else math.nan
    return math.inf if loss >= math.log(np.finfo(np.float64).max) else math.exp(loss)


@metric("ids", "https://doi.org/10.1145/3372297.3417270")
def token_recovery(predictions: Ids, references: Ids) -> float:
    """The share of tokens, over all texts, that are predicted at their position; NaN without any token.

    As in the attack of Song and Raghunathan (2020), who count tokens as sets. References of -100, for padding and
    special tokens, do not count.
    """
    predicted, true = np.asarray(predictions), np.asarray(references)
    counted = true != IGNORED
    return float(((predicted == true) & counted).sum() / counted.sum()) if counted.any() else math.nan


@metric("ids", "https://doi.org/10.1145/3372297.3417270")
def text_recovery(predictions: Ids, references: Ids) -> float:
    """The share of texts with all tokens predicted at their position; NaN without any text.

    Tokens count as in `token_recovery`; texts without counted tokens do not count.
    """
    predicted, true = np.asarray(predictions), np.asarray(references)
    counted = true != IGNORED
    texts = counted.any(axis=1)
    whole = ((predicted == true) | ~counted).all(axis=1)
    return float(whole[texts].mean()) if texts.any() else math.nan


def entity_counts(predictions: Ids, references: Ids) -> np.ndarray:
    """Per sentence: correct entities, and all entities in predictions and references; [n, 2]."""
    counts = np.zeros((len(references), 2), dtype=np.int64)
    for row, (predicted, true) in enumerate(zip(np.asarray(predictions), np.asarray(references), strict=True)):
        names = [[_tag_name(tag) for tag in tags[true != IGNORED].tolist()] for tags in (predicted, true)]
        one, other = (set(get_entities(side)) for side in names)
        counts[row] = len(one & other), len(one) + len(other)
    return counts


def _tag_name(tag: int) -> str:
    return f"{'IB'[tag % 2]}-{(tag - 1) // 2}" if tag > 0 else "O"


@metric("ids", "https://aclanthology.org/W03-0419", counts=entity_counts)
def entity_f1(predictions: Ids, references: Ids) -> float:
    """Micro-averaged F1 of entities, which match if type, first and last word match; 0 without any entity.

    Tag ids: 0 is outside, 2k + 1 and 2k + 2 are B- and I- of type k; references of -100 do not count. seqeval reads
    each sentence in its default mode, that of conlleval (Tjong Kim Sang and De Meulder 2003): an I- that follows no tag
    of its type begins an entity. Its strict mode would ignore such entities, which official test sets contain.
    """
    return f1_of_counts(*entity_counts(predictions, references).sum(axis=0))


@metric("ids", "https://github.com/Hanzhouu/FedBFPT")
def entity_f1_concatenated(predictions: Ids, references: Ids) -> float:
    """F1 of spans in the concatenated tags of all sentences, as in FedBFPT's downstream_ner.py.

    A span begins with B-, continues with every I- of any type, even past a sentence's end, and has the type of its last
    word; every other I- is a one-word span. A span that is still open after the last tag is dropped. Tag ids are those
    of `entity_f1`.
    """
    counted = np.asarray(references) != IGNORED
    predicted, true = (_spans(np.asarray(tags)[counted]) for tags in (predictions, references))
    return f1_of_counts(len(predicted & true), len(predicted) + len(true))


def _spans(tags: np.ndarray) -> set[tuple[int, int, int]]:
    """(first word, last word, type) of the spans in a sequence of tag ids [words]."""
    outside, begins = tags <= 0, (tags > 0) & (tags % 2 == 1)
    # A span is open before a word if the last non-I- tag is B-; then an I- continues it.
    marks = np.maximum.accumulate(np.where(outside | begins, np.arange(len(tags)), -1)) if len(tags) else tags
    is_open = np.where(marks >= 0, begins[marks], False)
    firsts = np.flatnonzero(begins)
    ends = np.flatnonzero(~is_open | begins)  # a span ends before the next word that does not continue it
    closed = np.searchsorted(ends, firsts, side="right")
    firsts = firsts[closed < len(ends)]  # the others stay open after the last tag
    lasts = ends[closed[closed < len(ends)]] - 1
    alone = np.flatnonzero(~outside & ~is_open)
    both = (np.concatenate([firsts, alone]), np.concatenate([lasts, alone]))
    return set(zip(*(each.tolist() for each in (*both, (tags[both[1]] - 1) // 2)), strict=True))
