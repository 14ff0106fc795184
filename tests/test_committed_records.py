"""The committed records: whole, as defined, with the bytes of the closed form; and the README shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.planning import wire_plan
from benchmarks.record import RunRecord, read_record
from benchmarks.registry import benchmark, scale_of
from reports.page import request_for
from reports.readme import BEGIN, END, render_state
from reports.views import page

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


def test_the_readme_shows_what_the_records_say(records: list[RunRecord]) -> None:
    shown = (ROOT / "README.md").read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    assert (
        shown.strip()
        == render_state(
            [page(request_for(TABLE, LITE, records))], {TABLE.id: "docs/fedsplitbert-table3-lite.png"}
        ).strip()
    )
