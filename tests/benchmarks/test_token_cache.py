"""Tokenised examples: from the cache as from the tokenizer, whatever happened to the files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

from benchmarks.encoders import encoding, token_cache
from benchmarks.encoders.tokenization import word_tokenizer
from benchmarks.encoders.encoding import encode, record_batches
from benchmarks.encoders.token_cache import TokenCache, key_of
from benchmarks.tasks import task
from benchmarks.tasks.base import Examples
from fedsim.stored import Chunks

WORDS = ("one", "two", "three", "four", "five")
TAGGED = replace(task("arsarcasm-texts"), id="tagged", objective="token_classification", long_texts="blocks")
PACKED = task("wikitext")


@pytest.fixture
def tokenizer():
    return word_tokenizer(WORDS)


@pytest.fixture
def pairs():
    rng = np.random.default_rng(0)
    texts = tuple((" ".join(rng.choice(WORDS, 5)), " ".join(rng.choice(WORDS, 9))) for _ in range(11))
    return Examples(texts, rng.integers(0, 2, 11))


@pytest.fixture
def cases(pairs):
    """Examples, the most tokens of one, and the task, for each form that tokens take."""
    texts = tuple(WORDS[: 1 + number % 5] * 3 for number in range(11))
    zeros = np.zeros(11, dtype=np.int64)
    tagged = Examples(texts, zeros, tuple(tuple(range(len(words))) for words in texts))
    articles = Examples(tuple(("\n".join(words),) for words in texts), zeros)
    scored = replace(pairs, labels=np.linspace(0, 5, 11))
    return {"cut": (pairs, 12, None), "scored": (scored, 12, None), "blocks": (tagged, 6, TAGGED)} | {
        "packed": (articles, 7, PACKED)
    }


@pytest.fixture
def counted(monkeypatch):
    """What was tokenised."""
    calls = []
    monkeypatch.setattr(token_cache, "record_batches", lambda *words: calls.append(1) or record_batches(*words))
    return calls


def assert_same(found, expected):
    one, other = found.examples, expected.examples
    for name in ("tokens", "types", "offsets", "labels", "targets", "spans", "places", "cuts"):
        array = getattr(other, name, None)
        assert (array is None) == (getattr(one, name, None) is None)
        assert array is None or (getattr(one, name).dtype == array.dtype and np.array_equal(getattr(one, name), array))
    assert one.padding_id == other.padding_id
    assert np.array_equal(found.starts, expected.starts) if expected.starts is not None else found.starts is None
    for width in (None, 20):
        batch, same = (each.collate(np.array([3, 1]), width) for each in (one, other))
        assert all(torch.equal(batch[name], same[name]) for name in same)
        assert all(tensor.data_ptr() % 16 == 0 for tensor in batch.values())  # copies, in aligned memory


@pytest.mark.parametrize("case", ["cut", "scored", "blocks", "packed"])
@pytest.mark.parametrize("at_once", [1, 4, 8192])
def test_the_cache_gives_the_tokens_of_the_tokenizer(cases, tokenizer, counted, tmp_path, monkeypatch, case, at_once):
    expected = encode(cases[case][0], tokenizer, *cases[case][1:])
    monkeypatch.setattr(encoding, "AT_ONCE", at_once)
    examples, *rest = cases[case]
    assert_same(encode(examples, tokenizer, *rest), expected)
    for _ in range(2):
        found = TokenCache(tmp_path).encode(examples, tokenizer, *rest)
        assert isinstance(found.examples.tokens, Chunks)
        assert_same(found, expected)
    assert counted == [1]


def test_long_texts_are_tokenised_fewer_at_a_time(pairs, tokenizer, monkeypatch):
    whole = encode(pairs, tokenizer, 12)
    monkeypatch.setattr(encoding, "CHARACTERS_AT_ONCE", 60)
    assert len(list(record_batches(pairs, tokenizer, 12, None))) == 11
    assert_same(encode(pairs, tokenizer, 12), whole)


def test_files_are_arrow_and_a_row_is_an_example(pairs, tokenizer, tmp_path):
    TokenCache(tmp_path).encode(pairs, tokenizer, 12)
    (path,) = tmp_path.glob("*.arrow")
    rows = pa.ipc.open_file(path).read_all().to_pylist()
    assert [row["tokens"] for row in rows] == tokenizer(*map(list, zip(*pairs.texts, strict=True)), max_length=12,
                                                        truncation=True)["input_ids"]  # fmt: skip
    assert [row["labels"] for row in rows] == pairs.labels.tolist()


def test_whatever_decides_the_tokens_decides_the_key(cases, tokenizer):
    pairs, tagged = cases["cut"][0], cases["blocks"][0]
    changed = (("two one", *pairs.texts[0][1:]), *pairs.texts[1:])
    keys = [
        key_of(pairs, tokenizer, 12, None),
        key_of(pairs, tokenizer, 13, None),
        key_of(pairs, word_tokenizer(WORDS[::-1]), 12, None),
        key_of(replace(pairs, texts=changed), tokenizer, 12, None),
        key_of(replace(pairs, labels=1 - pairs.labels), tokenizer, 12, None),
        key_of(tagged, tokenizer, 12, None),
        key_of(tagged, tokenizer, 12, TAGGED),
        key_of(tagged, tokenizer, 12, replace(TAGGED, long_texts="cut")),
        key_of(tagged, tokenizer, 12, replace(TAGGED, long_texts="packed")),
        key_of(replace(tagged, tags=tuple(row[::-1] for row in tagged.tags)), tokenizer, 12, TAGGED),
    ]
    assert len(set(keys)) == len(keys)
    encode(pairs, tokenizer, 7)
    assert key_of(pairs, tokenizer, 12, None) == keys[0]  # whatever the tokenizer did before


def test_a_damaged_file_is_named_and_its_tokens_are_never_used(pairs, tokenizer, counted, tmp_path, caplog):
    expected = encode(pairs, tokenizer, 12)
    TokenCache(tmp_path).encode(pairs, tokenizer, 12)
    (path,) = tmp_path.glob("*.arrow")
    content = path.read_bytes()
    middle = content.find(np.asarray(expected.examples.tokens[:4]).tobytes())
    for damaged in (content[:-9], content[:middle] + b"\1" + content[middle + 1 :]):
        path.write_bytes(damaged)
        assert_same(TokenCache(tmp_path).encode(pairs, tokenizer, 12), expected)
        assert f"{path} is damaged" in caplog.text
        assert path.read_bytes() == content
    assert counted == [1, 1, 1]


@pytest.mark.parametrize("limit", [10, 10**9])
def test_a_file_that_goes_while_it_is_read_stays_for_its_readers(pairs, tokenizer, tmp_path, limit):
    expected = encode(pairs, tokenizer, 12)
    found = TokenCache(tmp_path, limit).encode(pairs, tokenizer, 12)
    TokenCache(tmp_path, limit).encode(pairs, tokenizer, 11)
    assert len(list(tmp_path.glob("*.arrow"))) == (1 if limit == 10 else 2)
    assert_same(found, expected)


def test_a_disk_that_is_full_or_read_only_costs_the_cache_alone(pairs, tokenizer, tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("in the way")
    expected = encode(pairs, tokenizer, 12)
    assert_same(TokenCache(tmp_path / "file" / "tokens").encode(pairs, tokenizer, 12), expected)

    def full(*words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(token_cache.pa.ipc, "new_file", full)
    assert_same(TokenCache(tmp_path / "tokens").encode(pairs, tokenizer, 12), expected)
    assert "No space left" in caplog.text
    assert list((tmp_path / "tokens").iterdir()) == []
