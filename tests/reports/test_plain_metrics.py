"""A metric in plain units of which less is better, through tables, best rounds, targets, curves and claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from benchmarks.claims import At, AtMost, AverageBetter, Better, Claim, Reaches, Similar, Target
from benchmarks.record import LedgerEntry, RunRecord
from benchmarks.spec import Benchmark, Column, View
from reports.claims.judge import Judgement, judge, judge_in_print
from reports.evidence.published import Numbers
from reports.evidence.records import Request, request_for
from reports.evidence.scores import round_reaching
from reports.pages.page import Page
from reports.views import page

PERPLEXITY = "test/perplexity"
COLUMN = Column("corpus", "Corpus", (PERPLEXITY,), PERPLEXITY)
TABLE = "fedsplitbert-table3"
SPLIT, FEDAVG = At(TABLE, "fedsplitbert"), At(TABLE, "fedavg")
RunOf = Callable[..., RunRecord]


@pytest.fixture(scope="module")
def table(table3: Benchmark) -> Benchmark:
    return replace(table3, columns=(COLUMN,), rows=tuple(row for row in table3.rows if row.id in ("fedavg", SPLIT.row)))


@pytest.fixture(scope="module")
def run_of(table: Benchmark, record_of: RunOf) -> RunOf:
    """A record with a perplexity after each round, 1000 bytes up in each, and a sampling error of 0.1."""
    rows = {row.id: row for row in table.rows}

    def build(row: str, curve: Sequence[float | None], seed: int = 0) -> RunRecord:
        base = record_of("fedavg", "mrpc", {"test/f1": 0.5})
        cell = table.cell(rows[row], COLUMN, table.scale("lite"), seed)
        rounds = tuple(
            replace(base.rounds[0], round=number, scores={"test": {"perplexity": value}}, up_bytes=1000, down_bytes=0)
            for number, value in enumerate(curve, start=1)
        )
        ledger = tuple(LedgerEntry(number, 0, "up", "parameters", 250, 1000) for number in range(1, len(curve) + 1))
        digests = {name: entry["digest"] for name, entry in base.inputs.items()}
        errors = {"test": {"perplexity": 0.1}}
        return replace(
            base, cell=cell, cell_id=cell.cell_id(digests), rounds=rounds, ledger=ledger, sampling_errors=errors
        )

    return build


@pytest.fixture(scope="module")
def records(run_of: RunOf) -> list[RunRecord]:
    """FedAvg ends at 20 and 22, FedSplitBERT at 12 and 12, its best round before the last one."""
    return [
        run_of("fedavg", [40.0, 25.0, 20.0]),
        run_of("fedavg", [42.0, 26.0, 22.0], seed=1),
        run_of("fedsplitbert", [30.0, 10.0, 12.0]),
        run_of("fedsplitbert", [30.0, 11.0, 12.0], seed=1),
    ]


def shown(table: Benchmark, records: Sequence[RunRecord], view: View | None = None, at: str = "last") -> Page:
    asked = replace(table, view=view) if view else table
    request: Request = request_for(asked, asked.scale("lite"), records, score_at=at)
    return page(request)


def lines_of(made: Page, method: str, grid: int = 0) -> dict[str, tuple[str, ...]]:
    group = next(entry for entry in made.grids[grid].groups if entry.name == method)
    return {line.label: line.cells for line in group.lines}


# ---- tables and best rounds --------------------------------------------------------------------------------------


def test_a_table_shows_it_as_it_is(table: Benchmark, records: list[RunRecord]) -> None:
    made = shown(table, records)
    assert made.grids[0].headers[0][:2] == ("Corpus", "Perplexity")
    lines = lines_of(made, "FedAvg")
    assert (lines["reproduced (n = 2)"], lines["± SE (test set)"]) == (("21.00",), ("0.10",))
    (note,) = [note for note in made.notes if note.startswith("Scores")]
    assert note.startswith("Scores: geometric mean over clients at the last round")
    frame = made.frame()
    assert list(frame[frame["score"] == PERPLEXITY]["ours"]) == [21.0, 12.0]
    assert made.figure is not None
    (axes,) = made.figure().axes
    assert (axes.get_ylabel(), axes.get_ylim()[1] < 30) == ("score", True)


def test_the_best_round_is_the_lowest(table: Benchmark, records: list[RunRecord]) -> None:
    assert records[2].score(PERPLEXITY, "best") == 10.0
    assert lines_of(shown(table, records, at="best"), "FedSplitBERT")["reproduced (n = 2)"] == ("10.50",)


# ---- targets and curves ------------------------------------------------------------------------------------------


def test_a_target_is_reached_from_above(records: list[RunRecord]) -> None:
    assert [round_reaching(records[2], PERPLEXITY, target) for target in (30.0, 29.0, 10.0, 9.0)] == [1, 2, 2, None]


def test_bytes_to_a_target(table: Benchmark, records: list[RunRecord]) -> None:
    view = View("targets", {"targets": {"corpus": 21.5}, "baseline": "fedavg"})
    made = shown(table, records, view)
    assert lines_of(made, "FedSplitBERT")["Corpus Perplexity ≤ 21.00"][2:5] == ("2", "0.00", "1.50×")
    assert lines_of(made, "FedAvg", 1)["Corpus Perplexity ≤ 21.50"][2] == "1 of 2 seeds; others not within 3 rounds"
    assert any("Corpus Perplexity 21.5)" in note for note in made.notes)
    assert any("at the target or better" in note for note in made.notes)
    assert set(made.frame()["target_percent"]) == {21.0, 21.5}
    assert made.figure is not None
    assert made.figure().axes[0].get_title() == "Corpus: Perplexity ≤ 21.00 (FedAvg's best round)"


def test_curves_name_the_lowest(table: Benchmark, records: list[RunRecord]) -> None:
    made = shown(table, records, View("curves", {"quantity": "score"}))
    assert made.grids[0].headers == (("Corpus", "Perplexity"),)
    lines = lines_of(made, "FedSplitBERT")
    assert (lines["round 1"], lines["lowest (round)"]) == (("30.00",), ("10.50 (2)",))
    assert any("Scores after each round's aggregation: geometric mean over clients" in note for note in made.notes)
    assert made.figure is not None
    assert made.figure().axes[0].get_ylabel() == "score"


def test_units_are_told_apart_where_both_are_shown(table3: Benchmark) -> None:
    mixed = replace(table3, columns=(table3.columns[0], COLUMN))
    notes = shown(mixed, []).notes
    assert any(note.startswith("Scores in percent (Corpus Perplexity: plain)") for note in notes)
    assert any("geometric mean over clients or mean over clients" in note for note in notes)


# ---- claims ------------------------------------------------------------------------------------------------------


JudgedOf = Callable[..., Judgement]


@pytest.fixture
def judged(opened: Callable[..., tuple[Benchmark, list[RunRecord]]]) -> JudgedOf:
    """The judgement of one relation, alone in a claim, where the encoder learns the task."""

    def build(table: Benchmark, relation: object, records: Sequence[RunRecord]) -> Judgement:
        claim = Claim("1", "A sentence", "section I", (relation,))  # type: ignore[arg-type]
        table, records = opened(table, records)
        return judge("", (claim,), {}, records, {table.id: table}, table.scale("lite"))[0]

    return build


def test_better_is_lower(judged: JudgedOf, table: Benchmark, run_of: RunOf, records: list[RunRecord]) -> None:
    agreeing = [*records[:1], run_of("fedavg", [20.0], 1), records[2], run_of("fedsplitbert", [12.1], 1)]
    found = judged(table, Better((SPLIT,), (FEDAVG,), by=5.0), agreeing)
    assert (found.ours, found.effect.split(" [")[0]) == ("supported", "FedAvg − FedSplitBERT, Corpus +7.95")
    assert judged(table, Better((FEDAVG,), (SPLIT,), by=5.0), agreeing).ours == "contradicted"
    relative = judged(table, Better((SPLIT,), (FEDAVG,), relative=True), records)
    assert "+42.86 %" in relative.ours_numbers  # of 9 / 21


def test_similar_margins_and_levels_are_in_its_unit(
    judged: JudgedOf, table: Benchmark, records: list[RunRecord]
) -> None:
    assert judged(table, Similar(SPLIT, SPLIT, within=0.3), records).ours == "supported"
    level = judged(table, AtMost((SPLIT,), PERPLEXITY, percent=15.0), records)
    assert (level.ours, level.effect.split(" [")[0]) == ("supported", "FedSplitBERT, Corpus 12.00")
    average = judged(table, AverageBetter((SPLIT,), (FEDAVG,), by=1.0), records)
    assert average.effect.startswith("averages of FedSplitBERT over FedAvg +9.00 [")


def test_reaching_a_target_is_falling_to_it(judged: JudgedOf, table: Benchmark, records: list[RunRecord]) -> None:
    relation = Reaches((SPLIT,), Target({"corpus": 15.0}, (FEDAVG,), PERPLEXITY), within_rounds=2)
    found = judged(table, relation, records)
    assert found.ours_numbers.startswith("n = 2; FedSplitBERT, Corpus +10.50 ")
    assert found.ours_numbers.endswith("target 21.00, FedAvg's best round)")


def test_print_has_the_same_direction(table: Benchmark) -> None:
    places = {row: ("Table III", row, "corpus", PERPLEXITY) for row in ("fedavg", "fedsplitbert")}
    numbers = Numbers({places["fedavg"]: Decimal("20.5"), places["fedsplitbert"]: Decimal("12.0")})
    target = Reaches((SPLIT,), Target({"corpus": 15.0}, (FEDAVG,), PERPLEXITY))
    claim = Claim("1", "A sentence", "section I", (Better((SPLIT,), (FEDAVG,)), target))
    better, reached = judge_in_print(claim, {"fedsplitbert": numbers}, {table.id: table}).cases
    assert better.text == "FedAvg − FedSplitBERT, Corpus +8.50"
    assert reached.text == "FedSplitBERT, Corpus +3.00 (target 15)"
