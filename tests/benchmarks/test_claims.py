"""Claims as data: every one names rows and tasks that exist, and Table IV has the row that claim 11 needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.claims import At, Better, Claim, Reaches, Target, rising, rows_named
from benchmarks.registry import benchmark, benchmark_ids, claims_of

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = {"fedsplitbert": 16, "fedfreezebert": 15, "fedbert": 15, "fedbfpt": 8}
CLAIMS = {f"{paper} {claim.id}": claim for paper in SENTENCES for claim in claims_of(paper)}


@pytest.mark.parametrize("paper", SENTENCES)
def test_all_sentences_are_there_once(paper: str) -> None:
    claims = claims_of(paper)
    assert [claim.number for claim in claims] == sorted(claim.number for claim in claims)
    assert {claim.number for claim in claims} == set(range(1, SENTENCES[paper] + 1))
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.relations
        assert claim.place
        assert claim.reading.endswith(".")
        assert 5 < len(claim.quotation) < 130, claim.id  # it stands in a table


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_rows_tasks_and_scores_exist(claim: Claim) -> None:
    for relation in claim.every_relation:
        rows = list(rows_named(relation))
        assert rows
        for at in rows:
            table = benchmark(at.benchmark)
            # Claim 11 of FedFreezeBERT: Table 2's second line, whose number was not at hand, is no row of its own.
            printed = {at.printed or at.row} - {"reimplementation"}
            assert {at.row, *printed} <= {row.id for row in table.rows}
            tasks = {column.task for column in table.columns}
            assert set(getattr(relation, "tasks", ())) <= tasks
            target = getattr(relation, "target", None)
            assert target is None or set(target.percent) <= tasks
            scores = {score for column in table.columns for score in column.scores}
            named = {*getattr(relation, "scores", ()), getattr(relation, "score", ""), getattr(relation, "beside", "")}
            assert named - {""} <= scores


def test_a_claim_says_which_benchmarks_it_speaks_of() -> None:
    own, other, third = At("a-table1", "x"), At("b-table2", "y"), At("a-table3", "z")
    claim = Claim("1", "…", "…", (Better((own,), (other,)), Reaches((own,), Target({"rte": 64.0}, (third,)))))
    assert claim.benchmarks == {"a-table1", "b-table2", "a-table3"}
    assert Claim("2", "…", "…", ()).benchmarks == frozenset()


def test_claims_are_no_benchmark_and_other_papers_have_none() -> None:
    assert not [name for name in benchmark_ids() if "claims" in name]
    assert claims_of("nobody") == ()


@pytest.mark.parametrize("paper", SENTENCES)
def test_claims_import_nothing_heavy(paper: str) -> None:
    code = f"import sys, benchmarks.{paper}.claims; print(sorted({{'torch', 'numpy', 'pandas'}} & set(sys.modules)))"
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
