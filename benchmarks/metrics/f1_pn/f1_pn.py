"""F1^PN of three-way sentiment, as a local `evaluate` module."""

import datasets
import evaluate
import numpy as np

NEGATIVE, POSITIVE = 0, 2  # label ids; 1 is neutral


class F1PN(evaluate.Metric):
    """Mean F1 of the positive and the negative class."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=(
                "The mean of the F1 of label 0 (negative) and of label 2 (positive). Label 1 (neutral) has no F1 in "
                "it, but what is taken for it or from it counts as an error. A class that occurs nowhere has F1 0."
            ),
            citation=(
                "Abu Farha, I., Zaghouani, W. and Magdy, W. (2021). Overview of the WANLP 2021 shared task on sarcasm "
                "and sentiment detection in Arabic. WANLP 2021, 296-305."
            ),
            inputs_description="predictions, references: label ids 0 to 2, one or more. Returns {'f1_pn': 0 to 1}.",
            features=datasets.Features({"predictions": datasets.Value("int64"), "references": datasets.Value("int64")}),
            format="numpy",
            reference_urls=["https://aclanthology.org/2021.wanlp-1.36"],
        )

    def _compute(self, predictions: np.ndarray, references: np.ndarray) -> dict[str, float]:
        scores = []
        for label in (NEGATIVE, POSITIVE):
            hits = np.sum((predictions == label) & (references == label))
            named = np.sum(predictions == label) + np.sum(references == label)  # 2 TP + FP + FN
            scores.append(2 * hits / named if named else 0.0)
        return {"f1_pn": float(np.mean(scores))}
