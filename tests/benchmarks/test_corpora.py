"""Cells on corpora: from a text file to the perplexity of what was held back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.encoders.backbones import KNOWN
from benchmarks.encoders.encoding import encode
from benchmarks.encoders.token_cache import TokenCache
from benchmarks.errors import UserError
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.runner import run_cell
from benchmarks.tasks import task
from fedsim.stored import Chunks
from partitions import PartitionError

WORDS = KNOWN["tiny"].config["vocab_size"]
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


def write(settings, content, name="biology.txt"):
    folder = settings.results_dir.parent / "data" / "corpora"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return replace(settings, data_dir=folder.parent)


def scores(record):
    return [entry.scores for entry in record.rounds]


def test_a_generated_domain_is_learnt_in_a_few_rounds(settings):
    record = run_cell(CELL, settings, lambda event: None)
    found = [entry["test"]["perplexity"] for entry in scores(record)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < WORDS / 2
    assert sum(client["train"] for client in record.clients) > len(task("corpus-biology").generate(0).pool)  # blocks
    assert record.inputs["data"]["origin"] == "generated from seed 0"


def test_the_validation_text_is_scored_beside_what_is_held_back(settings):
    cell = replace(CELL, task="corpus-wikipedia", training=replace(CELL.training, rounds=1))
    (found,) = scores(run_cell(cell, settings, lambda event: None))
    assert set(found) == {"test", "valid"}


def test_a_file_is_read_and_its_notes_are_in_the_record(settings):
    texts = [text for (text,) in task("corpus-biology").generate(0).pool.texts]
    settings = write(settings, "\n\n".join(texts[:40]))
    cell = replace(CELL, source="corpora", clients=2, training=replace(CELL.training, rounds=1))
    record = run_cell(cell, settings, lambda event: None)
    assert record.inputs["data"]["notes"] == ["empty lines: 39"]
    assert record.inputs["data"]["examples"] == 40


def test_tokens_in_a_file_train_to_the_same_bits(settings, monkeypatch):
    cell = replace(CELL, clients=2, training=replace(CELL.training, rounds=1))
    clients, _ = build_clients(cell, load_inputs(cell, settings), settings)
    assert isinstance(clients[0].train.examples.tokens, Chunks)
    stored = run_cell(cell, settings, lambda event: None)
    monkeypatch.setattr(TokenCache, "encode", lambda cache, *words: encode(*words))
    other = replace(settings, results_dir=settings.results_dir / "other")
    clients, _ = build_clients(cell, load_inputs(cell, other), other)
    assert isinstance(clients[0].train.examples.tokens, np.ndarray)
    assert run_cell(cell, other, lambda event: None).rounds == stored.rounds


@pytest.mark.parametrize(
    ("clients", "partition", "wanted"),
    [
        (6, {"scheme": "equal"}, "6 clients cannot share 3 examples"),
        (2, {"scheme": "sizes", "sizes": [2, 2]}, "want 4 examples, 3 are available"),
    ],
)
def test_fewer_passages_than_are_asked_for_are_an_error(settings, clients, partition, wanted):
    settings = write(settings, "one\ntwo\nthree\n")
    cell = replace(CELL, source="corpora", clients=clients, partition=partition)
    with pytest.raises(PartitionError, match=wanted):
        run_cell(cell, settings, lambda event: None)


def test_a_client_with_too_few_passages_to_hold_any_back_is_an_error(settings):
    settings = write(settings, "\n".join(["a passage"] * 6))
    with pytest.raises((UserError, PartitionError), match="test_share"):
        run_cell(replace(CELL, source="corpora"), settings, lambda event: None)


def test_a_damaged_file_is_refused_with_its_line(settings):
    settings = write(settings, b"fine\n" * 20 + b"br\xfcken\n")
    with pytest.raises(UserError, match=r"biology\.txt:21: expected UTF-8"):
        run_cell(replace(CELL, source="corpora"), settings, lambda event: None)


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
