"""Gains over FedAvg, and what is left of them beyond the label prior, from synthetic records of the study."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from benchmarks.cli.ending import ending
from benchmarks.fedsplitbert.personalisation import BENCHMARK as STUDY
from benchmarks.fedsplitbert.table3 import BENCHMARK as TABLE3
from benchmarks.record import RunRecord
from reports.evidence.inference import quantile
from reports.evidence.records import request_for
from reports.evidence.statistics import Estimate
from reports.pages.page import Line
from reports.pages.plots import render
from reports.views import has_finding, page
from reports.views.gains import Gains, ci, join
from reports.views.gains_plot import plot

RecordOf = Callable[..., RunRecord]
Scored = Callable[..., list[RunRecord]]
ROWS = {row.id: row for row in STUDY.rows}
COLUMNS = {column.task: column for column in STUDY.columns}
LITE = STUDY.scale("lite")
RATIO = 63 / (303 - 63)  # n_test / n_train of the records of conftest


@pytest.fixture
def scored(record_of: RecordOf) -> Scored:
    """Records of a row on a task, one score in percent a seed."""

    def build(row: str, task: str, scores: Sequence[float]) -> list[RunRecord]:
        made = []
        for seed, score in enumerate(scores):
            name = COLUMNS[task].averaged
            base = record_of("fedavg", "mrpc", {name: score / 100}, errors={name: 0.01})
            cell = STUDY.cell(ROWS[row], COLUMNS[task], LITE, seed)
            begun = {} if cell.initial is None else {"initial": {"digest": "w0", "origin": "a cell"}}
            inputs = {**base.inputs, **begun}
            digests = {key: entry["digest"] for key, entry in inputs.items()}
            made.append(replace(base, cell=cell, cell_id=cell.cell_id(digests), inputs=inputs))
        return made

    return build


@pytest.fixture
def records(scored: Scored) -> list[RunRecord]:
    return [
        *scored("fedavg", "mrpc", [70, 71, 72, 73]),
        *scored("fedavg-prior", "mrpc", [76, 76, 78]),
        *scored("fedsplitbert", "mrpc", [78, 80, 80, 83]),
        *scored("local-only", "mrpc", [69, 70, 75, 70]),
        *scored("fedavg", "qqp", [70, 71, 72]),
        *scored("fedsplitbert", "qqp", [74, 75, 76]),
    ]


def gains(records: Sequence[RunRecord], rows: Sequence[str] = ()) -> Gains:
    return join(request_for(STUDY, LITE, records, [ROWS[name] for name in rows]))


def known(found: Estimate | None) -> Estimate:
    assert found is not None
    return found


def lines(records: Sequence[RunRecord], row: str, column: int = 0) -> dict[str, str]:
    grid = page(request_for(STUDY, LITE, records)).grids[0]
    group = next(group for group in grid.groups if group.name.startswith(ROWS[row].name))
    shown: list[Line] = list(group.lines)
    return {f"{place} {line.label}": line.cells[column] for place, line in enumerate(shown)}


def test_differences_are_paired_by_seed_with_the_rules_of_verdicts(records: list[RunRecord]) -> None:
    """8, 9, 8, 10 over FedAvg; 2, 4, 2 beyond the prior, which three seeds have."""
    own = gains(records).of(ROWS["fedsplitbert"], COLUMNS["mrpc"])
    over, beyond = known(own.over), known(own.beyond)
    assert (over.value, over.n, beyond.value, beyond.n) == (pytest.approx(8.75), 4, pytest.approx(8 / 3), 3)
    sd = math.sqrt(sum((value - 8.75) ** 2 for value in (8, 9, 8, 10)) / 3)
    half = quantile(3, 0.025) * math.sqrt(1 / 4 + RATIO) * sd
    assert ci(over) == (pytest.approx(8.75 - half), pytest.approx(8.75 + half))


def test_the_share_is_of_the_seeds_that_all_three_have(records: list[RunRecord]) -> None:
    """6, 5, 6 of 8, 9, 8."""
    found = gains(records)
    assert found.of(ROWS["fedsplitbert"], COLUMNS["mrpc"]).share == pytest.approx(100 * 17 / 25)
    assert found.of(ROWS["local-only"], COLUMNS["mrpc"]).share is None  # it is not sure that it gains
    assert found.of(ROWS["fedavg-prior"], COLUMNS["mrpc"]).share is None


def test_the_reference_and_the_part_have_no_gain_over_themselves(records: list[RunRecord]) -> None:
    found = gains(records)
    reference, part = (found.of(ROWS[name], COLUMNS["mrpc"]) for name in ("fedavg", "fedavg-prior"))
    assert (reference.over, reference.beyond, reference.ours) == (None, None, pytest.approx(71.5))
    assert (known(part.over).value, part.beyond) == (pytest.approx(17 / 3), None)


def test_a_part_of_the_table_is_held_against_the_same_rows(records: list[RunRecord]) -> None:
    alone = gains(records, ["fedsplitbert"]).of(ROWS["fedsplitbert"], COLUMNS["mrpc"])
    assert alone == gains(records).of(ROWS["fedsplitbert"], COLUMNS["mrpc"])
    shown = page(request_for(STUDY, LITE, records, [ROWS["fedsplitbert"]])).grids[0]
    assert [group.name for group in shown.groups] == ["FedSplitBERT †"]


def test_columns_are_those_that_have_the_prior(records: list[RunRecord]) -> None:
    assert [column.task for column in gains(records).columns] == ["mrpc"]
    assert len(gains([]).columns) == len(STUDY.columns)


def test_lines_of_a_method(records: list[RunRecord]) -> None:
    shown = lines(records, "fedsplitbert")
    assert list(shown) == [
        *("0 over FedAvg", "1 95 % CI (n)", "2 over FedAvg + local label prior", "3 95 % CI (n)", "4 share")
    ]
    assert (shown["0 over FedAvg"], shown["4 share"]) == ("+8.75", "68 %")
    assert shown["1 95 % CI (n)"].endswith("] (4)")
    assert lines(records, "fedper") == {"0 over FedAvg": "not run", "1 95 % CI (n)": "–"}
    assert lines(records, "fedavg") == {"0 score": "71.50"}


def test_two_seeds_have_no_interval(scored: Scored) -> None:
    few = [*scored("fedavg", "mrpc", [70, 71]), *scored("fedavg-prior", "mrpc", [76, 76])]
    assert lines(few, "fedavg-prior") == {"0 over FedAvg": "+5.50", "1 95 % CI (n)": "– (2)"}


def test_the_long_form_has_every_cell_in_the_metrics_unit(records: list[RunRecord]) -> None:
    frame = page(request_for(STUDY, LITE, records)).frame()
    assert len(frame) == len(STUDY.rows) * len(STUDY.columns)
    line = frame[(frame["row"] == "fedsplitbert") & (frame["column"] == "mrpc")].iloc[0]
    assert (line["gain"], line["n_gain"], line["n_beyond"]) == (pytest.approx(8.75), 4, 3)
    assert line["gain_low"] < 8.75 < line["gain_high"]
    assert (line["share"], line["status"]) == (pytest.approx(68.0), "run")
    assert set(frame[frame["row"] == "fedper"]["status"]) == {"not run"}


def test_the_first_page_is_told_of_both(records: list[RunRecord]) -> None:
    said, numbers = page(request_for(STUDY, LITE, records)).finding or ("", "")
    assert said == "What FedAvg + local label prior gains over FedAvg, and FedSplitBERT beyond that"
    assert numbers.startswith("MRPC +5.67, beyond it +2.67 [")
    assert page(request_for(STUDY, LITE, records, [ROWS["local-only"]])).finding == (said, numbers)
    assert page(request_for(STUDY, LITE, [])).finding is None
    assert (has_finding(STUDY), has_finding(TABLE3)) == (True, False)


def test_a_run_ends_with_it(records: list[RunRecord]) -> None:
    shown = ending(page(request_for(STUDY, LITE, records)), 100)
    assert any(line.startswith("What FedAvg + local label prior gains over FedAvg, and") for line in shown)
    assert not any(line.startswith("Best of each task") for line in shown)


def test_the_picture_marks_every_gain_and_the_prior(records: list[RunRecord]) -> None:
    (axes,) = plot(gains(records)).axes
    assert axes.get_title() == "MRPC, Acc (points)"
    marks = [line for line in axes.lines if line.get_marker() not in ("None", "|", None, "")]
    assert sorted(float(line.get_xdata()[0]) for line in marks) == pytest.approx([-0.5, 17 / 3, 8.75])
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert [float(line.get_xdata()[0]) for line in dashed] == pytest.approx([17 / 3])
    assert render(lambda: plot(gains([])), "png")


def test_the_study_has_table_3s_cells() -> None:
    """They are computed once; accuracy where a task has it."""
    for row in STUDY.rows:
        for column in STUDY.columns:
            own = STUDY.cell(row, column, LITE, 0)
            assert own.spec_id == TABLE3.cell(TABLE3.row(row.id), column, LITE, 0).spec_id
    assert {column.averaged for column in STUDY.columns} == {
        *("test/accuracy", "test/matthews_correlation", "test/pearson")
    }
    assert not any(row.printed for row in STUDY.rows)
