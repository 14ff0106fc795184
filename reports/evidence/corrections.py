"""Stored predictions of runs, corrected without training and scored again (corrections: `benchmarks.corrections`).

A correction adds a number to each logit of a client. It uses the label distributions of the clients' training examples
and the clients' predictions on their validation examples, but no test example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from benchmarks.measures import metric
from benchmarks.predictions import stored_predictions
from benchmarks.results import RoundRecord, RunResult
from benchmarks.run_config import VALIDATION
from reports.evidence.caching import once
from reports.evidence.resampling import MEASURES

AS_ANSWERED = "as-answered"  # no correction, but scores that the record lacks
STRENGTHS = np.arange(0, 8.25, 0.25)
BINS = 15  # bins of confidence, as in Guo et al. (2017)


class Answers(NamedTuple):
    """logits: float64 [n, C]; gold: label ids [n]."""

    logits: np.ndarray
    gold: np.ndarray

    def shifted(self, by: np.ndarray) -> Answers:
        return Answers(self.logits + by, self.gold)

    @property
    def accuracy(self) -> float:
        return float(np.mean(self.logits.argmax(axis=1) == self.gold))


# (log ratios of label distributions [K, C], each client's validation predictions or ()) -> what is added to its
# logits, [K, C]; None where it cannot be known.
Correct = Callable[[np.ndarray, Sequence[Answers]], np.ndarray | None]


def strength(ratios: np.ndarray, held: Sequence[Answers]) -> np.ndarray | None:
    """The ratios times one strength: the smallest one with the best mean accuracy on validation examples."""
    if not held:
        return None

    def reached(strength: float) -> float:
        clients = zip(held, ratios, strict=True)
        return round(float(np.mean([answers.shifted(strength * ratio).accuracy for answers, ratio in clients])), 9)

    best = max(STRENGTHS, key=reached)  # the first one of equal scores
    return np.asarray(best * ratios)


def thresholds(ratios: np.ndarray, held: Sequence[Answers]) -> np.ndarray | None:
    """For two labels, each client's addition to the logit of label 1: the smallest one that is best on its examples."""
    if not held or ratios.shape[1] != 2:
        return None
    return np.array([(0.0, _move(*answers)) for answers in held])


def _move(logits: np.ndarray, gold: np.ndarray) -> float:
    margins = logits[:, 1] - logits[:, 0]
    ordered = np.unique(margins)
    between = (ordered[1:] + ordered[:-1]) / 2
    moves = np.array([0.0, *-between, 1 - ordered[0], -1 - ordered[-1]])
    right = ((margins + moves[:, None] > 0) == (gold == 1)).sum(axis=1)
    return float(min(moves[right == right.max()], key=abs))


CORRECT: Mapping[str, Correct] = {
    AS_ANSWERED: lambda ratios, held: np.zeros_like(ratios),
    "prior": lambda ratios, held: ratios,
    "prior-strength": strength,
    "threshold": thresholds,
}


def log_ratios(counts: np.ndarray) -> np.ndarray:
    """Log p(label at a client) − log p(label over all clients), with add-one smoothing as in `local_prior`.

    counts: training examples by client and label, [K, C].
    """
    clients, everyone = counts + 1.0, counts.sum(axis=0) + 1.0
    return np.asarray(np.log(clients / clients.sum(axis=1, keepdims=True)) - np.log(everyone / everyone.sum()))


def nll(answers: Answers) -> float:
    """The mean negative log-likelihood of the true labels, in nats."""
    return float(-np.mean(log_softmax(answers.logits, axis=1)[np.arange(len(answers.gold)), answers.gold]))


def ece(answers: Answers) -> float:
    """The expected calibration error: the mean distance of confidence and accuracy, in BINS bins of confidence."""
    shares = softmax(answers.logits, axis=1)
    confidence, right = shares.max(axis=1), shares.argmax(axis=1) == answers.gold
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(bins, confidence - right)).sum() / len(right))


# Scores from logits and labels.
OF_ANSWERS: Mapping[str, Callable[[Answers], float]] = {
    "accuracy": lambda answers: answers.accuracy,
    "nll": nll,
    "ece": ece,
}


