"""The configuration of an adapter, without anything heavy, so that a definition can hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from fedsim.errors import FederationError
from fedsim.strict import later, strict

# Kind -> the fields that it reads, with the values that they have if they are not given.
FIELDS: Mapping[str, Mapping[str, Any]] = {
    "lora": {"r": 8, "alpha": 16.0, "targets": ("query", "value")},
    "ia3": {"targets": ("key", "value", "output.dense")},
    "bitfit": {},
    "bottleneck": {"r": 16, "targets": ("attention.output.dense", "output.dense")},
    "prefix": {"r": 16},
    "core": {"r": 8, "alpha": 16.0, "targets": ("query", "value")},
}


def _from_list(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


@strict(FederationError)
class AdapterConfig:
    """The few parameters that are trained in place of the encoder's own; the head is trained with them.

    kind: "lora" (Hu et al. 2022): W + alpha / r · B A; "ia3" (Liu et al. 2022): vectors that rescale what linear layers
    compute, or read in a feed-forward layer; "bitfit" (Ben Zaken et al. 2022): the encoder's biases; "bottleneck"
    (Houlsby et al. 2019) behind linear layers; "prefix" (Li and Liang 2021): keys and values before the texts';
    "core" (Fed-SB): W + alpha / r · B R A with R trained alone.
    r: the rank, the width of a bottleneck, the positions of a prefix. alpha: of the scale. targets: the linear layers,
    by BERT's names; layers of other families have their own names for the same roles. draws: of the factors A of LoRA
    that stay at clients: "equal" for all, or each client's "own", as if it had another seed.
    """

    kind: Literal["lora", "ia3", "bitfit", "bottleneck", "prefix", "core"]
    r: Annotated[int, Field(gt=0)] | None = None
    alpha: Annotated[float, Field(gt=0)] | None = None
    targets: Annotated[tuple[str, ...], BeforeValidator(_from_list)] | None = None
    draws: Literal["equal", "own"] = later("equal")

    def __post_init__(self) -> None:
        read = FIELDS[self.kind]
        if self.draws == "own" and self.kind != "lora":
            raise FederationError(f"draws: expected equal for the adapter {self.kind}, found own; lora alone has them")
        for name in ("r", "alpha", "targets"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, read.get(name))
            elif name not in read:
                raise FederationError(
                    f"{name}: the adapter {self.kind} does not have it; expected {', '.join(read) or 'its kind alone'}"
                )

    @property
    def scale(self) -> float:
        """The factor of a low-rank product."""
        assert self.r
        assert self.alpha
        return self.alpha / self.r


def from_fields(value: object) -> object:
    """A group of fields as an adapter's configuration; anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    if unknown := value.keys() - AdapterConfig.__dataclass_fields__.keys():
        raise FederationError(
            f"expected some of the fields {', '.join(AdapterConfig.__dataclass_fields__)}, found {min(unknown)}"
        )
    return AdapterConfig(**value)


Adapter = Annotated[AdapterConfig | None, BeforeValidator(from_fields)]
