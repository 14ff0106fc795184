"""What MLflow shows of a table's runs, including interrupted, failed and imported ones."""

import dataclasses
import hashlib
import json
import socket
import time
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from mlflow import MlflowClient

from benchmarks.predictions import predictions_file, write_predictions
from benchmarks.results import among, run_bytes, write_result
from benchmarks.running.events import CellFailed, CellFinished, RoundFinished
from benchmarks.tracking.entries import clients_csv, confusion_csv
from benchmarks.tracking.mirror import Mirror
from benchmarks.tracking.store import PORT
from benchmarks.tracking.table import PREFIX, Table
from tests.tracking.conftest import Store, play, record_of

SECONDS_OF_AN_OUTAGE = 25  # MLflow's own patience is minutes


def test_a_run_shows_its_method_changes_command_and_rounds(store):
    record = record_of()
    with store.mirror(record, changes="training.rounds=2", is_comparable=lambda record: True) as mirror:
        play(mirror, record)
    (run,) = store.runs()
    assert (run.info.run_name, run.info.status) == ("mrpc fedsplitbert s0 (training.rounds=2)", "FINISHED")
    shown = {name: text for name, text in run.data.tags.items() if not name.startswith(("_", "mlflow.note"))}
    assert shown.keys() - {"mlflow.user", "mlflow.parentRunId", "mlflow.runName"} == {
        *("table", "changes", "task", "method", "algorithm", "seed", "scale", "status", "published", "code_modified"),
        *("data_digest", "backbone_digest"),
        *("mlflow.source.name", "mlflow.source.type", "mlflow.source.git.commit"),
    }
    assert (shown["method"], shown["published"], shown["changes"]) == ("FEDSPLITBERT", "76.65 %", "training.rounds=2")
    assert (shown["mlflow.source.name"], shown["mlflow.source.type"]) == ("python -m benchmarks run", "LOCAL")
    assert (run.data.params["options.server.tau"], run.data.params["changes"]) == ("0.001", "training.rounds=2")
    assert run.data.params["partition.shares"] == "[[0.9,0.1],[0.5,0.5]]"
    points = store.points(run)
    assert {name: points.pop(name) for name in list(points) if not name.startswith(("z_", "timing"))} == {
        "train_loss": [(1, 1.0), (2, 0.5)],
        "test/f1": [(1, 0.1), (2, 0.2)],
        "test/f1-worst": [(1, 0.1), (2, 0.2)],
        "test/f1-spread": [(1, 0.0625), (2, 0.0625)],
        **{f"bytes/uplink{stage}": [(1, 100), (2, 300)] for stage in ("", "_stage")},
        **{f"bytes/downlink{stage}": [(1, 10), (2, 20)] for stage in ("", "_stage")},
        "bytes/uplink_per_round": [(1, 100), (2, 200)],
        "bytes/downlink_per_round": [(1, 10), (2, 10)],
        "bytes/one_time_distribution": [(2, 7000)],
        "sampling_error/test/f1": [(2, 0.02)],
        "score": [(2, 0.2)],
        "score_percent": [(2, 20.0)],
        "difference_to_published": [(2, -56.65)],
        "uplink_MB": [(2, 0.0003)],
        "downlink_MB": [(2, 2e-05)],
    }
    assert points["z_clients/test.f1.client1"] == [(1, 0.225), (2, 0.325)]
    (parent,) = store.search("tags.`_kind` = 'table'")
    assert (run.data.tags["mlflow.parentRunId"], parent.data.metrics) == (parent.info.run_id, {})
    assert (parent.info.status, parent.data.tags["results"]) == ("FINISHED", "1 of 2 cells")


def test_bytes_of_earlier_runs_count_and_the_stage_alone_is_shown_too(store):
    first = record_of(algorithm="fedavg")
    second = record_of(begins_from=first)
    write_result(store.folder / "records", first)
    with store.mirror(second) as mirror:
        play(mirror, second)
    (run,) = store.runs()
    points = store.points(run)
    assert (points["bytes/uplink"], points["bytes/uplink_stage"]) == ([(1, 400), (2, 600)], [(1, 100), (2, 300)])
    assert (points["uplink_MB"], points["bytes/downlink"][-1]) == ([(2, 0.0006)], (2, 40))
    unknown = record_of(begins_from=second, seed=3)
    assert run_bytes(unknown, among([second])) is None  # FedAvg's bytes are unknown, so the sum is


