"""Labels that a run's stored predictions lack: such scores are close to those of a single class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.predictions import stored_predictions
from benchmarks.results import POOLED, RunResult
from reports.evidence.caching import once
from reports.evidence.scores import LATE_ROUNDS, is_trained


def lacks_a_label(record: RunResult, evaluation: str, at: str) -> bool:
    """Whether a trained run predicts one of the labels for no example in a round that counts, over all clients.

    False without stored predictions. at: "chosen", "last" or "late".
    """
    last = len(record.rounds)
    counted = {"chosen": (record.chosen_round,), "late": range(last - LATE_ROUNDS + 1, last + 1)}.get(at, (last,))
    without = _rounds_without_a_label(record, "test" if evaluation == POOLED else evaluation)
    return not set(counted).isdisjoint(without)


@once
def _rounds_without_a_label(record: RunResult, evaluation: str) -> Sequence[int]:
    stored = stored_predictions(record) if is_trained(record) else {}
    parts = [part for (_, name), part in stored.items() if name == evaluation]
    if not parts or any(part.gold.ndim > 1 or part.last.ndim != 2 or part.last.shape[1] < 2 for part in parts):
        return ()  # no classification
    labels = np.unique(np.concatenate([part.gold for part in parts]))

    def answered(number: int) -> np.ndarray:
        return np.concatenate([part.by_round[number].argmax(axis=1) for part in parts])

    return [number for number in parts[0].by_round if not np.isin(labels, answered(number)).all()]
