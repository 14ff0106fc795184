"""Which columns are evidence: by differences on pooled test examples, paired by seed, against their error."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.claims import At
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark, Elsewhere, Row, Scale
from benchmarks.tuning import Search
from reports.claims.cells import Runs
from reports.evidence.gate import NO_ERROR, NOT_RUN, NOT_TUNED, Gate, gate_of, gates
from reports.evidence.records import by_definition, request_for
from reports.pages.text import data_notes, gate_notes

ACC = "test/accuracy"
RATIO = (20 + 21 + 22) / (3 * 80)
RecordOf = Callable[..., RunRecord]
REFERENCES = ("central", "linear", "overall-majority")


@pytest.fixture(scope="module")
def table(table3: Benchmark) -> Benchmark:
    rows = tuple(Row(name, name, {"algorithm": name.replace("-", "_")}, printed=False) for name in REFERENCES)
    return replace(table3, rows=(*table3.rows, *rows), columns=tuple(c for c in table3.columns if c.task == "qqp"))


@pytest.fixture(scope="module")
def runs(table: Benchmark, record_of: RecordOf) -> Callable[..., list[RunRecord]]:
    """Records of a reference row whose pooled accuracy is that, in percent, one a seed; its clients' mean is 99."""
    like = record_of("fedavg", "qqp", {ACC: 0.99})

    def build(name: str, levels: Sequence[float | None], **changes: object) -> list[RunRecord]:
        row = next(row for row in table.rows if row.id == name)
        made = []
        for seed, level in enumerate(levels):
            cell = replace(table.cell(row, table.columns[0], table.scale("lite"), seed), **changes)  # type: ignore[arg-type]
            pooled = {"test": {"accuracy": None if level is None else level / 100}}
            rounds = (replace(like.rounds[1], pooled_scores=pooled),)
            identity = cell.cell_id({key: entry["digest"] for key, entry in like.inputs.items()})
            made.append(replace(like, cell=cell, cell_id=identity, rounds=rounds))
        return made

    return build


Made = Callable[..., list[RunRecord]]


def decided(table: Benchmark, records: Sequence[RunRecord]) -> Gate:
    return gate_of(table, table.columns[0], table.scale("lite"), by_definition(records))


def test_the_encoder_has_to_beat_both_by_more_than_the_error(table: Benchmark, runs: Made) -> None:
    central = runs("central", [80.0, 81.0, 82.0])
    low = runs("overall-majority", [50.0] * 3)
    assert decided(table, [*central, *runs("linear", [70.0, 71.0, 70.5]), *low]) == Gate(True)
    shut = decided(table, [*central, *runs("linear", [84.0, 85.5, 85.5]), *low])
    why = "the encoder is too weak here: centralised training 81.0, a linear model 85.0, n = 3"
    assert shut == Gate(False, why, is_settled=True)
    close = decided(table, [*central, *runs("linear", [78.0, 84.0, 78.0]), *low])
    assert (close.is_shut, close.is_settled) == (True, True)  # above by 1 on average, and by less than the error
    two = decided(table, [record for record in (*central, *runs("linear", [84.0] * 3), *low) if record.cell.seed < 2])
    assert (two.is_shut, two.is_settled) == (True, False)
    both = decided(table, [*central, *runs("linear", [90.0] * 3), *runs("overall-majority", [85.0] * 3)])
    assert both.why.endswith("centralised training 81.0, a linear model 90.0, the majority-class baseline 85.0, n = 3")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-40, 60).map(lambda value: value / 8), min_size=2, max_size=5))
def test_it_opens_where_the_corrected_t_test_rejects(table: Benchmark, runs: Made, gains: list[float]) -> None:
    levels = [70 + gain for gain in gains]
    records = runs("central", levels) + runs("linear", [70.0] * len(gains))
    low = [10.0 + seed for seed, _ in enumerate(gains)]
    found = decided(table, [*records, *runs("overall-majority", low)])
    if len(set(levels)) == 1:  # seeds that agree by chance show no error
        assert (found.is_open, found.is_known) == (False, False)
        return
    mean = sum(gains) / len(gains)
    error = math.sqrt(1 / len(gains) + RATIO) * statistics.stdev(gains)
    lower = mean - stats.t.ppf(0.95, len(gains) - 1) * error
    if abs(lower) > 1e-6:
        assert found.is_open is bool(lower > 0)


