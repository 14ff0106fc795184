"""Binary F1, as a local `evaluate` module."""

import datasets
import evaluate
import numpy as np


class F1(evaluate.Metric):
    """Harmonic mean of precision and recall of label 1."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description="F1 of label 1: 2 TP / (2 TP + FP + FN); 0 where label 1 occurs nowhere.",
            citation="",
            inputs_description="predictions, references: label ids, one or more. Returns {'f1': 0 to 1}.",
            features=datasets.Features({"predictions": datasets.Value("int64"), "references": datasets.Value("int64")}),
            format="numpy",
            reference_urls=["https://scikit-learn.org/stable/modules/generated/sklearn.metrics.f1_score.html"],
        )

    def _compute(self, predictions: np.ndarray, references: np.ndarray) -> dict[str, float]:
        hits = np.sum((predictions == 1) & (references == 1))
        named = np.sum(predictions == 1) + np.sum(references == 1)  # 2 TP + FP + FN
        return {"f1": float(2 * hits / named) if named else 0.0}
