"""`plan`: bytes by hand, examples that are counted, hours by records, and what it says where it cannot know."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.registry import benchmark, rows_of, scale_of
from benchmarks.results import read_results
from benchmarks.run_config import RunConfig
from benchmarks.running.federation import build_clients, load_inputs, training_examples
from benchmarks.running.run_options import RunOptions
from reports.pages.text import human_bytes

TABLE3 = benchmark("fedfreezebert-table3")
GIGABYTE = TABLE3.paper.gigabyte


def cell_of(row: str, scale: str = "demo") -> RunConfig:
    (method,) = rows_of(TABLE3, [row])
    return TABLE3.cell(method, TABLE3.columns[0], scale_of(TABLE3, scale), 0)


def shown(capsys: pytest.CaptureFixture[str], results: Path, *words: str) -> str:
    assert main(["plan", "fedfreezebert-table3", "--results-dir", str(results), *words]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("holdout", ["test", "validation"])
def test_counts_are_those_of_the_clients_that_are_built(holdout: str) -> None:
    for cell in (cell_of("c-psum"), benchmark("fedsplitbert-table3").cells(TABLE3.scale("demo"), [3])[4][2]):
        held = replace(cell, holdout=holdout)
        clients, _ = build_clients(held, load_inputs(held, RunOptions()), RunOptions())
        assert training_examples(held, RunOptions()) == [len(client.train) for client in clients]


def test_generated_data_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, tmp_path, "--methods", "c-psum,c-average,d-fedavg-psum")
    total = sum(training_examples(cell_of("c-psum"), RunOptions()))
    assert (
        f"Counted on ArSarcasm-v2's {total} training examples: C-FedFreezeBERT · P-SUM, C-FedFreezeBERT · average."
        in out
    )
    plan = wire_plan(cell_of("c-psum"), examples=training_examples(cell_of("c-psum"), RunOptions()))
    assert f"{human_bytes(plan.up_bytes + plan.down_bytes, GIGABYTE)}" in out
    assert "No bytes" not in out


def test_real_data_are_counted_without_the_encoder(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shown(capsys, tmp_path, "--scale", "paper", "--methods", "c-average", "--data-dir", str(data_dir))
    assert "Counted on ArSarcasm-v2's 12,548 training examples: C-FedFreezeBERT · average." in out  # n_s of the paper
    features, masks, labels, head = 4 * 12548 * 128 * 768, 12548 * 128, 12548 * 8, 5 * 4 * 3 * (768 + 1)
    assert f"{human_bytes(features + masks + labels + head, GIGABYTE)}" in out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--scale", "lite", "--tasks", "arsarcasm"], "on the number of examples: name the folder of the data with"),
        (["--scale", "lite", "--tasks", "arsarcasm", "--data-dir", "no-such-folder"], "the data directory"),
        (["--set", "options.features=trimmed"], "bytes that depend on the texts themselves"),
    ],
)
def test_bytes_that_cannot_be_known_have_a_reason(
    words: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shown(capsys, tmp_path, "--methods", "c-psum,c-hsum", *words)
    assert re.search(f"No bytes, as [^;]*{reason}.*: C-FedFreezeBERT · P-SUM, C-FedFreezeBERT · H-SUM", out)
    assert "Counted on" not in out


def test_the_plan_as_json_adds_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "fedsplitbert-table4", "--tasks", "mrpc", "--seeds", "3", "--json"]
    assert main([*words, "--results-dir", str(tmp_path)]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["scale"], plan["seeds"], plan["finished_cells"]) == ("demo", [0, 1, 2], 0)
    assert plan["cells"] == 3 * len(plan["rows"])
    once = {row["cell"]: row for row in plan["rows"]}
    assert plan["unique_cells"] == 3 * len(once)
    for name in ("up_bytes", "down_bytes", "setup_bytes"):
        assert plan["sum"][name] == 3 * sum(row[name] for row in once.values()) > 0
    assert all(row["up_bytes"] == row["rounds"] * row["up_bytes_per_round"] for row in plan["rows"])


def test_a_plan_takes_one_seed_a_number_or_a_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "fedsplitbert-table3", "--tasks", "mrpc", "--methods", "fedavg", "--json"]
    for flag, expected in (
        ("--seed=4", [4]),
        ("--seeds=3", [0, 1, 2]),
        ("--seeds=5-7", [5, 6, 7]),
        ("--seeds=5-5", [5]),
    ):
        assert main([*words, flag, "--results-dir", str(tmp_path)]) == 0
        plan = json.loads(capsys.readouterr().out)
        assert (plan["seeds"], plan["cells"]) == (expected, len(expected))


def test_one_clients_uplink_is_the_same_whoever_takes_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "fedbfpt-pretraining", "--tasks", "corpus-biology", "--methods", "fedbfpt", "--json"]
    counted, sums = set(), []
    for change in ("clients=1", "clients=3", "clients=6", "clients=12", "training.participation=0.5"):
        assert main([*words, "--results-dir", str(tmp_path), "--set", change]) == 0
        (row,) = json.loads(capsys.readouterr().out)["rows"]
        counted.add(row["counted_bytes_per_round"])
        sums.append(row["up_bytes_per_round"])
    (own,) = counted
    assert sums == [clients * own for clients in (1, 3, 6, 12, 3)]


def test_fedbfpts_table_2_is_planned_in_mebibytes_of_payload(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "fedbfpt-table2", "--scale", "paper", "--results-dir", str(tmp_path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "│ BERT-FL │ 5 │ 417.76 MiB │" in out  # 417.83 in print, of the file
    assert "│ FEDBFPT │ 5 │ 29.41 MiB │" in out  # 29.42
    assert not re.search(r"\d [kMG]B", out)
    assert "* one client's uplink in a round, its tensors' payload in MiB of 2^20 bytes; the paper's MB are" in out


def test_hours_come_from_records_of_the_like(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "fedsplitbert-table3", "--scale", "lite", "--tasks", "mrpc", "--methods", "fedavg", "--json"]
    assert main([*words, "--results-dir", str(tmp_path), "--seeds", "2"]) == 0
    plan = json.loads(capsys.readouterr().out)
    committed = Path(__file__).parents[2] / "benchmarks" / "fedsplitbert" / "records"
    table = benchmark("fedsplitbert-table3")
    cell = table.cells(table.scale("lite"), [0])[5][2]
    assert cell.algorithm == "fedavg"
    known = [record.timing["train_seconds"] for record in read_results(committed) if like(record.cell, cell)]
    assert plan["hours"] == pytest.approx(2 * sum(known) / len(known) / 3600)
    assert plan["cells_of_unknown_hours"] == 0


def like(cell: RunConfig, other: RunConfig) -> bool:
    """Whether two cells are one method's on one task, whatever the seed and the learning rate."""
    fields = "scale", "task", "algorithm", "backbone", "options", "head"
    return all(getattr(cell, name) == getattr(other, name) for name in fields)


