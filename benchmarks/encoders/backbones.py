"""Backbones: where each encoder's weights and tokenizer are found, and what identifies them."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.encoders.byte_pairs import CORPUS, byte_level_tokenizer, trained_files
from benchmarks.encoders.byte_pairs import FILES as BPE_FILES
from benchmarks.encoders.known_backbones import KNOWN as KNOWN
from benchmarks.encoders.known_backbones import TRAINED
from benchmarks.encoders.known_backbones import Backbone as Backbone
from benchmarks.errors import UserError
from benchmarks.run_config import canonical_json, digest
from benchmarks.running.run_options import RunOptions
from fedsim.files import open_file, require_files

if TYPE_CHECKING:
    from torch import nn

TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model")
TOKENIZER_FILES = ("config.json", "tokenizer*", "vocab*", "merges.txt", "special_tokens_map.json")
FILES = ("*.safetensors", *TOKENIZER_FILES)


@dataclass(frozen=True)
class Located:
    """A backbone that was found; `digest` identifies its content.

    folder: its files, none where the weights are drawn here; tokenizer: the folder of its tokenizer, if another.
    """

    id: str
    config: Mapping[str, Any]
    digest: str
    origin: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    heads: bool = True
    tokenizer: Path | None = None
    bpe: bool = False  # whether that folder has a byte-level BPE, without special tokens


def is_folder(name: str) -> bool:
    """Whether a user's BACKBONE means a folder rather than a name."""
    return name.startswith((".", "/", "~")) or Path(name).is_dir()


def backbone_name(requested: str) -> str:
    """The name under which a requested backbone enters a cell: a known id, a hub name, or the folder's own name."""
    return Path(requested).expanduser().resolve().name if is_folder(requested) else requested


def architecture(requested: str) -> Mapping[str, Any]:
    """The configuration of a backbone, without its weights where the name is known."""
    if requested in KNOWN:
        return KNOWN[requested].config
    return locate(requested).config


def depth(requested: str) -> int:
    """Number of encoder layers of a backbone."""
    config = architecture(requested)
    # DistilBERT and GPT-2 have names of their own
    return int(next((config[name] for name in ("num_hidden_layers", "n_layers", "n_layer") if name in config), 12))


@lru_cache
def locate(
    requested: str, local_only: bool = False, data_dir: Path | None = None, results_dir: Path | None = None
) -> Located:
    """Find a backbone: built in, in a folder, in an installed package, or on the hub (its cache when offline).

    local_only: ask no hub, and download nothing. data_dir: may hold the tokenizer of one whose weights are drawn here,
    or the text on which that is trained; results_dir: where the trained one is kept, the usual place if None.
    """
    from fedsim.models.encoder import read_config

    if requested in KNOWN and not (KNOWN[requested].hub or KNOWN[requested].bpe):
        config = KNOWN[requested].config
        content = digest({"config": dict(config), "seed": 0})
        return Located(requested, config, content, {"from": "built in"}, heads=False)
    name = backbone_name(requested)
    known = KNOWN.get(name)
    if is_folder(requested):
        folder, origin = Path(requested).expanduser().resolve(), {"from": "folder"}
    elif known is not None and (known.tokenizer or known.bpe):
        return _drawn(known, data_dir, local_only, results_dir or RunOptions().results_dir)
    elif known is not None and (installed := _packaged(known)) is not None:
        assert known.package is not None
        folder, origin = installed, {"from": f"package {known.package[0]}"}
    else:
        folder, origin = fetch(known.hub or name if known else name, known.revision if known else None, local_only)
    config = read_config(folder)
    return Located(name, config, _content_digest(folder, config), origin, folder, known.heads if known else True)


def build_encoder(found: Located) -> nn.Module:
    """The located encoder with its weights, in fp32."""
    from fedsim.models.encoder import encoder_from_config, encoder_from_folder
    from fedsim.rng import SERVER, torch_seeded

    if found.folder is not None:
        return encoder_from_folder(found.folder)
    with torch_seeded(0, 0, SERVER, found.id):
        return encoder_from_config(found.config)


def build_tokenizer(found: Located) -> Any:
    """The located encoder's tokenizer: its own files, or the generated tasks' vocabulary for the built-in one."""
    folder = found.tokenizer or found.folder
    if folder is None:
        from benchmarks.tasks.words import VOCABULARY

        return word_tokenizer(VOCABULARY)
    tokenizer = _tokenizer(folder, found.config, found.bpe)
    if len(tokenizer) > found.config["vocab_size"]:
        raise UserError(
            f"{folder}: the tokenizer has {len(tokenizer)} tokens, the encoder {found.config['vocab_size']}: "
            f"they do not belong together. Fetch the encoder again."
        )
    return tokenizer


