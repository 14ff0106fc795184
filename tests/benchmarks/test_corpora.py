"""Runs on texts without labels: from a text file to the perplexity of the test set, by passages and by articles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.encoders.backbones import KNOWN
from benchmarks.encoders.encoding import encode
from benchmarks.encoders.loading import build_tokenizer, locate
from benchmarks.encoders.tokenization import word_tokenizer
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running.federation import build_clients, load_inputs, training_examples
from benchmarks.running.runner import run_cell
from benchmarks.tasks import TextExamples, task

WORDS = ("one", "two", "three", "four", "five")
CELL = RunConfig(
    scale="demo",
    task="corpus-biology",
    task_version=1,
    source="generated",
    backbone="tiny",
    clients=6,
    partition={"scheme": "equal"},
    algorithm="fedavg",
    options={"embeddings": "global"},
    training=TrainConfig(rounds=3, learning_rate=3e-3, batch_size=16, local_epochs=1, max_length=32, precision="fp32"),
    seed=0,
    head="masked-lm",
    test_share=0.05,
)
ONE_ROUND = replace(CELL, clients=2, training=replace(CELL.training, rounds=1))
MASKED = replace(CELL, task="wikitext", clients=2, test_share=0.0)
CAUSAL = replace(MASKED, task="wikitext-causal", backbone="tiny-gpt2-fresh", head="causal-lm")


def write(settings, content):
    folder = settings.results_dir.parent / "data" / "corpora"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "biology.txt").write_text(content)
    return replace(settings, data_dir=folder.parent)


def run(cell, settings):
    return run_cell(cell, settings, lambda event: None)


def perplexities(record):
    return [entry.scores["test"]["perplexity"] for entry in record.rounds]


def test_a_generated_domain_is_learnt_in_a_few_rounds(settings):
    record = run(CELL, settings)
    values = perplexities(record)
    assert values == sorted(values, reverse=True)
    assert values[-1] < KNOWN["tiny"].config["vocab_size"] / 2
    assert sum(client["train"] for client in record.clients) > len(task("corpus-biology").generate(0).pool)  # blocks
    assert record.inputs["data"]["origin"] == "generated from seed 0"


def test_the_validation_text_is_scored_as_well_as_the_test_shares(settings):
    (entry,) = run(replace(ONE_ROUND, task="corpus-wikipedia"), settings).rounds
    assert set(entry.scores) == {"test", "valid"}


def test_a_file_is_read_and_its_notes_are_in_the_record(settings):
    texts = [text for (text,) in task("corpus-biology").generate(0).pool.texts]
    record = run(replace(ONE_ROUND, source="corpora"), write(settings, "\n\n".join(texts[:40])))
    assert record.inputs["data"]["notes"] == ["empty lines: 39"]
    assert record.inputs["data"]["examples"] == 40


def test_a_very_long_passage_is_trained_on_whole(settings):
    words = " ".join(["the", "cold", "cat", "sees"] * 2000)
    settings = write(settings, f"{words}\n" + "the cat sees\n" * 20)
    cell = replace(CELL, source="corpora", clients=1, algorithm="central")
    clients, report = build_clients(cell, load_inputs(cell, settings), settings)
    parts = [clients[0].train, clients[0].evaluation["test"]]
    tokens = sum(int(part.examples.lengths[part.indices].sum()) - 2 * len(part) for part in parts)
    assert tokens == 8000 + 3 * 20
    assert report.sizes == (21,)
    assert np.concatenate([part.indices for part in parts]).size > 250


# ---- articles ----------------------------------------------------------------------------------------------------


def test_each_article_is_tokenised_whole_and_closed(data_dir):
    """By [SEP] after blocks that open with [CLS]; by GPT-2's end of text, and nothing opens its blocks."""
    texts = tuple(("\n".join([" ".join(WORDS[count % 3 :])] * (1 + count % 3)),) for count in range(9))
    articles = TextExamples(texts, np.zeros(9, dtype=np.int64))
    tokenizer = word_tokenizer(WORDS)
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


@pytest.mark.parametrize("cell", [MASKED, CAUSAL], ids=["masked", "causal"])
def test_clients_divide_the_articles(cell, settings):
    inputs = load_inputs(cell, settings)
    clients, report = build_clients(cell, inputs, settings)
    assert report.sizes == (180, 180)
    words = sum(len(text.split()) + 1 for (text,) in inputs.data.pool.texts)
    parts = [client.train for client in clients]
    assert {id(part.examples) for part in parts} == {id(parts[0].examples)}  # one set, for training on all together
    assert set(parts[0].examples.lengths) == {32}
    assert words - 2 * 31 < 31 * sum(map(len, parts)) <= words
    test = clients[0].evaluation["test"]
    assert test is clients[1].evaluation["test"]
    assert len(test) > 0
    assert training_examples(cell, settings) == [len(part) for part in parts]


@pytest.mark.slow
@pytest.mark.parametrize("cell", [MASKED, CAUSAL], ids=["masked", "causal"])
def test_both_kinds_of_model_learn_the_generated_language(cell, settings):
    values = perplexities(run(replace(cell, algorithm="central"), settings))
    assert values == sorted(values, reverse=True)
    assert values[-1] < 100  # of 326 words
