"""Heads that checkpoints have: how the names of their parameters end there, and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from fedsim.errors import FederationError
from fedsim.files import open_file

Names = Mapping[str, Sequence[str]]  # a head's own parameter -> how its name ends in one checkpoint or another
_BERT = "cls.predictions.transform"
_PARTS = ("weight", "bias")

POOLER: Names = {f"pooler.{part}": (f"pooler.dense.{part}",) for part in _PARTS}
# As BERT names them, with its older names of LayerNorm's; then DistilBERT, then RoBERTa.
MASKED_LM: Names = {
    **{
        f"transform.{part}": (f"{_BERT}.dense.{part}", f"vocab_transform.{part}", f"lm_head.dense.{part}")
        for part in _PARTS
    },
    **{
        f"norm.{part}": (
            f"{_BERT}.LayerNorm.{part}",
            f"{_BERT}.LayerNorm.{older}",
            f"vocab_layer_norm.{part}",
            f"lm_head.layer_norm.{part}",
        )
        for part, older in zip(_PARTS, ("gamma", "beta"), strict=True)
    },
    "bias": ("cls.predictions.bias", "cls.predictions.decoder.bias", "vocab_projector.bias", "lm_head.bias"),
}


def pretrained_head(folder: Path, names: Names) -> dict[str, Tensor]:
    """A head's weights in an encoder's folder, in fp32; empty where it has none of them.

    names: the head's own parameter -> how the names of it end in checkpoints, of which the first one found counts.
    FederationError where some are there and others lacking.
    """
    stored: dict[str, Tensor] = {}
    endings = tuple(f".{ending}" for known in names.values() for ending in known)
    for path in sorted(folder.glob("*.safetensors")):
        try:
            open_file(path, "the weights of an encoder").close()  # mapped below: a pipe would be waited for
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - not a mapping
                    if f".{name}".endswith(endings):
                        stored[f".{name}"] = file.get_tensor(name).float()
        except (SafetensorError, OSError, RuntimeError) as error:
            raise FederationError(f"{path}: the weights cannot be read ({error}). Fetch the encoder again.") from None
    found = {
        own: tensor
        for own, known in names.items()
        for ending in reversed(known)
        for name, tensor in stored.items()
        if name.endswith(f".{ending}")
    }
    if found and found.keys() != names.keys():
        lacking = ", ".join(" or ".join(names[own]) for own in names if own not in found)
        raise FederationError(f"{folder}: expected a whole head or none, found one that lacks {lacking}")
    return found
