"""Tables I and II: definitions that share the local majority's cells of Tables III and V, and real label counts."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.federation import build_clients, load_inputs
from benchmarks.record import read_records
from benchmarks.registry import benchmark
from benchmarks.settings import Settings
from benchmarks.spec import SCALES, Benchmark
from benchmarks.tasks import task

PAIRS = [("fedsplitbert-table1", "fedsplitbert-table3"), ("fedsplitbert-table2", "fedsplitbert-table5")]
TABLES = [benchmark(table) for table, _ in PAIRS]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("table", "scores"), PAIRS)
def test_cells_are_the_local_majoritys(table: str, scores: str, scale: str) -> None:
    """What is run for one table is found for the other."""
    ours, theirs = benchmark(table), benchmark(scores)
    cells = {column.task: cell.spec_id for _, column, cell in ours.cells(ours.scale(scale), [0, 1])}
    shared = {
        column.task: cell.spec_id
        for row, column, cell in theirs.cells(theirs.scale(scale), [0, 1])
        if row.algorithm == "local_majority"
    }
    assert cells == shared
    assert {cell.algorithm for _, _, cell in ours.cells(ours.scale(scale), [0])} == {"local_majority"}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.id)
def test_clients_of_print_are_the_clients_of_the_definition(table: Benchmark) -> None:
    """Client by client and label by label; MRPC's client 10 as printed, before it is normalised."""
    with table.published_csv.open(newline="") as file:
        entries = {(line["row"], line["column"], line["score"]): float(line["value"]) for line in csv.DictReader(file)}
    assert {line["table"] for line in csv.DictReader(table.published_csv.open())} == {table.place}
    expected: dict[tuple[str, str, str], float] = {}
    for _, column, cell in table.cells(table.scale("paper"), [0]):
        named = dict(table.view.options["labels"].get(column.task, ()))
        for client, shares in enumerate(cell.partition.get("shares", ()), start=1):
            assert set(named) == set(range(len(shares)))
            expected |= {(f"client{client}", column.task, f"share/label{k}"): v for k, v in enumerate(shares)}
    assert {place: value for place, value in entries.items() if place[1] != "stsb"} == expected


def test_labels_are_named_as_the_tasks_have_them() -> None:
    named = TABLES[0].view.options["labels"]
    assert {name: len(labels) for name, labels in named.items()} == {
        column.task: len(labels) for column in TABLES[0].columns if (labels := task(column.task).labels)
    }
    assert tuple(name for _, name in named["mnli"]) == task("mnli").labels


def test_deviations_are_those_of_the_clients() -> None:
    assert [entry.id for entry in TABLES[0].deviations] == ["client-size", "subset", "mismatched", "stsb"]
    assert [entry.id for entry in TABLES[1].deviations] == ["client-size", "subset", "client-10"]


def test_the_demo_runs_and_shows_no_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", TABLES[0].id, "--tasks", "mrpc,stsb", "--workers", "1", "--device", "cpu", "--no-tracking"]
    assert main([*words, "--results-dir", str(tmp_path)]) == 0
    assert len(list(read_records(tmp_path / "records"))) == 2
    out = capsys.readouterr().out
    assert "2 of 2 cells run" in out
    assert "Best" not in out
    folder = tmp_path / "reports" / TABLES[0].id / "demo"
    assert {path.name for path in folder.iterdir()} == {
        "table.md",
        "table.tex",
        "table.csv",
        "plot.png",
        "plot.svg",
        "plot.pdf",
    }
    text = (folder / "table.md").read_text()
    assert "label 1/label 0" in text
    assert "F1" not in text
    assert "published" not in text


@pytest.mark.usefixtures("encoder_dir")  # its tokenizer
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.id)
def test_real_clients_have_what_was_requested(table: Benchmark, data_dir: Path) -> None:
    """To within one example of each label, also in training and test part by themselves."""
    (column,) = (column for column in table.columns if column.task == "mrpc")
    cell = table.cell(table.rows[0], column, table.scale("lite"), 0)
    settings = Settings(data_dir=data_dir, device="cpu")
    clients, report = build_clients(cell, load_inputs(cell, settings), settings)
    assert report.requested_shares is not None
    assert report.obtained_counts is not None
    for client, requested, obtained in zip(clients, report.requested_shares, report.obtained_counts, strict=True):
        size = sum(obtained)
        assert all(abs(count - share * size) < 1 for share, count in zip(requested, obtained, strict=True))
        test = client.evaluation["test"].labels
        for label, count in enumerate(obtained):
            assert abs(int((test == label).sum()) - cell.test_share * count) <= 1
