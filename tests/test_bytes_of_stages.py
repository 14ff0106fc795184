"""A run that starts from FedAvg includes FedAvg's bytes everywhere; its own stage's bytes are separate.

By hand: the tiny encoder has 4 layers, three clients exchange them and the head in both directions in 2 rounds. Then
local fine-tuning sends nothing. A row without training has the bytes of the run whose answers it corrects.
"""

import json
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import api
from benchmarks.cli.main import main
from benchmarks.registry import benchmark
from benchmarks.results import RunBytes, RunResult, among, run_bytes, stage_bytes
from benchmarks.running.completed import in_folder
from benchmarks.selection import with_settings
from reports.evidence.records import request_for
from reports.front.picture import marks_of
from reports.site.cells import _costs

H, INNER = 64, 128
LAYER = 4 * (4 * (H * H + H) + 2 * H + (H * INNER + INNER) + (INNER * H + H) + 2 * H)  # bytes
HEAD = 4 * ((H * H + H) + (H * 2 + 2))
FEDAVG = 2 * 3 * (4 * LAYER + HEAD)
TABLE = benchmark("fedsplitbert-table3")
METHODS = {"fedavg": "FedAvg", "fedavg-finetuned": "FedAvg + local fine-tuning"}
CORRECTED = {"fedavg-prior": "FedAvg + prior (strength 1)"}
SHORT = ("training.rounds=2", "training.local_epochs=1", "training.max_length=16", "training.batch_size=64")
CHOICE = [TABLE.id, "--tasks", "mrpc", *(word for change in SHORT for word in ("--set", change))]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of both methods; FedAvg is not selected."""
    folder = tmp_path_factory.mktemp("stages")
    options = ["--methods", "fedavg-finetuned", "--workers", "1", "--device", "cpu", "--no-tracking"]
    assert main(["run", *CHOICE, *options, "--results-dir", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def records(results: Path) -> dict[str, RunResult]:
    """Method -> its record."""
    rows = {"fedavg": "fedavg", "fedsplitbert": "fedavg-finetuned"}
    return {rows[record.cell.algorithm]: record for record in api.load(results / "records")}


def whole(record: RunResult) -> RunBytes:
    stage = stage_bytes(record)
    return RunBytes(FEDAVG + stage.up, FEDAVG + stage.down) if record.cell.initial else stage


def test_records(results, records):
    assert stage_bytes(records["fedavg"]) == (FEDAVG, FEDAVG)
    assert stage_bytes(records["fedavg-finetuned"]) == (0, 0)
    for find in (among(records.values()), in_folder(results / "records")):
        assert [run_bytes(record, find) for record in records.values()] == list(map(whole, records.values()))
    assert run_bytes(records["fedavg-finetuned"], among([])) is None  # unknown, not 0


def test_api(records):
    frame = api.scores(records.values()).drop_duplicates("cell").set_index("cell")
    for record in records.values():
        line = frame.loc[record.cell_id]
        assert (line["uplink"], line["downlink"], line["uplink_stage"]) == (*whole(record), stage_bytes(record).up)


def test_tables_csv_and_terminal(results, capsys):
    options = ["--methods", ",".join(METHODS), "--results-dir", str(results)]
    assert main(["report", *CHOICE, *options]) == 0
    files = [file for file in (results / "reports").rglob("*.csv") if "up_bytes" in file.read_text().partition("\n")[0]]
    assert files
    for file in files:
        frame = pd.read_csv(file)
        ours = frame[frame["up_bytes"].notna()].drop_duplicates("row").set_index("row")["up_bytes"]
        assert ours["fedavg"] == ours["fedavg-finetuned"] == ours["fedavg-prior"] == FEDAVG
    out = " ".join(capsys.readouterr().out.split())
    for name in METHODS.values():
        assert f"{name} {FEDAVG / 2 / 1e3:.1f} kB" in out.replace(" †", "")
    assert f"uplink {FEDAVG / 1e3:.1f} kB" in out  # of all runs together: FedAvg's once


def test_a_row_without_training_is_named_as_any_other_and_runs_what_it_corrects(results, capsys):
    options = ["--methods", "fedavg-prior", "--workers", "1", "--device", "cpu", "--no-tracking"]
    before = sorted(results.glob("records/*"))
    assert main(["run", *CHOICE, *options, "--results-dir", str(results)]) == 0
    out = capsys.readouterr().out
    assert "FedAvg + prior (strength 1) †" in out
    assert "1 seed: no ordering" in out
    assert sorted(results.glob("records/*")) == before


def test_a_report_shows_exactly_the_named_rows(results, capsys):
    shown = {}
    for names in ("fedavg", "fedavg-prior", "fedavg-finetuned,fedavg-prior", ""):
        methods = ["--methods", names] if names else []
        assert main(["report", *CHOICE, *methods, "--results-dir", str(results)]) == 0
        lines = [line.replace(" †", "").rsplit(maxsplit=1)[0] for line in capsys.readouterr().out.splitlines()]
        shown[names] = [line for line in lines if line.startswith("FedAvg")]
    fedavg, prior, tuned = "FedAvg", CORRECTED["fedavg-prior"], METHODS["fedavg-finetuned"]
    assert shown["fedavg"] == [fedavg]
    assert shown["fedavg-prior"] == [prior]
    assert shown["fedavg-finetuned,fedavg-prior"] == [tuned, prior]
    assert {fedavg, prior, tuned} <= set(shown[""])
    changes = {name: int(value) for name, _, value in (change.partition("=") for change in SHORT)}
    chosen = api.select(TABLE.id, tasks=["mrpc"], methods=["fedavg-prior"], changes=changes)
    assert set(api.table(chosen, api.load(results / "records"))["row"]) == {"fedavg-prior"}


def test_site(records):
    before, after = (next(_costs(records[name], among(records.values()))) for name in METHODS)
    assert after[0] == before[0] != "0 B"
    assert after[2].endswith("0 B in this stage")
    changed = with_settings(TABLE, SHORT)
    request = request_for(changed, changed.scale("demo"), records.values())
    costs = {mark.row.id: mark.cost for mark in marks_of(request, TABLE.columns[0], "test/f1")}
    for cost in (costs[name] for name in METHODS):
        assert (cost.up_bytes, cost.run_bytes, cost.round_up, cost.round_bytes) == (FEDAVG, FEDAVG, *[FEDAVG / 2] * 2)


def test_plan(results, capsys):
    assert main(["plan", *CHOICE, "--methods", ",".join(METHODS), "--json", "--results-dir", str(results)]) == 0
    plan = json.loads(capsys.readouterr().out)
    rows = {row["method"]: row for row in plan["rows"]}
    assert rows["fedavg"]["up_bytes"] == rows["fedavg-finetuned"]["up_bytes"] == FEDAVG
    assert (rows["fedavg-finetuned"]["up_bytes_stage"], rows["fedavg"]["up_bytes_stage"]) == (0, FEDAVG)
    assert plan["sum"]["up_bytes"] == FEDAVG  # once
