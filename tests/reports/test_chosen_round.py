"""Scores at the round best on validation data, and scores on all clients' examples together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from benchmarks.record import RunRecord, read_record, record_from_json, write_record
from benchmarks.spec import Benchmark
from reports.evidence.records import request_for
from reports.evidence.scores import scores_of
from reports.views.comparison import Comparison, compare
from reports.views.scores import frame, scores_grid

F1, ACC, PEARSON, POOLED = "test/f1", "test/accuracy", "test/pearson", "pooled/pearson"
RecordOf = Callable[..., RunRecord]


def chosen(record: RunRecord, validation: tuple[float, ...], by: str = "validation/f1") -> RunRecord:
    """The record with validation scores, by which a round is chosen."""
    name = by.partition("/")[2]
    rounds = tuple(
        dataclasses.replace(entry, scores={**entry.scores, "validation": {name: value}})
        for entry, value in zip(record.rounds, validation, strict=True)
    )
    return dataclasses.replace(record, rounds=rounds, chosen_by=by)


def pooled(record: RunRecord, values: tuple[float | None, ...]) -> RunRecord:
    rounds = tuple(
        dataclasses.replace(entry, pooled_scores={"test": {"pearson": value}})
        for entry, value in zip(record.rounds, values, strict=True)
    )
    return dataclasses.replace(record, rounds=rounds)


@pytest.fixture
def records(record_of: RecordOf) -> list[RunRecord]:
    """Seed 0 is best on validation data after round 1, whose test scores are half of the last; seed 1 after round 2."""
    made = [record_of("fedavg", "mrpc", {F1: 0.8, ACC: 0.6}, seed=seed) for seed in (0, 1)]
    return [chosen(made[0], (0.9, 0.7)), chosen(made[1], (0.5, 0.7))]


def compared(table: Benchmark, records: list[RunRecord], at: str = "chosen") -> Comparison:
    return compare(request_for(table, table.scale("lite"), records, table.rows[:1], score_at=at))


def test_a_score_is_that_of_the_round_best_on_validation_data(records: list[RunRecord]) -> None:
    found = scores_of(records, F1)
    assert found.chosen == (0.4, 0.8)
    assert found.chosen_rounds == (1, 2)
    assert found.at() == found.at("chosen") == (40.0, 80.0)
    assert found.at("last") == found.at("best") == (80.0, 80.0)


def test_the_table_shows_the_chosen_round_and_says_how_far_the_last_one_lies(
    table3: Benchmark, records: list[RunRecord]
) -> None:
    comparison = compared(table3, records)
    f1 = comparison.cells[0].headline
    assert (f1.ours, f1.last) == (pytest.approx(60), pytest.approx(80))
    assert "best on validation data" in " ".join(comparison.notes)
    last = "The last round's means differ from these by 20.00 at most (FedAvg, MRPC F1); the long form has each."
    assert last in comparison.notes
    table = frame(comparison)
    assert set(table["score_at"]) == {"chosen"}
    line = table[(table["column"] == "mrpc") & (table["score"] == ACC)].iloc[0]
    assert (line["ours"], line["last"]) == (pytest.approx(45), pytest.approx(60))
    other = compared(table3, records, "last")
    assert other.cells[0].headline.ours == pytest.approx(80)
    assert "last" not in frame(other).columns


def test_runs_that_chose_no_round_are_shown_as_before(table3: Benchmark, record_of: RecordOf) -> None:
    old = [record_of("fedavg", "mrpc", {F1: 0.8, ACC: 0.6}, seed=seed) for seed in (0, 1)]
    by_default, last = compared(table3, old), compared(table3, old, "last")
    assert by_default.notes == last.notes
    assert scores_grid(by_default) == scores_grid(last)
    assert frame(by_default).to_csv() == frame(last).to_csv()


def columns_beside(table: Benchmark) -> Benchmark:
    columns = [dataclasses.replace(c, beside=(POOLED,)) if c.task == "stsb" else c for c in table.columns]
    return dataclasses.replace(table, columns=tuple(columns))


def cells_of(comparison: Comparison) -> Mapping[str, tuple[str, ...]]:
    (group,) = scores_grid(comparison).groups
    return {line.label: line.cells for line in group.lines}


def test_a_pooled_score_stands_beside_the_clients_own(table3: Benchmark, record_of: RecordOf) -> None:
    table = columns_beside(table3)
    record = record_of("fedavg", "stsb", {PEARSON: 0.3})
    new = pooled(record, (0.5, 0.7))
    assert new.by_round(POOLED) == (0.5, 0.7)
    assert record.by_round(POOLED) == (None, None)
    assert new.sampling_error(POOLED) is None
    comparison = compared(table, [new])
    assert scores_grid(comparison).headers[0][1] == "Pearson/Pearson (pooled)"
    assert cells_of(comparison)["reproduced (n = 1)"] == ("30.00/70.00",)
    assert compared(table3, [new]).cells == tuple(
        dataclasses.replace(cell, column=column, scores=cell.scores[:1] if column.task == "stsb" else cell.scores)
        for cell, column in zip(comparison.cells, table3.columns, strict=True)
    )


def test_records_without_pooled_scores_are_shown_as_before(table3: Benchmark, record_of: RecordOf) -> None:
    table, record = columns_beside(table3), record_of("fedavg", "stsb", {PEARSON: 0.3})
    assert scores_grid(compared(table, [record])) == scores_grid(compared(table3, [record]))
    other = pooled(record_of("fedprox", "stsb", {PEARSON: 0.2}), (0.1, 0.6))
    mixed = compare(request_for(table, table.scale("lite"), [record, other], table.rows[:2]))
    old, new = (group.lines[0].cells for group in scores_grid(mixed).groups)
    assert (old, new) == (("30.00/–",), ("20.00/60.00",))
    assert not any("undefined" in note for note in mixed.notes)


def test_a_read_record_knows_its_folder_and_writes_none(tmp_path: Path, record_of: RecordOf) -> None:
    record = record_of("fedavg", "stsb", {PEARSON: 0.3})
    every = [dataclasses.replace(entry, client_scores=(entry.scores,) * 3) for entry in record.rounds]
    record = dataclasses.replace(record, rounds=tuple(every))
    path = write_record(tmp_path, record)
    found = read_record(path)
    assert found.folder == tmp_path
    assert record.folder is None
    assert "folder" not in found.to_json()
    assert found.to_json() == record.to_json()
    assert found == record_from_json(found.to_json())  # the folder is no part of what a record is