def test_what_is_not_known_is_no_judgement(table: Benchmark, runs: Made, record_of: RecordOf) -> None:
    central, linear = runs("central", [80.0, 81.0]), runs("linear", [70.0, 70.5])
    assert decided(table, [*central, *linear]) == Gate(False, NOT_RUN, is_known=False)
    one = decided(table, [central[0], linear[0], *runs("overall-majority", [50.0])])
    assert (one.is_known, one.why) == (False, NO_ERROR)
    old = [replace(record, rounds=(replace(record.rounds[0], pooled_scores={}),)) for record in central]
    assert decided(table, [*old, *linear, *runs("overall-majority", [50.0, 50.5])]).why == NOT_RUN
    plain = replace(table, rows=table.rows[:3])
    assert decided(plain, [record_of("fedavg", "qqp", {ACC: 0.5})]) == Gate(False, NOT_RUN, is_known=False)


def test_another_table_may_judge_a_column(table: Benchmark, runs: Made) -> None:
    records = [
        record
        for name, level in zip(REFERENCES, (90, 70, 50), strict=True)
        for record in runs(name, [level, level + level / 90])
    ]
    other = replace(table, id="fedsplitbert-table9", rows=table.rows[:3], gate=table)
    assert decided(other, records).is_open
    assert not decided(replace(other, gate=None), records).is_open


def test_constant_answers_have_no_correlation_to_beat(table: Benchmark, runs: Made) -> None:
    records = runs("central", [80.0, 81.0]) + runs("linear", [70.0, 70.5])
    assert decided(table, [*records, *runs("overall-majority", [None, None])]).is_open
    assert not decided(
        table, [*runs("central", [-1.0, 1.0]), *records[2:], *runs("overall-majority", [None] * 2)]
    ).is_open


def test_tables_say_which_columns_are_evidence(table: Benchmark, runs: Made) -> None:
    def notes(records: Sequence[RunRecord], shown: Benchmark = table, scale: str = "lite") -> list[str]:
        return list(gate_notes(request_for(shown, shown.scale(scale), records)))

    low = runs("overall-majority", [50.0, 50.5])
    opened = [*runs("central", [90.0, 91.0]), *runs("linear", [70.0, 70.5]), *low]
    assert notes(opened) == ["Orderings are evidence on QQP: there the encoder learns the task."]
    shut = [*runs("central", [90.0, 91.0]), *runs("linear", [95.5, 95.5]), *low]
    weak = "the encoder is too weak here: centralised training 90.5, a linear model 95.5, n = 2"
    assert notes(shut) == [f"Orderings are no evidence on QQP: {weak}."]
    assert notes([]) == [f"Orderings are no evidence on QQP: {NOT_RUN}."]
    assert notes(opened, replace(table, rows=table.rows[:3])) == []
    assert gates(request_for(table, table.scale("demo"), opened)) == {}


def test_levels_stand_beside_those_of_others(table: Benchmark, runs: Made) -> None:
    """Pooled, over the seeds that were run, and only at the scale of which others report something."""
    lite = replace(table.scale("lite"), elsewhere=Elsewhere({"qqp": ("accuracy", 90.6)}, "what X reaches (Y)"))
    asked = replace(table, scales=tuple(lite if scale.id == "lite" else scale for scale in table.scales))
    records = runs("central", [80.0, 81.0])

    def notes(shown: Benchmark, scale: Scale, found: Sequence[RunRecord] = records) -> list[str]:
        return [note for note in gate_notes(request_for(shown, scale, found)) if note.startswith("How far")]

    told = "How far centralised training comes: QQP Acc 80.5 (90.6; n = 2). In brackets what X reaches (Y)."
    assert notes(asked, lite) == [told]
    assert notes(asked, lite, []) == []
    assert notes(asked, replace(lite, changes=("another encoder",))) == []
    assert notes(asked, asked.scale("paper")) == []
    assert notes(replace(asked, rows=asked.rows[:3], gate=asked), lite) == []


def test_nothing_is_judged_before_the_reference_rows_are_tuned(table: Benchmark, runs: Made, tmp_path: Path) -> None:
    records = [
        *runs("central", [80.0, 81.0, 82.0]),
        *runs("linear", [70.0, 71.0, 70.5]),
        *runs("overall-majority", [50.0] * 3),
    ]
    path = tmp_path / "chosen.json"
    search = Search({"central": {"training.learning_rate": (1e-4,)}}, chosen=path)
    lite = replace(table.scale("lite"), search=search)
    asked = replace(table, scales=tuple(lite if scale.id == "lite" else scale for scale in table.scales))
    request = request_for(asked, lite, records)
    note = "QQP: run before settings were chosen by the scale's search: central."
    assert gates(request)["qqp"] == Gate(False, NOT_TUNED, is_known=False)
    assert note in list(data_notes(request))
    values = table.cell(next(row for row in table.rows if row.id == "central"), table.columns[0], lite, 0).training
    best = {"values": {"training.learning_rate": values.learning_rate}}
    path.write_text(json.dumps({"tunings": [{"task": "qqp", "method": "central", "best": best}]}), encoding="utf-8")
    assert gates(request)["qqp"] == Gate(True)
    assert note not in list(data_notes(request))


