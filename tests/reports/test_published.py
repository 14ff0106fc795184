from pathlib import Path

import pytest

from benchmarks.experiment import Benchmark
from benchmarks.publication import Published
from reports import ReportError
from reports.evidence.published import by_place, read_published

HEADER = "table,row,column,score,value\n"


def test_table3_holds_every_printed_number(table3: Benchmark) -> None:
    entries = read_published(table3.published_csv)
    # Five rows; four of the nine tasks print two numbers; one average: 5 × (9 + 4 + 1).
    assert len(entries) == 70
    assert {entry.table for entry in entries} == {"Table III"}
    expected = {(column.task, score) for column in table3.columns for score in column.scores} | {("average", "")}
    for row in table3.rows:
        places = {(entry.column, entry.score) for entry in entries if entry.row == row.id}
        assert places == (expected if row.printed else set())
    assert Published("Table III", "fedsplitbert", "mrpc", "test/f1", 79.97) in entries
    assert Published("Table III", "fedsplitbert-qat", "mnli", "mismatched/accuracy", 78.20) in entries


def test_by_place_takes_one_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(HEADER + "Table II,a,x,test/f1,2\nTable I,a,x,test/f1,1.5\n")
    found = by_place(read_published(path), "Table II")
    assert {place: entry.value for place, entry in found.items()} == {("a", "x", "test/f1"): 2.0}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv:1: expected the header table,row,column,score,value"),
        ("# source\n" + HEADER, "t.csv:1: expected the header"),
        (
            HEADER + "T,a,x,test/f1,1\nT,a,x,test/acc,many\n",
            "t.csv:3: expected table,row.*'T,a,x,test/acc,many'",
        ),
        (HEADER + "T,a,x,test/f1,nan\n", "t.csv:2: .*number"),
        (HEADER + "T,a,x,1\n", "t.csv:2: .*'T,a,x,1'"),
        (HEADER + "T,a,x,,1\nT,a,x,,2\n", "t.csv:3: expected one value a place, found two of T,a,x,"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(ReportError, match=message):
        read_published(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"gone\.csv: expected the published values, found no such file"):
        read_published(tmp_path / "gone.csv")


def test_derived_values_are_computed_from_printed_ones(tmp_path: Path) -> None:
    path = tmp_path / "derived.csv"
    path.write_text(
        "table,row,column,score,value,derivation\n"
        "Table 3,c-psum,x,test/f1,75.26,\n"
        "Table 3,fedavg,x,test/f1,,{c-psum} / 1.129\n"
        "Table 3,sum,x,test/f1,,2 * ({c-psum} + {fedavg}) - 1\n"
    )
    printed, derived, total = read_published(path)
    assert not printed.derivation
    assert derived.value == 75.26 / 1.129
    assert derived.derivation == "{c-psum} / 1.129"
    assert total.value == 2 * (75.26 + 75.26 / 1.129) - 1


@pytest.mark.parametrize(
    "line",
    [
        "Table 3,a,x,test/f1,1.0,2 * 3",  # printed, or derived
        "Table 3,a,x,test/f1,,",
        "Table 3,a,x,test/f1,,{b} / 2",  # nothing of b is known
        "Table 3,a,x,test/f1,,__import__('os')",
        "Table 3,a,x,test/f1,,1 / 0",
        "Table 3,a,x,test/f1,,2 ** 3",
        "Table 3,a,x,test/f1,,2 +",
    ],
)
def test_what_is_no_derivation_is_refused(line: str, tmp_path: Path) -> None:
    path = tmp_path / "derived.csv"
    path.write_text(f"table,row,column,score,value,derivation\n{line}\n")
    with pytest.raises(ReportError, match=r"derived\.csv:2"):
        read_published(path)
