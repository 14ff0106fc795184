"""A paper's tables may have an encoder of their own at one scale: each column is judged by its own table's cells."""

from __future__ import annotations

from benchmarks.claims import At
from benchmarks.cli.paper import benchmarks_of
from benchmarks.registry import folder_of
from benchmarks.results import read_results
from reports.claims.cells import Runs
from reports.evidence.gate import gate_of
from reports.evidence.records import by_definition


def test_a_gate_is_of_its_own_tables_scale() -> None:
    tables = benchmarks_of("fedbert")
    records = list(read_results(folder_of("fedbert") / "records"))
    table, other = tables["fedbert-table8"], tables["fedbert-table6"].scale("lite")
    own = gate_of(table, table.columns[0], table.scale("lite"), by_definition(records))
    assert gate_of(table, table.columns[0], other, by_definition(records)) != own  # another encoder's cells: none
    assert Runs.of_all(tables, other, records).gate(At(table.id, "fedavg"), table.columns[0].task) == own
