"""Metrics as data: name, unit, direction, and how clients' scores are combined, without heavy imports.

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

TRAIN_LOSS = "train_loss"  # the mean loss of a round's training, which needs no module
OF_ROUNDS = ("aggregation_error", "cosine_a", "cosine_b", "cosine_change_of_a")  # by fedsim.aggregation
OF_LOGITS = ("nll", "ece")  # which only reports compute, from kept answers (reports/evidence/corrections.py)


@dataclass(frozen=True)
class Metric:
    """One metric.

    label: as tables print it. unit: "%" for a fraction, "" for a plain number. over_clients: the "mean" over clients,
    or the "geometric" mean for an exponential such as perplexity. least, most: the limits of a score, as recorded.
    of_clients: of which clients, in place of the mean: a name of `OF_CLIENTS`, or "client2" for the client of that
    number. over_decades: whether values differ by powers of ten: they have two digits each and a logarithmic axis.
    """

    name: str
    label: str
    unit: Literal["%", ""] = "%"
    higher_is_better: bool = True
    over_clients: Literal["mean", "geometric"] = "mean"
    least: float = 0.0
    most: float = 1.0
    of_clients: str = ""
    over_decades: bool = False

    @property
    def factor(self) -> int:
        """The factor from a recorded to a printed value: 100 for percent."""
        return 100 if self.unit == "%" else 1

    @property
    def is_exponential(self) -> bool:
        """Whether ratios are more meaningful than differences, so that an axis is logarithmic."""
        return self.over_clients == "geometric" and self.of_clients != "spread"

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
    """A number of all clients' scores that is no mean. combine: gets them ranked, the worst first."""

    label: str
    combine: Callable[[Sequence[float]], float | None]
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the metric's fields


def _tenth(ranked: Sequence[float]) -> float | None:
    """The mean of the lowest tenth; None below ten clients."""
    lowest = ranked[: len(ranked) // 10]
    return math.fsum(lowest) / len(lowest) if lowest else None


def _spread(ranked: Sequence[float]) -> float | None:
    """The standard deviation over clients, all of them; None for one client."""
    return pstdev(ranked) if len(ranked) > 1 else None


OF_CLIENTS = {
    "worst": OfClients("worst client", lambda ranked: ranked[0]),
    "tenth": OfClients("lowest tenth of clients", _tenth),
    "spread": OfClients("sd over clients", _spread, {"higher_is_better": False, "least": 0.0}),
}
_CLIENT = re.compile(r"client(\d+)", re.ASCII)


def client_number(of_clients: str) -> int | None:
    """The number of the one client that "client2" names; None for another text."""
    match = _CLIENT.fullmatch(of_clients)
    return int(match[1]) if match else None


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
        Metric("aggregation_error", "aggregation error", "", False, most=math.inf, over_decades=True),
        Metric("cosine_a", "cos A", "", least=-1.0),
        Metric("cosine_b", "cos B", "", least=-1.0),
        Metric("cosine_change_of_a", "cos ΔA", "", least=-1.0),
        Metric(TRAIN_LOSS, "training loss", unit="", higher_is_better=False, most=math.inf),
    )
}


def metric(name: str) -> Metric:
    """The metric of a name ("f1"), of a score ("test/f1") or of some clients' scores ("test/f1@worst").

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
        raise UserError(f"unknown clients in {name!r}: expected one of {', '.join(OF_CLIENTS)}, or such as client0")
    label = of.label if of else f"client {number}"
    changes = of.changes if of else {}
    return replace(METRICS[base], name=short, label=f"{METRICS[base].label}, {label}", of_clients=of_clients, **changes)


def of_clients(score: str, name: str) -> str:
    """The score of some clients: "test/f1" and "worst" -> "test/f1@worst"."""
    return f"{score}@{name}"
