"""Which columns are evidence, by paired differences on pooled test examples against their error."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from benchmarks.claims import At
from benchmarks.experiment import Benchmark
from benchmarks.publication import LEARNING
from benchmarks.results import RunResult
from benchmarks.sweeps.tuning import Search
from reports.claims.cells import Runs
from reports.evidence.gate import NO_ERROR, NOT_RUN, NOT_TUNED, Gate, gate_of, gates
from reports.evidence.records import newest_by_place, request_for
from reports.pages.text import data_notes

ACC = "test/accuracy"
RecordOf = Callable[..., RunResult]


@pytest.fixture(scope="module")
def table(table3: Benchmark, opened: Callable[..., tuple[Benchmark, list[RunResult]]]) -> Benchmark:
    return opened(replace(table3, columns=tuple(column for column in table3.columns if column.task == "qqp")), [])[0]


@pytest.fixture(scope="module")
def runs(table: Benchmark, record_of: RecordOf) -> Callable[..., list[RunResult]]:
    """Records of a reference row whose pooled accuracy is that, in percent, one a seed; its clients' mean is 99."""
    like = record_of("fedavg", "qqp", {ACC: 0.99})

    def build(name: str, levels: Sequence[float | None]) -> list[RunResult]:
        made = []
        for seed, level in enumerate(levels):
            cell = table.cell(table.row(name), table.columns[0], table.scale("lite"), seed)
            pooled = {"test": {"accuracy": None if level is None else level / 100}}
            rounds = (replace(like.rounds[1], pooled_scores=pooled),)
            identity = cell.cell_id({key: entry["digest"] for key, entry in like.inputs.items()})
            made.append(replace(like, cell=cell, cell_id=identity, rounds=rounds))
        return made

    return build


def decided(table: Benchmark, records: Sequence[RunResult]) -> Gate:
    return gate_of(table, table.columns[0], table.scale("lite"), newest_by_place(records))


def test_the_encoder_has_to_beat_both_by_more_than_the_error(table, runs):
    central = runs("central", [80.0, 81.0, 82.0])
    low = runs("overall-majority", [50.0] * 3)
    assert decided(table, [*central, *runs("linear", [70.0, 71.0, 70.5]), *low]) == Gate()
    shut = decided(table, [*central, *runs("linear", [84.0, 85.5, 85.5]), *low])
    numbers = "centralised training 81.0, a linear model 85.0 (−4.0 [−5.1, −2.9]), n = 3"
    why = f"shown not to learn (the encoder is too weak here): {numbers}"
    assert shut == Gate(why, is_settled=True)
    close = decided(table, [*central, *runs("linear", [78.0, 84.0, 78.0]), *low])
    assert (close.is_shut, close.is_settled) == (True, True)  # above by 1 on average, and by less than the error
    assert close.why.startswith(
        "unknown whether the encoder learns the task: centralised training 81.0, a linear model"
    )
    two = decided(table, [record for record in (*central, *runs("linear", [84.0] * 3), *low) if record.cell.seed < 2])
    assert (two.is_shut, two.is_settled) == (True, False)
    both = decided(table, [*central, *runs("linear", [90.0] * 3), *runs("overall-majority", [85.0] * 3)])
    assert "a linear model 90.0" in both.why
    assert "the global majority class 85.0" in both.why


def test_what_is_not_known_is_no_judgement(table, runs, record_of):
    central, linear = runs("central", [80.0, 81.0]), runs("linear", [70.0, 70.5])
    assert decided(table, [*central, *linear]) == Gate(NOT_RUN)
    one = decided(table, [central[0], linear[0], *runs("overall-majority", [50.0])])
    assert (one, one.is_shut) == (Gate(NO_ERROR), False)
    old = [replace(record, rounds=(replace(record.rounds[0], pooled_scores={}),)) for record in central]
    assert decided(table, [*old, *linear, *runs("overall-majority", [50.0, 50.5])]).why == NOT_RUN
    plain = replace(table, rows=table.rows[:3])
    assert decided(plain, [record_of("fedavg", "qqp", {ACC: 0.5})]) == Gate(NOT_RUN)


def test_nothing_is_judged_before_the_reference_rows_are_tuned(table, runs, tmp_path):
    records = [*runs("central", [80.0, 81.0, 82.0]), *runs("linear", [70.0, 71.0, 70.5])]
    records += runs("overall-majority", [50.0] * 3)
    path = tmp_path / "chosen.json"
    search = Search({"central": {"training.learning_rate": (1e-4,)}}, chosen=path)
    lite = replace(table.scale("lite"), search=search)
    asked = replace(table, scales=tuple(lite if scale.id == "lite" else scale for scale in table.scales))
    request = request_for(asked, lite, records)
    note = "QQP: run before settings were chosen by the scale's search: Central training."
    assert gates(request)["qqp"] == Gate(NOT_TUNED)
    assert note in list(data_notes(request))
    values = table.cell(table.row("central"), table.columns[0], lite, 0).training
    best = {"values": {"training.learning_rate": values.learning_rate}}
    path.write_text(json.dumps({"tunings": [{"task": "qqp", "method": "central", "best": best}]}), encoding="utf-8")
    assert gates(request)["qqp"] == Gate()
    assert note not in list(data_notes(request))


def of_fedavg(table: Benchmark, records: Sequence[RunResult]) -> str:
    all_runs = Runs.of_all({table.id: table}, table.scale("lite"), records)
    return all_runs.failed(At(table.id, "fedavg"), table.columns[0].task)


def test_a_row_that_answers_as_without_learning_has_failed(table, runs):
    low = runs("overall-majority", [60.0] * 3)
    assert of_fedavg(table, [*runs("fedavg", [70.0, 71.0, 72.0]), *low]) == ""
    message = "FedAvg has learned nothing here: {}, the global majority class 60.0, n = 3"
    assert of_fedavg(table, [*runs("fedavg", [60.0, 59.5, 60.4]), *low]) == message.format("60.0")
    assert of_fedavg(table, [*runs("fedavg", [58.0, 66.0, 60.0]), *low]) == message.format("61.3")  # within the error


def test_rows_over_a_frozen_encoder_have_a_check_of_their_own(table, runs):
    """Training the encoder fails here, so a probe on its frozen features decides."""
    frozen = replace(LEARNING, row="fedprox", name="a probe", learns="features carry it", fails="weak features")
    rows = tuple(replace(row, yardstick=frozen if row.id == "fedsplitbert" else None) for row in table.rows)
    probed, task = replace(table, rows=rows), table.columns[0].task
    bad = [*runs("central", [80.0, 81.0, 82.0]), *runs("linear", [84.0, 85.5, 85.5])]
    bad += runs("overall-majority", [50.0] * 3)

    def gate(row: str, probe: Sequence[float]) -> Gate:
        all_runs = Runs.of_all({probed.id: probed}, probed.scale("lite"), [*bad, *runs("fedprox", probe)])
        return all_runs.gate(At(probed.id, row), task)

    assert gate("fedsplitbert", [90.0, 91.0, 91.0]) == Gate()
    assert gate("fedavg", [90.0, 91.0, 91.0]).why.startswith("shown not to learn (the encoder is too weak here)")
    assert gate("fedsplitbert", [80.0, 81.0, 81.0]).why.startswith("shown not to learn (weak features): a probe 80.7")
    assert gate("fedsplitbert", [85.0, 90.0, 83.0]).why.startswith("unknown whether features carry it: a probe 86.0")
    assert gate("fedsplitbert", []) == Gate(NOT_RUN)
