"""Pearson's correlation, as a local `evaluate` module."""

from collections.abc import Sequence

import numpy as np

from benchmarks.metrics import LocalMetric


class Pearson(LocalMetric):
    """Pearson's r of predicted and true scores; NaN if either are constant."""

    inputs = "scores"
    url = "https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.pearsonr.html"

    def _compute(self, predictions: Sequence[float], references: Sequence[float]) -> dict[str, float]:
        x, y = np.asarray(predictions, np.float64), np.asarray(references, np.float64)
        # The mean of equal values is not always that value: the spread would be that of rounding errors.
        if np.ptp(x) == 0 or np.ptp(y) == 0:
            return {"pearson": float("nan")}
        x, y = x - np.mean(x), y - np.mean(y)
        r = np.dot(x / np.linalg.norm(x), y / np.linalg.norm(y))
        return {"pearson": float(np.clip(r, -1, 1))}
