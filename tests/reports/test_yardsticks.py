"""Yardsticks that a benchmark declares, and columns that stand in for others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from benchmarks.claims import At, Better, Claim
from benchmarks.record import RunRecord
from benchmarks.spec import LEARNING, Benchmark, Column, Row, Yardstick
from reports.claims.cells import Runs
from reports.claims.judge import Judgement, judge
from reports.claims.needs import needs
from reports.evidence.gate import NOT_RUN, Gate, gate_of, gates, has_references
from reports.evidence.records import agree, by_definition, request_for
from reports.pages.text import gate_notes
from reports.views import page

ACC = "test/accuracy"
RecordOf = Callable[..., RunRecord]
GAIN = Yardstick(
    row="fedprox",
    name="FedProx",
    rivals={"fedavg": "FedAvg"},
    learns="the loss term helps",
    fails="the loss term does not help here",
)
STAND_IN = Column("rte", "RTE", (ACC,), ACC, scales=("lite",), instead_of="qqp")


@pytest.fixture(scope="module")
def table(table3: Benchmark) -> Benchmark:
    """QQP, and RTE in its place at the lite scale; judged by FedProx over FedAvg."""
    columns = (next(column for column in table3.columns if column.task == "qqp"), STAND_IN)
    return replace(table3, columns=columns, yardstick=GAIN, average="")


def seeds_of(record_of: RecordOf, row: str, task: str, levels: Sequence[float]) -> list[RunRecord]:
    """A record a seed."""
    return [record_of(row, task, {ACC: level / 100}, seed=seed) for seed, level in enumerate(levels)]


@pytest.fixture(scope="module")
def on_rte(record_of: RecordOf) -> list[RunRecord]:
    levels = {"fedavg": (70.0, 70.5, 70.2), "fedprox": (80.0, 81.0, 80.4), "fedsplitbert": (90.0, 90.6, 90.1)}
    return [record for row, own in levels.items() for record in seeds_of(record_of, row, "rte", own)]


# ---- yardsticks --------------------------------------------------------------------------------------------------


def decided(table: Benchmark, task: str, records: Sequence[RunRecord]) -> Gate:
    column = next(column for column in table.columns if column.task == task)
    return gate_of(table, column, table.scale("lite"), by_definition(records))


def test_a_benchmark_says_which_row_has_to_beat_which(table: Benchmark, record_of: RecordOf) -> None:
    assert has_references(table)
    assert not has_references(replace(table, yardstick=LEARNING))  # it has none of those rows
    low, high = (70.0, 70.5, 70.2), (80.0, 81.0, 80.4)
    better = [*seeds_of(record_of, "fedprox", "qqp", high), *seeds_of(record_of, "fedavg", "qqp", low)]
    worse = [*seeds_of(record_of, "fedprox", "qqp", low), *seeds_of(record_of, "fedavg", "qqp", high)]
    assert decided(table, "qqp", better) == Gate(True)
    why = "the loss term does not help here: FedProx 70.2, FedAvg 80.5, n = 3"
    assert decided(table, "qqp", worse) == Gate(False, why, is_settled=True)
    assert decided(table, "qqp", better[:3]) == Gate(False, NOT_RUN, is_known=False)
    within = [70.1, 73.0, 69.0]  # better on average, by less than the error
    close = [*seeds_of(record_of, "fedprox", "qqp", within), *seeds_of(record_of, "fedavg", "qqp", low)]
    assert not decided(table, "qqp", close).is_open


def test_tables_say_it_in_its_words(table: Benchmark, on_rte: list[RunRecord]) -> None:
    notes = list(gate_notes(request_for(table, table.scale("lite"), on_rte)))
    assert "Orderings are evidence on RTE: there the loss term helps." in notes
    assert f"Orderings are no evidence on QQP: {NOT_RUN}." in notes
    assert not gates(request_for(table, table.scale("demo"), on_rte))


def test_another_tables_yardstick_judges_with_its_rows(table: Benchmark, on_rte: list[RunRecord]) -> None:
    other = replace(table, id="other", rows=table.rows[2:4], yardstick=LEARNING, gate=table)
    assert decided(other, "rte", on_rte).is_open


def test_rows_on_what_was_named_apart_are_paired(on_rte: list[RunRecord]) -> None:
    own, its = on_rte[0], on_rte[3]
    assert agree(own, its)
    other = replace(its, inputs={**its.inputs, "backbone": {"digest": "b1"}})
    assert not agree(own, other)  # the same encoder's name, other weights
    assert agree(own, replace(other, cell=replace(other.cell, backbone="another")))
    begun = replace(its, inputs={**its.inputs, "initial": {"digest": "i0"}})  # its backbone was trained here
    assert agree(own, begun)
    assert not agree(begun, replace(begun, inputs={**begun.inputs, "initial": {"digest": "i1"}}))


# ---- stand-ins ---------------------------------------------------------------------------------------------------


def judged(table: Benchmark, records: Sequence[RunRecord], scale: str = "lite") -> Judgement:
    relation = Better((At(table.id, "fedsplitbert"),), (At(table.id, "fedavg"),), tasks=("qqp",))
    claim = Claim("1", "A sentence", "section I", (relation,), caveats={"lite": "small"})
    return judge("A paper", (claim,), {}, records, {table.id: table}, table.scale(scale))[0]


def test_a_stand_in_is_judged_and_named_where_the_task_has_no_records(
    table: Benchmark, on_rte: list[RunRecord]
) -> None:
    found = judged(table, on_rte)
    assert found.ours == "supported"
    assert "RTE" in found.ours_numbers
    assert found.caveat == "judged on RTE (for QQP); small"


def test_the_task_itself_is_judged_where_it_has_records(
    table: Benchmark, on_rte: list[RunRecord], record_of: RecordOf
) -> None:
    own = [
        *seeds_of(record_of, "fedsplitbert", "qqp", (60.0, 61.0, 60.5)),
        *seeds_of(record_of, "fedavg", "qqp", (70.0, 70.5, 70.2)),
        *seeds_of(record_of, "fedprox", "qqp", (80.0, 81.0, 80.4)),
    ]
    found = judged(table, [*on_rte, *own])
    assert (found.ours, found.caveat) == ("contradicted", "small")


def test_a_stand_in_is_its_own_column_at_its_scales_alone(table: Benchmark, on_rte: list[RunRecord]) -> None:
    shown = page(request_for(table, table.scale("lite"), on_rte)).frame()
    assert set(shown["column"]) == {"qqp", "rte"}
    assert shown[(shown["column"] == "qqp")]["ours"].isna().all()
    assert shown[(shown["column"] == "rte") & (shown["row"] == "fedprox")]["ours"].notna().all()
    assert {column.task for column in request_for(table, table.scale("paper"), []).columns} == {"qqp"}
    tasks = Runs.of_all({table.id: table}, table.scale("lite"), []).tables.tasks(At(table.id, "fedavg"))
    assert tasks == ("qqp",)  # no claim asks for a stand-in by itself


def test_what_is_needed_is_of_rows_and_columns_that_the_scale_has(table: Benchmark, on_rte: list[RunRecord]) -> None:
    rows = tuple(replace(row, scales=("paper",)) if row.id == "fedadam" else row for row in table.rows)
    table = replace(table, rows=rows)
    relation = Better((At(table.id, "fedsplitbert"),), (At(table.id, "fedadam"), At(table.id, "fedavg")))
    claim = Claim("1", "A sentence", "section I", (relation,))

    def missing(scale: str, records: Sequence[RunRecord]) -> set[tuple[str, str]]:
        runs = Runs.of_all({table.id: table}, table.scale(scale), records)
        return {(entry.at.row, entry.task) for entry in needs(claim, runs).missing}

    judging = {("fedprox", "qqp"), ("fedavg", "qqp"), ("fedsplitbert", "qqp")}
    assert missing("lite", []) == judging
    assert missing("paper", []) == judging | {("fedadam", "qqp")}
    assert missing("lite", on_rte) == {(row, "rte") for row, _ in judging}


def test_rows_of_another_scale_are_not_shown(table: Benchmark) -> None:
    rows = (*table.rows, Row("late", "Late", {"algorithm": "fedavg"}, scales=("paper",)))
    more = replace(table, rows=rows)
    for scale, is_there in (("lite", False), ("paper", True)):
        request = request_for(more, more.scale(scale), [])
        assert ("late" in {row.id for row in request.rows}) is is_there
        assert ("late" in {row.id for row, _, _ in more.cells(more.scale(scale), [0])}) is is_there


def test_without_an_average_in_print_none_is_shown(table3: Benchmark, record_of: RecordOf) -> None:
    columns = tuple(column for column in table3.columns if column.task in ("qqp", "qnli"))
    records = [record_of("fedavg", column.task, {ACC: 0.8}) for column in columns]
    for average, is_shown in (("truncate", True), ("", False)):
        table = replace(table3, columns=columns, average=average)
        shown = page(request_for(table, table.scale("lite"), records))
        assert (("Average", "", "") in shown.grids[0].headers) is is_shown
        assert any(note.startswith("Average:") for note in shown.notes) is is_shown
