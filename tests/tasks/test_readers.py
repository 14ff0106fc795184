"""Readers of outside files: valid rows, faults with line numbers, nothing dropped; any bytes: a result or an error."""

import csv
import gzip
import io
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchmarks.errors import UserError
from benchmarks.tasks import DataSource
from benchmarks.tasks.abstracts import RCT, abstract_reader
from benchmarks.tasks.conll import SentenceReader
from benchmarks.tasks.corpora import papers
from benchmarks.tasks.passages import load_texts, text_of_file
from benchmarks.tasks.rows import Location, Log, RawRow, TableReader
from benchmarks.tasks.sources import load_parquet
from fedsim.errors import FederationError
from fedsim.files import LFS_POINTER
from tests.tasks.samples import TWEETS, load, write

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
    """Read the rows of a file with these bytes."""

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


COLUMNS = "expected a header with the columns text, label, each once, found"


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        (b"", f"file:1: {COLUMNS} an empty line; correct"),
        (b"text\ttext\tlabel", f"file:1: {COLUMNS} 'text.*label'; correct"),
        ("text\tlabel".encode("utf-16"), "file:1: expected text in UTF-8, found the byte 0xff; correct"),
        (LFS_POINTER + b"v1\noid sha256:4d7a\nsize 12\n", "file: expected a file, found a Git LFS pointer; run"),
    ],
)
def test_a_wrong_header_is_an_error(read, header, fault):
    for reader in (TSV, CSV):
        with pytest.raises((UserError, FederationError), match=fault):
            read(reader, header)


@pytest.mark.parametrize("row", ["{} {}\n", "{}  {} \n", "{}\t{}\r\n", "{}\t_\t{}\n"])
@pytest.mark.parametrize("document", ["-DOCSTART- O", "###MEDLINE:95369245"])
def test_columns_of_words_are_separated_by_tabs_or_blanks(read, document, row):
    sentences = [[("IL-2", "B-a"), ("gene", "I-a")], [("it", "O")]]
    text = "\n \n".join("".join(row.format(*word) for word in sentence) for sentence in sentences)
    rows = read(SENTENCES, f"\ufeff{document}\n\n{text}\n\n\n")
    assert [(row.texts, row.label) for row in rows] == [(("IL-2", "gene"), ("B-a", "I-a")), (("it",), ("O",))]
    assert rows[0].line == 3


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("c\tO", "expected 3 columns, found 2"),
        ("c\tNN\tB-b", "expected one of the tags O, B-a, I-a, found 'B-b'"),
        ("\tNN\tO", "expected a word, found ''"),
        ("\u200b\ufffd\tNN\tO", r"expected a word, found '\u200b\ufffd'"),  # characters that tokenizers drop
        ("caf\udce9\tNN\tO", "expected text in UTF-8, found the byte 0xe9"),
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
            load("stsb", tmp_path)


@pytest.mark.parametrize(("score", "is_rating"), [("-3.5", False), ("1", True), ("10", True), ("1e6", False)])
def test_own_scores_are_finite_numbers_or_in_the_range_of_their_task(tmp_path, score, is_rating):
    def labels(text: str, **fields: Any) -> list[float]:
        path = tmp_path / "rated.csv"
        path.write_text(f"text,rating\nfine,{text}\n")
        reader = TableReader(("text",), "rating", **fields)
        return reader.examples(reader.read_file(path), Location(str(path), path.name), Log(False)).labels.tolist()

    assert labels(score) == [float(score)]
    for wrong in ("inf", "nan", "1e39", "high"):  # 1e39 has no single precision
        with pytest.raises(UserError, match=rf"rated\.csv:2: expected a finite number, found '{wrong}'"):
            labels(wrong)
    refused = pytest.raises(UserError, match=f"expected a score from 1 to 10, found '{score}'")
    with nullcontext() if is_rating else refused:
        assert labels(score, scores=(1, 10)) == [float(score)]


