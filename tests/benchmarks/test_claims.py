"""Claims as data: every one names rows and tasks that exist, and Table IV has the row that claim 11 needs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from benchmarks.claims import At, Better, Claim, Relation, Target, rising
from benchmarks.registry import benchmark, benchmark_ids, claims_of

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = claims_of("fedsplitbert")


def places(relation: Relation) -> Iterator[At]:
    """Every row that a relation names."""
    for field in fields(relation):
        value = getattr(relation, field.name)
        for entry in value if isinstance(value, tuple) else (value,):
            if isinstance(entry, At):
                yield entry
            elif isinstance(entry, Target):
                yield entry.reference


def test_all_twelve_sentences_are_there_once() -> None:
    assert [claim.number for claim in CLAIMS] == sorted(claim.number for claim in CLAIMS)
    assert {claim.number for claim in CLAIMS} == set(range(1, 13))
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert claim.relations
        assert claim.place
        assert claim.reading.endswith(".")
        assert 5 < len(claim.quotation) < 130, claim.id  # it stands in a table


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_rows_and_tasks_exist(claim: Claim) -> None:
    for relation in claim.relations:
        rows = list(places(relation))
        assert rows
        for at in rows:
            table = benchmark(at.benchmark)
            assert {at.row, at.printed or at.row} <= {row.id for row in table.rows}
            tasks = {column.task for column in table.columns}
            assert set(getattr(relation, "tasks", ())) <= tasks
            target = getattr(relation, "target", None)
            assert target is None or set(target.percent) <= tasks


def test_claims_are_no_benchmark_and_other_papers_have_none() -> None:
    assert not [name for name in benchmark_ids() if "claims" in name]
    assert claims_of("nobody") == ()


def test_claims_import_nothing_heavy() -> None:
    code = "import sys, benchmarks.fedsplitbert.claims; print(sorted({'torch', 'numpy', 'pandas'} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_rising_compares_neighbours() -> None:
    low, middle, high = (At("fedsplitbert-table4", row) for row in ("c0", "c4", "c6"))
    assert rising((low, middle, high), ("rte",)) == (
        Better((middle,), (low,), tasks=("rte",)),
        Better((high,), (middle,), tasks=("rte",)),
    )


def test_an_id_begins_with_the_number() -> None:
    assert Claim("12b", "…", "…", ()).number == 12
    with pytest.raises(ValueError, match="begins with a number"):
        _ = Claim("b", "…", "…", ()).number


def test_c12_runs_both_by_fedavg_and_by_fedsplitbert() -> None:
    table = benchmark("fedsplitbert-table4")
    rows = {row.id: row for row in table.rows}
    assert not rows["c12-split"].printed
    for scale in table.scales:
        own = table.cell(rows["c12-split"], table.columns[0], scale, 0)
        assert (own.algorithm, own.options["critical_layer"]) == ("fedsplitbert", scale.depth)
        assert table.cell(rows["c12"], table.columns[0], scale, 0).algorithm == "fedavg"
