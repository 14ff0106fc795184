"""Metrics as data: name, unit, direction and combination over clients, without heavy imports.

metrics.py computes them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import pstdev
from typing import Any, Literal

from benchmarks.errors import UserError

TRAIN_LOSS = "train_loss"  # a round's mean training loss, which needs no module


@dataclass(frozen=True)
class Metric:
    """One metric.

    Args:
        label: The name in tables.
        unit: "%" for a fraction, "" for a plain number.
        over_clients: The "mean" over clients, or the "geometric" mean for an exponential such as perplexity.
        least: The lower limit of a recorded score.
        most: The upper limit of a recorded score.
        of_clients: A name in `OF_CLIENTS` that replaces the mean, or "client2" for client 2.
        of_labels: The number of labels that it is defined for; 0: any.
        over_decades: Whether values differ by powers of ten; then they print with two digits and on a logarithmic axis.
    """

    name: str
    label: str
    unit: Literal["%", ""] = "%"
    higher_is_better: bool = True
    over_clients: Literal["mean", "geometric"] = "mean"
    least: float = 0.0
    most: float = 1.0
    of_clients: str = ""
    of_labels: int = 0
    over_decades: bool = False

    @property
    def factor(self) -> int:
        """The factor from recorded to printed values: 100 for percent."""
        return 100 if self.unit == "%" else 1

    @property
    def is_exponential(self) -> bool:
        """Whether ratios mean more than differences, so that axes are logarithmic."""
        return self.over_clients == "geometric" and self.of_clients != "spread"

    @property
    def sign(self) -> int:
        """The sign of a gain."""
        return 1 if self.higher_is_better else -1

    @property
    def limits(self) -> tuple[float, float]:
        """The limits of a score, in the printed unit."""
        return self.factor * self.least, self.factor * self.most

    def in_unit(self, text: str) -> str:
        """A number with its unit, if any: "1.00 %"."""
        return f"{text} {self.unit}".rstrip()

    def shown(self, value: float) -> float:
        """A value, or a difference of two, in the printed unit."""
        return self.factor * value

    def gain(self, value: float, other: float) -> float:
        """The gain of a value over another; positive is better for every metric."""
        return value - other if self.higher_is_better else other - value

    def reaches(self, value: float, target: float) -> bool:
        """Whether a value is as good as a target, or better."""
        return self.gain(value, target) >= 0

    def best(self, values: Iterable[float | None]) -> float | None:
        """The best defined value; None if all are undefined."""
        defined = (value for value in values if value is not None)
        return max(defined, default=None) if self.higher_is_better else min(defined, default=None)

    def combined(self, values: Sequence[float | None]) -> float | None:
        """The clients' combined score; None if a score is undefined, or without scores."""
        defined = [value for value in values if value is not None]
        if not defined or len(defined) < len(values):
            return None
        if self.of_clients:
            return self._of_clients(defined)
        if self.is_exponential:
            return math.exp(math.fsum(math.log(value) for value in defined) / len(defined))
        import numpy as np

        return float(np.mean(defined))

    def _of_clients(self, scores: Sequence[float]) -> float | None:
        number = client_number(self.of_clients)
        if number is not None:
            return scores[number] if number < len(scores) else None
        ranked = sorted(scores, key=lambda score: self.sign * score)
        return OF_CLIENTS[self.of_clients].combine(ranked)


@dataclass(frozen=True)
class OfClients:
    """A statistic of all clients' scores, other than the mean. combine: gets scores ranked from the worst."""

    label: str
    combine: Callable[[Sequence[float]], float | None]
    changes: Mapping[str, Any] = field(default_factory=dict)  # to the metric's fields


def _tenth(ranked: Sequence[float]) -> float | None:
    """The mean over the lowest tenth; None for fewer than ten clients."""
    lowest = ranked[: len(ranked) // 10]
    return math.fsum(lowest) / len(lowest) if lowest else None


def _spread(ranked: Sequence[float]) -> float | None:
    """The standard deviation over all clients; None for one client."""
    return pstdev(ranked) if len(ranked) > 1 else None


OF_CLIENTS = {
    "worst": OfClients("worst client", lambda ranked: ranked[0]),
    "tenth": OfClients("lowest tenth of clients", _tenth),
    "spread": OfClients("sd over clients", _spread, {"higher_is_better": False, "least": 0.0}),
}
_CLIENT = re.compile(r"client(\d+)", re.ASCII)


def client_number(of_clients: str) -> int | None:
    """The client's number in a name such as "client2"; None for other names."""
    match = _CLIENT.fullmatch(of_clients)
    return int(match[1]) if match else None


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "Acc"),
        Metric("f1", "F1", of_labels=2),
        Metric("macro_f1", "macro F1"),
        Metric("f1_pn", "F1^PN", of_labels=3),
        Metric("matthews_correlation", "Mcc", least=-1.0, of_labels=2),
        Metric("pearson", "Pearson", least=-1.0),
        Metric("entity_f1", "F1"),
        Metric("entity_f1_concatenated", "F1, authors' code"),
        Metric("token_recovery", "tokens"),
        Metric("text_recovery", "texts"),
        Metric("perplexity", "Perplexity", "", False, "geometric", least=1.0, most=math.inf),
        # Only reports compute these two, from stored predictions (reports/evidence/corrections.py).
        Metric("nll", "NLL", "", False, most=math.inf),
        Metric("ece", "ECE", higher_is_better=False),
        Metric("aggregation_error", "aggregation error", "", False, most=math.inf, over_decades=True),
        Metric("cosine_a", "cos A", "", least=-1.0),
        Metric("cosine_b", "cos B", "", least=-1.0),
        Metric("overlap_a", "overlap of A", ""),
        Metric(TRAIN_LOSS, "training loss", unit="", higher_is_better=False, most=math.inf),
    )
}


def metric(name: str) -> Metric:
    """The metric with a name ("f1"), of a score ("test/f1") or of a client statistic ("test/f1@worst").

    UserError if there is none.
    """
    short = name.rpartition("/")[2]
    base, _, of_clients = short.partition("@")
    if base not in METRICS:
        raise UserError(f"unknown metric {name!r}: expected one of {', '.join(METRICS)}")
    if short == base:
        return METRICS[base]
    number, of = client_number(of_clients), OF_CLIENTS.get(of_clients)
    if number is None and of is None:
        raise UserError(
            f"unknown clients in {name!r}: expected one of {', '.join(OF_CLIENTS)}, or a client, such as client0"
        )
    label = of.label if of else f"client {number}"
    changes = of.changes if of else {}
    return replace(METRICS[base], name=short, label=f"{METRICS[base].label}, {label}", of_clients=of_clients, **changes)


def of_clients(score: str, name: str) -> str:
    """The name of a client statistic: "test/f1" and "worst" -> "test/f1@worst"."""
    return f"{score}@{name}"
