import dataclasses
from collections.abc import Callable

import pytest

from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.evidence.published import NOT_COMPARABLE, NOT_REPRODUCED, REPRODUCED, UNDECIDED
from reports.evidence.records import request_for
from reports.views import page
from reports.views.comparison import CellResult, Comparison, ScoreResult, compare

F1, ACC = "test/f1", "test/accuracy"
RecordOf = Callable[..., RunResult]


def _cell(comparison: Comparison, row: str, task: str) -> CellResult:
    return next(c for c in comparison.cells if (c.row.id, c.column.task) == (row, task))


def test_inputs_of_the_newest_record_decide(table3, record_of):
    def record(seed: int, f1: float, digest: str, day: int) -> RunResult:
        finished = f"2025-01-{day:02}T00:00:00+00:00"
        return record_of("fedavg", "mrpc", {F1: f1, ACC: 0.8}, seed=seed, data={"digest": digest}, finished=finished)

    records = [
        record(0, 0.9, "old", 1),
        record(1, 0.9, "old", 4),
        record(0, 0.6, "new", 5),
        record(2, 0.7, "new", 2),
    ]
    comparison = compare(request_for(table3, table3.scale("lite"), [*records, records[2]]))  # one run listed twice
    cell = _cell(comparison, "fedavg", "mrpc")
    assert cell.seeds == (0, 2)
    assert cell.scores[0].ours == pytest.approx(65)
    left_out = "FedAvg, MRPC: records of other data or weights left out (the newest record decides): 2."
    assert left_out in comparison.notes


def test_an_undefined_score_is_left_out_and_named(table3, record_of):
    scores = enumerate((None, 0.4))
    records = [record_of("fedavg", "stsb", {"test/pearson": value}, seed=seed) for seed, value in scores]
    comparison = compare(request_for(table3, table3.scale("lite"), records))
    score = _cell(comparison, "fedavg", "stsb").scores[0]
    assert (score.ours, score.seeds) == (pytest.approx(40), 1)
    assert any("test/pearson undefined in 1 of 2 seeds" in note for note in comparison.notes)


def test_coverage_counts_the_papers_columns_and_names_ours(table3, record_of):
    ours = dataclasses.replace(table3.columns[2], scales=("demo", "lite"))
    table = dataclasses.replace(table3, columns=(table3.columns[0], ours))
    records = [record_of("fedavg", "mrpc", {F1: 0.7, ACC: 0.8}), record_of("fedprox", "sst2", {F1: 0.7, ACC: 0.8})]
    request = request_for(table, table.scale("lite"), records)
    assert request.coverage == "1 of 7 cells run; SST-2 (column of ours): 1 of 7"
    assert dataclasses.replace(request, columns=(ours,)).coverage == "SST-2 (column of ours): 1 of 7"


@pytest.fixture
def diverged(record_of: RecordOf) -> Callable[..., RunResult]:
    """A record of FedAvg on MRPC that stopped in its second round, or in its first."""

    def build(seed: int = 0, round: int = 2) -> RunResult:
        whole = record_of("fedavg", "mrpc", {F1: 0.9, ACC: 0.9}, seed=seed)
        done = {"rounds": whole.rounds[: round - 1], "ledger": tuple(row for row in whole.ledger if row.round < round)}
        return dataclasses.replace(whole, **done, diverged={"round": round, "reason": "no finite loss"})

    return build


@pytest.mark.parametrize("round", [1, 2])
def test_a_cell_that_diverged_says_so_in_place_of_a_score(table3, record_of, diverged, round):
    records = [diverged(round=round), record_of("fedprox", "mrpc", {F1: 0.7, ACC: 0.8})]
    request = request_for(table3, table3.scale("lite"), records)
    shown = page(request)
    groups = {group.name: group.lines[0].cells for grid in shown.grids[:1] for group in grid.groups}
    assert groups["FedAvg"] == (f"diverged in round {round}",)
    assert groups["FedProx"] == ("70.00/80.00",)
    assert groups["FedAdam"] == ("not run",)
    assert f"FedAvg, MRPC: seed 0 diverged in round {round} of 2 (no finite loss)." in shown.notes
    assert not any(note == "Not run: MRPC." for note in shown.notes)
    lines = shown.frame()
    line = lines[(lines.row == "fedavg") & (lines.task == "MRPC")].iloc[0]
    assert (line.status, line.n_seeds) == (f"diverged in round {round}", 0)
    assert shown.run == 2


def test_seeds_that_diverged_are_in_no_mean(table3, record_of, diverged):
    records = [record_of("fedavg", "mrpc", {F1: 0.7, ACC: 0.8}), diverged(seed=1)]
    request = request_for(table3, table3.scale("lite"), records)
    found = compare(request)
    cell = _cell(found, "fedavg", "mrpc")
    assert cell.seeds == (0,)
    assert cell.headline.ours == pytest.approx(70)
    said = "seed 1 diverged in round 2 of 2, left out of the mean over the others (no finite loss)."
    assert f"FedAvg, MRPC: {said}" in found.notes
    lines = page(request).frame()
    assert set(lines[(lines.row == "fedavg") & (lines.task == "MRPC")].status) == {"run, diverged in round 2"}


# ---- verdicts on published numbers ---------------------------------------------------------------------------------


def _result(table3: Benchmark, records: list[RunResult], scale: str = "paper") -> ScoreResult:
    chosen = request_for(table3, table3.scale(scale), records, table3.rows[:1], table3.columns[:1])
    return compare(chosen).cells[0].scores[1]


def _accuracies(
    record_of: RecordOf, accuracies: list[float], scale: str = "paper", error: float = 0.01
) -> list[RunResult]:
    return [
        record_of("fedavg", "mrpc", {F1: 0.7, ACC: value}, seed=seed, scale=scale, errors={F1: 0.01, ACC: error})
        for seed, value in enumerate(accuracies)
    ]


@pytest.mark.parametrize(
    ("accuracies", "expected"),
    [
        ([0.8396], UNDECIDED),  # the very number, but of one seed
        ([0.80, 0.84, 0.88], UNDECIDED),  # around it, but wide: the former rule took that for a reproduction
        ([0.90, 0.9001, 0.9002], NOT_REPRODUCED),  # a narrow interval far away
        ([0.8298, 0.8296, 0.8294], UNDECIDED),  # one point off: the margin itself
        ([0.8397, 0.8396, 0.8395], REPRODUCED),
    ],
)
def test_the_whole_interval_decides(table3, record_of, accuracies, expected):
    assert _result(table3, _accuracies(record_of, accuracies)).verdict == expected


def test_nothing_but_whole_data_as_defined_is_comparable(table3, record_of):
    records = _accuracies(record_of, [0.83, 0.84, 0.85])
    partial = [
        dataclasses.replace(r, inputs={**r.inputs, "data": {**r.inputs["data"], "notes": ["partial"]}}) for r in records
    ]
    assert _result(table3, partial).verdict == NOT_COMPARABLE
    assert _result(table3, _accuracies(record_of, [0.83, 0.84, 0.85], "lite"), "lite").verdict == NOT_COMPARABLE
    changed = dataclasses.replace(table3.scale("paper"), changes=("on another encoder",))
    assert compare(request_for(table3, changed, records)).cells[0].scores[1].verdict == NOT_COMPARABLE
