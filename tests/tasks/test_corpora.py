"""Corpora: passages, sentences and articles, S2ORC's release, and the hub's parquet files."""

import gzip
import json
from dataclasses import replace

import datasets
import pytest

from benchmarks.errors import UserError
from benchmarks.tasks import DataSource, corpora
from tests.tasks.samples import load, write

WIKITEXT = (
    "\n = One = \n\n The first . \n = x = \n = 1 = \n\n = = Section = = \n\n Goes  on . \n \n = Two = \n\n Ends . \n"
)
ONE = "= One =\nThe first .\n= x =\n= 1 =\n= = Section = =\nGoes on ."
TWO = "= Two =\nEnds ."


def read(folder, content, of="corpus-biology", name="corpora/biology.txt"):
    """A task's data from a folder with one file."""
    return load(of, write(folder, {name: content}))


def texts(examples):
    return [text for (text,) in examples.texts]


# ---- passages ----------------------------------------------------------------------------------------------------


def test_a_passage_is_a_line_and_empty_lines_are_counted(tmp_path):
    data = read(tmp_path, "\ufeffone\n\n  two  words \r\n\t\n\u00a0\na\u2028b\x0bc\u0085d\nohne Zeilenende: ß")
    assert texts(data.pool) == ["one", "two  words", "a\u2028b\x0bc\u0085d", "ohne Zeilenende: ß"]
    assert data.notes == ("empty lines: 3",)
    assert data.pool.labels.tolist() == [0, 0, 0, 0]
    with pytest.raises(UserError, match=r"biology\.txt:3: expected text in UTF-8, found the byte 0x00"):
        read(tmp_path, "fine\n\na\0\n")


def test_headings_are_left_out_and_the_validation_text_is_central(tmp_path):
    content = " = Alloy =\nAn alloy is = or =\n\n = = Use = =\nx = y\n"
    write(tmp_path, {"corpora/wikipedia.valid.txt": " = A =\nvalid\n"})
    data = read(tmp_path, content, "corpus-wikipedia", "corpora/wikipedia.train.txt")
    assert texts(data.pool) == ["An alloy is = or =", "x = y"]
    assert texts(data.central["valid"]) == ["valid"]
    assert data.notes == ("empty lines: 1", "headings: 2")
    assert len(read(tmp_path, content).pool) == 4  # other domains have no headings


def test_sentences_are_separate_passages(tmp_path):
    content = "Cells divide. They grow! Do they? 2 of 3 do.\nThe value was 0. 5 e.g. in mice.\n(Fig. 1) shows it."
    sentences = ["Cells divide.", "They grow!", "Do they?", "2 of 3 do.", "The value was 0.", "5 e.g. in mice."]
    # The rule is simple, and documented.
    assert texts(read(tmp_path, content, "corpus-biology-sentences").pool) == [*sentences, "(Fig.", "1) shows it."]


def test_an_article_goes_from_its_title_to_the_next_one(tmp_path):
    contents = {"train": WIKITEXT, "valid": " = V = \n\n v \n", "test": " = T = \n\n t \n"}
    write(tmp_path, {f"wikitext-103-raw/wiki.{split}.raw": content for split, content in contents.items()})
    data = load("wikitext", tmp_path)
    assert texts(data.pool) == [ONE, TWO]
    central = {name: texts(examples) for name, examples in data.central.items()}
    assert central == {"test": ["= T =\nt"], "validation": ["= V =\nv"]}


def paper(number, fields=("Biology",), **changes):
    content = {
        "title": f"Title {number}",
        "abstract": f"Abstract {number} ::: goes\non",
        "mag_field_of_study": None if fields is None else list(fields),
    }
    return json.dumps(content | changes)


@pytest.fixture
def release(tmp_path):
    """A release's folder: metadata in two files, one of them gzipped, and full texts."""
    folder = tmp_path / "data" / "s2orc" / "full"
    first = "\n".join([paper(1), paper(2, ("Medicine", "Biology")), paper(3, None), paper(4, ("Physics",))])
    second = "\n".join([paper(5, title="Why?"), paper(6, abstract=" ::: "), paper(7, ("Medicine",)), ""])
    write(folder, {"metadata/metadata_10.jsonl": second, "pdf_parses/pdf_parses_0.jsonl": "{}"})
    (folder / "metadata" / "metadata_0.jsonl.gz").write_bytes(gzip.compress(first.encode()))
    return folder / "metadata"


