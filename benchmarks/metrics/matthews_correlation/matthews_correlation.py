"""Binary Matthews correlation, as a local `evaluate` module."""

import numpy as np

from benchmarks.metrics import LocalMetric


class MatthewsCorrelation(LocalMetric):
    """Matthews correlation (1975) of label 1; 0 if predictions or references are constant."""

    url = "https://scikit-learn.org/stable/modules/generated/sklearn.metrics.matthews_corrcoef.html"

    def _compute(self, predictions: np.ndarray, references: np.ndarray) -> dict[str, float]:
        predicted, true = predictions == 1, references == 1
        p, t = np.mean(predicted), np.mean(true)
        deviations = np.sqrt(p * (1 - p) * t * (1 - t))
        covariance = np.mean(predicted & true) - p * t
        return {"matthews_correlation": float(np.clip(covariance / deviations, -1, 1)) if deviations > 0 else 0.0}