def test_a_killed_run_starts_again_and_is_brought_in_once_however_often(store):
    records = [record_of(), record_of(algorithm="fedavg"), record_of(seed=1)]
    for record, logged in zip(records, (0, 1, 2), strict=True):
        play(store.mirror(*records).thing, record, stopped_after=logged)  # killed
    with store.mirror(*records) as mirror:
        play(mirror, records[2], finished=1)
    seen = []
    for _ in range(2):
        store.sync(*records, *records)
        seen.append({run.info.run_id: (run.to_dictionary(), store.points(run)) for run in store.runs()})
    assert seen[0] == seen[1]
    assert [points["bytes/uplink"] for _, points in seen[0].values()] == [[(1, 100), (2, 300)]] * 3
    assert {run["info"]["status"] for run, _ in seen[0].values()} == {store.status()} == {"FINISHED"}


def test_a_tables_status_follows_from_its_results_and_not_from_one_call(store):
    record, other = record_of(), record_of(seed=1)
    computing = store.mirror(record).thing
    play(computing, record, stopped_after=1)
    with store.mirror(record) as mirror:
        play(mirror, other, stopped_after=1)
        mirror(CellFailed(other.cell, "client 1 has no examples"))
    assert store.status() == "RUNNING"  # another process computes
    assert {run.data.tags.get("failure") for run in store.runs()} == {None, "client 1 has no examples"}
    computing.close()
    assert store.status() == "FAILED"  # it has no result
    with store.mirror(record) as mirror:
        play(mirror, other, finished=1)
    assert store.status() == "FINISHED"
    with store.mirror(record) as mirror:
        play(mirror, record, stopped_after=1)
    assert (store.status(), {run.info.status for run in store.runs()}) == ("FINISHED", {"FINISHED", "KILLED"})


def test_nothing_is_shown_before_there_is_a_result(store):
    with store.mirror(record_of()) as mirror:
        assert store.search() == []
        play(mirror, record_of(), stopped_after=1)
        assert not [name for name in store.experiment.tags if name.startswith(PREFIX)]
        assert mirror.links == []
        mirror(CellFinished(record_of()))
        assert {name.removeprefix(PREFIX) for name in store.experiment.tags if name.startswith(PREFIX)} == {
            *("all-runs", "t", "t-mrpc", "t-mrpc-curves")
        }
        runs, curves = mirror.links
    address = f"http://127.0.0.1:{PORT}/#/experiments/{store.experiment.experiment_id}/runs?viewStateShareKey=t-mrpc"
    assert runs == f"{address}&workflowType=machine_learning"
    assert curves == f"{address}-curves&compareRunsMode=CHART&workflowType=machine_learning"


def first_row(store: Store, key: str) -> Any:
    """The first row of a view, with its columns' filter and order as MLflow's pages read them."""
    view = json.loads(store.experiment.tags[PREFIX + key])
    state = json.loads(view["state"])
    assert len(store.experiment.tags[PREFIX + key]) <= 5000  # MLflow's limit
    return store.search(state["searchFilter"], f"{state['orderByKey']} {'ASC' if state['orderByAsc'] else 'DESC'}")[0]


