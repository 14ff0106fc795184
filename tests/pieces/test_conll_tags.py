"""Token classification: a word's tag is asked for at its first token, and nothing is asked of its other tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.backbones import build_tokenizer, load_tokenizer, locate
from benchmarks.encoding import encode
from benchmarks.federation import build_clients, load_inputs
from benchmarks.runner import run_cell
from benchmarks.scoring import scores
from benchmarks.spec import Cell, Training
from benchmarks.tasks import DataSource, task
from fedsim.data import IGNORED, Subset
from fedsim.objectives import build_objective

TASK = task("jnlpba")
GENERATED = TASK.generate(0)
CELL = Cell(
    scale="demo",
    task=TASK.id,
    task_version=1,
    source="generated",
    backbone="tiny",
    clients=2,
    partition={"scheme": "equal"},
    algorithm="fedavg",
    options={"embeddings": "global"},
    training=Training(3, learning_rate=2e-3, batch_size=8, local_epochs=2, max_length=32, precision="fp32"),
    seed=0,
    test_share=0.0,
    head="tokens",
)


def unwatched(event: object) -> None: ...


def test_a_cell_learns_the_tags(settings):
    record = run_cell(CELL, settings, unwatched)
    floor = run_cell(replace(CELL, algorithm="local_majority", options={}), settings, unwatched)
    found, most_frequent = (each.rounds[-1].scores["test"]["entity_f1"] for each in (record, floor))
    assert found > 0.2
    assert most_frequent == 0  # O is no entity
    assert record.rounds[-1].train_loss < record.rounds[0].train_loss / 2
    assert record.sampling_errors["test"]["entity_f1"] > 0


def test_words_are_asked_for_at_their_first_tokens_and_nothing_else_is_scored(settings):
    clients, _ = build_clients(CELL, load_inputs(CELL, settings), settings)
    words = sum(map(len, GENERATED.pool.texts))
    parts = [client.train for client in clients]
    assert sum((subset.references != IGNORED).sum() for subset in parts) == words
    assert sum(subset.examples.lengths[subset.indices].sum() for subset in parts) > words + 2 * len(GENERATED.pool)
    objective, subset = build_objective(TASK.objective, TASK.classes), clients[0].evaluation["test"]
    answers = np.random.default_rng(0).random(objective.shape(subset))  # at padding and further tokens: anything
    rows, places = (subset.references != IGNORED).nonzero()
    answers[rows, places, subset.references[rows, places]] = 2
    assert scores(("entity_f1", "token_recovery"), objective, answers, subset) == {
        "entity_f1": 1.0,
        "token_recovery": 1.0,
    }


@pytest.mark.parametrize("long_texts", ["cut", "blocks"])
def test_long_sentences_keep_their_words_tags(long_texts):
    tokenizer, pool = build_tokenizer(locate("tiny")), GENERATED.pool
    examples = encode(pool, tokenizer, 9, replace(TASK, long_texts=long_texts)).examples
    asked = examples.targets != IGNORED
    ids = iter(zip(examples.tokens[asked], examples.targets[asked], strict=True))
    for text, tags in zip(pool.texts, pool.tags, strict=True):
        first = [tokenizer(word, add_special_tokens=False).input_ids[0] for word in text]
        expected = list(zip(first, tags, strict=True))
        if long_texts == "cut":  # what fits beside [CLS] and [SEP]
            whole = tokenizer(list(text), is_split_into_words=True).word_ids()[1:-1][:7]
            expected = expected[: whole[-1] + 1]
        assert [next(ids) for _ in expected] == expected
    assert next(ids, None) is None


@pytest.mark.parametrize("name", ["jnlpba", "scierc"])
def test_every_word_of_the_real_files_is_asked_for(data_dir, encoder_dir, name):
    """None is cut, or dropped by the tokenizer, and none is asked for twice."""
    of, tokenizer = task(name), load_tokenizer(encoder_dir)
    for part in of.load(DataSource(data_dir)).central.values():
        encoded = encode(part, tokenizer, 64, of)
        starts, targets = encoded.starts, encoded.examples.targets
        assert np.diff(starts).max() > 1
        assert targets[targets != IGNORED].tolist() == [tag for tags in part.tags for tag in tags]
        whole = Subset(encode(part, tokenizer, 512, of).examples, np.arange(len(part))).references
        assert [tuple(row[row != IGNORED]) for row in whole] == list(part.tags)
