"""Rows that begin from another row's outcome: every seed counts, and they stand on the same data as the others."""

from __future__ import annotations

from pathlib import Path

from benchmarks.cli.main import main
from benchmarks.experiment import with_settings
from benchmarks.registry import benchmark
from benchmarks.results import read_results
from reports.evidence.records import Request
from reports.pages.text import _cell_notes


def test_each_seed_of_a_begun_row_counts(tmp_path: Path) -> None:
    words = ["run", "fedsplitbert-table3", "--tasks", "mrpc", "--workers", "1", "--device", "cpu", "--no-tracking"]
    short = ["--set", "training.local_epochs=1", "--set", "training.rounds=1"]
    assert (
        main([*words, *short, "--methods", "fedavg,fedavg-prior", "--seeds", "2", "--results-dir", str(tmp_path)]) == 0
    )
    table = with_settings(benchmark("fedsplitbert-table3"), short[1::2])
    rows = tuple(row for row in table.rows if row.id in ("fedavg", "fedavg-prior"))
    request = Request(table, table.scale("demo"), tuple(read_results(tmp_path / "records")), rows, table.columns[:1])
    assert [len(request.records_of(row, table.columns[0])) for row in rows] == [2, 2]
    notes = _cell_notes(request, rows[1], table.columns[0])
    assert not [note for note in notes if "not computed alike" in note or "left out" in note]