def test_a_gate_asks_for_no_tuning_of_other_methods(table: Benchmark, runs: Made, tmp_path: Path) -> None:
    """The rows of the yardstick settle it; what is compared has to be tuned by itself."""
    path = tmp_path / "chosen.json"
    rates = {"training.learning_rate": (1e-4,)}
    lite = replace(table.scale("lite"), search=Search({"central": rates, "fedavg": rates}, chosen=path))
    asked = replace(table, scales=tuple(lite if scale.id == "lite" else scale for scale in table.scales))
    low = runs("overall-majority", [50.0] * 3)

    def gate(central: list[float]) -> Gate:
        records = [*runs("central", central), *runs("linear", [70.0, 71.0, 70.5]), *low]
        return gates(request_for(asked, lite, records))["qqp"]

    untuned = Gate(False, NOT_TUNED, is_known=False)
    weak, able = [66.0, 67.0, 68.0], [80.0, 81.0, 82.0]
    assert (gate(weak), gate(able)) == (untuned, untuned)
    values = table.cell(next(row for row in table.rows if row.id == "central"), table.columns[0], lite, 0).training
    tunings = [
        {"task": "qqp", "method": "central", "best": {"values": {"training.learning_rate": values.learning_rate}}}
    ]
    path.write_text(json.dumps({"tunings": tunings}), encoding="utf-8")
    shut = gate(weak)
    assert (shut.is_open, shut.is_known) == (False, True)
    assert shut.why == "the encoder is too weak here: centralised training 67.0, a linear model 70.5, n = 3"
    assert gate(able) == Gate(True)
    rows = [At(asked.id, name) for name in ("central", "fedavg")]
    of_all = Runs.of_all({asked.id: asked}, lite, runs("central", able))
    assert of_all.untuned(rows, "qqp") == "not tuned there yet: FedAvg"
    assert of_all.untuned(rows[:1], "qqp") == of_all.untuned(rows, "of no column") == ""


# ---- rows that have learned nothing --------------------------------------------------------------------------------


def of_fedavg(table: Benchmark, records: Sequence[RunRecord]) -> str:
    found = Runs.of_all({table.id: table}, table.scale("lite"), records)
    return found.failed(At(table.id, "fedavg"), table.columns[0].task)


def test_a_row_that_answers_as_without_learning_has_failed(table: Benchmark, runs: Made) -> None:
    low = runs("overall-majority", [60.0] * 3)
    assert of_fedavg(table, [*runs("fedavg", [70.0, 71.0, 72.0]), *low]) == ""
    words = "FedAvg has learned nothing here: {}, the majority-class baseline 60.0, n = 3"
    assert of_fedavg(table, [*runs("fedavg", [60.0, 59.5, 60.4]), *low]) == words.format("60.0")
    assert of_fedavg(table, [*runs("fedavg", [58.0, 66.0, 60.0]), *low]) == words.format("61.3")  # within the error


def test_nothing_is_said_of_a_row_of_which_nobody_knows(table: Benchmark, runs: Made) -> None:
    low, own = runs("overall-majority", [60.0] * 3), runs("fedavg", [60.0] * 3)
    assert of_fedavg(table, own) == ""
    assert of_fedavg(table, [own[0], low[0]]) == ""  # one seed has no error
    assert of_fedavg(table, [*(replace(one, cell=replace(one.cell, clients=10)) for one in own), *low]) == ""
    plain = replace(table, yardstick=replace(table.yardstick, least=""))
    assert of_fedavg(plain, [*runs("fedavg", [60.0, 59.5, 60.4]), *low]) == ""
    itself = Runs.of_all({table.id: table}, table.scale("lite"), low)
    assert itself.failed(At(table.id, "overall-majority"), table.columns[0].task) == ""


def test_a_correlation_that_is_undefined_is_beaten_by_any(table: Benchmark, runs: Made) -> None:
    constant = runs("overall-majority", [None] * 3)
    assert of_fedavg(table, [*runs("fedavg", [30.0, 31.0, 32.0]), *constant]) == ""
    assert "has learned nothing here" in of_fedavg(table, [*runs("fedavg", [0.2, -0.1, 0.0]), *constant])
