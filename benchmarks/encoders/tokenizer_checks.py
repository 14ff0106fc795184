"""Checks a tokenizer before use: special tokens, templates, vocabulary and case."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.errors import UserError

CASED_SHARE = 0.01  # a vocabulary with fewer tokens with capital letters counts as uncased
SAMPLED = 50_000  # most tokens, evenly spaced, in the case check
_SPECIAL = ("pad", "unk", "cls", "sep", "mask")
_WITHOUT_CLS = ("gpt2",)  # families without special tokens around texts
_FLAG = "set do_lower_case in tokenizer_config.json to {value}"


class Check(NamedTuple):
    """A tokenizer property and its problem, "" if it holds."""

    name: str
    problem: str = ""


def checks(tokenizer: Any, model_type: str, vocab_size: int) -> Iterator[Check]:
    """Check each property of a fast tokenizer. vocab_size: rows of the encoder's word embeddings."""
    yield Check("vocabulary", _vocabulary(tokenizer, vocab_size))
    yield Check("special tokens", _special_tokens(tokenizer, model_type))
    if model_type not in _WITHOUT_CLS:
        yield Check("one text", _template(tokenizer, ["a"]))
        yield Check("a pair of texts", _template(tokenizer, ["a", "a"]))
    yield Check("case", _case(tokenizer))


def require_sound(tokenizer: Any, folder: Path, model_type: str, vocab_size: int) -> None:
    """Raise UserError with the first problem in a folder's tokenizer."""
    for check in checks(tokenizer, model_type, vocab_size):
        if check.problem:
            raise UserError(f"{folder}: tokenizer, {check.name}: {check.problem}")


def _vocabulary(tokenizer: Any, vocab_size: int) -> str:
    if len(tokenizer) <= vocab_size:
        return ""
    return (
        f"expected at most {vocab_size} tokens, the encoder's vocabulary, found {len(tokenizer)}; "
        "fetch the encoder again"
    )


def _special_tokens(tokenizer: Any, model_type: str) -> str:
    needed = ("unk",) if model_type in _WITHOUT_CLS else _SPECIAL[:-1]  # not every encoder has a mask
    for name in _SPECIAL:
        token = getattr(tokenizer, f"{name}_token")
        if token is None:
            if name in needed:
                return f"expected a {name} token, found none; fetch the tokenizer's files again"
            continue
        number = tokenizer.convert_tokens_to_ids(token)
        encoded = tokenizer(token, add_special_tokens=False)["input_ids"]
        if tokenizer.convert_ids_to_tokens(number) != token or encoded != [number]:
            return f"expected {token} to be one token, found {' '.join(tokenizer.convert_ids_to_tokens(encoded))}"
    return ""


def _template(tokenizer: Any, texts: list[str]) -> str:
    ids = tokenizer(*texts)["input_ids"]
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    if ids[0] == first and ids[-1] == last and ids.count(last) >= len(texts):
        return ""
    tokens = " ".join(tokenizer.convert_ids_to_tokens(ids))
    expected = f"{tokenizer.cls_token} … {tokenizer.sep_token}" + f" … {tokenizer.sep_token}" * (len(texts) - 1)
    return f"expected {expected}, found {tokens}; convert it to tokenizer.json with its template"


def _case(tokenizer: Any) -> str:
    """The problem if the vocabulary has capital letters but texts are lower-cased, or vice versa; otherwise ""."""
    special = set(tokenizer.all_special_tokens)
    step = math.ceil(len(tokenizer) / SAMPLED)  # a quarter of a million tokens would take 0.3 s
    every = tokenizer.convert_ids_to_tokens(list(range(0, len(tokenizer), step)))
    tokens = [token for token in every if token and token not in special and not token.startswith("[")]
    capitals = [token for token in tokens if token != token.lower()]
    text = tokenizer.backend_tokenizer.normalizer
    lowers = text is not None and text.normalize_str("NF").strip("▁ ") == "nf"
    is_cased = len(capitals) > CASED_SHARE * len(tokens)
    if lowers and is_cased:
        return (
            f"its vocabulary has capital letters ({', '.join(sorted(capitals, key=len)[-3:])}), and it lower-cases "
            f"every text; {_FLAG.format(value='false')}"
        )
    if not lowers and not capitals and any(token.startswith("##") for token in tokens):  # word pieces
        return f"its vocabulary has no capital letter, and it keeps those of texts; {_FLAG.format(value='true')}"
    return ""
