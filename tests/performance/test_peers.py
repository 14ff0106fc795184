"""The same FedAvg job in the engine, in Flower and in a plain loop: that it is the same one. No time is asserted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.performance import flower_job, peers
from benchmarks.performance.fedavg_job import Job, Ready, plain_round, plain_start, prepare
from benchmarks.performance.flower import flower_python, library_name, run_flower, write_job
from benchmarks.performance.section import Bench
from benchmarks.running.run_options import RunOptions


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(RunOptions(results_dir=tmp_path, device="cpu"), batches=1, encoder="tiny", width=16)


@pytest.fixture
def ready(job: Job, monkeypatch: pytest.MonkeyPatch) -> Ready:
    monkeypatch.setattr("benchmarks.performance.fedavg_job.texts", _tiny_texts)
    return prepare(job)


def _tiny_texts(count: int, seed: int = 0):  # type: ignore[no-untyped-def]
    from benchmarks.performance.workload import texts

    made = texts(count, lengths=(4, 9), vocabulary=1512, seed=seed)
    made.tokens[:] -= 1000
    return made


def test_job_file_holds_the_same_examples_in_order(tmp_path: Path, job: Job, ready: Ready) -> None:
    path = write_job(tmp_path, job, ready, {"rounds": 2})
    written = json.loads(path.read_text(encoding="utf-8"))
    assert (written["clients"], written["rounds"], written["batch_size"]) == (3, 2, 16)
    with np.load(written["data"]) as arrays:
        found = [flower_job.examples_of(arrays, f"{number}/train") for number in range(3)]
    for client, examples in zip(ready.clients, found, strict=True):
        for index, example in zip(client.train.indices, examples, strict=True):
            batch = client.train.examples.collate(np.array([index]))
            for name in ("input_ids", "token_type_ids", "attention_mask"):
                assert batch[name].tolist() == [example[name]]
            assert batch["labels"].tolist() == [example["labels"]]


def test_flowers_model_begins_as_ours_and_trains_the_same(tmp_path: Path, job: Job, ready: Ready) -> None:
    written = json.loads(write_job(tmp_path, job, ready, {}).read_text(encoding="utf-8"))
    model = flower_job.load_model(written)
    state, initial = model.state_dict(), ready.setting.initial
    assert all(torch.equal(state[library_name(name)], value) for name, value in initial.items())
    assert set(flower_job.trained_state(model)) == {library_name(name) for name in ready.trained}
    batch = next(iter(flower_job.load_batches(written, "0/train", 16)))
    ours = ready.setting.model
    ours.network.eval()
    model.eval()
    collated = ready.clients[0].train.examples.collate(ready.clients[0].train.indices[:16])
    with torch.inference_mode():
        torch.testing.assert_close(model(**batch).logits, ours.logits(collated), rtol=0.05, atol=0.05)


def test_flowers_client_trains(tmp_path: Path, job: Job, ready: Ready) -> None:
    written = json.loads(write_job(tmp_path, job, ready, {}).read_text(encoding="utf-8"))
    model = flower_job.load_model(written)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    flower_job.train(model, flower_job.load_batches(written, "0/train", 16, shuffle_seed=1), 1e-2)
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed
    assert changed <= set(flower_job.trained_state(model))


@pytest.mark.usefixtures("ready")
def test_plain_loop_trains_all_but_the_embeddings(job: Job) -> None:
    literal = prepare(job, literal=True)
    assert not literal.setting.model.packed
    start = plain_start(literal)
    kept = {name: value.clone() for name, value in start.items()}
    after = plain_round(literal, start, 1)
    assert set(after) == literal.setting.model.groups.names - literal.setting.model.groups.embeddings
    assert all(torch.equal(start[name], value) for name, value in kept.items())
    # an attention key's bias has no gradient but rounding's: softmax is the same for all of them
    assert all(not torch.equal(after[name], start[name]) for name in after if not name.endswith("key.bias"))


def test_without_flower_there_is_a_note_and_no_bar_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = peers.Measured()
    for way, speed in ((peers.ENGINE, 60.0), (peers.PAIR, 80.0), (peers.LOOP, 5.0)):
        measured.add(way, speed)
    monkeypatch.setattr(peers, "flower_python", lambda: None)
    monkeypatch.setattr(peers, "_throughput", lambda job, python, bench: (measured, None))
    section = peers.measure(Bench(RunOptions(results_dir=tmp_path), repeats=1))
    assert peers.MISSING in section.notes
    assert [row["way"] for row in section.rows] == [peers.ENGINE, peers.PAIR, peers.LOOP]
    assert [(bar.value, bar.bound) for bar in section.bars] == [(12.0, peers.LOOP_BAR)]


def test_bars_are_held_against_the_way_of_flower_that_was_chosen() -> None:
    speeds = {peers.ENGINE: [60.0], peers.PAIR: [80.0], peers.LOOP: [5.0], peers.FLOWER[1]: [20.0]}
    assert [bar.value for bar in peers.bars(speeds, 1)] == [3.0, 4.0, 12.0]


def test_job_runs_in_flower(job: Job, ready: Ready) -> None:
    python = flower_python()
    if python is None:
        pytest.skip("needs Flower's environment: make bench FLOWER=1")
    found = run_flower(python, job, ready, rounds=2, cpus_per_client=1)
    assert len(found.seconds) == 2
    assert [len(client_seconds) for client_seconds in found.loop_seconds] == [3, 3]
    assert all(seconds > max(loops) for seconds, loops in zip(found.seconds, found.loop_seconds, strict=True))
