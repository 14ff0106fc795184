"""FedBERT's encoders, drawn here: sizes, vocabularies, and what identifies them."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks.encoders import byte_pairs
from benchmarks.encoders.backbones import architecture, build_tokenizer, depth, locate
from benchmarks.encoders.byte_pairs import byte_level_tokenizer
from benchmarks.errors import UserError
from benchmarks.running.federation import longest_text
from fedsim.models.encoder import encoder_from_config
from fedsim.models.sequence import with_head

HEADS = {"roberta": "masked-lm", "gpt2": "causal-lm"}
TITLE = " = A =\n"
BYTES = [chr(code) for code in (*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324))]


def millions(backbone: str) -> float:
    """Parameters of an encoder and its language model's head, whose decoder is the word embeddings."""
    config = architecture(backbone)
    with torch.device("meta"):
        model = with_head(encoder_from_config(config), config["vocab_size"], 0, head=HEADS[config["model_type"]])
    return sum(parameter.numel() for parameter in model.parameters()) / 1e6


@pytest.mark.parametrize(
    ("backbone", "size"), [("roberta-small-fresh", 22.6), ("roberta-base-fresh", 124.7), ("gpt2-fresh", 124.4)]
)
def test_sizes_follow_from_table_3(backbone: str, size: float) -> None:
    assert millions(backbone) == pytest.approx(size, abs=0.05)
    assert depth(backbone) == 12
    assert longest_text(architecture(backbone)) >= 512


# ---- vocabularies ----------------------------------------------------------------------------------------------


def write_bpe(folder, words, merges, names=("encoder.json", "vocab.bpe")):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (folder / names[1]).write_text("#version: 0.2\n" + "".join(f"{pair}\n" for pair in merges))
    return folder


@pytest.fixture
def small(tmp_path):
    return write_bpe(tmp_path / "data" / "vocab" / "gpt2", [*BYTES, "he", "Ġt", "<|endoftext|>"], ["h e", "Ġ t"])


def test_gpt2s_vocabulary_has_the_ids_it_was_released_with(data_dir) -> None:
    tokenizer = build_tokenizer(locate("gpt2-fresh", data_dir=data_dir))
    assert len(tokenizer) == 50257
    assert tokenizer("Hello world").input_ids == [15496, 995]
    assert tokenizer.eos_token_id == 50256
    assert (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.mask_token_id) == (None, None, None)


def test_robertas_has_fairseqs_ids_before_and_behind_it(data_dir) -> None:
    tokenizer = build_tokenizer(locate("roberta-small-fresh", data_dir=data_dir))
    assert len(tokenizer) == 50265
    assert tokenizer.convert_tokens_to_ids(["<s>", "<pad>", "</s>", "<unk>", "!", "madeupword0002", "<mask>"]) == [
        *(0, 1, 2, 3, 4),
        *(50263, 50264),
    ]
    found = tokenizer("Hello", " world", return_token_type_ids=True)
    assert found.input_ids == [0, 15496 + 4, 2, 2, 995 + 4, 2]
    assert not any(found.token_type_ids)
    assert tokenizer.decode(tokenizer("naïve — ☃\n").input_ids, skip_special_tokens=True) == "naïve — ☃\n"


def test_both_names_of_the_files_give_one_identity(small, tmp_path) -> None:
    words = list(json.loads((small / "encoder.json").read_text()))
    other = write_bpe(tmp_path / "other" / "vocab" / "gpt2", words, ["h e", "Ġ t"], ("vocab.json", "merges.txt"))
    for backbone in ("gpt2-fresh", "roberta-small-fresh"):
        one, same = (locate(backbone, data_dir=folder.parent.parent) for folder in (small, other))
        assert one.digest == same.digest
    write_bpe(other, words, ["Ġ t", "h e"], ("vocab.json", "merges.txt"))
    locate.cache_clear()
    assert (
        locate("gpt2-fresh", data_dir=other.parent.parent).digest
        != locate("gpt2-fresh", data_dir=tmp_path / "data").digest
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("encoder.json", "{", "the vocabulary cannot be read"),
        ("encoder.json", '{"a": 0, "b": 2}', "expected ids from 0 on"),
        ("encoder.json", '{"a": 0}', r"expected ids from 0 on, each once, and <\|endoftext\|>"),
        ("vocab.bpe", "h e\nh\n", "expected two tokens of encoder.json a line"),
        ("vocab.bpe", "h z\n", "expected two tokens of encoder.json a line"),
    ],
)
def test_damaged_files_are_refused(small, name, content, message) -> None:
    (small / name).write_text(content)
    with pytest.raises(UserError, match=message):
        byte_level_tokenizer(small, "gpt2")


# ---- a vocabulary that is trained here -------------------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A text whose BPE takes no time: its words are few."""
    monkeypatch.setattr(byte_pairs, "MINI_WORDS", 300)
    folder = tmp_path / "corpus"
    (folder / "corpora").mkdir(parents=True)
    for name in ("train", "valid"):
        text = TITLE + "".join(f"the theatre of theory number {number} — ü\n" for number in range(200))
        (folder / "corpora" / f"wikipedia.{name}.txt").write_text(text)
    return folder


def test_it_is_trained_once_and_the_same_every_time(corpus, tmp_path, monkeypatch) -> None:
    found = [byte_pairs.trained_files(corpus, tmp_path / name) for name in ("one", "two")]
    files = [{file.name: file.read_bytes() for file in folder.iterdir()} for folder in found]
    assert files[0] == files[1]
    tokenizer = byte_level_tokenizer(found[0], "gpt2")
    assert len(tokenizer) <= 300
    assert len(tokenizer(" theatre theory").input_ids) < 15
    monkeypatch.setattr(byte_pairs, "_trained", None)  # no second time
    assert byte_pairs.trained_files(corpus, tmp_path / "one") == found[0]


def test_its_text_decides_the_backbones_identity(corpus, tmp_path) -> None:
    place = tmp_path / "results"
    minis = [locate(name, True, corpus, place) for name in ("roberta-mini-fresh", "gpt2-mini-fresh")]
    assert len(build_tokenizer(minis[0])) % 8 == 1
    assert {found.tokenizer for found in minis} == set((place / "tokenizers").iterdir())
    locate.cache_clear()
    assert locate("gpt2-mini-fresh", True, corpus, place).digest == minis[1].digest
    file = corpus / "corpora" / "wikipedia.train.txt"
    file.write_text(file.read_text() + "another ending of another text\n" * 50)
    locate.cache_clear()
    assert locate("gpt2-mini-fresh", True, corpus, place).digest != minis[1].digest


def test_without_its_text_it_says_what_is_missing(tmp_path) -> None:
    with pytest.raises(
        UserError, match=r"'roberta-mini-fresh': its vocabulary is trained here .* put WikiText-103 there"
    ):
        locate("roberta-mini-fresh", True, tmp_path, tmp_path)
    with pytest.raises(UserError, match=r"'gpt2-mini-fresh': .* the data directory is not set"):
        locate("gpt2-mini-fresh", True, None, tmp_path)
