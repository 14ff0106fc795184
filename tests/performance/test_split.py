"""Split training's measurement on models that really train: whose seconds are whose. Nothing large is timed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import torch

from benchmarks.known_backbones import KNOWN, Backbone
from benchmarks.performance import split
from benchmarks.performance.section import Bench
from benchmarks.performance.split import PARTS, Job, Sizes, measure
from benchmarks.settings import Settings
from fedsim.wire import Channel

TINY = {"model_type": "gpt2", "vocab_size": 60, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}
BENCH = Bench(Settings(device="cpu"), repeats=2, say=lambda line: None)


@pytest.fixture(params=["masked", "causal"])
def job(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Job:
    if request.param == "causal":
        monkeypatch.setitem(KNOWN, "tiny-causal", Backbone("tiny-causal", TINY))
    return Job("tiny" if request.param == "masked" else "tiny-causal", batch=2, batches=3, has_bar=True)


def test_a_row_says_how_fast_both_are_and_whose_seconds_are_whose(job: Job) -> None:
    section = measure(BENCH, Sizes((job,), tokens=8))
    (row,) = json.loads(json.dumps(section.rows))
    assert row["split_over_unsplit"] > 0
    assert row["unsplit_tokens_per_second"] > row["tokens"] == 8
    assert all(row[f"{part}_seconds"] > 0 for part in PARTS)
    assert [bar.bound for bar in section.bars] == [0.9]
    assert not measure(BENCH, Sizes((Job(job.backbone, 2, 1),), tokens=8)).bars


def test_both_ways_train_on_the_same_batches(job: Job) -> None:
    """One client's split training is central training, so that what is compared is one computation."""
    setting, client = split.workload_of(job, Sizes(tokens=8), BENCH)
    (central, one), (share, other) = (split.one_round(setting, client, name)() for name in split.ALGORITHMS)
    assert one.train_loss == pytest.approx(other.train_loss, abs=1e-6)
    assert central.shared.keys() == share.shared.keys()
    for name, value in central.shared.items():
        torch.testing.assert_close(share.shared[name], value, rtol=0, atol=1e-5)


def test_seconds_are_counted_to_what_they_were_spent_on(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves by 1 at each lap: every batch has the laps of the algorithm's lines, in their order."""
    setting, client = split.workload_of(job, Sizes(tokens=8), BENCH)
    laps: list[str] = []
    monkeypatch.setattr(split.Clock, "lap", lambda clock, part: laps.append(part))
    split.by_part(setting, client)
    crosses = ["rest", "wire", "embeddings", "wire", "layers", "wire", "head", "wire", "layers", "wire"]
    steps = ["embeddings", "server_step", "client_step", "client_step"]
    handed_on = ["rest", "rest"]
    assert laps == ["before", *(crosses + steps) * job.batches, *handed_on, "rest"]


def test_the_clock_is_gone_after_the_measurement(job: Job) -> None:
    setting, client = split.workload_of(job, Sizes(tokens=8), BENCH)
    seconds = split.by_part(setting, client)
    counted = dict(seconds)
    split.one_round(setting, client, "fedbert_sequential", Channel())()
    assert seconds == counted
    assert counted.keys() == {*PARTS, "before"}


def test_a_slow_split_misses_its_bar(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_turn(repeats: int, *works: Any) -> list[list[float]]:
        return [[1.0, 2.0], [2.0, 2.0]]

    monkeypatch.setattr(split, "in_turn", in_turn)
    section = measure(BENCH, Sizes((job,), tokens=8))
    (bar,) = section.bars
    assert (bar.value, bar.met) == (0.75, False)
    row: Mapping[str, Any] = section.rows[0]
    assert (row["unsplit_tokens_per_second"], row["split_tokens_per_second"]) == (32, 24)