def test_a_changed_run_has_its_own_table_and_the_first_row_of_each_view_is_its_winner(store):
    better, worse, central = record_of(0.3), record_of(0.25, algorithm="fedavg"), record_of(0.9, algorithm="central")
    changed = [record_of(0.15, codec="fp32"), record_of(0.18, codec="fp32", algorithm="fedavg")]
    store.sync(worse, better, central)
    store.sync(*changed, id="t-changed-1", name="t @ lite, codec=fp32", changes="codec=fp32")
    assert first_row(store, "t-mrpc").data.metrics["score"] == 0.3
    assert first_row(store, "t-changed-1-mrpc").data.metrics["score"] == 0.18
    tags = [run.data.tags["changes"] for run in store.search("tags.`table` = 't @ lite, codec=fp32'")]
    assert tags == ["codec=fp32"] * 3  # the table's run and the two below it
    curves = json.loads(json.loads(store.experiment.tags[f"{PREFIX}t-mrpc-curves"])["state"])
    assert curves["compareRunCharts"][0]["metricKey"] == "test/f1"
    assert curves["isAccordionReordered"]  # else MLflow sorts its own sections, such as bytes, above this chart
    assert curves["groupBy"]["groupByKeys"][0]["groupByData"] == "method"


def test_each_clients_scores_and_a_confusion_matrix(tmp_path):
    gold, logits = np.array([0, 1, 1]), np.array([[2, 1], [2, 1], [0, 1]], dtype=np.float32)
    arrays = {"indices": np.arange(3), "gold": gold, "last": logits}
    content = safetensors.numpy.save(
        {f"{client}/test/{name}": value for client in (0, 1) for name, value in arrays.items()}
    )
    record = dataclasses.replace(record_of(), predictions={"sha256": hashlib.sha256(content).hexdigest()})
    write_predictions(tmp_path, record, content)
    assert clients_csv(record) == "client,train,test,test/f1,test/pearson\n0,8,2,0.2,\n1,8,2,0.325,\n"
    answers = predictions_file(tmp_path, record)
    assert confusion_csv(record, answers).splitlines()[1:] == ["not_equivalent,2,0", "equivalent,2,2"]


# ---- outages ---------------------------------------------------------------------------------------------------------


def test_a_store_that_fails_midway_is_caught_up_later(store, monkeypatch):
    def gone(*_: object, **__: object) -> None:
        raise ConnectionError("the store is gone")

    record = record_of()
    mirror = store.mirror(record).thing
    play(mirror, record, stopped_after=1)
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_batch", gone)
        mirror(RoundFinished(record.cell_id, record.rounds[1]))
    mirror(CellFinished(record))
    (warning,) = store.warnings
    assert "(the store is gone)" in warning
    store.warnings.clear()
    store.sync(record)
    (run,) = store.runs()
    assert store.points(run)["bytes/uplink"] == [(1, 100), (2, 300)]


SLOW_URIS = "http://me:secret@127.0.0.1:{1}", "sqlite:///{0}", "sqlite:///{0}/text"


@pytest.mark.parametrize(
    "uri",
    [
        *(pytest.param(uri, marks=pytest.mark.slow) for uri in SLOW_URIS),
        *("foo://me:secret@x", "http://:5000", "http://[::1", "http://me:secret@h:x"),
    ],
)
def test_an_unusable_store_is_warned_about_once_and_the_run_goes_on(uri, tmp_path, capfd):
    (tmp_path / "text").write_text("words\n" * 1000)
    warnings, started = list[str](), time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mirror = Mirror(uri.format(tmp_path, silent.getsockname()[1]), tmp_path, "p", Table("t", "t"), warnings.append)
        play(mirror, record_of())
        mirror.log_report([tmp_path / "text"])
        mirror.close()
    assert time.monotonic() - started < SECONDS_OF_AN_OUTAGE
    (warning,) = warnings
    assert "is off from now on" in warning
    assert "python -m benchmarks import" in warning
    assert "secret" not in warning
    assert capfd.readouterr() == ("", "")


def test_a_deleted_experiment_is_named_and_filled_once_it_is_restored(store):
    store.sync(record_of())
    number = store.experiment.experiment_id
    store.client.delete_experiment(number)
    store.sync(record_of(seed=1))
    (warning,) = store.warnings
    assert f"mlflow experiments restore --experiment-id {number}" in warning
    store.warnings.clear()
    store.client.restore_experiment(number)
    store.sync(record_of(seed=1))
    assert {run.data.tags["seed"] for run in store.runs()} == {"0", "1"}
