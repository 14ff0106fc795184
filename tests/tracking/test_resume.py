"""Cells that are stopped and started again: one child, every round once."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.events import CellFailed, CellFinished
from benchmarks.record import RunRecord
from benchmarks.tracking import Mirror

TOTAL_BYTES = [(1, 110), (2, 320), (3, 630)]


@pytest.mark.parametrize("logged", [0, 1, 2])
def test_killed_cell_goes_on_in_the_same_child(
    store: Any,
    group: str,
    open_mirror: Callable[..., Mirror],
    record_of: Callable[..., RunRecord],
    play: Any,
    logged: int,
) -> None:
    record = record_of()
    play(open_mirror(), record, stopped_after=logged)
    before = store.child(group)
    assert before.info.status == "RUNNING"
    with open_mirror() as mirror:
        play(mirror, record, finished=2)  # the second round was saved, and perhaps not mirrored
    after = store.child(group)
    assert (after.info.run_id, after.info.status) == (before.info.run_id, "FINISHED")
    points = store.points(after)
    assert {name: [step for step, _ in values] for name, values in points.items() if "timing" not in name} == {
        **{f"bytes/{name}": [1, 2, 3] for name in ("uplink", "downlink", "total")},
        **{f"bytes/{name}_per_round": [1, 2, 3] for name in ("uplink", "downlink")},
        **{f"z_clients/test.f1.client{number}": [1, 2, 3] for number in (0, 1)},
        **{name: [1, 2, 3] for name in ("train_loss", "test/f1")},
        **{name: [3] for name in ("bytes/one_time_distribution", "sampling_error/test/f1")},
    }
    assert points["bytes/total"] == TOTAL_BYTES
    assert [run.info.status for run in store.parents(group)] == ["FINISHED"]


def test_interrupted_cell_goes_on_in_the_same_child(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    def interrupted() -> None:
        with open_mirror() as mirror:
            play(mirror, record_of(), stopped_after=1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    before = store.child(group)
    assert before.info.status == "KILLED"
    assert [run.info.status for run in store.parents(group)] == ["KILLED"]
    with open_mirror() as mirror:
        play(mirror, record_of(), finished=1)
    after = store.child(group)
    assert (after.info.run_id, after.info.status) == (before.info.run_id, "FINISHED")
    assert store.points(after)["bytes/total"] == TOTAL_BYTES


def test_record_completes_what_a_kill_left(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    play(open_mirror(), record_of(), stopped_after=2)
    before = store.child(group)
    open_mirror()(CellFinished(record_of(), reused=True))
    after = store.child(group)
    assert (after.info.run_id, after.info.status) == (before.info.run_id, "FINISHED")
    assert store.points(after)["bytes/total"] == TOTAL_BYTES


def test_lost_checkpoint_starts_a_new_child(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    record = record_of()
    play(open_mirror(), record, stopped_after=2)
    rounds = tuple(dataclasses.replace(entry, train_loss=9.0) for entry in record.rounds)
    with open_mirror() as mirror:
        play(mirror, dataclasses.replace(record, rounds=rounds))
    assert store.points(store.child(group))["train_loss"] == [(1, 9.0), (2, 9.0), (3, 9.0)]


def test_failed_cell_says_why_and_can_be_tried_again(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    record = record_of()
    with open_mirror() as mirror:
        play(mirror, record, stopped_after=1)
        mirror(CellFailed(record.cell, "client 1 has no examples"))
        mirror(CellFailed(record_of(seed=9).cell, "never started"))
    run = store.child(group)
    assert (run.info.status, run.data.tags["failure"]) == ("FAILED", "client 1 has no examples")
    assert [parent.info.status for parent in store.parents(group)] == ["FAILED"]
    with open_mirror() as mirror:
        play(mirror, record, finished=1)
    again = store.child(group)
    assert (again.info.run_id, again.info.status) == (run.info.run_id, "FINISHED")
    assert "failure" not in again.data.tags


def test_of_two_invocations_one_alone_writes_a_cell(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    """The second finds the record while the first is about to bring it in: no point may stand there twice."""
    record = record_of()
    first, second = open_mirror(), open_mirror()
    assert len(store.parents(group)) == 1
    play(first, record, stopped_after=2)
    second(CellFinished(record, reused=True))
    play(second, record, finished=2)
    assert store.points(store.child(group))["bytes/total"] == TOTAL_BYTES[:2]
    del first  # killed: its claim goes with it
    gc.collect()
    with second:
        second(CellFinished(record, reused=True))
    child = store.child(group)
    assert (child.info.status, store.points(child)["bytes/total"]) == ("FINISHED", TOTAL_BYTES)
    assert not list((store.folder / "locks").glob("mlflow-*"))
