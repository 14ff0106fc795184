"""Server optimisers: how the server updates its tensors from the uploads (Reddi et al. 2021, Algorithm 2).

Each is a function of the server's tensors, the uploads' weighted mean and the moments so far. The pseudo-gradient is
delta = mean - current. As in the paper there is no bias correction, and the second moment
starts at tau². SGD may have momentum, also Nesterov's: DiLoCo's outer optimiser (Douillard et al. 2023, Algorithm 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedsim.errors import FederationError
from fedsim.strict import strict
from fedsim.wire import Params

Moments = dict[str, Params]  # "m", "v" -> tensors by the server's name
Decay = Annotated[float, Field(ge=0, lt=1)]
SECOND_MOMENTS: Mapping[str, Callable[[Tensor, Tensor, float], Tensor]] = {  # (v, delta², beta2) -> new v
    "adam": lambda v, squared, beta2: beta2 * v + (1 - beta2) * squared,
    "yogi": lambda v, squared, beta2: v - (1 - beta2) * squared * torch.sign(v - squared),
    "adagrad": lambda v, squared, beta2: v + squared,
}


@strict(FederationError)
class ServerOptimizer:
    """A server optimiser and its constants; `sgd` with learning rate 1 is federated averaging.

    Defaults from Reddi et al. (2021), section 5 and appendix D: beta1 0.9 (0 for Adagrad), beta2 0.99, tau 1e-3.
    momentum, nesterov: only for `sgd`, as in PyTorch; DiLoCo's are 0.9 and true, at learning rate 0.7 (Douillard et al.
    2023, section 3).
    """

    name: Literal["sgd", "adam", "yogi", "adagrad"] = "sgd"
    learning_rate: Annotated[float, Field(gt=0)] = 1.0
    beta1: Decay | None = None
    beta2: Decay = 0.99
    tau: Annotated[float, Field(gt=0)] = 1e-3
    momentum: Decay = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        if (self.momentum and self.name != "sgd") or (self.nesterov and not self.momentum):
            raise FederationError(
                f"server optimiser {self.name}: expected momentum only with sgd, and nesterov only with momentum, "
                f"found momentum {self.momentum} and nesterov {self.nesterov}; the other optimisers have beta1 instead"
            )

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ServerOptimizer:
        """Build the optimiser from options; raises FederationError if one is unknown or invalid."""
        if not isinstance(options, Mapping):
            raise FederationError(f"server: expected a group of options, found {options!r}")
        return cls(**options)

    @property
    def first_decay(self) -> float:
        """beta1, with the paper's default for this optimiser."""
        if self.beta1 is not None:
            return self.beta1
        return 0.0 if self.name == "adagrad" else 0.9

    def step(self, current: Params, mean: Mapping[str, Tensor], moments: Moments) -> tuple[Params, Moments]:
        """The server's tensors and moments after one round; only names in `mean` change, and `mean` is overwritten."""
        if self.name == "sgd" and not self.momentum:
            # At learning rate 1 lerp gives the mean exactly, so that one client is central training. It writes into the
            # mean's memory: an allocation would take longer than the arithmetic.
            moved = {name: torch.lerp(current[name], mean[name], self.learning_rate, out=mean[name]) for name in mean}
            return {**current, **moved}, moments
        first, second = dict(moments.get("m", {})), dict(moments.get("v", {}))
        updated = dict(current)
        for name, target in mean.items():
            delta = target - current[name]
            if self.name == "sgd":
                first[name] = m = delta + self.momentum * first[name] if name in first else delta
                ahead = delta + self.momentum * m if self.nesterov else m
                updated[name] = current[name] + self.learning_rate * ahead
                continue
            m = first.get(name, torch.zeros_like(delta))
            v = second.get(name, torch.full_like(delta, self.tau**2))
            first[name] = m = self.first_decay * m + (1 - self.first_decay) * delta
            second[name] = v = SECOND_MOMENTS[self.name](v, delta.square(), self.beta2)
            updated[name] = current[name] + self.learning_rate * m / (v.sqrt() + self.tau)
        return updated, {"m": first, "v": second} if self.name != "sgd" else {"m": first}
