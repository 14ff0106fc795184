"""BERT-family encoders: from a configuration, or from a local folder of safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedsim.errors import FederationError
from fedsim.files import MissingFileError, read_json, require_files
from fedsim.models.families import FAMILIES
from fedsim.models.pretrained import read_ledger, require_finite, require_floats

SIZES = {
    *("vocab_size", "hidden_size", "dim", "n_embd", "num_hidden_layers", "n_layers", "n_layer", "num_attention_heads"),
    *("n_heads", "n_head", "intermediate_size", "hidden_dim", "max_position_embeddings", "n_positions"),
}  # of every family, each where it has it
MOST = 10**8


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of an encoder's folder; FederationError where there is none, or of another family."""
    path = folder / "config.json"
    try:
        config = read_json(path, "an encoder's configuration")
    except MissingFileError:
        raise FederationError(f"no encoder in {folder}: expected config.json, tokenizer files and weights") from None
    model_type = config.get("model_type") if isinstance(config, dict) else None
    if model_type not in FAMILIES:
        raise FederationError(f"{path}: expected a BERT-family encoder ({', '.join(FAMILIES)}), found {model_type!r}")
    for name in SIZES & config.keys():
        if type(config[name]) is not int or not 0 < config[name] <= MOST:
            raise FederationError(f"{path}: {name}: expected a whole number from 1 to {MOST:,}, found {config[name]!r}")
    return config


def encoder_from_config(config: Mapping[str, Any]) -> nn.Module:
    """An encoder with fresh weights, without pooler; on the `meta` device if called under it."""
    from transformers import AutoConfig, AutoModel

    values = dict(config)
    return AutoModel.from_config(AutoConfig.for_model(values.pop("model_type"), **values), **_no_pooler(config))


def encoder_from_folder(folder: Path) -> nn.Module:
    """A pre-trained encoder in fp32, without pooler. Only safetensors are read, never a pickle.

    Its weights are copies in torch's own memory: as mapped from the file, they lie wherever its header ends, and on
    some CPUs a matrix product has other last bits where they are not aligned.
    """
    from transformers import AutoModel

    config = read_config(folder)
    require_files(folder, ("*.json",), "a file of an encoder")
    require_floats(folder, config)
    try:
        encoder, loading = AutoModel.from_pretrained(
            folder, dtype=torch.float32, use_safetensors=True, output_loading_info=True, **_no_pooler(config)
        )
    except Exception as error:  # noqa: BLE001 - whatever the library makes of a file that is damaged
        raise FederationError(f"{folder}: the weights cannot be read ({error}). Fetch the encoder again.") from None
    if loading["missing_keys"]:  # transformers would draw them at random
        raise FederationError(f"{folder}: the weights lack {', '.join(sorted(loading['missing_keys']))}")
    read_ledger(folder, config, [name for name, _ in encoder.named_parameters()])
    if (positions := config.get("position_embedding_type") or "absolute") != "absolute":
        raise FederationError(
            f"{folder}: position_embedding_type: expected absolute, found {positions}, which the transformers library no "
            f"longer computes. Choose another encoder."
        )
    for parameter in encoder.parameters():
        parameter.data = parameter.data.clone()
    require_finite(folder, encoder)
    return encoder


def _no_pooler(config: Mapping[str, Any]) -> dict[str, bool]:
    return {"add_pooling_layer": False} if FAMILIES[config["model_type"]].has_pooler else {}
