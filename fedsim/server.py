"""Server optimisers: how the server moves to what its cohort sent (Reddi et al. 2021, Algorithm 2).

Each is a function of the server's tensors, the weighted mean of the uploads and the moments kept so far. The
pseudo-gradient is delta = mean - current. As in the paper there is no bias correction, and the second moment
starts at tau². SGD may keep momentum, Nesterov's too: DiLoCo's outer optimiser (Douillard et al. 2023, Algorithm 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from fedsim.errors import FederationError
from fedsim.wire import Params

Moments = dict[str, Params]  # "m", "v" -> tensors by the server's name


@dataclass(frozen=True)
class ServerOptimizer:
    """A server optimiser and its constants; `sgd` with learning rate 1 is federated averaging.

    Defaults of Reddi et al. (2021), section 5 and appendix D: beta1 0.9 (0 for Adagrad), beta2 0.99, tau 1e-3.
    momentum, nesterov: of `sgd` alone, as PyTorch's SGD has them; DiLoCo's are 0.9 and true, at learning rate 0.7
    (Douillard et al. 2023, section 3).
    """

    name: str = "sgd"
    learning_rate: float = 1.0
    beta1: float | None = None
    beta2: float = 0.99
    tau: float = 1e-3
    momentum: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        constants = (self.learning_rate, self.first_decay, self.beta2, self.tau, self.momentum)
        if not all(isinstance(value, int | float) for value in constants):
            raise FederationError(f"server optimiser {self.name}: expected numbers, found {constants}")
        if self.name not in ("sgd", *SECOND_MOMENTS):
            known = ", ".join(("sgd", *SECOND_MOMENTS))
            raise FederationError(f"unknown server optimiser {self.name!r}: expected one of {known}")
        if not (self.learning_rate > 0 and 0 <= self.first_decay < 1 and 0 <= self.beta2 < 1 and self.tau > 0):
            raise FederationError(
                f"server optimiser {self.name}: expected learning_rate > 0, 0 <= beta1, beta2 < 1 and tau > 0, "
                f"found {self.learning_rate}, {self.beta1}, {self.beta2}, {self.tau}"
            )
        if not (0 <= self.momentum < 1 and self.nesterov in (True, False)):
            raise FederationError(
                f"server optimiser {self.name}: expected 0 <= momentum < 1 and nesterov true or false, "
                f"found {self.momentum}, {self.nesterov}"
            )
        if (self.momentum and self.name != "sgd") or (self.nesterov and not self.momentum):
            raise FederationError(
                f"server optimiser {self.name}: expected momentum with sgd, and nesterov with momentum, found momentum "
                f"{self.momentum} and nesterov {self.nesterov}; what the others keep of the past is beta1"
            )

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ServerOptimizer:
        """The optimiser of some options; FederationError that names the known ones where one is unknown."""
        known = [field.name for field in fields(cls)]
        if not isinstance(options, Mapping):
            raise FederationError(f"server: expected a group of {known}, found {options!r}")
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise FederationError(f"server optimiser: unknown options {unknown}; it takes {', '.join(known)}")
        return cls(**options)

    @property
    def first_decay(self) -> float:
        """beta1, with the paper's default for this optimiser."""
        if self.beta1 is not None:
            return self.beta1
        return 0.0 if self.name == "adagrad" else 0.9

    def step(self, current: Params, mean: Mapping[str, Tensor], moments: Moments) -> tuple[Params, Moments]:
        """The server's tensors and moments after one round; only names in `mean` move, and its tensors are used up."""
        if self.name == "sgd" and self.momentum:
            return self._step_with_momentum(current, mean, moments)
        if self.name == "sgd":
            # lerp is exact at learning rate 1: the mean itself, so that one client is central training. Into the mean's
            # own memory: fresh memory would take longer than the arithmetic.
            moved = {name: torch.lerp(current[name], mean[name], self.learning_rate, out=mean[name]) for name in mean}
            return {**current, **moved}, moments
        second_moment = SECOND_MOMENTS[self.name]
        first, second = dict(moments.get("m", {})), dict(moments.get("v", {}))
        updated = dict(current)
        for name, target in mean.items():
            delta = target - current[name]
            m = first.get(name, torch.zeros_like(delta))
            v = second.get(name, torch.full_like(delta, self.tau**2))
            first[name] = m = self.first_decay * m + (1 - self.first_decay) * delta
            second[name] = v = second_moment(v, delta.square(), self.beta2)
            updated[name] = current[name] + self.learning_rate * m / (v.sqrt() + self.tau)
        return updated, {"m": first, "v": second}

    def _step_with_momentum(
        self, current: Params, mean: Mapping[str, Tensor], moments: Moments
    ) -> tuple[Params, Moments]:
        first, updated = dict(moments.get("m", {})), dict(current)
        for name, target in mean.items():
            delta = target - current[name]
            first[name] = m = delta + self.momentum * first[name] if name in first else delta
            ahead = delta + self.momentum * m if self.nesterov else m
            updated[name] = current[name] + self.learning_rate * ahead
        return updated, {"m": first}


def _adam(v: Tensor, squared: Tensor, beta2: float) -> Tensor:
    return beta2 * v + (1 - beta2) * squared


def _yogi(v: Tensor, squared: Tensor, beta2: float) -> Tensor:
    return v - (1 - beta2) * squared * torch.sign(v - squared)


def _adagrad(v: Tensor, squared: Tensor, beta2: float) -> Tensor:
    return v + squared


SECOND_MOMENTS: Mapping[str, Callable[[Tensor, Tensor, float], Tensor]] = {
    "adam": _adam,
    "yogi": _yogi,
    "adagrad": _adagrad,
}
