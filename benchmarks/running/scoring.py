"""Scores a test set with the local `evaluate` modules; standard errors come from its finite size."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.measures import metric
from benchmarks.metrics import DEFINITIONS, LocalMetric, f1_of_counts
from benchmarks.results import RoundRecord, chosen_round
from fedsim.data import Client, Subset
from fedsim.engine import Answers, RoundResult, Scores, part_name
from fedsim.errors import DivergedError
from fedsim.objectives import Objective
from fedsim.rng import numpy_generator
from fedsim.wire import Ledger

if TYPE_CHECKING:
    from benchmarks.running.federation import Federation
    from benchmarks.tasks import Task

RESAMPLES = 100


def scores(
    metrics: Sequence[str], objective: Objective, answers: np.ndarray, subset: Subset
) -> dict[str, float | None]:
    """The value of each metric, as a fraction or in the metric's unit.

    Args:
        metrics: Names of modules in `benchmarks/metrics`.
        objective: Turns answers into predictions and references.
        answers: The objective's answers for the subset, one row per text.
        subset: The scored texts.

    Returns:
        Metric -> value; None if undefined: for an empty test set, and for Pearson's r of a constant.

    Raises:
        DivergedError: An answer is not finite, or a score is infinite, such as a perplexity beyond the largest float.
    """
    if not _is_answered(objective, answers, subset):
        if len(subset):
            raise DivergedError("training diverged: expected finite predictions of the model, found others")
        return dict.fromkeys(metrics)
    predictions, references = objective.for_metrics(answers, subset)
    values = {metric: _value(metric, predictions, references) for metric in metrics}
    if infinite := [metric for metric, value in values.items() if math.isinf(value)]:
        raise DivergedError(f"training diverged: expected a finite {', '.join(infinite)}, found an infinite one")
    return {metric: None if math.isnan(value) else value for metric, value in values.items()}


def sampling_error(
    metric: str, objective: Objective, answers: np.ndarray, subset: Subset, rng: np.random.Generator
) -> float | None:
    """Standard error of one client's score due to its finite test set; None if undefined.

    Binomial for accuracy, otherwise the standard deviation over RESAMPLES bootstrap resamples of the texts; resamples
    with an undefined metric are dropped. For F1 of entities it counts each text once and resamples the counts.
    """
    if not _is_answered(objective, answers, subset):
        return None
    predictions, references = objective.for_metrics(answers, subset)
    n = len(references)
    if metric == "accuracy":
        share = float(np.mean(predictions == references))
        return math.sqrt(share * (1 - share) / n)
    draws = (rng.integers(n, size=n) for _ in range(RESAMPLES))
    if count := DEFINITIONS[metric].counts:
        counts = count(predictions, references)
        resampled = [f1_of_counts(*counts[draw].sum(axis=0)) for draw in draws]
    else:
        resampled = [_value(metric, predictions[draw], references[draw]) for draw in draws]
    defined = [value for value in resampled if math.isfinite(value)]
    return float(np.std(defined, ddof=1)) if len(defined) > 1 else None


def combine_errors(errors: Sequence[float | None], common: bool = False) -> float | None:
    """Standard error of the mean of K scores; None if one is None.

    It is sqrt(sum of squares) / K for independent scores, and the mean error for scores on a common test set.
    """
    defined = [error for error in errors if error is not None]
    if not defined or len(defined) < len(errors):
        return None
    return (sum(defined) if common else math.hypot(*defined)) / len(defined)


def round_record(result: RoundResult, ledger: Ledger) -> RoundRecord:
    """A round in a record's form."""
    return RoundRecord(
        round=result.round,
        cohort=result.cohort,
        train_loss=result.metrics.train_loss,
        client_losses=result.metrics.client_losses,
        scores=mean_scores(result.client_scores),
        client_scores=result.client_scores,
        up_bytes=ledger.total_bytes("up", result.round),
        down_bytes=ledger.total_bytes("down", result.round),
        pooled_scores=result.pooled_scores,
        measured=result.metrics.measured,
    )


def is_chosen(results: Sequence[RoundResult], by: str) -> bool:
    """Whether the last round has the best score so far; False for the score ""."""
    return bool(by) and chosen_round([mean_scores(result.client_scores) for result in results], by) == len(results)


def mean_scores(client_scores: Sequence[Mapping[str, Scores]]) -> dict[str, dict[str, float | None]]:
    """Evaluation -> metric -> the clients' combined score, as the metric defines it."""
    return {
        evaluation: {
            name: metric(name).combined([scores[evaluation][name] for scores in client_scores]) for name in metrics
        }
        for evaluation, metrics in client_scores[0].items()
    }


def sampling_errors(
    federation: Federation, round: int, answers: Answers, clients: Sequence[Client], of: Task, seed: int
) -> dict[str, dict[str, float | None]]:
    """Standard errors of a round's mean scores due to finite test sets: evaluation -> metric -> error.

    Clients' test sets are independent; the error of a common test set does not shrink with the number of clients.
    answers: the answers after the round.
    """
    algorithm, objective = federation.algorithm, federation.workload.objective
    combined: dict[str, dict[str, float | None]] = {}
    for name in clients[0].evaluation:
        common = len(clients) > 1 and len({id(client.evaluation[name]) for client in clients}) == 1
        scored = clients[:1] if common and not algorithm.personal else clients
        errors: dict[str, list[float | None]] = {}
        for client in scored:
            part = client.evaluation[name]
            outputs = answers[part_name(client, name)]
            generator = numpy_generator(seed, round, client.id, f"bootstrap-{name}")
            for each in of.metrics:
                errors.setdefault(each, []).append(sampling_error(each, objective, outputs, part, generator))
        combined[name] = {each: combine_errors(values, common) for each, values in errors.items()}
    return combined


def _value(metric: str, predictions: np.ndarray, references: np.ndarray) -> float:
    """A module's value. It calls `_compute`, as `compute` takes milliseconds to pass arrays through Arrow."""
    return float(_modules()[metric]._compute(predictions=predictions, references=references)[metric])


def _is_answered(objective: Objective, answers: np.ndarray, subset: Subset) -> bool:
    """Whether there are texts, and all their answers are finite."""
    if answers.shape != objective.shape(subset):
        raise ValueError(f"expected predictions of shape {objective.shape(subset)}, found {answers.shape}")
    return len(subset) > 0 and bool(np.isfinite(answers).all())


@cache
def _modules() -> dict[str, Any]:
    """All metrics in benchmarks/metrics.py, as `evaluate` modules."""
    with tempfile.TemporaryDirectory(prefix="metrics-") as folder:
        return {name: LocalMetric(name, folder) for name in DEFINITIONS}
