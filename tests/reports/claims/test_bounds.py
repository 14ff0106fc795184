"""Relations to a bound and to the bytes of a whole run, on synthetic records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest

from benchmarks.claims import At, AtMost, Better, Cheaper, Claim
from benchmarks.costs import ClosedForm, ModelSizes, Terms, WirePlan
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.results import RunResult
from reports.claims.judge import Judgement, judge
from reports.evidence.published import Numbers
from reports.evidence.records import Derive

ACC, F1, TABLE = "test/accuracy", "test/f1", "fedsplitbert-table3"
BACKBONE = "bert-base-uncased"  # the fixture's at the paper scale
SPLIT, FEDAVG = At(TABLE, "fedsplitbert"), At(TABLE, "fedavg")
RunOf = Callable[..., RunResult]
SeedsOf = Callable[..., list[RunResult]]
JudgeOf = Callable[..., Judgement]

# ---- at most ---------------------------------------------------------------------------------------------------

BOUND = AtMost((SPLIT,), ACC, percent=1.0, tasks=("qqp",))


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ([0.0, 0.1, 0.2], "supported"),  # 0.1 ± 2.92 × √(1/3 + 0.2625) × 0.1 = 0.23
        ([0.8, 0.9, 1.0], "undecided"),
        ([5.0, 5.1, 5.2], "contradicted"),
        ([5.0], "undecided"),  # one seed shows no error
        ([0.0, 9.0], "undecided"),
    ],
)
def test_a_bound_needs_the_whole_interval(
    seeds_of: SeedsOf, judge_of: JudgeOf, scores: list[float], verdict: str
) -> None:
    assert judge_of(BOUND, seeds_of("fedsplitbert", "qqp", scores)).ours == verdict


# ---- a little --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (63.0, "supported"),  # 3 ± 1.12: above 0, and no more than 5
        (64.5, "undecided"),
        (67.0, "contradicted"),  # more than a little
        (57.0, "contradicted"),
    ],
)
def test_a_little_is_a_bound_on_both_sides(seeds_of: SeedsOf, judge_of: JudgeOf, ours: float, verdict: str) -> None:
    relation = Better((SPLIT,), (FEDAVG,), most=5.0, tasks=("qqp",))
    lasts = [ours - 0.5, ours, ours + 0.5]
    records = seeds_of("fedsplitbert", "qqp", lasts) + seeds_of("fedavg", "qqp", [60.0] * 3)
    assert judge_of(relation, records).ours == verdict


# ---- a whole run -----------------------------------------------------------------------------------------------

RUN = Cheaper((SPLIT,), (FEDAVG,), 3.0, ("qqp",), whole_run=True)


def test_a_whole_run_counts_its_rounds(run_of: RunOf, judge_of: JudgeOf) -> None:
    """A run of one round beside three of the same size: rounds alone would be equal."""
    records = [run_of("fedavg", curve=(50, 55, 60), up=1000), run_of("fedsplitbert", curve=(60,), up=1000)]
    found = judge_of(RUN, records)
    holds, fails = "holds by derivation", "fails by derivation"
    assert (found.ours, found.ours_numbers) == (holds, "n = 1; FedAvg / FedSplitBERT, QQP 3.00 ×")
    assert judge_of(replace(RUN, whole_run=False), records).ours == fails
    assert judge_of(replace(RUN, factor=3.1), records).ours == fails
    assert judge_of(replace(RUN, factor=3.1, places=0), records).ours == fails
    assert judge_of(replace(RUN, factor=3.0, places=0), records).ours == holds
    assert judge_of(replace(RUN, factor=2.0, most=2.9), records).ours == fails
    assert judge_of(RUN, records[:1]).ours == "not run"


def _down(record: RunResult, size: int) -> RunResult:
    """The record with so many bytes down in each round."""
    rounds = tuple(replace(entry, down_bytes=size) for entry in record.rounds)
    ledger = [row if row.direction == "up" else row._replace(values=size // 4, bytes=size) for row in record.ledger]
    return replace(record, rounds=rounds, ledger=tuple(ledger))


def test_bytes_are_those_of_the_papers_directions(run_of: RunOf, judge_of: JudgeOf, table3: Benchmark) -> None:
    both = replace(table3, paper=replace(table3.paper, directions=("up", "down")))
    records = [_down(run_of("fedavg", up=1000), 3000), _down(run_of("fedsplitbert", up=1000), 1000)]
    for relation in (RUN, replace(RUN, whole_run=False)):
        assert judge_of(relation, records).ours_numbers.endswith(" 1.00 ×")
        assert judge_of(relation, records, table=both).ours_numbers.endswith(" 2.00 ×")  # 4000 against 2000


def _wire(size: int) -> WirePlan:
    return WirePlan(size, 2 * size, 0, {}, ModelSizes(0, 0, 0, 0, 768, 1, all_tokens=False))


@pytest.mark.parametrize("directions", [("up",), ("up", "down")])
def test_runs_of_the_papers_own_encoder_go_by_its_shapes(
    run_of: RunOf, table3: Benchmark, tmp_path: Path, directions: tuple[str, ...]
) -> None:
    """Our small encoder sends 3 times less, the paper's 8 times: 8000 against 1000 bytes a round, two rounds each."""
    printed = "\n".join(f"Table III,parameters,{term.name},,1" for term in fields(Terms))
    path = tmp_path / "table.csv"
    path.write_text(f"table,row,column,score,value\n{printed}\n", encoding="utf-8")
    equation = ClosedForm("1", "T", lambda terms: {"parameters": terms.T})
    table = replace(
        table3,
        paper=replace(table3.paper, directions=directions),
        published_csv=path,
        closed_forms={"fedavg": equation, "fedsplitbert": equation},
    )

    def derive_for(_: Benchmark) -> Derive:
        def derive(row: Row, column: Column, scale: Scale, examples: int | None = None) -> WirePlan:
            assert (scale.id, examples) == ("paper", 1)  # n_s
            return _wire(8000 if row.id == "fedavg" else 1000)

        return derive

    def judged(records: list[RunResult], scale: str) -> Judgement:
        claim, published = Claim("1", "A sentence", "section I", (RUN,)), {"fedsplitbert": Numbers({})}
        return judge("", (claim,), published, records, {table.id: table}, table.scale(scale), derive_for)[0]

    own = [run_of("fedavg", up=3000), run_of("fedsplitbert", up=1000)]
    pair = "FedAvg / FedSplitBERT, QQP"
    assert judged(own, "lite").ours_numbers == f"n = 1; {pair} 8.00 × (by {BACKBONE}'s shapes; 3.00 × in our runs)"
    nothing = judged([], "lite")
    assert (nothing.ours, nothing.ours_numbers) == (
        "holds by derivation",
        f"n = 0; {pair} 8.00 × (by {BACKBONE}'s shapes; no run)",
    )
    at_paper = [run_of("fedavg", up=2000, scale="paper"), run_of("fedsplitbert", up=1000, scale="paper")]
    measured = judged(at_paper, "paper")
    assert (measured.ours, measured.ours_numbers) == ("fails by derivation", f"n = 1; {pair} 2.00 ×")
