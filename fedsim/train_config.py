"""Training configuration, free of PyTorch so that definitions can import it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedsim.errors import FederationError
from fedsim.strict import later, strict

Positive = Annotated[int, Field(gt=0)]
Kernels = Literal["packed", "reference"]


@strict(FederationError)
class TrainConfig:
    """Budget, optimiser and precision of training."""

    rounds: Positive  # in the whole run, which the schedule spans
    learning_rate: Annotated[float, Field(gt=0)]
    batch_size: Positive
    local_epochs: Annotated[int, Field(ge=0)] = 1
    weight_decay: float = Field(default=0.01, ge=0)
    max_length: Positive = 128  # tokens per text
    padding: Literal["longest", "fixed"] = "longest"  # to the batch's longest text, or to `max_length` as in the papers
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"  # "auto" suits the device
    participation: float = Field(default=1.0, gt=0, le=1)  # share of the clients that take part in each round
    schedule: Literal["constant", "linear"] = later("constant")  # of the learning rate, over all steps of the run
    warmup: float = later(0.0, ge=0, le=1)  # share of these steps in which the learning rate rises
    clip_norm: float | None = later(None, gt=0)  # maximum norm of the gradients
    # In split training: clip by each party's gradient norm, or by the norm over both. Elsewhere both are equal.
    clip_scope: Literal["side", "model"] = later("side")
    decayed: Literal["all", "matrices"] = later("all")  # "matrices": no weight decay on biases and LayerNorm
    optimizer: Literal["fresh", "kept"] = later("fresh")  # a new optimiser in each round, or one whose state is kept
    decay: float = later(1.0, gt=0)  # learning-rate factor after each round, on top of the schedule
    beta2: float = later(0.999, ge=0, lt=1)  # AdamW's (Loshchilov and Hutter 2019); its beta1 is 0.9
    epsilon: float = later(1e-8, gt=0)  # AdamW's
    kernels: Kernels = later("packed")  # packed texts without padding on CPUs, or padded texts
    stop: Positive | None = later(None)  # the run ends after this round; the schedule still spans `rounds`

    @property
    def last_round(self) -> int:
        """The round after which the run ends."""
        return self.rounds if self.stop is None else min(self.stop, self.rounds)
