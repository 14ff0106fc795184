"""The public API: choose, run, and read as data frames; the notebook that shows it runs."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat
import pytest

from benchmarks import api
from benchmarks.results import RunResult
from benchmarks.running.events import CellFinished, CellStarted
from benchmarks.selection import Selection

ROOT = Path(__file__).parents[2]
SHORT = {"training.rounds": 2, "training.local_epochs": 1, "training.max_length": 16, "training.batch_size": 64}


def chosen_part() -> Selection:
    return api.select("fedsplitbert-table3", tasks=["rte"], methods=["local-majority", "fedavg"], changes=SHORT)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def records(results: Path) -> list[RunResult]:
    return api.run(chosen_part(), api.settings(results, workers=1, device="cpu"))


def test_a_run_finds_what_is_finished(records: list[RunResult], results: Path, events) -> None:
    assert [record.cell for record in records] == [cell for _, _, cell in chosen_part().cells()]
    again = api.run(chosen_part(), api.settings(results, workers=1, device="cpu"), events)
    assert [found.reused for found in events.of(CellFinished)] == [True, True]
    assert not events.of(CellStarted)
    loaded = {record.cell_id: record.outcome for record in api.load(results / "records")}
    assert [record.outcome for record in again] == [record.outcome for record in records]
    assert loaded == {record.cell_id: record.outcome for record in records}


def test_scores_are_those_of_the_records(records: list[RunResult]) -> None:
    found = api.scores(records, chosen_part()).set_index(["method", "evaluation", "metric"])
    fedavg = records[1]
    assert found.loc[("fedavg", "test", "f1"), "score"] == 100 * fedavg.score("test/f1", "chosen")
    assert found.loc[("fedavg", "pooled", "f1"), "last"] == 100 * fedavg.score("pooled/f1")
    sent = found.loc[("fedavg", "test", "f1"), ["uplink", "downlink", "one_time"]]
    assert list(sent) == [
        sum(entry.up_bytes for entry in fedavg.rounds),
        sum(entry.down_bytes for entry in fedavg.rounds),
        fedavg.setup_bytes,
    ]
    assert found.loc[("local-majority", "test", "f1"), "uplink"] == 0


def test_curves_and_payloads_agree_on_bytes(records: list[RunResult]) -> None:
    curves, ledger = api.curves(records), api.payloads(records)
    by_round = curves[(curves.algorithm == "fedavg") & (curves.metric == "f1") & (curves.evaluation == "test")]
    assert list(by_round["round"]) == [1, 2]
    assert list(by_round.score) == [100 * score for score in records[1].by_round("test/f1")]
    for _, line in by_round.iterrows():
        sent = ledger[(ledger.cell == line.cell) & (ledger["round"] == line["round"])]
        assert sent[sent.direction == "up"]["bytes"].sum() == line.uplink
        assert sent[sent.direction == "down"]["bytes"].sum() == line.downlink


def test_predictions_lie_beside_records(records: list[RunResult], results: Path) -> None:
    assert set(api.predictions(records[0])) >= {(client, "test") for client in range(3)}
    assert api.run_cell(records[0].cell, api.settings(results, device="cpu")).outcome == records[0].outcome


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: api.select("fedavg-table1"), "unknown benchmark"),
        (lambda: api.select("fedsplitbert-table3", methods=["sgd"]), "sgd"),
        (lambda: api.select("fedsplitbert-table3", changes={"rounds": 2}).cells(), "rounds"),
        (lambda: api.claims("fedprox", "lite", []), "unknown paper 'fedprox': expected one of fedbert, fedbfpt"),
        (lambda: api.claims("fedbert", "big", []), "scale 'big'"),
        (lambda: api.load("nowhere"), "nowhere: expected a folder of records, found nothing"),
        (lambda: api.settings(data_dir="nowhere"), "DATA_DIR"),
    ],
)
def test_bad_input_says_what_was_expected(call, message: str) -> None:
    with pytest.raises(api.UserError, match=message):
        call()


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its committed copy holds no outputs: they are made where it is run."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(ROOT / "docs" / "quickstart.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(ROOT / "docs")}}).execute()
    shown = [cell.outputs[-1]["data"]["text/plain"] for cell in notebook.cells if cell.get("outputs")]
    derived, measured = shown[-2].strip("()").split(", ")
    assert derived == measured
