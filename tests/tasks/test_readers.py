"""Readers of outside files: sound rows, faults with their lines, and any bytes give a result or one clear error."""

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.errors import UserError
from benchmarks.tasks import DataSource, task
from benchmarks.tasks.abstracts import RCT, abstract_reader
from benchmarks.tasks.conll import SentenceReader
from benchmarks.tasks.corpora import papers
from benchmarks.tasks.passages import load_texts, text_of_file
from benchmarks.tasks.rows import Log, RawRow, TableReader
from benchmarks.tasks.sources import load_parquet
from fedsim.errors import FederationError
from tests.tasks.samples import write

TSV, CSV = TableReader(("text",), "label", tabs=True), TableReader(("text",), "label")
ABSTRACTS, SENTENCES = abstract_reader(tuple(RCT)), SentenceReader(("O", "B-a", "I-a"))


def texts_of(kind: str, file: Path) -> list[tuple[str, ...]]:
    data = load_texts([text_of_file(file, "name")], kind, DataSource(file.parent), "", headings=True)
    return list(data.pool.texts)


READERS: dict[str, Callable[[Path], object]] = {
    "tsv": lambda file: list(TSV.read_file(file)),
    "csv": lambda file: list(CSV.read_file(file)),
    "conll": lambda file: list(SENTENCES.read_file(file)),
    "abstracts": lambda file: list(ABSTRACTS.read_file(file)),
    "passages": lambda file: texts_of("passages", file),
    "sentences": lambda file: texts_of("sentences", file),
    "articles": lambda file: texts_of("articles", file),
    "parquet": lambda file: load_parquet([file]),
    "s2orc": lambda file: list(papers([file], file.parent, "Biology", Log(False))),
    "s2orc.jsonl.gz": lambda file: list(papers([file], file.parent, "Biology", Log(False))),
}
STARTS = (
    *(b"", b"text\tlabel\na\tb\n", b"text,label\n", b"a O\nb B-a\n", b"METHODS\ta\n", b" = A =\n"),
    gzip.compress(b"{}"),
)


@pytest.mark.parametrize("name", READERS)
def test_any_bytes_are_a_result_or_one_error_that_names_the_file(name, tmp_path_factory):
    file = tmp_path_factory.mktemp("bytes") / f"file.{name}"

    @settings(max_examples=60, deadline=None)
    @given(st.sampled_from(STARTS), st.binary(max_size=60) | st.text(max_size=40).map(str.encode))
    @example(b"", b"\xff\xfe\x00\x00")
    @example(b"", b'{"title": NaN, "abstract": [[[')
    @example(b"text,label\n", b'"' + b"a\r" * 20)
    def check(start: bytes, rest: bytes) -> None:
        file.write_bytes(start + rest)
        message = str(file)
        try:
            READERS[name](file)
        except (UserError, FederationError) as error:
            message = str(error)
        assert str(file) in message

    check()


FIELD = st.text(st.characters(codec="utf-8"))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(FIELD, FIELD), min_size=1), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_the_csv_reader_returns_what_the_csv_module_writes(tmp_path_factory, fields, end, bom):
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("text", "label"), *fields])
    file = tmp_path_factory.mktemp("csv") / "file.csv"
    file.write_bytes(written.getvalue().encode("utf-8-sig" if bom else "utf-8"))
    rows = CSV.read_file(file)
    assert [(row.texts[0], row.label, row.fault) for row in rows] == [(text, label, "") for text, label in fields]


@pytest.fixture
def read(tmp_path):
    """Reads the rows of a file with these bytes."""

    def rows(reader, content: str | bytes) -> list[RawRow]:
        file = tmp_path / "file"
        file.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
        return list(reader.read_file(file))

    return rows


@pytest.mark.parametrize(
    ("reader", "record", "fault", "after"),
    [
        (TSV, "a\tb", "expected 3 columns, found 2", 4),
        (CSV, 'a,"b" c,1', "expected CSV, found a malformed record up to line 3 (',' expected after '\"')", 4),
        (CSV, 'a,"b\n"c,1', "expected CSV, found a malformed record up to line 4 (',' expected after '\"')", 5),
    ],
)
def test_a_fault_has_its_line_and_the_next_record_is_read(read, reader, record, fault, after):
    mark = "\t" if reader is TSV else ","
    lines = ("id,text,label".replace(",", mark), "a,good,0".replace(",", mark), record, "a,good,1".replace(",", mark))
    expected = [RawRow(2, ("good",), "0"), RawRow(3, fault=fault, lines=after - 3), RawRow(after, ("good",), "1")]
    assert read(reader, "\n".join(lines)) == expected


@pytest.mark.parametrize("header", [b"", b"text\ttext\tlabel", "text\tlabel".encode("utf-16")])
def test_a_wrong_header_is_an_error(read, header):
    expected = "file:1: expected a header with each of the columns text, label once, found .*; get"
    for reader in (TSV, CSV):
        with pytest.raises(UserError, match=expected):
            read(reader, header)


@pytest.mark.parametrize("row", ["{} {}\n", "{}  {} \n", "{}\t{}\r\n", "{}\t_\t{}\n"])
def test_columns_of_words_are_separated_by_tabs_or_blanks(read, row):
    sentences = [[("IL-2", "B-a"), ("gene", "I-a")], [("it", "O")]]
    text = "\n \n".join("".join(row.format(*word) for word in sentence) for sentence in sentences)
    rows = read(SENTENCES, f"\ufeff-DOCSTART- O\n\n{text}\n\n\n")
    assert [(row.texts, row.label) for row in rows] == [(("IL-2", "gene"), ("B-a", "I-a")), (("it",), ("O",))]
    assert rows[0].line == 3


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("c\tO", "expected 3 columns, found 2"),
        ("c\tNN\tB-b", "expected one of the tags O, B-a, I-a, found 'B-b'"),
        ("\tNN\tO", "expected a word, found ''"),
        ("\u200b\ufffd\tNN\tO", r"expected a word, found '\u200b\ufffd'"),  # characters that tokenizers drop
        ("caf\udce9\tNN\tO", "expected UTF-8, found the byte 0xe9"),
    ],
)
def test_a_malformed_word_is_the_fault_of_its_sentence(read, line, fault):
    rows = read(SENTENCES, f"a\tNN\tO\n\nb\tNN\tO\n{line}\nd\tNN\tO\n\ne\tNN\tO\n")
    assert [(row.line, row.fault) for row in rows] == [(1, ""), (4, fault), (7, "")]


def test_a_score_must_be_a_number_from_0_to_5(tmp_path):
    header = "sentence1\tsentence2\tscore\na\tb\t0\n"
    for score in ("5.001", "nan", "high", ""):
        write(tmp_path, {"STS-B/train.tsv": f"{header}a\tb\t{score}\n", "STS-B/dev.tsv": header})
        with pytest.raises(UserError, match=rf"STS-B/train\.tsv:3: expected a score from 0 to 5, found '{score}'"):
            task("stsb").load(DataSource(tmp_path))


def test_a_pointer_of_git_lfs_is_an_error_that_says_so(tmp_path):
    file = tmp_path / "train.parquet"
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(UserError, match=r"train\.parquet: expected a parquet file .*git lfs pull"):
        load_parquet([file])
