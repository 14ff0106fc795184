"""The cache of tokenised examples: the same tokens, whatever happened to the files."""

import logging
import os
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
import torch

from benchmarks import array_file, encoding, token_cache
from benchmarks.backbones import word_tokenizer
from benchmarks.encoding import encode, encoded_pieces
from benchmarks.tasks import task
from benchmarks.tasks.base import Examples
from benchmarks.token_cache import TokenCache, key_of
from fedsim.errors import FederationError
from fedsim.stored import Stored

WORDS = ("one", "two", "three", "four", "five")
TAGGED = replace(task("arsarcasm-texts"), id="tagged", objective="token_classification", long_texts="blocks")


@pytest.fixture
def tokenizer():
    return word_tokenizer(WORDS)


@pytest.fixture
def pairs():
    rng = np.random.default_rng(0)
    texts = tuple((" ".join(rng.choice(WORDS, 5)), " ".join(rng.choice(WORDS, 9))) for _ in range(11))
    return Examples(texts, rng.integers(0, 2, 11))


@pytest.fixture
def tagged():
    texts = tuple(WORDS[: 1 + number % 5] * 3 for number in range(11))
    tags = tuple(tuple(range(len(words))) for words in texts)
    return Examples(texts, np.zeros(11, dtype=np.int64), tags)


@pytest.fixture
def counted(monkeypatch):
    """Lengths of what was tokenised."""
    calls = []

    def counting(examples, *arguments):
        calls.append(len(examples))
        return encoded_pieces(examples, *arguments)

    monkeypatch.setattr(token_cache, "encoded_pieces", counting)
    return calls


def assert_same(found, expected):
    for name in ("tokens", "types", "offsets", "labels", "targets"):
        one, other = getattr(found.examples, name), getattr(expected.examples, name)
        assert (one is None) == (other is None)
        assert one is None or (one.dtype == other.dtype and np.array_equal(one, other))
    assert found.examples.padding_id == expected.examples.padding_id
    assert (found.starts is None) == (expected.starts is None)
    assert found.starts is None or np.array_equal(found.starts, expected.starts)


def files(folder):
    return sorted(folder.glob("*.tokens"))


def test_tokens_from_the_cache_are_those_of_the_tokenizer(pairs, tagged, tokenizer, counted, tmp_path):
    for examples, length, of in ((pairs, 12, None), (tagged, 6, TAGGED)):
        expected = encode(examples, tokenizer, length, of)
        for _ in range(2):
            assert_same(TokenCache(tmp_path).encode(examples, tokenizer, length, of), expected)
    assert counted == [11, 11]


@pytest.mark.parametrize("at_once", [1, 4, 11])
def test_texts_are_tokenised_in_parts_as_they_are_at_once(pairs, tagged, tokenizer, monkeypatch, at_once):
    whole = encode(pairs, tokenizer, 12), encode(tagged, tokenizer, 6, TAGGED)
    monkeypatch.setattr(encoding, "AT_ONCE", at_once)
    assert_same(encode(pairs, tokenizer, 12), whole[0])
    assert_same(encode(tagged, tokenizer, 6, TAGGED), whole[1])


def test_scores_to_be_regressed_come_back_as_they_are(pairs, tokenizer, tmp_path):
    scored = replace(pairs, labels=np.linspace(0, 5, 11))
    for _ in range(2):
        found = TokenCache(tmp_path).encode(scored, tokenizer, 12)
        assert found.examples.labels.dtype == np.float32
        assert found.examples.labels.tolist() == scored.labels.astype(np.float32).tolist()


def test_whatever_decides_the_tokens_decides_the_key(pairs, tagged, tokenizer):
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
        key_of(replace(tagged, tags=tuple(row[::-1] for row in tagged.tags)), tokenizer, 12, TAGGED),
    ]
    assert len(set(keys)) == len(keys)


def test_the_key_does_not_depend_on_what_the_tokenizer_did_before(pairs, tokenizer):
    before = key_of(pairs, tokenizer, 12, None)
    encode(pairs, tokenizer, 7)
    assert key_of(pairs, tokenizer, 12, None) == before


def test_a_damaged_file_is_computed_anew(pairs, tokenizer, counted, tmp_path, caplog):
    expected = TokenCache(tmp_path).encode(pairs, tokenizer, 12)
    (path,) = files(tmp_path)
    content = path.read_bytes()
    flipped = [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in (0, 64, 65, 80, len(content) - 1)]
    for damaged in (b"", content[:40], content[:-1], content + b"\0", *flipped):
        path.write_bytes(damaged)
        counted.clear()
        with caplog.at_level(logging.WARNING):
            assert_same(TokenCache(tmp_path).encode(pairs, tokenizer, 12), expected)
        assert counted == [11]
        assert "damaged" in caplog.text
        assert path.read_bytes() == content


