"""A BERT-family encoder, from a configuration or from a folder of safetensors, with a head."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from fedsim.adapter_config import AdapterConfig
from fedsim.data import IGNORED
from fedsim.errors import FederationError
from fedsim.files import MissingFileError, read_json, require_files
from fedsim.models.families import FAMILIES, STORED_AS
from fedsim.models.heads import Head, States, build_head
from fedsim.models.pretrained import read_ledger, require_finite, require_floats, stored_head

SIZES = {
    *("vocab_size", "hidden_size", "dim", "n_embd", "num_hidden_layers", "n_layers", "n_layer", "num_attention_heads"),
    *("n_heads", "n_head", "intermediate_size", "hidden_dim", "max_position_embeddings", "n_positions"),
}  # of all families
MOST = 10**8


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration in an encoder's folder; FederationError if it is missing or of another family."""
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
    """An encoder with random weights, without pooler; on the `meta` device if called under it."""
    values = dict(config)
    return AutoModel.from_config(AutoConfig.for_model(values.pop("model_type"), **values), **_no_pooler(config))


def encoder_from_folder(folder: Path) -> nn.Module:
    """A pre-trained encoder in fp32, without pooler. Only safetensors are read, never a pickle.

    The weights are copied to torch's memory: mapped from the file they may be unaligned, which changes the last bits of
    a matrix product on some CPUs.
    """
    config = read_config(folder)
    require_files(folder, ("*.json",), "a file of an encoder")
    require_floats(folder, config)
    try:
        encoder, loading = AutoModel.from_pretrained(
            folder, dtype=torch.float32, use_safetensors=True, output_loading_info=True, **_no_pooler(config)
        )
    except Exception as error:  # noqa: BLE001 - the library raises many kinds for a damaged file
        raise FederationError(f"{folder}: the weights cannot be read ({error}). Fetch the encoder again.") from None
    if loading["missing_keys"]:  # transformers would initialise them randomly
        raise FederationError(f"{folder}: the weights lack {', '.join(sorted(loading['missing_keys']))}")
    read_ledger(folder, config, [name for name, _ in encoder.named_parameters()])
    for parameter in encoder.parameters():
        parameter.data = parameter.data.clone()
    require_finite(folder, encoder)
    if (positions := config.get("position_embedding_type") or "absolute") != "absolute":
        raise FederationError(
            f"{folder}: position_embedding_type: expected absolute, found {positions}, which the transformers library "
            f"no longer computes. Choose another encoder."
        )
    return encoder


def _no_pooler(config: Mapping[str, Any]) -> dict[str, bool]:
    return {"add_pooling_layer": False} if FAMILIES[config["model_type"]].has_pooler else {}


# Shape suffixes: P paths, B batch, S tokens, D hidden width, C outputs, K hidden states, N targets in the batch.


class SequenceModel(nn.Module):
    """Encoder and head. Parameters have the names "encoder.…" and "head.…".

    An encoder without trained parameters is frozen: it runs in evaluation mode, without dropout or gradients.
    """

    def __init__(self, encoder: nn.Module, head: Head) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.adapter: AdapterConfig | None = None  # the encoder's
        self.added: frozenset[str] = frozenset()  # parameters that it adds, by the names in `Model.parameters`
        self.adapted: frozenset[str] = frozenset()  # those that it trains
        self._takes_types = getattr(encoder.config, "type_vocab_size", 0) > 1

    @property
    def is_frozen(self) -> bool:
        """Whether no encoder parameter is trained."""
        return not any(parameter.requires_grad for parameter in self.encoder.parameters())

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self.encoder.train(mode and not self.is_frozen)
        return self

    def forward(self, batch: Mapping[str, Tensor], states: States | None = None) -> Tensor:
        """Path logits [P, N, C] for a batch's texts or token targets, from token ids or precomputed features.

        states: the batch's hidden states, if they have been computed.
        """
        is_target_BS = batch["labels"] != IGNORED if self.head.answers_tokens else None
        return self.head(self.states(batch) if states is None else states, batch["attention_mask"], is_target_BS)

    def states(self, batch: Mapping[str, Tensor]) -> States:
        """The hidden states for the head, from input_ids, attention_mask and token_type_ids, each [B, S].

        A batch with "features" [K, B, S, D] already contains them.
        """
        if "features" in batch:
            return batch["features"].unbind()
        inputs = self.inputs(batch)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.is_frozen):
            if self.head.states == 1:
                return (self.encoder(**inputs).last_hidden_state,)
            hidden = self.encoder(**inputs, output_hidden_states=True).hidden_states
        return hidden[: -self.head.states - 1 : -1]

    def inputs(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The encoder's inputs in a batch."""
        names = ("input_ids", "attention_mask", *(("token_type_ids",) if self._takes_types else ()))
        return {name: batch[name] for name in names}


def with_head(
    encoder: nn.Module, outputs: int, seed: int, folder: Path | None = None, head: str = "pooled"
) -> SequenceModel:
    """The encoder with the head in a folder's checkpoint, or, if that has no head, a random one from `seed`.

    FederationError if the stored head is incomplete or has other sizes.
    """
    made = build_head(head, encoder, outputs, seed)
    config: Any = encoder.config
    stored = {} if folder is None else stored_head(folder, config.to_dict(), STORED_AS.get(head, ""))
    with torch.no_grad():
        for name, value in stored.items():
            parameter = made.get_parameter(name)
            if parameter.shape != value.shape:
                raise FederationError(
                    f"{folder}: {name} of the head: expected the shape {_shape(parameter)}, found {_shape(value)}. "
                    f"Fetch the encoder again."
                )
            parameter.copy_(value)
    return SequenceModel(encoder, made)


def _shape(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape))