# ---- records -----------------------------------------------------------------------------------------------------


class Kept(NamedTuple):
    """The logits that a run stored. ratios: see `log_ratios`; by_round: round -> evaluation -> client's predictions."""

    ratios: np.ndarray
    by_round: Mapping[int, Mapping[str, Sequence[Answers]]]


@once
def corrected(record: RunResult, correction: str) -> RunResult | None:
    """A record with the scores of its corrected predictions, computed once; None if they cannot be computed.

    Rounds without stored predictions have undefined scores. The round that the run chose counts, so that both are
    compared at one round. The new record has the record's scores that labels suffice for, and those of OF_ANSWERS. It
    has no predictions.
    """
    kept = _kept(record)
    if kept is None:
        return None
    moved = {}
    for number, answers in kept.by_round.items():
        by = CORRECT[correction](kept.ratios, answers.get(VALIDATION, ()))
        if by is None:
            return None
        moved[number] = {
            evaluation: [each.shifted(addition) for each, addition in zip(of_clients, by, strict=True)]
            for evaluation, of_clients in answers.items()
        }
    rounds = tuple(_scored(entry, moved.get(entry.round, {})) for entry in record.rounds)
    chosen = record.chosen_round
    return replace(record, rounds=rounds, sampling_errors={}, chosen_before=chosen, predictions={}, folder=None)


@once
def _kept(record: RunResult) -> Kept | None:
    """None unless every client has logits and the labels of its training examples are known."""
    counts = record.partition.get("obtained_counts")
    if not counts or not (parts := stored_predictions(record)):
        return None
    if any(part.gold.ndim > 1 or part.last.ndim != 2 or part.last.shape[1] < 2 for part in parts.values()):
        return None
    train, classes = [client["train"] for client in record.clients], next(iter(parts.values())).last.shape[1]
    trained = np.zeros((len(train), classes), dtype=np.int64)
    trained[:, record.partition["label_ids"]] = counts
    for (client, evaluation), part in parts.items():
        if evaluation in ("test", VALIDATION) and record.held_out_counts(evaluation)[client]:  # held back
            trained[client] -= np.bincount(part.gold, minlength=classes)
    if trained.min() < 0 or trained.sum(axis=1).tolist() != train:
        return None
    evaluations = dict.fromkeys(evaluation for _, evaluation in parts)

    def answers(client: int, evaluation: str, number: int) -> Answers:
        part = parts[client, evaluation]
        return Answers(part.by_round[number].astype(np.float64), part.gold)

    by_round = {
        number: {each: [answers(client, each, number) for client in range(len(train))] for each in evaluations}
        for number in next(iter(parts.values())).by_round
    }
    return Kept(log_ratios(trained), by_round)


def _scored(entry: RoundRecord, answers: Mapping[str, Sequence[Answers]]) -> RoundRecord:
    """A round with the scores of these predictions, or with undefined scores without them."""

    def scores(evaluation: str, part: Answers | None) -> dict[str, float | None]:
        names = [name for name in entry.scores[evaluation] if name in MEASURES]
        return {name: None if part is None else _score(name, part) for name in dict.fromkeys((*names, *OF_ANSWERS))}

    clients = tuple(
        {each: scores(each, answers[each][place] if answers else None) for each in entry.scores}
        for place in range(len(entry.client_scores))
    )
    means = {
        each: {name: metric(name).combined([client[each][name] for client in clients]) for name in clients[0][each]}
        for each in entry.scores
    }
    pooled = {
        each: scores(each, Answers(*map(np.concatenate, zip(*answers[each], strict=True))) if answers else None)
        for each in entry.pooled_scores
    }
    return replace(entry, scores=means, client_scores=clients, pooled_scores=pooled)


def _score(name: str, answers: Answers) -> float:
    if name in OF_ANSWERS:
        return OF_ANSWERS[name](answers)
    return float(MEASURES[name](answers.logits, answers.gold, np.ones((1, len(answers.gold))))[0])
