"""Relations to a bound and to the bytes of a whole run, on synthetic records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path

import pytest

from benchmarks.claims import At, AtMost, Better, Cheaper, Claim, Printed, Sends
from benchmarks.costs import ClosedForm, ModelSizes, Terms, WirePlan
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark, Column, Row, Scale
from reports.claims.judge import Judgement, judge, judge_in_print
from reports.evidence.published import Numbers
from reports.evidence.records import Derive

ACC, F1, TABLE = "test/accuracy", "test/f1", "fedsplitbert-table3"
BACKBONE = "bert-base-uncased"  # the fixture's at the paper scale
SPLIT, FEDAVG = At(TABLE, "fedsplitbert"), At(TABLE, "fedavg")
RunOf = Callable[..., RunRecord]
SeedsOf = Callable[..., list[RunRecord]]
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


def test_a_bound_holds_for_every_row(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    both = replace(BOUND, rows=(SPLIT, FEDAVG))
    below = seeds_of("fedsplitbert", "qqp", [0.0, 0.0])
    assert judge_of(both, below).ours == "undecided"  # the other one was not run
    assert judge_of(both, [*below, *seeds_of("fedavg", "qqp", [5.0, 5.0])]).ours == "contradicted"
    assert judge_of(both, []).ours == "not run"


def test_another_score_stands_beside_and_decides_nothing(seeds_of: SeedsOf, judge_of: JudgeOf) -> None:
    records = [
        replace(
            record,
            rounds=tuple(
                replace(entry, scores={"test": {**entry.scores["test"], "f1": 0.25}}) for entry in record.rounds
            ),
        )
        for record in seeds_of("fedsplitbert", "qqp", [0.0, 0.0])
    ]
    found = judge_of(replace(BOUND, beside=F1), records)
    assert (found.ours, found.ours_numbers.endswith("] (F1 25.00 %)")) == ("supported", True)


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


def _down(record: RunRecord, size: int) -> RunRecord:
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

    def judged(records: list[RunRecord], scale: str) -> Judgement:
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


def test_so_many_rounds_send_so_many_bytes(table3: Benchmark, run_of: RunOf, judge_of: JudgeOf) -> None:
    """By the paper's own encoder alone: ours sends as many as it likes."""
    relation = Sends((SPLIT,), ("qqp",), rounds=3, least=0.9e9, most=1.1e9, sizes=Printed("Table VI", "parameter_gb"))

    def derive_for(_: Benchmark) -> Derive:
        return lambda row, column, scale, examples=None: _wire(size)

    def judged(records: list[RunRecord], scale: str = "lite") -> Judgement:
        claim = Claim("1", "A sentence", "section I", (relation,))
        return judge("", (claim,), {}, records, {table3.id: table3}, table3.scale(scale), derive_for)[0]

    for size, verdict in ((350_000_000, "holds"), (510_000_000, "fails"), (250_000_000, "fails")):
        found = judged([])
        assert found.ours == f"{verdict} by derivation"
        assert found.effect == f"FedSplitBERT, 3 rounds on QQP {3 * size / 1e9:.2f} GB (by {BACKBONE}'s shapes; no run)"
    measured = judged([run_of("fedsplitbert", up=333_000_000, scale="paper")], "paper")
    assert (measured.ours, measured.n, "1.00 GB" in measured.effect) == ("holds by derivation", "1", True)
    assert judge_of(relation, [run_of("fedsplitbert")]).ours == "not run"  # our encoder's bytes say nothing of it


def test_print_has_the_bytes_of_so_many_rounds(table3: Benchmark) -> None:
    relation = Sends((SPLIT,), ("qqp",), rounds=3, least=0.9e9, most=1.1e9, sizes=Printed("Table VI", "parameter_gb"))
    claim = Claim("1", "A sentence", "section I", (relation,))

    def in_print(size: str) -> str:
        numbers = Numbers({("Table VI", "fedsplitbert", "parameter_gb", ""): Decimal(size)})
        return judge_in_print(claim, {"fedsplitbert": numbers}, {table3.id: table3}).verdict

    assert [in_print(size) for size in ("0.30", "0.34", "0.51")] == ["holds", "holds", "does not hold"]


# ---- derived from prose ----------------------------------------------------------------------------------------


def test_derived_numbers_are_marked_or_left_out(table3: Benchmark) -> None:
    places = {row: ("Table III", row, "qqp", ACC) for row in ("fedsplitbert", "fedavg")}
    numbers = Numbers(
        {places["fedsplitbert"]: Decimal(90), places["fedavg"]: Decimal(80)}, frozenset([places["fedavg"]])
    )
    assert set(numbers.printed.values) == {places["fedsplitbert"]}
    claim = Claim("1", "A sentence", "section I", (Better((SPLIT,), (FEDAVG,), tasks=("qqp",)), BOUND))
    published, benchmarks = {"fedsplitbert": numbers}, {table3.id: table3}
    difference, level = judge_in_print(claim, published, benchmarks).cases
    assert difference.text == "FedSplitBERT − FedAvg, QQP +10.00 (derived from prose)"
    assert level.text == "FedSplitBERT, QQP 90.00 %"  # that one is printed
    missing, level = judge_in_print(replace(claim, is_source=True), published, benchmarks).cases
    assert (missing.estimate, level.text) == (None, "FedSplitBERT, QQP 90.00 %")
