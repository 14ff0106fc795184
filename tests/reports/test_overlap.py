"""The words of a column's overlap between training and test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark
from reports.evidence.overlap import overlap_note
from reports.evidence.records import request_for
from reports.pages.text import data_notes

RecordOf = Callable[..., RunRecord]


def record_with(record_of: RecordOf, opposite: int | None, **counts: int) -> RunRecord:
    entry = {"examples": 40, "shared": 30, "opposite": opposite, **counts}
    return replace(record_of("fedavg", "wnli", {"test/accuracy": 0.5}), partition={"overlap": {"test": entry}})


def test_the_note_has_the_shares_over_all_records(record_of: RecordOf) -> None:
    records = [record_with(record_of, 24), record_with(record_of, 12, examples=60, shared=10)]
    assert overlap_note("WNLI", "test", records) == (
        "WNLI: 40.0 % of the test examples have the first text of a training example; in 90.0 % of these cases "
        "training mostly gives that text another label. The setting grouped = true keeps such examples on one side."
    )


def test_scores_have_no_other_label(record_of: RecordOf) -> None:
    note = overlap_note("STS-B", "test", [record_with(record_of, None)])
    assert note.startswith("STS-B: 75.0 % of the test examples have the first text of a training example. The")


def test_without_overlap_there_is_no_note(record_of: RecordOf) -> None:
    old = record_of("fedavg", "wnli", {"test/accuracy": 0.5})
    assert overlap_note("WNLI", "test", [old]) == ""
    assert overlap_note("WNLI", "mismatched", [record_with(record_of, 1)]) == ""
    assert overlap_note("WNLI", "test", []) == ""


def test_it_stands_under_a_table_that_shows_the_column(record_of: RecordOf, table3: Benchmark) -> None:
    record = record_with(record_of, 24)
    notes = list(data_notes(request_for(table3, table3.scale("lite"), [record])))
    assert overlap_note("WNLI", "test", [record]) in notes
