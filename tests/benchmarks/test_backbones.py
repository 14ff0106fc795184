"""Encoders known by name: sizes, pinned revisions, tokenizers, and what identifies them."""

import json

import pytest
import torch

from benchmarks.encoders import tokenization
from benchmarks.encoders.files import architecture, depth
from benchmarks.encoders.loading import build_tokenizer, locate
from benchmarks.errors import UserError
from fedsim.models.families import longest_text
from fedsim.models.sequence import encoder_from_config, with_head

BYTES = [chr(code) for code in (*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324))]


@pytest.mark.parametrize(
    ("backbone", "head", "outputs", "millions"),
    [
        ("MARBERT", {}, 3, 651.37 / 4),  # FedFreezeBERT prints 651.37 MB
        ("roberta-small-fresh", {"head": "masked-lm"}, 50265, 22.6),  # FedBERT's Table 3
        ("roberta-base-fresh", {"head": "masked-lm"}, 50265, 124.7),
        ("gpt2-fresh", {"head": "causal-lm"}, 50257, 124.4),
    ],
)
def test_sizes_are_the_published_ones(backbone, head, outputs, millions):
    config = architecture(backbone)
    with torch.device("meta"):
        model = with_head(encoder_from_config(config), outputs, seed=0, **head)
    assert sum(parameter.numel() for parameter in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.05)
    assert depth(backbone) == 12
    assert longest_text(config) >= 512


def write_bpe(folder, words, merges, names=("encoder.json", "vocab.bpe")):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (folder / names[1]).write_text("#version: 0.2\n" + "".join(f"{pair}\n" for pair in merges))
    return folder


@pytest.fixture
def small(tmp_path):
    return write_bpe(tmp_path / "data" / "vocab" / "gpt2", [*BYTES, "he", "Ġt", "<|endoftext|>"], ["h e", "Ġ t"])


def test_gpt2s_vocabulary_has_the_released_ids_and_robertas_has_fairseqs_around_it(data_dir):
    tokenizer = build_tokenizer(locate("gpt2-fresh", data_dir=data_dir))
    assert len(tokenizer) == 50257
    assert tokenizer("Hello world").input_ids == [15496, 995]
    assert (tokenizer.eos_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id) == (50256, None, None)
    tokenizer = build_tokenizer(locate("roberta-small-fresh", data_dir=data_dir))
    assert len(tokenizer) == 50265
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "!", "madeupword0002", "<mask>"]
    assert tokenizer.convert_tokens_to_ids(tokens) == [0, 1, 2, 3, 4, 50263, 50264]
    pair = tokenizer("Hello", " world", return_token_type_ids=True)
    assert pair.input_ids == [0, 15496 + 4, 2, 2, 995 + 4, 2]
    assert not any(pair.token_type_ids)
    assert tokenizer.decode(tokenizer("naïve — ☃\n").input_ids, skip_special_tokens=True) == "naïve — ☃\n"


def test_a_vocabulary_is_trained_once_and_its_text_decides_the_identity(tmp_path, monkeypatch):
    monkeypatch.setattr(tokenization, "MINI_WORDS", 300)
    (tmp_path / "data" / "corpora").mkdir(parents=True)
    files = [tmp_path / "data" / "corpora" / f"wikipedia.{part}.txt" for part in ("train", "valid")]
    for file in files:
        file.write_text(" = A =\n" + "".join(f"the theatre of theory number {number} — ü\n" for number in range(200)))

    def located(name, results="results"):
        locate.cache_clear()
        return locate(name, True, tmp_path / "data", tmp_path / results)

    mini = located("gpt2-mini-fresh")
    tokenizer = build_tokenizer(mini)
    assert len(tokenizer) <= 300
    assert len(tokenizer(" theatre theory").input_ids) < 15
    assert located("gpt2-mini-fresh", "elsewhere").digest == mini.digest
    with monkeypatch.context() as patch:
        patch.setattr(tokenization, "train_bpe", None)  # it is not trained again
        assert located("gpt2-mini-fresh").digest == mini.digest
        roberta = located("roberta-mini-fresh")
    assert roberta.tokenizer == mini.tokenizer
    assert len(build_tokenizer(roberta)) % 8 == 1
    files[0].write_text(files[0].read_text() + "another ending of another text\n" * 50)
    assert located("gpt2-mini-fresh").digest != mini.digest


def test_a_vocabulary_without_its_text_says_what_is_missing(tmp_path):
    for folder, reason in ((tmp_path, "looked in .*wiki.train.raw"), (None, "the data directory is not set")):
        with pytest.raises(UserError, match=f"'gpt2-mini-fresh': its vocabulary is trained here .*{reason}"):
            locate("gpt2-mini-fresh", True, folder, tmp_path)
