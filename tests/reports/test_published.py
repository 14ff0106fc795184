from pathlib import Path

import pytest

from benchmarks.spec import Benchmark, Published
from reports.errors import ReportError
from reports.published import lookup, read_published

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


def test_lookup_takes_one_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(HEADER + "Table II,a,x,test/f1,2\nTable I,a,x,test/f1,1.5\n")
    assert lookup(read_published(path), "Table II") == {("a", "x", "test/f1"): 2.0}


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
