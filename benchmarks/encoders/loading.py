"""Identifies the content of a backbone's files, and loads its encoder and tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from torch import nn

from benchmarks.encoders import tokenization
from benchmarks.encoders.backbones import BACKBONES, TRAINED, Backbone, backbone_name, content_digest, is_folder
from benchmarks.encoders.files import find_files
from benchmarks.errors import UserError
from benchmarks.run_config import digest
from benchmarks.running.run_options import RunOptions
from benchmarks.tasks.generated import VOCABULARY
from fedsim.models.families import STORED_AS
from fedsim.models.pretrained import has_head
from fedsim.models.sequence import encoder_from_config, encoder_from_folder, read_config
from fedsim.rng import SERVER, torch_seeded


@dataclass(frozen=True)
class Located:
    """A backbone with its files.

    Args:
        digest: Identifies its content.
        folder: None for random weights.
        heads: Whether the files' pooler and masked-LM head are used.
        bpe: For random weights, the folder of the tokenizer's byte-level BPE; None for the generated tasks' words.
    """

    id: str
    config: Mapping[str, Any]
    digest: str
    origin: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    heads: bool = True
    bpe: Path | None = None


@lru_cache
def locate(
    requested: str, local_only: bool = False, data_dir: Path | None = None, results_dir: Path | None = None
) -> Located:
    """Find a backbone: built in, in a folder, in an installed package, or on the hub (its cache when offline).

    Args:
        requested: A preset's id, a folder, or a name on the hub.
        local_only: Download nothing.
        data_dir: May have the tokenizer for random weights, or the text to train it on.
        results_dir: For a tokenizer that is trained here; None for the default.

    Raises:
        UserError: The files are missing, or the hub does not deliver them.
    """
    preset = BACKBONES.get(backbone_name(requested))
    if preset and preset.id == requested and not preset.has_files and not preset.bpe:
        content = digest({"config": dict(preset.config), "seed": 0})
        return Located(requested, preset.config, content, {"from": "built in"}, heads=False)
    if preset and preset.bpe and not is_folder(requested):
        return _drawn(preset, data_dir, local_only, results_dir or RunOptions().results_dir)
    folder, origin = find_files(requested, local_only, data_dir)
    config, content = read_config(folder), content_digest(folder)
    is_packaged = not is_folder(requested) and "revision" not in origin
    if preset and preset.digest and is_packaged and content != preset.digest:
        raise UserError(
            f"{folder}: expected the files of {preset.id}, found others (digest {content[:16]}, not "
            f"{preset.digest[:16]}). Remove the folder, and fetch the encoder again."
        )
    heads = preset.heads if preset else True
    return Located(backbone_name(requested), config, content, origin, folder, heads)


def build_encoder(located: Located) -> nn.Module:
    """The encoder with its weights, in fp32; random weights use the fixed seed 0."""
    if located.folder is not None:
        return encoder_from_folder(located.folder)
    with torch_seeded(0, 0, SERVER, located.id):
        return encoder_from_config(located.config)


def drawn_parts(located: Located, head: str) -> tuple[str, ...]:
    """The randomly initialised parts of a model, without a task's classifier.

    "encoder" if no weights are read; "pooler" or "masked-lm" if the head has one that is not read. head: a name in
    `fedsim.models.heads.HEADS`.
    """
    kind = STORED_AS.get(head, "")
    is_read = located.folder is not None and located.heads and has_head(located.folder, located.config, kind)
    encoder = () if located.folder is not None else ("encoder",)
    return encoder if is_read or not kind else (*encoder, kind)


def build_tokenizer(located: Located) -> Any:
    """The encoder's tokenizer, from its files; built-in encoders have a tokenizer of the generated tasks' words.

    UserError if it fails one of `tokenization.checks`.
    """
    folder, model_type = located.bpe or located.folder, str(located.config["model_type"])
    if folder is None:
        return tokenization.word_tokenizer(VOCABULARY)
    if located.bpe:
        tokenizer = tokenization.byte_level_tokenizer(folder, model_type)
    else:
        tokenizer = tokenization.load_tokenizer(folder)
    tokenization.require_sound(tokenizer, folder, model_type, int(located.config["vocab_size"]))
    return tokenizer


def _drawn(preset: Backbone, data_dir: Path | None, local_only: bool, results_dir: Path) -> Located:
    """A backbone with random weights; its tokenizer is trained here, in the data directory, or on the hub."""
    if preset.bpe != TRAINED:
        folder, origin = find_files(preset.id, local_only, data_dir)
    else:
        try:
            if data_dir is None and local_only:
                raise UserError("the data directory is not set")
            folder, origin = tokenization.trained_files(data_dir, results_dir), {"from": "trained here on Wikipedia"}
        except UserError as error:
            raise UserError(
                f"backbone {preset.id!r}: its vocabulary is trained here on the text of the task wikitext, which is "
                f"missing: {error}"
            ) from None
    origin = {**origin, "from": f"drawn here; tokenizer: {origin['from']}"}
    located = Located(preset.id, preset.config, "", origin, heads=False, bpe=folder)
    tokenizer = digest(build_tokenizer(located).backend_tokenizer.to_str(), 64)
    content = digest({"config": dict(preset.config), "seed": 0, "tokenizer": tokenizer}, 64)
    return replace(located, digest=content)
