"""Accuracy, as a local `evaluate` module."""

import numpy as np

from benchmarks.metrics import LocalMetric


class Accuracy(LocalMetric):
    """The share of predictions that equal their references."""

    url = "https://scikit-learn.org/stable/modules/generated/sklearn.metrics.accuracy_score.html"

    def _compute(self, predictions: np.ndarray, references: np.ndarray) -> dict[str, float]:
        return {"accuracy": float(np.mean(predictions == references))}
