"""Metrics as data: what each is called, its unit, which way is better, how clients' scores combine. Nothing heavy.

How a metric is computed stands in the local `evaluate` module of its name (metrics/<name>/<name>.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.errors import UserError

TRAIN_LOSS = "train_loss"  # not computed by a module: the mean loss of a round's training


@dataclass(frozen=True)
class Metric:
    """One metric.

    label: as tables print it. unit: "%" of a fraction, or "" for a plain number. higher_is_better: its direction.
    over_clients: "mean", the plain mean over clients, or "geometric", of what is an exponential, such as perplexity.
    least, most: between which a score lies, as recorded.
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
        """What a value is multiplied with to be shown: 100 for percent."""
        return 100 if self.unit == "%" else 1

    @property
    def is_exponential(self) -> bool:
        """Whether ratios of it say more than differences: such scores stand on a logarithmic axis."""
        return self.over_clients == "geometric"

    @property
    def sign(self) -> int:
        """What a difference is multiplied with to be above 0 where it is a gain."""
        return 1 if self.higher_is_better else -1

    @property
    def limits(self) -> tuple[float, float]:
        """Between which a score lies, in the unit in which it is shown."""
        return self.factor * self.least, self.factor * self.most

    def in_unit(self, text: str) -> str:
        """A number with the unit: "1.00 %", or the number alone."""
        return f"{text} {self.unit}".rstrip()

    def shown(self, value: float) -> float:
        """A value, or a difference of two, in the unit in which it is shown."""
        return self.factor * value

    def gain(self, value: float, other: float) -> float:
        """By how much a value is better than another: above 0 is better, whatever the metric's direction."""
        return value - other if self.higher_is_better else other - value

    def reaches(self, value: float, target: float) -> bool:
        """Whether a value is as good as a target, or better."""
        return self.gain(value, target) >= 0

    def best(self, values: Iterable[float | None]) -> float | None:
        """The best of the values that are defined, the first of equals; None where none is."""
        known = (value for value in values if value is not None)
        return max(known, default=None) if self.higher_is_better else min(known, default=None)

    def combined(self, values: Sequence[float | None]) -> float | None:
        """One score of the clients'; None where one is undefined, or where there is none."""
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return None
        if self.is_exponential:
            return math.exp(math.fsum(math.log(value) for value in known) / len(known))
        import numpy as np

        return float(np.mean(known))


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
        Metric(TRAIN_LOSS, "training loss", unit="", higher_is_better=False, most=math.inf),
    )
}


def metric(name: str) -> Metric:
    """The metric of a name ("f1"), or of a score ("test/f1"); UserError where there is none."""
    found = METRICS.get(name.rpartition("/")[2])
    if found is None:
        raise UserError(f"unknown metric {name!r}: expected one of {', '.join(METRICS)}")
    return found