def test_tasks_with_equal_numbers_and_rows_without_traffic_are_folded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    methods = "local-majority,central,local-only,fedavg,fedsplitbert"
    words = ["plan", "fedsplitbert-table3", "--methods", methods, "--tasks", "mrpc,rte,wnli", "--scale", "lite"]
    assert main([*words, "--results-dir", str(tmp_path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "│ MRPC, RTE, WNLI │ FedAvg │" in out
    assert "│ MRPC │ FedSplitBERT │" in out  # c differs from task to task
    assert "│ RTE, WNLI │ FedSplitBERT │" in out
    assert "Nothing is sent: Majority-class baseline, by client, Centralised training." in out
    assert "Nothing is sent but 0.27 GB one-time: Local only." in out


def test_hours_by_flops_say_what_they_assume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "fedsplitbert-table3", "--tasks", "wnli", "--methods", "fedavg", "--results-dir", str(tmp_path)]
    assert main([*words, "--tflops", "1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "h from FLOPs at a steady 1 TFLOP/s, if every text has 32 tokens" in out
    hours = []
    for rate in ("1", "2"):
        assert main([*words, "--tflops", rate, "--json"]) == 0
        hours.append(json.loads(capsys.readouterr().out)["hours"])
    assert hours[0] == pytest.approx(2 * hours[1])
    assert hours[1] > 0


def test_a_column_with_an_encoder_of_its_own_is_derived_for_that_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", "fedfreezebert-table3", "--scale", "lite", "--methods", "fedsplitbert-ordinary"]
    assert main([*words, "--results-dir", str(tmp_path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "derived for arabic-mini and all-MiniLM-L6-v2 with 5 clients" in shown
    assert "c = 8 of 12 (3 of 4 layers): " in shown
    assert "c = 8 of 12 (4 of 6 layers): " in shown
    assert main([*words, "--tasks", "sst2-central", "--results-dir", str(tmp_path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "derived for all-MiniLM-L6-v2 with" in shown
    assert "of 4 layers" not in shown
