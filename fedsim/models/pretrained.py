"""Pre-trained weights in a safetensors folder: each tensor is used, belongs to a known head, or is rejected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from fedsim.errors import FederationError
from fedsim.models.families import FAMILIES, Family, HeadNames, weight_files

FLOATS = ("F64", "F32", "F16", "BF16")
# Constants stored by older library versions; current versions compute them.
_BUFFERS = re.compile(r"(^|\.)(position_ids|token_type_ids|attn\.bias|attn\.masked_bias)$")
_NAMED = 5  # tensors in an error message


@dataclass(frozen=True)
class Ledger:
    """Every tensor in a checkpoint, by its stored name.

    Args:
        used: Names of the encoder's tensors.
        heads: Kind of readable head -> its tensors' names.
        unused: Names of other heads' tensors and of constants.
    """

    used: tuple[str, ...]
    heads: Mapping[str, tuple[str, ...]]
    unused: tuple[str, ...]


def read_ledger(folder: Path, config: Mapping[str, Any], parameters: Sequence[str]) -> Ledger:
    """Classify every tensor in a folder's weights by the files' headers.

    Args:
        folder: An encoder's folder.
        config: Its configuration.
        parameters: The names of the encoder's parameters.

    Raises:
        FederationError: A tensor is neither the encoder's nor a known head's.
    """
    family, encoder = FAMILIES[config["model_type"]], set(parameters)
    used, rest = list[str](), list[str]()
    for name, _ in _types(folder):
        (used if _in_encoder(name, family) in encoder else rest).append(name)
    heads = {
        kind: tuple(name for name in rest if _bare(name, family) in _all_names(stored))
        for kind, stored in family.stored_heads.items()
    }
    unknown = [
        name for name in rest if not _bare(name, family).startswith(family.other_heads) and not _BUFFERS.search(name)
    ]
    if unknown:
        shown = ", ".join(unknown[:_NAMED]) + (f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else "")
        raise FederationError(
            f"{folder}: expected only tensors of a {config['model_type']} encoder and its heads, found {shown}, which "
            f"the transformers library does not use: it would compute another model. Choose another encoder."
        )
    in_heads = {name for stored in heads.values() for name in stored}
    unused = tuple(name for name in rest if name not in in_heads)
    return Ledger(tuple(used), {kind: stored for kind, stored in heads.items() if stored}, unused)


def require_floats(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise FederationError if weights are integers or an adapter is stored next to them."""
    if "quantization_config" in config:
        raise FederationError(f"{folder}: expected float weights, found quantization_config; convert them to floats")
    if (folder / "adapter_config.json").is_file():
        raise FederationError(
            f"{folder}: expected an encoder's weights, found an adapter (adapter_config.json). "
            f"Merge it into its encoder first (peft: merge_and_unload), and save that."
        )
    for name, kind in _types(folder):
        if kind not in FLOATS and not _BUFFERS.search(name):
            raise FederationError(
                f"{folder}: {name}: expected floats ({', '.join(FLOATS)}), found {kind}; convert the weights to floats"
            )


def require_finite(folder: Path, encoder: nn.Module) -> None:
    """Raise FederationError if a weight is not a finite number."""
    for name, parameter in encoder.named_parameters():
        # A sum propagates NaN and infinity, and is several times cheaper than a check of each value.
        if not torch.isfinite(parameter.detach().sum()) and not torch.isfinite(parameter).all():
            raise FederationError(f"{folder}: {name}: expected finite numbers, found NaN or infinity. Fetch it again.")


def stored_head(folder: Path, config: Mapping[str, Any], kind: str) -> dict[str, Tensor]:
    """A head's weights from an encoder's files, in fp32, by the head's parameter names; empty without such a head.

    Args:
        folder: The encoder's folder.
        config: The encoder's configuration.
        kind: See `Family.stored_heads`.

    Raises:
        FederationError: Parts of the head are missing, or the files cannot be read.
    """
    family = FAMILIES[config["model_type"]]
    names = family.stored_heads.get(kind, {})
    ours = {theirs: part for part, stored in names.items() for theirs in reversed(stored)}
    head: dict[str, Tensor] = {}
    for path in weight_files(folder):
        with _opened(path) as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                if (part := ours.get(_bare(name, family))) is not None:
                    head.setdefault(part, file.get_tensor(name).float())
    if head and head.keys() != names.keys():
        missing = ", ".join(" or ".join(names[part]) for part in names if part not in head)
        raise FederationError(f"{folder}: expected a whole head or none, found one without {missing}")
    return head


def has_head(folder: Path, config: Mapping[str, Any], kind: str) -> bool:
    """Whether an encoder's files contain a head, by their headers; see `stored_head`."""
    family = FAMILIES[config["model_type"]]
    stored = _all_names(family.stored_heads.get(kind, {}))
    return any(_bare(name, family) in stored for name, _ in _types(folder))


def _types(folder: Path) -> Iterator[tuple[str, str]]:
    """The name and element type of each stored tensor."""
    for path in weight_files(folder):
        with _opened(path) as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                yield name, file.get_slice(name).get_dtype()


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A weight file, open for a `with` block; FederationError if it cannot be read."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError, RuntimeError) as error:
        raise FederationError(f"{path}: the weights cannot be read ({error}). Fetch the encoder again.") from None


def _bare(name: str, family: Family) -> str:
    """A stored name without the encoder's prefix."""
    return name.removeprefix(f"{family.prefix}.")


def _in_encoder(name: str, family: Family) -> str:
    """The encoder's name for a stored tensor; older checkpoints call LayerNorm's parameters gamma and beta."""
    bare = _bare(name, family)
    for older, newer in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):
        bare = bare.removesuffix(older) + newer if bare.endswith(older) else bare
    return bare


def _all_names(stored: HeadNames) -> set[str]:
    return {name for names in stored.values() for name in names}
