"""Pearson's correlation, as a local `evaluate` module."""

from collections.abc import Sequence

import datasets
import evaluate
import numpy as np


class Pearson(evaluate.Metric):
    """Linear correlation of predicted and true scores."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description="Pearson's r; NaN where predictions or references are constant.",
            citation="",
            inputs_description="predictions, references: scores, one or more. Returns {'pearson': -1 to 1}.",
            features=datasets.Features(
                {"predictions": datasets.Value("float64"), "references": datasets.Value("float64")}
            ),
            reference_urls=["https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.pearsonr.html"],
        )

    def _compute(self, predictions: Sequence[float], references: Sequence[float]) -> dict[str, float]:
        # Asked for the format "numpy", `datasets` would hand over single precision.
        x, y = np.asarray(predictions, np.float64), np.asarray(references, np.float64)
        # Equal values do not always average to themselves, so that a spread of rounding errors would be left.
        if np.ptp(x) == 0 or np.ptp(y) == 0:
            return {"pearson": float("nan")}
        x, y = x - np.mean(x), y - np.mean(y)
        r = np.dot(x / np.linalg.norm(x), y / np.linalg.norm(y))
        return {"pearson": float(np.clip(r, -1, 1))}
