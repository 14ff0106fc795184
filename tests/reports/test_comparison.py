import dataclasses
from collections.abc import Callable

import pytest

from benchmarks.experiment import Benchmark, Scale
from benchmarks.results import RunResult
from reports.evidence.published import NOT_COMPARABLE, NOT_REPRODUCED, REPRODUCED, UNDECIDED
from reports.evidence.records import preferring, request_for
from reports.views import page
from reports.views.comparison import Comparison

F1, ACC = "test/f1", "test/accuracy"
RecordOf = Callable[..., RunResult]


def test_inputs_of_the_newest_record_decide(table3, record_of):
    runs = ((0, 0.9, "old", 1), (1, 0.9, "old", 4), (0, 0.6, "new", 5), (2, 0.7, "new", 2))
    records = [
        record_of("fedavg", "mrpc", {F1: f1, ACC: 0.8}, seed=seed, data={"digest": digest}, finished=f"2025-01-0{day}")
        for seed, f1, digest, day in runs
    ]
    comparison = Comparison(request_for(table3, table3.scale("lite"), [*records, records[2]]))  # one run listed twice
    cell = comparison.by_place["fedavg", "mrpc"]
    assert cell.seeds == (0, 2)
    assert cell.scores[0].ours == pytest.approx(65)
    left_out = "FedAvg, MRPC: records of other data, weights or methods left out (the newest record decides): 2."
    assert left_out in list(comparison.notes())


def test_after_a_run_its_inputs_decide_where_a_place_has_them(table3, record_of):
    runs = (("fedavg", "old"), ("fedavg", "new"), ("fedprox", "old"), ("fedprox", "new"), ("fedadam", "new"))
    records = [
        record_of(row, "mrpc", {F1: 0.5, ACC: 0.8}, data={"digest": digest}, finished=f"2025-01-0{day}")
        for day, (row, digest) in enumerate(runs, 1)
    ]
    other = record_of("fedavg", "rte", {F1: 0.5, ACC: 0.8}, data={"digest": "new"})
    shown = preferring([*records, other], records[:1])
    assert shown == [records[0], records[2], records[4], other]
    assert preferring(records, ()) == records


def test_an_undefined_score_is_left_out_and_named(table3, record_of):
    scores = enumerate((None, 0.4))
    records = [record_of("fedavg", "stsb", {"test/pearson": value}, seed=seed) for seed, value in scores]
    comparison = Comparison(request_for(table3, table3.scale("lite"), records))
    score = comparison.by_place["fedavg", "stsb"].scores[0]
    assert (score.ours, score.seeds) == (pytest.approx(40), 1)
    assert any("test/pearson undefined in 1 of 2 seeds" in note for note in list(comparison.notes()))


def test_coverage_counts_the_papers_columns_and_names_ours(table3, record_of):
    ours = dataclasses.replace(table3.columns[2], scales=("demo", "lite"))
    table = dataclasses.replace(table3, columns=(table3.columns[0], ours))
    records = [record_of("fedavg", "mrpc", {F1: 0.7, ACC: 0.8}), record_of("fedprox", "sst2", {F1: 0.7, ACC: 0.8})]
    request = request_for(table, table.scale("lite"), records)
    assert request.coverage == "1 of 7 cells run; SST-2 (column of ours): 1 of 7"
    assert dataclasses.replace(request, columns=(ours,)).coverage == "SST-2 (column of ours): 1 of 7"


def diverged(whole: RunResult, round: int) -> RunResult:
    """A record that stopped in its second round, or in its first."""
    done = {"rounds": whole.rounds[: round - 1], "ledger": tuple(row for row in whole.ledger if row.round < round)}
    return dataclasses.replace(whole, **done, diverged={"round": round, "reason": "no finite loss"})


@pytest.mark.parametrize("round", [1, 2])
def test_a_cell_that_diverged_says_so_in_place_of_a_score(table3, record_of, round):
    stopped = diverged(record_of("fedavg", "mrpc", {F1: 0.9, ACC: 0.9}), round)
    records = [stopped, record_of("fedprox", "mrpc", {F1: 0.7, ACC: 0.8})]
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


def test_seeds_that_diverged_are_in_no_mean(table3, record_of):
    stopped = diverged(record_of("fedavg", "mrpc", {F1: 0.9, ACC: 0.9}, seed=1), 2)
    records = [record_of("fedavg", "mrpc", {F1: 0.7, ACC: 0.8}), stopped]
    request = request_for(table3, table3.scale("lite"), records)
    cell = Comparison(request).by_place["fedavg", "mrpc"]
    assert (cell.seeds, cell.headline.ours) == ((0,), pytest.approx(70))
    shown = page(request)
    said = "seed 1 diverged in round 2 of 2, left out of the mean over the others (no finite loss)."
    assert f"FedAvg, MRPC: {said}" in shown.notes
    lines = shown.frame()
    assert set(lines[(lines.row == "fedavg") & (lines.task == "MRPC")].status) == {"run, diverged in round 2"}


# ---- verdicts on published numbers ---------------------------------------------------------------------------------


def _verdict(table3: Benchmark, scale: Scale, records: list[RunResult]) -> str | None:
    return Comparison(request_for(table3, scale, records)).by_place["fedavg", "mrpc"].score(ACC).verdict


def _accuracies(record_of: RecordOf, accuracies: list[float], scale: str = "paper") -> list[RunResult]:
    return [
        record_of("fedavg", "mrpc", {F1: 0.7, ACC: value}, seed=seed, scale=scale, errors={F1: 0.01, ACC: 0.01})
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
    assert _verdict(table3, table3.scale("paper"), _accuracies(record_of, accuracies)) == expected


def test_nothing_but_whole_data_as_defined_is_comparable(table3, record_of):
    records = _accuracies(record_of, [0.83, 0.84, 0.85])
    partial = [
        dataclasses.replace(r, inputs={**r.inputs, "data": {**r.inputs["data"], "notes": ["partial"]}}) for r in records
    ]
    assert _verdict(table3, table3.scale("paper"), partial) == NOT_COMPARABLE
    remarks = [
        dataclasses.replace(r, inputs={**r.inputs, "data": {**r.inputs["data"], "notes": ["1 over several lines"]}})
        for r in records  # the authors' ArSarcasm-v2 has such a record
    ]
    assert _verdict(table3, table3.scale("paper"), remarks) != NOT_COMPARABLE
    lite = _accuracies(record_of, [0.83, 0.84, 0.85], "lite")
    assert _verdict(table3, table3.scale("lite"), lite) == NOT_COMPARABLE
    changed = dataclasses.replace(table3.scale("paper"), changes=("on another encoder",))
    assert _verdict(table3, changed, records) == NOT_COMPARABLE