def rows_of(count: int) -> list[str]:
    return [f"tweet number {number},{('NEG', 'NEU', 'POS')[number % 3]},msa" for number in range(count)]


def tweets(folder: Path, rows: list[str]) -> Path:
    """A data directory with ArSarcasm's two files of these rows."""
    content = TWEETS.format("\n".join(rows))
    return write(folder, {f"ArSarcasm-v2/{name}.csv": content for name in ("training_data", "testing_data")})


def test_a_quote_that_is_not_closed_swallows_no_tweets(tmp_path):
    rows = rows_of(1200)
    rows[10], rows[900] = '"' + rows[10], 'tweet number 900",NEG,msa'
    folder = tweets(tmp_path, rows)
    with pytest.raises(UserError, match=r"training_data\.csv:12: .* one of 891 lines, up to line 902: a quote is not"):
        load("arsarcasm", folder)
    data = load("arsarcasm", folder, lenient=True)
    assert len(data.pool) == 1200 - 891
    assert [(row.line, row.lines) for row in data.skipped] == [(12, 891)] * 2


@pytest.mark.parametrize(("lines", "is_sound"), [(5, True), (9, True), (10, False), (21, False)])
def test_a_record_may_span_some_lines_and_the_longest_is_named(lines, is_sound, tmp_path):
    rows = [*rows_of(20), '"' + "\n".join(["a line"] * lines) + '",POS,msa']
    folder = tweets(tmp_path, rows)
    if is_sound:
        data = load("arsarcasm", folder)
        assert len(data.pool) == 21
        assert f"1 over several lines, the longest over {lines} (line 22)" in data.notes[0]
    else:
        with pytest.raises(UserError, match=f"found one of {lines} lines, up to line {21 + lines}"):
            load("arsarcasm", folder)


CELLS = st.text(st.sampled_from('ab",\n'), max_size=6)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12))
def test_the_lines_of_all_records_add_up_to_the_file(tmp_path, cells):
    text = "text,label\n" + "".join(f"{one},{other}\n" for one, other in cells)
    file = tmp_path / "file.csv"
    file.write_text(text, encoding="utf-8", newline="")
    rows = list(CSV.read_file(file))
    covered = {row.line + place for row in rows for place in range(row.lines)}
    assert len(covered) == sum(row.lines for row in rows)  # no line twice
    lines = text.removesuffix("\n").split("\n")
    assert {number for number, line in enumerate(lines, start=1) if line} - {1} <= covered
    assert max(covered, default=1) <= len(lines)


PAIRS = pd.DataFrame({"sentence1": list("abcd"), "sentence2": list("efgh"), "label": [0, 1, 0, 1], "idx": range(4)})


def shards(folder: Path, *names: str) -> Path:
    (folder / "rte").mkdir(parents=True)
    for name in names:
        PAIRS.to_parquet(folder / "rte" / f"{name}.parquet")
    return folder


def test_a_training_set_in_two_files_is_read_whole(tmp_path):
    folder = shards(tmp_path, "train-00000-of-00002", "train-00001-of-00002", "validation-00000-of-00001")
    data = load("rte", folder)
    assert len(data.pool) == 8 + 4
    assert len(data.files) == 3


def test_a_training_set_may_be_absent_with_leniency_but_only_as_a_whole(tmp_path):
    half = shards(tmp_path / "half", "train-00000-of-00002", "validation-00000-of-00001")
    with pytest.raises(UserError, match=r"add train-00001-of-00002\.parquet"):
        load("rte", half, lenient=True)
    none = shards(tmp_path / "none", "validation-00000-of-00001")
    with pytest.raises(UserError, match=r"RTE lacks train-00000-of-00001\.parquet; add it, or accept"):
        load("rte", none)
    data = load("rte", none, lenient=True)
    assert (len(data.pool), data.notes) == (4, ("partial: train.tsv not found",))
