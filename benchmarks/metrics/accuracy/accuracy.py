"""Accuracy, as a local `evaluate` module."""

import datasets
import evaluate
import numpy as np


class Accuracy(evaluate.Metric):
    """Share of predictions that are right."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description="The share of predictions that equal their references.",
            citation="",
            inputs_description="predictions, references: label ids, one or more. Returns {'accuracy': 0–1}.",
            features=datasets.Features({"predictions": datasets.Value("int64"), "references": datasets.Value("int64")}),
            format="numpy",
            reference_urls=["https://scikit-learn.org/stable/modules/generated/sklearn.metrics.accuracy_score.html"],
        )

    def _compute(self, predictions: np.ndarray, references: np.ndarray) -> dict[str, float]:
        return {"accuracy": float(np.mean(predictions == references))}
