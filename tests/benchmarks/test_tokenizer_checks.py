"""A tokenizer is tested before texts are encoded with it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import processors
from transformers import AutoTokenizer

from benchmarks.encoders.tokenization import load_tokenizer, word_tokenizer
from benchmarks.encoders.tokenizer_checks import checks, require_sound
from benchmarks.errors import UserError

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CASED = [*SPECIAL, "IL", "NF", "kappa", "B", "-", "2", "a", *(f"##{letter}" for letter in "abcABC")]
UNCASED = [*SPECIAL, "il", "nf", "kappa", "-", "2", "a", *(f"##{letter}" for letter in "abc")]


def vocabulary(folder: Path, tokens: list[str], **options: Any) -> Path:
    """A folder with vocab.txt, and a configuration if options are given."""
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "vocab_size": len(tokens)}))
    if options:
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **options}))
    return folder


def problems(tokenizer: Any, words: int = 10**6, model_type: str = "bert") -> dict[str, str]:
    return {check.name: check.problem for check in checks(tokenizer, model_type, words) if check.problem}


@pytest.mark.parametrize(("tokens", "lower"), [(CASED, False), (UNCASED, True)])
def test_a_vocabulary_and_its_case_belong_together(tokens, lower, tmp_path):
    tokenizer = load_tokenizer(vocabulary(tmp_path, tokens, do_lower_case=lower))
    assert problems(tokenizer) == {}
    assert tokenizer.tokenize("NF-kappa B")[0] == ("nf" if lower else "NF")


@pytest.mark.parametrize(
    ("tokens", "options", "flag"), [(CASED, {}, "false"), (UNCASED, {"do_lower_case": False}, "true")]
)
def test_another_case_is_refused_with_the_flag_to_set(tokens, options, flag, tmp_path):
    folder = vocabulary(tmp_path, tokens, **options)
    with pytest.raises(
        UserError, match=f"case: its vocabulary .*; set do_lower_case in tokenizer_config.json to {flag}"
    ):
        require_sound(load_tokenizer(folder), folder, "bert", len(tokens))


def test_a_larger_vocabulary_than_the_encoders_is_refused(tmp_path):
    tokenizer = load_tokenizer(vocabulary(tmp_path, UNCASED, do_lower_case=True))
    assert problems(tokenizer, len(UNCASED)) == {}
    assert "they do not belong together" in problems(tokenizer, len(UNCASED) - 1)["vocabulary"]


def test_texts_without_their_special_tokens_are_refused():
    tokenizer = word_tokenizer(["A", "a"])
    assert problems(tokenizer) == {}
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", pair="[CLS] $A $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    assert problems(tokenizer) == {
        "one text": "expected [CLS] … [SEP], found [CLS] a; convert it to tokenizer.json with its template",
        "a pair of texts": "expected [CLS] … [SEP] … [SEP], found [CLS] a a [SEP]; convert it to tokenizer.json with "
        "its template",
    }


def test_a_special_token_that_is_cut_is_refused(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(vocabulary(tmp_path, UNCASED, do_lower_case=True))
    tokenizer.sep_token = "kappa il"
    assert "expected kappa il to be one token" in problems(tokenizer)["special tokens"]