def test_large_arrays_stay_on_the_disk_and_batches_are_the_same(pairs, tagged, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(array_file, "LARGE_BYTES", 0)
    for examples, length, of in ((pairs, 12, None), (tagged, 6, TAGGED)):
        expected = encode(examples, tokenizer, length, of)
        cold, cached = (TokenCache(tmp_path).encode(examples, tokenizer, length, of) for _ in range(2))
        for found in (cold, cached):
            assert_same(found, expected)
            assert isinstance(found.examples.tokens, Stored)
            for width in (None, 20):
                batch, same = (each.examples.collate(np.array([3, 1]), width) for each in (found, expected))
                assert all(torch.equal(batch[name], same[name]) for name in same)
                assert all(tensor.data_ptr() % 16 == 0 for tensor in batch.values())  # copies, in aligned memory


def test_a_file_that_goes_while_it_is_read_stays_for_its_readers(pairs, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(array_file, "LARGE_BYTES", 0)
    found = TokenCache(tmp_path).encode(pairs, tokenizer, 12)
    (path,) = files(tmp_path)
    path.unlink()
    assert_same(found, encode(pairs, tokenizer, 12))
    assert_same(TokenCache(tmp_path, limit_bytes=10).encode(pairs, tokenizer, 12), found)
    assert files(tmp_path) == []


def test_a_file_that_loses_its_end_while_it_is_read_is_an_error(pairs, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(array_file, "LARGE_BYTES", 0)
    found = TokenCache(tmp_path).encode(pairs, tokenizer, 12)
    (path,) = files(tmp_path)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(FederationError, match=r"expected \d+ bytes .* found \d+; run again"):
        found.examples.types[:], found.examples.tokens[:]


def test_files_are_safetensors_behind_their_digest(pairs, tokenizer, tmp_path):
    TokenCache(tmp_path).encode(pairs, tokenizer, 12)
    (path,) = files(tmp_path)
    arrays = safetensors.numpy.load(path.read_bytes()[token_cache.DIGEST_BYTES :])
    assert np.array_equal(arrays["tokens"], encode(pairs, tokenizer, 12).examples.tokens)


@pytest.mark.parametrize("characters", [1, 60, 100_000])
def test_long_texts_are_tokenised_fewer_at_a_time(pairs, tagged, tokenizer, monkeypatch, characters):
    whole = encode(pairs, tokenizer, 12), encode(tagged, tokenizer, 6, TAGGED)
    monkeypatch.setattr(encoding, "CHARACTERS_AT_ONCE", characters)
    assert len(list(encoded_pieces(pairs, tokenizer, 12, None))) == (1 if characters == 100_000 else 11)
    assert_same(encode(pairs, tokenizer, 12), whole[0])
    assert_same(encode(tagged, tokenizer, 6, TAGGED), whole[1])


def test_the_least_recently_used_go_first(pairs, tokenizer, counted, tmp_path):
    TokenCache(tmp_path).encode(pairs, tokenizer, 12)
    size = files(tmp_path)[0].stat().st_size
    cache = TokenCache(tmp_path, limit_bytes=2 * size + size // 2)
    for length in (12, 11, 12, 10):  # that of 11 is used least recently when the third comes
        cache.encode(pairs, tokenizer, length)
    assert len(files(tmp_path)) == 2
    counted.clear()
    cache.encode(pairs, tokenizer, 12)
    cache.encode(pairs, tokenizer, 11)
    assert counted == [11]


def test_what_is_larger_than_the_limit_is_not_kept(pairs, tokenizer, tmp_path):
    TokenCache(tmp_path, limit_bytes=10).encode(pairs, tokenizer, 12)
    assert files(tmp_path) == []


def test_a_full_disk_costs_the_cache_alone(pairs, tokenizer, tmp_path, monkeypatch, caplog):
    def full(file, pieces, folder):
        next(iter(pieces))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(token_cache, "write_arrays", full)
    found = TokenCache(tmp_path).encode(pairs, tokenizer, 12)
    assert_same(found, encode(pairs, tokenizer, 12))
    assert "No space left" in caplog.text
    assert list(tmp_path.iterdir()) == []  # nothing half written stays


def test_a_folder_that_cannot_be_written_costs_the_cache_alone(pairs, tokenizer, tmp_path):
    (tmp_path / "file").write_text("in the way")
    found = TokenCache(tmp_path / "file" / "tokens").encode(pairs, tokenizer, 12)
    assert_same(found, encode(pairs, tokenizer, 12))
