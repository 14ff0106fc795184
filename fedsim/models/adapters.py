"""Adapters on an encoder, from the peft library if it has them; only this module uses that library's names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torch import nn

from fedsim.adapter_config import AdapterConfig
from fedsim.errors import FederationError
from fedsim.models.inserted import Bottleneck, Core, Prefix
from fedsim.models.sequence import SequenceModel
from fedsim.rng import SERVER, torch_seeded

# Family -> BERT's name for a linear layer -> the family's.
LAYERS: Mapping[str, Mapping[str, str]] = {
    "distilbert": {
        "query": "q_lin", "key": "k_lin", "value": "v_lin", "attention.output.dense": "out_lin", "output.dense": "lin2",
    },
    "mpnet": {"query": "attn.q", "key": "attn.k", "value": "attn.v", "attention.output.dense": "attn.o"},
    "gpt2": {
        "query": "c_attn", "key": "c_attn", "value": "c_attn", "attention.output.dense": "c_proj",
        "output.dense": "c_proj",
    },
}  # fmt: skip
_WRAPPED = re.compile(r"\.base_layer\b")
_NAMED = re.compile(r"\.(lora_[AB]|ia3_l)\.default(\.weight)?$")


def stable_name(name: str) -> str:
    """A parameter's stable name: the encoder's, whether or not a layer is wrapped, or a short one for an adapter's.

    `….query.base_layer.weight` becomes `….query.weight`; `….query.lora_A.default.weight` becomes `….query.lora_A`.
    """
    return _NAMED.sub(r".\1", _WRAPPED.sub("", name))


def with_adapter(network: SequenceModel, config: AdapterConfig | None, seed: int) -> SequenceModel:
    """Insert an adapter with random weights from `seed` into the model's encoder, in place; None: no change."""
    if config is None:
        return network
    encoder: Any = network.encoder
    if config.kind in ("lora", "core") and (config.r or 0) > (width := encoder.config.hidden_size):
        expected = f"r of at most the encoder's width, {width}"
        raise FederationError(f"adapter {config.kind}: expected {expected}; found {config.r}")
    names = set(_names(encoder))
    with torch_seeded(seed, 0, SERVER, "adapter"):
        _INSERT[config.kind](encoder, config)
    network.adapter, added = config, set(_names(encoder)) - names
    network.added = frozenset(f"encoder.{name}" for name in added)
    trained = {name for name in names if name.endswith(".bias")} if config.kind == "bitfit" else added
    trained = {name for name in trained if config.kind != "core" or name.endswith("lora_R")}
    network.adapted = frozenset(f"encoder.{name}" for name in trained)
    return network


def _names(encoder: nn.Module) -> list[str]:
    return [stable_name(name) for name, _ in encoder.named_parameters()]


def _named(encoder: Any, layers: Iterable[str] | None) -> list[str]:
    """The encoder's names for linear layers with these names in BERT."""
    names = LAYERS.get(encoder.config.model_type, {})
    return sorted({names.get(layer, layer) for layer in layers or ()})


def _inject(encoder: Any, config: AdapterConfig, kind: str, targets: Sequence[str], **fields: Any) -> None:
    """Let the library insert an adapter. kind: its configuration class, with further fields."""
    import peft  # only if used

    library_config = getattr(peft, kind)(target_modules=targets, fan_in_fan_out=holds_rows(encoder), **fields)
    try:
        peft.inject_adapter_in_model(library_config, encoder)
    except ValueError as error:
        raise FederationError(
            f"adapter {config.kind}: expected targets that are linear layers of the encoder, found "
            f"{', '.join(config.targets or ())} ({error})"
        ) from None


def holds_rows(encoder: Any) -> bool:
    """Whether the encoder's linear layers store transposed weights, [d_in, d_out], as in GPT-2."""
    return bool(encoder.config.model_type == "gpt2")


def _lora(encoder: Any, config: AdapterConfig) -> None:
    _inject(encoder, config, "LoraConfig", _named(encoder, config.targets), r=config.r, lora_alpha=config.alpha)


def _ia3(encoder: Any, config: AdapterConfig) -> None:
    targets, attention = _named(encoder, config.targets), _named(encoder, ("query", "key", "value"))
    wide = [target for target in targets if target not in attention]
    _inject(encoder, config, "IA3Config", targets, feedforward_modules=wide)


def _bitfit(encoder: Any, config: AdapterConfig) -> None:
    """Insert nothing."""


def _wrap(encoder: nn.Module, targets: Iterable[str], wrapped: Callable[[Any], nn.Module]) -> None:
    """Wrap each module whose name ends with a target; FederationError if there is no such module."""
    ends = tuple(f".{target}" for target in targets)
    names = [name for name, _ in encoder.named_modules() if name.endswith(ends)]
    if not names:
        raise FederationError(f"adapter: expected an encoder with modules {', '.join(targets)}, found none")
    for name in names:
        parent, _, child = name.rpartition(".")
        setattr(encoder.get_submodule(parent), child, wrapped(encoder.get_submodule(name)))


def _bottleneck(encoder: Any, config: AdapterConfig) -> None:
    width, r = encoder.config.hidden_size, config.r or 0
    _wrap(encoder, _named(encoder, config.targets), lambda layer: Bottleneck(layer, width, r))


def _core(encoder: Any, config: AdapterConfig) -> None:
    _wrap(encoder, _named(encoder, config.targets), lambda layer: Core(layer, config.r or 0, config.scale))


def _prefix(encoder: Any, config: AdapterConfig) -> None:
    """Only for BERT's attention; other families' has another signature."""
    _wrap(encoder, ("attention.self",), lambda attention: Prefix(attention, encoder.config.hidden_size, config.r or 0))


_INSERT: Mapping[str, Callable[[Any, AdapterConfig], None]] = {
    "lora": _lora, "ia3": _ia3, "bitfit": _bitfit, "bottleneck": _bottleneck, "core": _core, "prefix": _prefix,
}  # fmt: skip
