"""Binary Matthews correlation, as a local `evaluate` module."""

import datasets
import evaluate
import numpy as np


class MatthewsCorrelation(evaluate.Metric):
    """Correlation of predicted and true membership in label 1."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description="Matthews correlation of label 1; 0 where predictions or references are constant.",
            citation="Matthews, B. W. (1975). Biochimica et Biophysica Acta 405(2), 442-451.",
            inputs_description=(
                "predictions, references: label ids, one or more. Returns {'matthews_correlation': -1 to 1}."
            ),
            features=datasets.Features({"predictions": datasets.Value("int64"), "references": datasets.Value("int64")}),
            format="numpy",
            reference_urls=["https://scikit-learn.org/stable/modules/generated/sklearn.metrics.matthews_corrcoef.html"],
        )

    def _compute(self, predictions: np.ndarray, references: np.ndarray) -> dict[str, float]:
        predicted, true = predictions == 1, references == 1
        p, t = np.mean(predicted), np.mean(true)
        map_clients = np.sqrt(p * (1 - p) * t * (1 - t))
        covariance = np.mean(predicted & true) - p * t
        return {"matthews_correlation": float(np.clip(covariance / map_clients, -1, 1)) if map_clients > 0 else 0.0}
