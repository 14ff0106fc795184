"""The committed records: whole, as defined, with the bytes of the closed form; and the README shows them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.planning import wire_plan
from benchmarks.record import RunRecord, read_record
from benchmarks.registry import benchmark, scale_of

ROOT = Path(__file__).resolve().parent.parent
PATHS = sorted(ROOT.glob("benchmarks/*/records/*.json"))
TABLE = benchmark("fedsplitbert-table3")
LITE = scale_of(TABLE, "lite")


@pytest.fixture(scope="module")
def records() -> list[RunRecord]:
    return [read_record(path) for path in PATHS]


def test_every_row_of_mrpc_and_rte_is_there(records: list[RunRecord]) -> None:
    columns = [column for column in TABLE.columns if column.task in ("mrpc", "rte")]
    wanted = {cell.spec_id for _, _, cell in TABLE.cells(LITE, [0], TABLE.rows, columns)}
    assert wanted <= {record.cell.spec_id for record in records}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_bytes_are_those_of_the_closed_form(path: Path) -> None:
    record = read_record(path)
    assert path.name == record.file_name
    plan = wire_plan(record.cell)
    assert record.setup_bytes == plan.setup_bytes
    assert {(entry.up_bytes, entry.down_bytes) for entry in record.rounds} == {(plan.up_bytes, plan.down_bytes)}
    assert sum(row[-1] for row in record.ledger) == plan.setup_bytes + len(record.rounds) * (
        plan.up_bytes + plan.down_bytes
    )


def test_results_came_from_committed_code(records: list[RunRecord]) -> None:
    assert {record.environment["modified"] for record in records} == {False}


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("README.md", ["fedsplitbert-table3", "--brief"]),
        ("benchmarks/fedsplitbert/README.md", ["fedsplitbert"]),
    ],
)
def test_pages_show_what_the_records_say(page: str, words: list[str], tmp_path: Path) -> None:
    copy = tmp_path / page
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / page, copy)
    places = ["--readme", str(copy), "--pictures", str(tmp_path / "docs" / "pictures"), "--results-dir", str(tmp_path)]
    records = ["--records", str(ROOT / "benchmarks" / "fedsplitbert" / "records")]
    assert main(["report", *words, "--scale", "lite", *records, *places]) == 0
    assert copy.read_text(encoding="utf-8") == (ROOT / page).read_text(encoding="utf-8")  # else: make readme
    shown = {path.name for path in (tmp_path / "docs" / "pictures").iterdir()}
    assert shown <= {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