def test_papers_of_the_field_are_passages_and_are_read_once(release, tmp_path, monkeypatch):
    calls, papers = [], corpora.papers
    monkeypatch.setattr(corpora, "papers", lambda *args: calls.append(1) or papers(*args))
    folder = tmp_path / "extracts"
    bodies = ["Title 1. Abstract 1 goes on", "Title 2. Abstract 2 goes on", "Why? Abstract 5 goes on"]
    for _ in range(2):
        data = load("corpus-biology", tmp_path / "data", extracts=folder)
        assert texts(data.pool) == bodies
        assert data.notes == ("papers without an abstract, left out: 1",)
        assert data.origin == "folder: s2orc, 2 files, field Biology"
        assert {path.name for path in data.files} == {"metadata_0.jsonl.gz", "metadata_10.jsonl"}
    assert len(calls) == 1
    before = data.digest
    (file,) = folder.glob("*.arrow")
    file.write_bytes(file.read_bytes().replace(b"Title 1", b"Title 9"))
    assert load("corpus-biology", tmp_path / "data", extracts=folder).digest == before  # damaged: it is read again
    (release / "metadata_10.jsonl").write_text(paper(8))
    assert texts(load("corpus-biology", tmp_path / "data", extracts=folder).pool)[-1] == "Title 8. Abstract 8 goes on"
    with pytest.raises(UserError, match=r"passages cannot be stored there .* RESULTS_DIR"):
        load("corpus-biology", tmp_path / "data", extracts=file / "extracts")
    with pytest.raises(UserError, match="computer science: expected passages, found none"):
        load("corpus-computer-science", tmp_path / "data")


@pytest.mark.parametrize("limit", [2, 3])
def test_the_limit_holds_and_is_noted(release, tmp_path, monkeypatch, limit):
    monkeypatch.setattr(corpora, "LIMIT", limit)
    data = load("corpus-biology", tmp_path / "data")
    assert len(data.pool) == limit
    assert ("the first 2 passages alone" in data.notes) == (limit == 2)


def test_invalid_papers_are_refused_with_their_line(release, tmp_path):
    faults = {
        paper(1)[:40]: "a paper of S2ORC, found an error: Invalid JSON",
        '{"paper_id": "1", "title": "a"}': "found an error in abstract: Field required",
        paper(1, title=7): "found an error in title: Input should be a valid string",
        paper(1, abstract="a\0b"): "expected text, found U+0000",
    }
    (release / "metadata_10.jsonl").write_text("\n".join([paper(1), *faults, paper(2)]))
    with pytest.raises(UserError, match=r"metadata_10\.jsonl:2: .*Invalid JSON.*--lenient"):
        load("corpus-biology", tmp_path / "data")
    for _ in range(2):  # the second time from the file that was written
        data = load("corpus-biology", tmp_path / "data", lenient=True, extracts=tmp_path / "extracts")
        assert [row.line for row in data.skipped] == [2, 3, 4, 5]
        assert all(fault in row.reason for row, fault in zip(data.skipped, faults.values(), strict=True))
        assert (data.skipped[0].file, len(data.pool)) == ("full/metadata/metadata_10.jsonl", 4)


def test_papers_of_the_hub_are_passages_by_paragraph_and_other_rows_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")

    def read_domain(number, lenient=False):
        corpus = replace(corpora.CORPORA[number], repository=str(tmp_path / "hub"))
        return corpus.load(DataSource(None, lenient, tmp_path / "extracts"))

    for place, column, rows in (
        ("Biology,2011-2011/train-00000-of-00001-a.parquet", "text", ["A title\n\nAn abstract\n \nA body", ""]),
        ("Biology,2012-2012/train-00000-of-00001-b.parquet", "text", ["Another", "a\0b"]),
        ("Biology,2012-2012/validation-00000-of-00001-c.parquet", "text", ["not this"]),
        ("Medicine,2012-2012/train-00000-of-00001-d.parquet", "body", ["nor this"]),
    ):
        (tmp_path / "hub" / place).parent.mkdir(parents=True, exist_ok=True)
        datasets.Dataset.from_dict({"id": list(range(len(rows))), column: rows}).to_parquet(tmp_path / "hub" / place)
    with pytest.raises(UserError, match=r"hub/Biology,.*parquet:4: expected text, found U\+0000; .*--lenient"):
        read_domain(0)
    data = read_domain(0, lenient=True)
    assert texts(data.pool) == ["A title", "An abstract", "A body", "Another"]
    assert [(row.line, row.reason) for row in data.skipped] == [(4, "expected text, found U+0000")]
    with pytest.raises(UserError, match="expected a column 'text', found id, body"):
        read_domain(2)
    with pytest.raises(UserError, match=r"cannot load 'ComputerScience,.* from the Hugging Face hub .*set DATA_DIR"):
        read_domain(1)