def _tokenizer(folder: Path, config: Mapping[str, Any], bpe: bool) -> Any:
    return byte_level_tokenizer(folder, str(config["model_type"])) if bpe else load_tokenizer(folder)


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer in a folder; UserError where there is none that can be read."""
    from transformers import AutoTokenizer

    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise UserError(f"{folder}: expected a tokenizer ({', '.join(TOKENIZERS)}), found none")
    require_files(folder, (*TOKENIZERS, *TOKENIZER_FILES, "*.json", "*.model"), "a file of a tokenizer")
    try:
        return AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # noqa: BLE001 - whatever the library makes of a file that is damaged
        raise UserError(f"{folder}: the tokenizer cannot be read ({error}). Fetch the encoder again.") from None


def word_tokenizer(words: Sequence[str]) -> Any:
    """A tokenizer of whole words, with BERT's special tokens and templates."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    # The mask last: what stands before it keeps its id.
    vocabulary = {word: index for index, word in enumerate([*special, *words, "[MASK]"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def _packaged(backbone: Backbone) -> Path | None:
    if backbone.package is None:
        return None
    spec = importlib.util.find_spec(backbone.package[0])  # its files are wanted; its code is not run
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / backbone.package[1]


def _drawn(backbone: Backbone, data_dir: Path | None, local_only: bool, results_dir: Path) -> Located:
    """A backbone whose weights are drawn here; its tokenizer is found, or trained."""
    if backbone.bpe == TRAINED:
        folder, origin = _trained_tokenizer(backbone, data_dir, local_only, results_dir)
    else:
        folder, origin = _found_tokenizer(backbone, data_dir, local_only)
    bpe = bool(backbone.bpe)
    tokenizer = digest(_tokenizer(folder, backbone.config, bpe).backend_tokenizer.to_str(), 64)
    content = digest({"config": dict(backbone.config), "seed": 0, "tokenizer": tokenizer}, 64)
    return Located(backbone.id, backbone.config, content, origin, heads=False, tokenizer=folder, bpe=bpe)


def _trained_tokenizer(
    backbone: Backbone, data_dir: Path | None, local_only: bool, results_dir: Path
) -> tuple[Path, dict[str, str]]:
    """The vocabulary that is trained on Wikipedia's text, which is in the data directory, or on the hub."""
    try:
        if data_dir is None and local_only:
            raise UserError("the data directory is not set")
        return trained_files(data_dir, results_dir), {"from": "drawn here; tokenizer: trained here on Wikipedia"}
    except UserError as error:
        raise UserError(
            f"backbone {backbone.id!r}: its vocabulary is trained here on the text of the task {CORPUS}, which cannot "
            f"be had: {error}"
        ) from None


def _found_tokenizer(backbone: Backbone, data_dir: Path | None, local_only: bool) -> tuple[Path, dict[str, str]]:
    """A folder of tokenizer files, in the data directory or from the hub."""
    files = " and ".join(BPE_FILES[0] if backbone.bpe else ("vocab.txt", "tokenizer_config.json"))
    if data_dir is not None and (data_dir / "vocab" / backbone.tokenizer).is_dir():
        origin = {"from": f"drawn here; tokenizer: folder vocab/{backbone.tokenizer}"}
        return data_dir / "vocab" / backbone.tokenizer, origin
    try:
        folder, hub = fetch(backbone.hub or "", backbone.revision, local_only, TOKENIZER_FILES)
    except UserError:
        raise UserError(
            f"backbone {backbone.id!r}: expected its tokenizer in vocab/{backbone.tokenizer} of the data directory "
            f"({data_dir or 'not set'}) or on the Hugging Face hub as {backbone.hub}, found none. Put {files} of "
            f"{backbone.hub} there, and set DATA_DIR."
        ) from None
    return folder, {**hub, "from": f"drawn here; tokenizer: {hub['from']}"}


def fetch(
    name: str, revision: str | None, local_only: bool = False, files: Sequence[str] = FILES
) -> tuple[Path, dict[str, str]]:
    """The files of a hub repository in its cache, and where they came from; UserError where they cannot be had."""
    from huggingface_hub import snapshot_download

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # a line for each retry; the outcome is said below
    try:
        folder = Path(
            snapshot_download(name, revision=revision, allow_patterns=list(files), local_files_only=local_only)
        )
    except Exception as error:  # noqa: BLE001 - the hub client raises many kinds; each means the same to the user
        raise UserError(
            f"backbone {name!r}: expected a known id ({', '.join(KNOWN)}), a folder, or a name on the Hugging Face "
            f"hub; it was not found ({type(error).__name__}: {str(error).splitlines()[0]}). "
            f"Without internet, set BACKBONE to a folder that holds config.json, model.safetensors and the tokenizer."
        ) from None
    return folder, {"from": f"hub {name}", "revision": folder.name}  # a snapshot's folder is its commit


# Notes of a configuration that decide nothing of what the encoder computes.
_NOTES = ("_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version", "use_cache")


def _content_digest(folder: Path, config: Mapping[str, Any]) -> str:
    """SHA-256 over weights, tokenizer files and configuration: the same from a folder, a package and the hub."""
    state = hashlib.sha256()
    for pattern in ("*.safetensors", "vocab.*", "merges.txt", "tokenizer.json", "tokenizer_config.json"):
        for path in sorted(folder.glob(pattern)):
            with open_file(path, "a file of an encoder") as file:
                state.update(hashlib.file_digest(file, "sha256").digest())
    state.update(canonical_json({key: value for key, value in config.items() if key not in _NOTES}).encode())
    return state.hexdigest()
