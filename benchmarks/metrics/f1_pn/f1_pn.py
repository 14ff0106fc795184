"""F1^PN of three-way sentiment, as a local `evaluate` module."""

import numpy as np

from benchmarks.metrics import LocalMetric, label_f1

NEGATIVE, POSITIVE = 0, 2  # label ids; 1 is neutral


class F1PN(LocalMetric):
    """The mean of the F1 of label 0 (negative) and of label 2 (positive); 0 for a class that occurs nowhere.

    Label 1 (neutral) has no F1 in it, but confusing it with another label is an error (Abu Farha et al. 2021).
    """

    url = "https://aclanthology.org/2021.wanlp-1.36"

    def _compute(self, predictions: np.ndarray, references: np.ndarray) -> dict[str, float]:
        return {"f1_pn": float(np.mean([label_f1(label, predictions, references) for label in (NEGATIVE, POSITIVE)]))}
