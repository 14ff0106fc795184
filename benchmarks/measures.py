"""Metrics as data: name, unit, direction, and how clients' scores are combined, without heavy imports.

metrics.py computes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.errors import UserError

TRAIN_LOSS = "train_loss"  # the mean loss of a round's training, which needs no module
OF_LOGITS = ("nll", "ece")  # which only reports compute, from kept answers (reports/evidence/corrections.py)


@dataclass(frozen=True)
class Metric:
    """One metric.

    label: as tables print it. unit: "%" for a fraction, "" for a plain number. over_clients: the "mean" over clients,
    or the "geometric" mean for an exponential such as perplexity. least, most: the limits of a score, as recorded.
    """

    name: str
    label: str
    unit: Literal["%", ""] = "%"
    higher_is_better: bool = True
    over_clients: Literal["mean", "geometric"] = "mean"
    least: float = 0.0
    most: float = 1.0

    @property
    def factor(self) -> int:
        """The factor from a recorded to a printed value: 100 for percent."""
        return 100 if self.unit == "%" else 1

    @property
    def is_exponential(self) -> bool:
        """Whether ratios are more meaningful than differences, so that an axis is logarithmic."""
        return self.over_clients == "geometric"

    @property
    def sign(self) -> int:
        """The sign of a difference that is a gain."""
        return 1 if self.higher_is_better else -1

    @property
    def limits(self) -> tuple[float, float]:
        """The limits of a score, in the printed unit."""
        return self.factor * self.least, self.factor * self.most

    def in_unit(self, text: str) -> str:
        """A number with the unit: "1.00 %", or the number alone."""
        return f"{text} {self.unit}".rstrip()

    def shown(self, value: float) -> float:
        """A value, or a difference of two, in the printed unit."""
        return self.factor * value

    def gain(self, value: float, other: float) -> float:
        """How much better a value is than another; above 0 is better in either direction."""
        return value - other if self.higher_is_better else other - value

    def reaches(self, value: float, target: float) -> bool:
        """Whether a value is as good as a target, or better."""
        return self.gain(value, target) >= 0

    def best(self, values: Iterable[float | None]) -> float | None:
        """The best defined value, the first of equals; None if none is defined."""
        defined = (value for value in values if value is not None)
        return max(defined, default=None) if self.higher_is_better else min(defined, default=None)

    def combined(self, values: Sequence[float | None]) -> float | None:
        """The clients' scores as one; None if one is undefined, or if there are none."""
        defined = [value for value in values if value is not None]
        if not defined or len(defined) < len(values):
            return None
        if self.is_exponential:
            return math.exp(math.fsum(math.log(value) for value in defined) / len(defined))
        import numpy as np

        return float(np.mean(defined))


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "Acc"),
        Metric("f1", "F1"),
        Metric("f1_pn", "F1^PN"),
        Metric("matthews_correlation", "Mcc", least=-1.0),
        Metric("pearson", "Pearson", least=-1.0),
        Metric("entity_f1", "F1"),
        Metric("entity_f1_concatenated", "F1, the authors' own"),
        Metric("token_recovery", "tokens"),
        Metric("text_recovery", "texts"),
        Metric("perplexity", "Perplexity", "", False, "geometric", least=1.0, most=math.inf),
        Metric("nll", "NLL", "", False, most=math.inf),
        Metric("ece", "ECE", higher_is_better=False),
        Metric(TRAIN_LOSS, "training loss", unit="", higher_is_better=False, most=math.inf),
    )
}


def metric(name: str) -> Metric:
    """The metric of a name ("f1"), or of a score ("test/f1"); UserError if there is none."""
    short = name.rpartition("/")[2]
    if short not in METRICS:
        raise UserError(f"unknown metric {name!r}: expected one of {', '.join(METRICS)}")
    return METRICS[short]
