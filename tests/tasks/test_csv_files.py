"""Comma-separated files: what is a record, on which line it begins, and what is wrong with others."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.errors import UserError
from benchmarks.tasks.csv_files import read_csv
from benchmarks.tasks.rows import Row
from fedsim.files import FileError

HEADER = b"id,text,label\n"


@pytest.fixture
def rows(tmp_path):
    """Reads the columns text and label of a file with these bytes."""

    def read(content: bytes) -> list[Row]:
        file = tmp_path / "file.csv"
        file.write_bytes(content)
        return list(read_csv(file, ("text",), "label"))

    return read


FIELDS = st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"))), min_size=1)


@settings(max_examples=60, deadline=None)
@given(FIELDS, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_whatever_the_csv_module_writes_is_read_back(tmp_path_factory, fields, end, bom):
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerow(["text", "label"])
    writer.writerows(fields)
    file = tmp_path_factory.mktemp("csv") / "file.csv"
    file.write_bytes(written.getvalue().encode("utf-8-sig" if bom else "utf-8"))
    found = list(read_csv(file, ("text",), "label"))
    assert [(row.texts[0], row.label, row.fault) for row in found] == [(text, label, "") for text, label in fields]


def test_a_line_is_where_the_record_begins(rows):
    content = HEADER + 'a,"two\nlines",1\n\nb,"a ""quote"", a comma",0\nc,🙂 \u2028 x,1\n'.encode()
    assert rows(content) == [
        Row(2, ("two\nlines",), "1"),
        Row(5, ('a "quote", a comma',), "0"),
        Row(6, ("🙂 \u2028 x",), "1"),
    ]


def test_columns_are_found_by_their_names(rows):
    assert rows(b"label,text\n1,a\n") == [Row(2, ("a",), "1")]


@pytest.mark.parametrize(
    ("record", "fault", "after"),
    [
        (b"a,b\n", "expected 3 columns, found 2", 4),
        (b"a,b,c,d\n", "expected 3 columns, found 4", 4),
        ("a,مرحبا,1\n".encode("cp1256"), "expected UTF-8, found the byte 0xe3", 4),
        (b'a,"b" c,1\n', "expected CSV, found a record up to line 3 that is none (',' expected after '\"')", 4),
        (b'a,"b\n"c,1\n', "expected CSV, found a record up to line 4 that is none (',' expected after '\"')", 5),
    ],
)
def test_a_fault_has_its_line_and_leaves_the_next_record_whole(rows, record, fault, after):
    assert rows(HEADER + b"a,good,0\n" + record + b"a,good,1\n") == [
        Row(2, ("good",), "0"),
        Row(3, fault=fault),
        Row(after, ("good",), "1"),
    ]


def test_a_quote_that_is_never_closed_is_named_where_it_opens(rows):
    (good, bad) = rows(HEADER + b'a,b,0\nc,"d,1\ne,f,0\n')
    assert (good.line, bad.line) == (2, 3)
    assert bad.fault == "expected CSV, found a record up to line 4 that is none (unexpected end of data)"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"", r"file\.csv:1: expected a header with each of the columns text, label once, found ;"),
        (b"id,tweet,label\n", r"file\.csv:1: expected a header with each of the columns text, label once, found 'id'"),
        (b"text,text,label\n", r"file\.csv:1: expected a header with each of the columns"),
        (b"text;label\n", r"file\.csv:1: expected a header .* found 'text;label'"),
        (HEADER.decode().encode("utf-16"), r"file\.csv:1: expected a CSV header in UTF-8; .* found the byte 0xff"),
    ],
)
def test_a_wrong_header_is_an_error(rows, header, expected):
    with pytest.raises(UserError, match=expected):
        rows(header + b"a,b,0\n" if header else b"")


def test_an_unreadable_file_is_an_error(tmp_path):
    with pytest.raises(FileError, match=r"expected a file, found a folder"):
        list(read_csv(tmp_path, ("text",), "label"))
