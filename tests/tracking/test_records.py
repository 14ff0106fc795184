"""MLflow rebuilt from records alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.events import CellFinished
from benchmarks.record import RunRecord, read_records, write_record
from benchmarks.tracking import Mirror


def test_records_alone_give_what_events_gave(
    store: Any,
    group: str,
    open_mirror: Callable[..., Mirror],
    record_of: Callable[..., RunRecord],
    play: Any,
    tmp_path: Path,
) -> None:
    records = [record_of(seed=seed) for seed in (0, 1)]
    with open_mirror() as mirror:
        for record in records:
            play(mirror, record)
    for record in records:  # stopped in the middle, and started again
        play(open_mirror(name="resumed"), record, stopped_after=2)
        play(open_mirror(name="resumed"), record, finished=2)
    for record in records:
        write_record(tmp_path, record)
    with open_mirror(name="synced") as mirror:
        mirror.sync(read_records(tmp_path))
    live = store.view(group)
    assert set(live) == {record.cell_id for record in records}
    assert store.view("synced") == live
    assert store.view("resumed") == live


def test_finished_children_are_left_alone(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    records = [record_of(seed=seed) for seed in (0, 1)]
    with open_mirror() as mirror:
        play(mirror, records[0])
    before = store.child(group)
    with open_mirror() as mirror:
        mirror(CellFinished(records[0], reused=True))
        mirror.sync(records)
    runs = {run.info.run_id: run for run in store.children(group)}
    assert len(runs) == 2
    assert runs[before.info.run_id].to_dictionary() == before.to_dictionary()


def test_child_has_the_times_of_the_record(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord]
) -> None:
    with open_mirror() as mirror:
        mirror.sync([record_of()])
    run = store.child(group)
    noon = 1740830400000  # 2025-03-01 12:00 UTC; setting up and training took 5.5 seconds
    assert (run.info.start_time, run.info.end_time) == (noon - 5500, noon)


def test_replaced_record_replaces_its_child(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    record = record_of()
    with open_mirror() as mirror:
        play(mirror, record)
        mirror.sync([dataclasses.replace(record, timing={"train_seconds": 8.0})])
    run = store.child(group)
    assert store.points(run)["timing/train_seconds"] == [(3, 8.0)]
    assert "timing/setup_seconds" not in run.data.metrics


def test_a_cell_is_linked_to_the_stage_that_it_began_from(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord]
) -> None:
    first = record_of(seed=5)
    second = record_of(initial=first.cell)
    inputs = {**second.inputs, "initial": {"digest": "d" * 64, "cell_id": first.cell_id}}
    with open_mirror() as mirror:
        mirror.sync([first, dataclasses.replace(second, inputs=inputs)])
    runs = {run.data.tags["cell_id"]: run for run in store.children(group)}
    tags = runs[second.cell_id].data.tags
    assert tags["initial_cell_id"] == first.cell_id
    assert tags["initial_run_id"] == runs[first.cell_id].info.run_id
    assert tags["initial_digest"] == "d" * 64
    assert "initial_run_id" not in runs[first.cell_id].data.tags


def test_a_cell_that_diverged_is_marked_with_the_reason(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    record = record_of()
    record = dataclasses.replace(record, rounds=record.rounds[:1], diverged={"round": 2, "reason": "no finite loss"})
    with open_mirror() as mirror:
        play(mirror, record)
    with open_mirror(name=f"{group} again") as mirror:
        mirror.sync([record])
        mirror.sync([record])
    for name in (group, f"{group} again"):
        run = store.child(name)
        assert (run.info.status, run.data.tags["diverged"]) == ("FAILED", "diverged in round 2: no finite loss")
        assert [parent.info.status for parent in store.parents(name)] == ["FINISHED"]  # a result of the table
