"""What MLflow shows of a table while it runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.record import RunRecord, read_record, write_record
from benchmarks.spec import Training
from benchmarks.tracking import Mirror, Shown


def test_table_is_the_parent_of_its_cells(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    records = [record_of(seed=seed) for seed in (0, 1)]
    with open_mirror(group_tags={"scale": "lite"}) as mirror:
        for record in records:
            play(mirror, record)
    (parent,) = store.parents(group)
    assert (parent.info.run_name, parent.info.status, parent.data.tags["scale"]) == (group, "FINISHED", "lite")
    children = store.children(group)
    assert {run.data.tags["cell_id"] for run in children} == {record.cell_id for record in records}
    assert {run.info.status for run in children} == {"FINISHED"}


def test_tags_and_params_name_the_cell(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    record = record_of(seed=4)
    with open_mirror(shown={record.cell.definition_id: Shown(("split", "split-fp16"), "Split (c = 3)")}) as mirror:
        play(mirror, record)
    run = store.child(group)
    expected = {
        "spec_id": record.cell.spec_id,
        "task": "mrpc",
        "method": "Split (c = 3)",
        "table": group,
        "status": "finished",
        "algorithm": "fedsplitbert",
        "seed": "4",
        "scale": "lite",
        "rows": "split,split-fp16",
        "data_digest": record.inputs["data"]["digest"],
        "backbone_digest": record.inputs["backbone"]["digest"],
    }
    assert run.data.tags.items() >= expected.items()
    assert run.info.run_name == "mrpc split/split-fp16 s4"
    assert run.data.params["method"] == "Split (c = 3)"
    assert (run.data.params["training.learning_rate"], run.data.params["codec"]) == ("5e-05", "fp16")
    assert (run.data.params["options.critical_layer"], run.data.params["options.server.tau"]) == ("3", "0.001")
    assert run.data.params["partition.shares"] == "[[0.9,0.1],[0.5,0.5]]"
    assert run.data.params["partition.size"] == "null"


def test_metrics_have_a_value_for_each_round(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    with open_mirror() as mirror:
        play(mirror, record_of())
    assert store.points(store.child(group)) == {
        "train_loss": [(1, 1.0), (2, 1 / 2), (3, 1 / 3)],
        "test/f1": [(1, 0.1), (2, 0.2), (3, 0.3)],
        "z_clients/test.f1.client0": [(1, 0.1), (2, 0.2), (3, 0.3)],
        "z_clients/test.f1.client1": [(1, 0.1 + 0.001), (2, 0.2 + 0.001), (3, 0.3 + 0.001)],
        "bytes/uplink_per_round": [(1, 100), (2, 200), (3, 300)],
        "bytes/downlink_per_round": [(1, 10), (2, 10), (3, 10)],
        "bytes/uplink": [(1, 100), (2, 300), (3, 600)],  # summed over rounds
        "bytes/downlink": [(1, 10), (2, 20), (3, 30)],
        "bytes/total": [(1, 110), (2, 320), (3, 630)],
        "bytes/one_time_distribution": [(3, 7000)],
        "sampling_error/test/f1": [(3, 0.02)],
        "timing/setup_seconds": [(3, 1.5)],
        "timing/train_seconds": [(3, 4.0)],
        "timing/peak_memory_bytes": [(3, 1e9)],
    }


def test_rounds_are_shown_as_they_end(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    play(open_mirror(), record_of(), stopped_after=2)
    run = store.child(group)
    assert run.info.status == "RUNNING"
    assert store.points(run)["test/f1"] == [(1, 0.1), (2, 0.2)]


def test_data_and_record_are_kept_with_the_cell(
    store: Any,
    group: str,
    open_mirror: Callable[..., Mirror],
    record_of: Callable[..., RunRecord],
    play: Any,
    tmp_path: Path,
) -> None:
    record = record_of()
    with open_mirror() as mirror:
        play(mirror, record)
    run = store.child(group)
    (entry,) = run.inputs.dataset_inputs
    digest = record.inputs["data"]["digest"]
    assert len(digest) == 64
    assert json.loads(entry.dataset.profile) == {"examples": 20}
    assert (entry.dataset.name, entry.dataset.digest) == ("mrpc", digest[:36])
    assert entry.dataset.source == "GLUE download, folder MRPC"
    copy = Path(store.client.download_artifacts(run.info.run_id, record.file_name, str(tmp_path)))
    own = write_record(tmp_path / "own", record)
    assert copy.read_bytes() == own.read_bytes()
    assert read_record(copy) == read_record(own)
    assert (store.folder / "mlartifacts" / "paper" / run.info.run_id).is_dir()


def test_report_is_kept_with_the_table(
    store: Any, group: str, open_mirror: Callable[..., Mirror], tmp_path: Path
) -> None:
    paths = [tmp_path / "table.md", tmp_path / "plot.png"]
    for path in paths:
        path.write_text("| MRPC<br>F1 |")
    with open_mirror() as mirror:
        mirror.log_report(paths)
    (parent,) = store.parents(group)
    assert {entry.path for entry in store.client.list_artifacts(parent.info.run_id)} == {"table.md", "plot.png"}
    (tmp_path / "copies").mkdir()
    for name, text in (("table.md", "| MRPC, F1 |"), ("plot.png", "| MRPC<br>F1 |")):
        copy = store.client.download_artifacts(parent.info.run_id, name, str(tmp_path / "copies"))
        assert Path(copy).read_text() == text
    assert paths[0].read_text() == "| MRPC<br>F1 |"  # the file itself stays


def test_more_than_a_request_holds_is_logged(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord]
) -> None:
    """MLflow refuses more than 100 parameters, 100 tags or 1,000 entries at once, and texts over 6,000 characters."""
    options = {f"option{number}": number for number in range(150)} | {"long": "x" * 7000, "odd [name]": True}
    with open_mirror(group_tags={f"tag{number}": "" for number in range(130)}) as mirror:
        mirror.sync([record_of(clients=1100, options=options, training=Training(1, 5e-5, 16))])
    run = store.child(group)
    assert len([name for name in run.data.metrics if name.startswith("z_clients/test.f1.client")]) == 1100
    assert len([name for name in run.data.params if name.startswith("options.option")]) == 150
    assert len(run.data.params["options.long"]) == 6000
    assert run.data.params["options.odd _name_"] == "true"


def test_events_can_come_from_another_thread(
    store: Any, group: str, open_mirror: Callable[..., Mirror], record_of: Callable[..., RunRecord], play: Any
) -> None:
    with open_mirror() as mirror:
        thread = threading.Thread(target=play, args=(mirror, record_of()))
        thread.start()
        thread.join()
    assert store.child(group).info.status == "FINISHED"
