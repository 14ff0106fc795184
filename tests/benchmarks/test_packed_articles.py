"""Articles end to end, from the tokenizer to a cell: each client's own, in full blocks, tokenised once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.encoders.backbones import build_tokenizer, locate
from benchmarks.encoders.tokenization import word_tokenizer
from benchmarks.encoders.encoding import encode
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running.federation import build_clients, load_inputs, training_examples
from benchmarks.running.runner import run_cell
from benchmarks.tasks import Examples, task

WORDS = ("one", "two", "three", "four", "five")
TASK = task("wikitext")
CELL = RunConfig(
    scale="demo",
    task="wikitext",
    task_version=1,
    source="generated",
    backbone="tiny",
    clients=2,
    partition={"scheme": "equal"},
    algorithm="fedavg",
    options={"embeddings": "global"},
    training=TrainConfig(rounds=2, learning_rate=3e-3, batch_size=16, max_length=32, precision="fp32"),
    seed=0,
    head="masked-lm",
    test_share=0.0,
)
CAUSAL = replace(CELL, task="wikitext-causal", backbone="tiny-gpt2-fresh", head="causal-lm")


@pytest.fixture
def articles():
    rng = np.random.default_rng(0)
    texts = tuple(("\n".join(" ".join(rng.choice(WORDS, 4)) for _ in range(1 + count % 3)),) for count in range(9))
    return Examples(texts, np.zeros(9, dtype=np.int64))


@pytest.fixture
def tokenizer():
    return word_tokenizer(WORDS)


def tokens_of(subset):
    """A subset's blocks, without what opens each."""
    return subset.examples.collate(subset.indices)["input_ids"].numpy()[:, 1:].ravel().tolist()


def test_each_article_is_tokenised_whole_and_closed(articles, tokenizer):
    found = encode(articles, tokenizer, 7, TASK).subset(np.array([4, 1]))
    stream = [
        token
        for text in (4, 1)
        for token in (*tokenizer(*articles.texts[text]).input_ids[1:-1], tokenizer.sep_token_id)
    ]
    assert tokens_of(found) == stream[: len(stream) // 6 * 6]
    batch = found.examples.collate(found.indices)
    assert (batch["input_ids"][:, 0] == tokenizer.cls_token_id).all()
    assert batch["attention_mask"].all()


def test_gpt2s_blocks_are_opened_by_nothing_and_closed_by_the_end(articles, data_dir):
    tokenizer = build_tokenizer(locate("gpt2-fresh", data_dir=data_dir))
    found = encode(articles, tokenizer, 8, TASK).subset(np.array([2]))
    ids = found.examples.collate(found.indices)["input_ids"].numpy().ravel().tolist()
    whole = [*tokenizer(*articles.texts[2]).input_ids, 50256]
    assert ids == whole[: len(whole) // 8 * 8]


@pytest.mark.parametrize("cell", [CELL, CAUSAL], ids=["masked", "causal"])
def test_clients_share_the_articles_out(cell, settings):
    inputs = load_inputs(cell, settings)
    clients, report = build_clients(cell, inputs, settings)
    assert report.sizes == (180, 180)
    pool = len(inputs.data.pool)
    words = sum(len(text.split()) + 1 for (text,) in inputs.data.pool.texts)
    blocks = [client.train for client in clients]
    assert {id(part.examples) for part in blocks} == {id(blocks[0].examples)}  # so that all can be trained on together
    assert set(blocks[0].examples.lengths) == {32}
    assert words - 2 * 31 < 31 * sum(map(len, blocks)) <= words
    test = clients[0].evaluation["test"]
    assert test is clients[1].evaluation["test"]
    assert len(test) > 0
    assert pool == 360
    assert training_examples(cell, settings) == [len(part) for part in blocks]


@pytest.mark.slow
@pytest.mark.parametrize("cell", [CELL, CAUSAL], ids=["masked", "causal"])
def test_both_kinds_of_model_learn_the_generated_language(cell, settings):
    central = replace(cell, algorithm="central", training=replace(cell.training, rounds=3))
    record = run_cell(central, settings, lambda event: None)
    found = [entry.scores["test"]["perplexity"] for entry in record.rounds]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 100  # of 326 words
