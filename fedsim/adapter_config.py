"""Adapter configuration, free of PyTorch so that definitions can import it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from fedsim.errors import FederationError
from fedsim.strict import later, strict

# Kind -> its fields and their defaults.
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
    """A small set of parameters, trained together with the head instead of the encoder's weights.

    Args:
        kind: "lora" (Hu et al. 2022): W + alpha / r · B A; "ia3" (Liu et al. 2022): vectors that scale the outputs of
            linear layers, or their inputs in feed-forward layers; "bitfit" (Ben Zaken et al. 2022): the encoder's
            biases; "bottleneck" (Houlsby et al. 2019): bottlenecks behind linear layers; "prefix" (Li and Liang 2021):
            keys and values before the texts'; "core" (Fed-SB): W + alpha / r · B R A with only R trained.
        r: The rank, bottleneck width, or prefix length.
        alpha: The numerator of the scale alpha / r.
        targets: The adapted linear layers, by BERT's names, which are mapped to other families' names.
        draws: Initial LoRA factors A that stay at clients: "equal" for all clients, or each client's "own", as if from
            a different seed.
    """

    kind: Literal["lora", "ia3", "bitfit", "bottleneck", "prefix", "core"]
    r: Annotated[int, Field(gt=0)] | None = None
    alpha: Annotated[float, Field(gt=0)] | None = None
    targets: Annotated[tuple[str, ...], BeforeValidator(_from_list)] | None = None
    draws: Literal["equal", "own"] = later("equal")

    def __post_init__(self) -> None:
        read = FIELDS[self.kind]
        if self.draws == "own" and self.kind != "lora":
            raise FederationError(f"draws: expected equal for the adapter {self.kind}, found own; only lora has it")
        for name in ("r", "alpha", "targets"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, read.get(name))
            elif name not in read:
                expected = f"fields among {', '.join(read)}" if read else "no other field"
                raise FederationError(f"adapter {self.kind}: expected {expected}, found {name}")

    @property
    def scale(self) -> float:
        """The factor alpha / r of the low-rank product."""
        assert self.r
        assert self.alpha
        return self.alpha / self.r


def from_fields(value: object) -> object:
    """Convert a mapping to an AdapterConfig; return any other value unchanged."""
    if not isinstance(value, Mapping):
        return value
    if unknown := value.keys() - AdapterConfig.__dataclass_fields__.keys():
        raise FederationError(
            f"expected fields among {', '.join(AdapterConfig.__dataclass_fields__)}, found {min(unknown)}"
        )
    if "kind" not in value:
        raise FederationError(f"expected the field kind, one of {', '.join(FIELDS)}; found none")
    return AdapterConfig(**value)


Adapter = Annotated[AdapterConfig | None, BeforeValidator(from_fields)]
