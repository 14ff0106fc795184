"""Tokens: cached tokens equal the tokenizer's, and long texts are read completely."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.encoders import encoding
from benchmarks.encoders.encoding import TokenCache, encode, key_of
from benchmarks.encoders.loading import build_tokenizer, locate
from benchmarks.encoders.tokenization import word_tokenizer
from benchmarks.tasks import TextExamples, task
from fedsim.stored import Chunks

NUMERALS = ("one", "two", "three", "four", "five")
CUT = task("mrpc")
TAGGED = replace(task("arsarcasm-texts"), id="tagged", objective="token_classification", long_texts="blocks")
RNG = np.random.default_rng(0)
TEXTS = tuple((" ".join(RNG.choice(NUMERALS, 5)), " ".join(RNG.choice(NUMERALS, 9))) for _ in range(11))
PAIRS = TextExamples(TEXTS, RNG.integers(0, 2, 11))
SENTENCES = tuple(NUMERALS[: 1 + number % 5] * 3 for number in range(11))
TAGS = tuple(tuple(range(len(tokens))) for tokens in SENTENCES)
TAGGED_SENTENCES = TextExamples(SENTENCES, np.zeros(11, dtype=np.int64), TAGS)
CASES = {  # examples, the most tokens of one, and the task, for each form of tokens
    "cut": (PAIRS, 12, CUT),
    "scored": (replace(PAIRS, labels=np.linspace(0, 5, 11)), 12, task("stsb")),
    "blocks": (TAGGED_SENTENCES, 6, TAGGED),
    "packed": (TextExamples(tuple(("\n".join(tokens),) for tokens in SENTENCES), PAIRS.labels), 7, task("wikitext")),
}


@pytest.fixture
def tokenizer():
    return word_tokenizer(NUMERALS)


def assert_same(subset, expected):
    one, other = subset.examples, expected.examples
    for name in ("tokens", "types", "offsets", "labels", "targets", "spans", "places", "cuts"):
        array = getattr(other, name, None)
        assert (array is None) == (getattr(one, name, None) is None)
        assert array is None or (getattr(one, name).dtype == array.dtype and np.array_equal(getattr(one, name), array))
    assert one.padding_id == other.padding_id
    assert np.array_equal(subset.starts, expected.starts) if expected.starts is not None else subset.starts is None
    for width in (None, 20):
        batch, same = (each.collate(np.array([3, 1]), width) for each in (one, other))
        assert all(torch.equal(batch[name], same[name]) for name in same)
        assert all(tensor.data_ptr() % 16 == 0 for tensor in batch.values())  # copies, in aligned memory


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("at_once", [1, 4, 8192])
def test_the_cache_gives_the_tokens_of_the_tokenizer(tokenizer, tmp_path, monkeypatch, case, at_once):
    examples, *rest = CASES[case]
    expected = encode(examples, tokenizer, *rest)
    monkeypatch.setattr(encoding, "AT_ONCE", at_once)
    assert_same(encode(examples, tokenizer, *rest), expected)
    for _ in range(2):
        subset = TokenCache(tmp_path).encode(examples, tokenizer, *rest)
        assert isinstance(subset.examples.tokens, Chunks)
        assert_same(subset, expected)
        monkeypatch.setattr(encoding.pa.ipc, "new_file", None)  # it is written once


def test_everything_that_decides_the_tokens_decides_the_key(tokenizer):
    changed = (("two one", *TEXTS[0][1:]), *TEXTS[1:])
    keys = [
        key_of(PAIRS, tokenizer, 12, CUT),
        key_of(PAIRS, tokenizer, 13, CUT),
        key_of(PAIRS, word_tokenizer(NUMERALS[::-1]), 12, CUT),
        key_of(replace(PAIRS, texts=changed), tokenizer, 12, CUT),
        key_of(replace(PAIRS, labels=1 - PAIRS.labels), tokenizer, 12, CUT),
        key_of(TAGGED_SENTENCES, tokenizer, 12, CUT),
        key_of(TAGGED_SENTENCES, tokenizer, 12, TAGGED),
        key_of(TAGGED_SENTENCES, tokenizer, 12, replace(TAGGED, long_texts="cut")),
        key_of(TAGGED_SENTENCES, tokenizer, 12, replace(TAGGED, long_texts="packed")),
        key_of(replace(TAGGED_SENTENCES, tags=tuple(row[::-1] for row in TAGS)), tokenizer, 12, TAGGED),
    ]
    assert len(set(keys)) == len(keys)
    encode(PAIRS, tokenizer, 7, CUT)
    assert key_of(PAIRS, tokenizer, 12, CUT) == keys[0]  # the tokenizer's last call does not count


def test_a_disk_that_is_full_or_read_only_costs_only_the_cache(tokenizer, tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("in the way")
    expected = encode(PAIRS, tokenizer, 12, CUT)
    assert_same(TokenCache(tmp_path / "file" / "tokens").encode(PAIRS, tokenizer, 12, CUT), expected)

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(encoding.pa.ipc, "new_file", full)
    assert_same(TokenCache(tmp_path / "tokens").encode(PAIRS, tokenizer, 12, CUT), expected)
    assert "No space left" in caplog.text
    assert list((tmp_path / "tokens").iterdir()) == []


# ---- texts without labels ----------------------------------------------------------------------------------------


def test_each_article_is_tokenised_whole_and_closed(data_dir):
    """By [SEP] after blocks that open with [CLS]; by GPT-2's end of text, and nothing opens its blocks."""
    texts = tuple(("\n".join([" ".join(NUMERALS[count % 3 :])] * (1 + count % 3)),) for count in range(9))
    articles = TextExamples(texts, np.zeros(9, dtype=np.int64))
    tokenizer = word_tokenizer(NUMERALS)
    part = encode(articles, tokenizer, 7, task("wikitext")).subset(np.array([4, 1]))
    batch = part.examples.collate(part.indices)
    stream = [token for text in (4, 1) for token in (*tokenizer(*texts[text]).input_ids[1:-1], tokenizer.sep_token_id)]
    assert batch["input_ids"][:, 1:].flatten().tolist() == stream[: len(stream) // 6 * 6]
    assert (batch["input_ids"][:, 0] == tokenizer.cls_token_id).all()
    assert batch["attention_mask"].all()
    tokenizer = build_tokenizer(locate("gpt2-fresh", data_dir=data_dir))
    part = encode(articles, tokenizer, 8, task("wikitext")).subset(np.array([2]))
    whole = [*tokenizer(*texts[2]).input_ids, 50256]
    assert part.examples.collate(part.indices)["input_ids"].flatten().tolist() == whole[: len(whole) // 8 * 8]


def test_texts_that_lose_their_end_are_counted(tokenizer, tmp_path):
    columns = map(list, zip(*TEXTS, strict=True))
    whole = [len(row) for row in tokenizer(*columns)["input_ids"]]
    limit = max(whole) - 1
    for encoded in (encode(PAIRS, tokenizer, limit, CUT), TokenCache(tmp_path).encode(PAIRS, tokenizer, limit, CUT)):
        assert encoded.cut.tolist() == [length > limit for length in whole]
        assert encoded.cut.sum() == whole.count(max(whole)) > 0
    assert encode(TAGGED_SENTENCES, tokenizer, 8, TAGGED).cut is None  # the rest becomes further blocks
