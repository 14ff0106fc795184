"""Table VI and Figure 6: Table III's own cells, with the caption's targets and the text's facts."""

from __future__ import annotations

import pytest

from benchmarks.claims import Reaches
from benchmarks.registry import benchmark, benchmark_ids, claims_of
from benchmarks.spec import SCALES, Benchmark

TABLE3 = benchmark("fedsplitbert-table3")
FOUND = {name: benchmark(f"fedsplitbert-{name}") for name in ("table6", "figure6")}


def spec_ids(found: Benchmark, scale: str) -> dict[tuple[str, str, int], str]:
    """(row id, task, seed) -> identity of the cell."""
    cells = found.cells(found.scale(scale), [0, 1])
    return {(row.id, column.task, cell.seed): cell.spec_id for row, column, cell in cells}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", FOUND)
def test_cells_are_those_of_table_iii(name: str, scale: str) -> None:
    """So they are computed once."""
    own, table = spec_ids(FOUND[name], scale), spec_ids(TABLE3, scale)
    assert own == {place: table[place] for place in own}


@pytest.mark.parametrize("name", FOUND)
def test_rows_and_deviations_are_complete(name: str) -> None:
    found = FOUND[name]
    assert found.id in benchmark_ids()
    assert [row.id for row in found.rows if row.printed] == [row.id for row in TABLE3.rows if row.printed]
    assert [row.id for row in found.rows if not row.printed] == ["local-majority", "fedavg-fp16"]
    assert [scale.id for scale in found.scales] == list(SCALES)
    ids = [deviation.id for deviation in found.deviations]
    assert len(set(ids)) == len(ids)
    assert {"client-size", "rounds", "embeddings", "critical-layer", "direction", "model-distribution"} <= set(ids)
    assert not {"mismatched", "stsb"} & set(ids)  # of no task here
    assert ("fedadam" in ids) == (name == "table6")


def test_places_and_tasks_are_the_papers() -> None:
    assert [(found.place, [column.name for column in found.columns]) for found in FOUND.values()] == [
        ("Table VI", ["MRPC"]),
        ("Figure 6", ["RTE", "MRPC", "WNLI", "QNLI"]),  # the caption's order
    ]
    assert {column.averaged for found in FOUND.values() for column in found.columns} == {"test/accuracy"}


def test_targets_are_the_captions_and_the_claims() -> None:
    # "RTE(64%), MRPC(84%), WNLI(47%) and QNLI(90%)"; Table VI: "a test accuracy of 84% on MRPC".
    targets = FOUND["figure6"].view.options["targets"]
    assert targets == {"rte": 64, "mrpc": 84, "wnli": 47, "qnli": 90}
    assert FOUND["table6"].view.options["targets"] == {"mrpc": 84}
    (relation,) = next(claim for claim in claims_of("fedsplitbert") if claim.id == "12").relations
    assert isinstance(relation, Reaches)
    assert relation.target.percent == targets
    assert {found.view.options["baseline"] for found in FOUND.values()} == {relation.target.baselines[0].row}
