"""Metrics as local `evaluate` modules: `metrics/<name>/<name>.py` holds the metric of that name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import datasets
import evaluate
import numpy as np

IGNORED = -100  # in references: a position that does not count
Ids = np.ndarray | list[list[int]]  # a row a text, all of one length; `evaluate` passes tables on as lists
_ID, _SCORE = datasets.Value("int64"), datasets.Value("float64")
_TYPES = {"labels": (_ID, _ID), "scores": (_SCORE, _SCORE), "ids": (datasets.Sequence(_ID), datasets.Sequence(_ID))}
_INPUTS = {
    "labels": "predictions, references: label ids, one or more.",
    "scores": "predictions, references: scores, one or more.",
    "ids": "predictions, references: ids of tokens or tags, a row a text; references of -100 do not count.",
    "likelihoods": "predictions: a text's summed log-likelihood; references: the number of its tokens.",
}


class LocalMetric(evaluate.Metric, ABC):  # type: ignore[misc]  # evaluate has no types
    """A metric that is described by its docstring.

    Attributes:
        inputs: What it compares: "labels", "scores", "ids" of tokens or tags, or "likelihoods" of texts.
        url: Its definition.
    """

    inputs = "labels"
    url = ""

    def _info(self) -> evaluate.MetricInfo:
        predictions, references = _TYPES.get(self.inputs, (_SCORE, _ID))
        return evaluate.MetricInfo(
            description=self.__doc__,
            citation=self.url,
            inputs_description=_INPUTS[self.inputs],
            features=datasets.Features({"predictions": predictions, "references": references}),
            # Asked for NumPy, `datasets` would pass single precision on, and tables as arrays of arrays.
            format="numpy" if self.inputs == "labels" else None,
            reference_urls=[self.url],
        )

    @abstractmethod
    def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
        """The value by the metric's name."""


def f1(hits: float, named: float) -> float:
    """F1 of so many hits, and items named in predictions and references together: 2 TP / (2 TP + FP + FN)."""
    return float(2 * hits / named) if named else 0.0


def label_f1(label: int, predictions: np.ndarray, references: np.ndarray) -> float:
    """F1 of a label; 0 if it occurs nowhere."""
    predicted, true = predictions == label, references == label
    return f1(np.sum(predicted & true), np.sum(predicted) + np.sum(true))
