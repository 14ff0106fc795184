"""Binary F1, as a local `evaluate` module."""

import numpy as np

from benchmarks.metrics import LocalMetric, label_f1


class F1(LocalMetric):
    """F1 of label 1: 2 TP / (2 TP + FP + FN); 0 if label 1 occurs nowhere."""

    url = "https://scikit-learn.org/stable/modules/generated/sklearn.metrics.f1_score.html"

    def _compute(self, predictions: np.ndarray, references: np.ndarray) -> dict[str, float]:
        return {"f1": label_f1(1, predictions, references)}
