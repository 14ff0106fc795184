"""Encoder families: their differences from BERT in one table, and their weight files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fedsim.errors import FederationError
from fedsim.files import read_json, require_files

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"

# Part of a head, such as "transform.weight" -> its names in checkpoints, without the encoder's prefix.
HeadNames = Mapping[str, tuple[str, ...]]
_WEIGHT_AND_BIAS = ("weight", "bias")
_OLDER = {"weight": "gamma", "bias": "beta"}  # LayerNorm's parameters in checkpoints converted from TensorFlow
_POOLER: HeadNames = {f"pooler.{part}": (f"pooler.dense.{part}",) for part in _WEIGHT_AND_BIAS}
PADDING = 1  # the library's default id, where positions follow the padding

STORED_AS = {"pooled": "pooler", "masked-lm": "masked-lm"}  # a head's name -> its kind in `Family.stored_heads`


def _masked_lm(transform: str, norm: str, *biases: str) -> HeadNames:
    return {
        **{f"transform.{part}": (f"{transform}.{part}",) for part in _WEIGHT_AND_BIAS},
        **{f"norm.{part}": (f"{norm}.{part}", f"{norm}.{_OLDER[part]}") for part in _WEIGHT_AND_BIAS},
        "bias": biases,
    }


@dataclass(frozen=True)
class Family:
    """How the encoders of one model type differ from BERT.

    Args:
        prefix: Prefix of the encoder's tensor names in a checkpoint with a head.
        stored_heads: Kind of head -> its names in checkpoints. Heads of other kinds start with random weights.
        other_heads: Prefixes of tensor names in heads that are never read.
        positions_follow_padding: Positions start at the padding id + 1, as in fairseq.
        has_pooler: The library's model has a pooler, which is omitted.
        has_bert_layers: The layers are BERT's and can run over packed tokens.
    """

    prefix: str
    stored_heads: Mapping[str, HeadNames] = field(default_factory=dict)
    other_heads: tuple[str, ...] = ("classifier.", "qa_outputs.", "pooler.")
    positions_follow_padding: bool = False
    has_pooler: bool = True
    has_bert_layers: bool = False


_ROBERTA = Family(
    "roberta",
    {
        "pooler": _POOLER,
        "masked-lm": _masked_lm("lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder.bias"),
    },
    ("lm_head.", "classifier.", "qa_outputs.", "pooler."),
    positions_follow_padding=True,
    has_bert_layers=True,
)
_CLS = "cls.predictions"
FAMILIES: Mapping[str, Family] = {
    "bert": Family(
        "bert",
        {
            "pooler": _POOLER,
            "masked-lm": _masked_lm(
                f"{_CLS}.transform.dense", f"{_CLS}.transform.LayerNorm", f"{_CLS}.bias", f"{_CLS}.decoder.bias"
            ),
        },
        ("cls.", "classifier.", "qa_outputs.", "pooler."),
        has_bert_layers=True,
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "electra": Family(
        "electra",
        other_heads=(
            "discriminator_predictions.", "generator_predictions.", "generator_lm_head.", "classifier.", "qa_outputs.",
        ),
        has_pooler=False,
    ),
    "distilbert": Family(
        "distilbert",
        {"masked-lm": _masked_lm("vocab_transform", "vocab_layer_norm", "vocab_projector.bias")},
        ("vocab_transform.", "vocab_layer_norm.", "vocab_projector.", "pre_classifier.", "classifier.", "qa_outputs."),
        has_pooler=False,
    ),
    "gpt2": Family("transformer", other_heads=("lm_head.", "score."), has_pooler=False),
    # Song et al. (2020): RoBERTa's positions, no token types, and one relative position bias for all layers.
    "mpnet": replace(_ROBERTA, prefix="mpnet", has_bert_layers=False),
}  # fmt: skip


def first_position(config: Mapping[str, Any]) -> int:
    """The position of a text's first token."""
    if not FAMILIES[config["model_type"]].positions_follow_padding:
        return 0
    padding = config.get("pad_token_id")
    return (PADDING if padding is None else int(padding)) + 1


def longest_text(config: Mapping[str, Any]) -> int:
    """The longest text, in tokens, that an encoder has positions for."""
    positions = int(config.get("max_position_embeddings", config.get("n_positions", 512)))  # the latter is GPT-2's
    return positions - first_position(config)


def has_packed_layers(config: Mapping[str, Any]) -> bool:
    """Whether an encoder's layers are BERT's; missing configuration fields have BERT's values."""
    fields = {"hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False}
    return FAMILIES[config["model_type"]].has_bert_layers and all(
        (config.get(name) or value) == value for name, value in fields.items()
    )


def weight_files(folder: Path) -> list[Path]:
    """An encoder's weight files: one, or those listed in an index; FederationError if one is missing."""
    require_files(folder, (WEIGHTS, INDEX), "the weights of an encoder")
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / INDEX).is_file():
        index = read_json(folder / INDEX, "an index of weights")
        files = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(files, dict) or not files or not all(isinstance(name, str) for name in files.values()):
            raise FederationError(f"{folder / INDEX}: expected a weight_map of tensors to files, found none")
        paths = [folder / Path(name).name for name in sorted(set(files.values()))]
        if missing := [path.name for path in paths if not path.is_file()]:
            raise FederationError(f"{folder}: expected the files listed in {INDEX}, found no {', '.join(missing)}")
        return paths
    others = sorted(path.name for path in folder.glob("*.safetensors"))
    raise FederationError(
        f"{folder}: expected weights as {WEIGHTS}, found {', '.join(others) or 'none'}. Other formats are not read, "
        f"as they can run code; transformers can convert them (save_pretrained)."
    )
