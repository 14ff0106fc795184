"""Corpora out of S2ORC's release and from the hub: extracted once, then read as files are."""

from __future__ import annotations

import gzip
import json

import datasets
import pytest

from benchmarks.errors import UserError
from benchmarks.tasks import DataSource, corpora, task


def load(folder, of="corpus-biology", lenient=False, extracts=None):
    return task(of).load(DataSource(folder, lenient, extracts))


def texts(data):
    return [text for (text,) in data.pool.texts]


# ---- S2ORC -----------------------------------------------------------------------------------------------------


def paper(number, fields=("Biology",), **changes):
    content = {
        "paper_id": str(number),
        "title": f"Title {number}",
        "abstract": f"Abstract {number} ::: goes\non",
        "mag_field_of_study": None if fields is None else list(fields),
        **changes,
    }
    return json.dumps(content)


@pytest.fixture
def release(tmp_path):
    """A release's folder: metadata in two files, one of them gzipped, beside full texts."""
    folder = tmp_path / "data" / "s2orc" / "full"
    for name in ("metadata", "pdf_parses"):
        (folder / name).mkdir(parents=True)
    first = [paper(1), paper(2, ("Medicine", "Biology")), paper(3, None), paper(4, ("Physics",))]
    second = [paper(5, title="Why?"), paper(6, abstract=None), paper(7, ("Medicine",)), ""]
    (folder / "metadata" / "metadata_0.jsonl.gz").write_bytes(gzip.compress("\n".join(first).encode()))
    (folder / "metadata" / "metadata_10.jsonl").write_text("\n".join(second))
    (folder / "pdf_parses" / "pdf_parses_0.jsonl").write_text("{}")
    return folder


def test_papers_of_the_field_are_passages(release, tmp_path):
    data = load(tmp_path / "data", extracts=tmp_path / "extracts")
    bodies = ["Title 1. Abstract 1 goes on", "Title 2. Abstract 2 goes on", "Why? Abstract 5 goes on"]
    assert texts(data) == bodies
    assert data.notes == ("papers without an abstract, left out: 1",)
    assert data.origin == "folder: s2orc, 2 files, field Biology"
    assert texts(load(tmp_path / "data", "corpus-medicine")) == [bodies[1], "Title 7. Abstract 7 goes on"]


@pytest.mark.parametrize("abstract", ["", " \n\t ", " ::: "])
def test_an_abstract_of_blanks_is_none(release, tmp_path, abstract):
    (release / "metadata" / "metadata_10.jsonl").write_text(paper(5, abstract=abstract))
    data = load(tmp_path / "data")
    assert len(data.pool) == 2
    assert data.notes == ("papers without an abstract, left out: 1",)


@pytest.mark.parametrize("title", ["", "  "])
def test_a_paper_without_a_title_is_its_abstract(release, tmp_path, title):
    (release / "metadata" / "metadata_10.jsonl").write_text(paper(5, title=title))
    assert texts(load(tmp_path / "data"))[-1] == "Abstract 5 goes on"


def test_they_are_extracted_once_and_a_damaged_extract_anew(release, tmp_path, monkeypatch):
    calls, papers = [], corpora.papers

    def counting(*arguments):
        calls.append(1)
        return papers(*arguments)

    monkeypatch.setattr(corpora, "papers", counting)
    folder = tmp_path / "extracts"
    found = [load(tmp_path / "data", of, extracts=folder) for of in ("corpus-biology", "corpus-biology-sentences")]
    assert len(calls) == 1
    before = found[0].digest
    assert [data.notes for data in found] == [found[0].notes] * 2
    (file,) = folder.glob("*.txt")
    file.write_text(file.read_text().replace("Title 1", "Title 9"))
    assert load(tmp_path / "data", extracts=folder).digest == before
    assert len(calls) == 2
    (release / "metadata" / "metadata_10.jsonl").write_text(paper(8))
    assert texts(load(tmp_path / "data", extracts=folder))[-1] == "Title 8. Abstract 8 goes on"


def test_no_more_than_the_limit_is_taken_and_a_note_says_so(release, tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "LIMIT", 2)
    data = load(tmp_path / "data", extracts=tmp_path / "extracts")
    assert (len(data.pool), data.notes) == (2, ("the first 2 passages alone",))
    monkeypatch.setattr(corpora, "LIMIT", 3)
    data = load(tmp_path / "data", extracts=tmp_path / "extracts")
    assert len(data.pool) == 3
    assert not any("alone" in note for note in data.notes)


FAULTS = [
    (paper(1)[:40], "a JSON object, found a line that is cut"),
    ('{"paper_id": "1", "title": "a"}', "found none called abstract, mag_field_of_study"),
    ("[1]", "expected the fields title, abstract, mag_field_of_study"),
    (paper(1, title=7), "expected a title in words"),
    (paper(1, abstract=["a"]), "expected a title in words, and an abstract"),
    (paper(1, abstract="a\0b"), r"expected text, found U\+0000"),
    (paper(1, title="a\ud800"), "expected text, found half of a surrogate pair"),
]


@pytest.mark.parametrize(("line", "fault"), FAULTS)
def test_a_line_that_is_no_paper_is_refused_with_its_place(release, tmp_path, line, fault):
    file = release / "metadata" / "metadata_10.jsonl"
    file.write_text(f"{paper(1)}\n{line}\n{paper(2)}")
    with pytest.raises(UserError, match=rf"metadata_10\.jsonl:2: .*{fault}.*--lenient"):
        load(tmp_path / "data", extracts=tmp_path / "extracts")
    for _ in range(2):  # from the extract, too
        data = load(tmp_path / "data", lenient=True, extracts=tmp_path / "extracts")
        assert [(row.file, row.line) for row in data.skipped] == [("full/metadata/metadata_10.jsonl", 2)]
        assert len(data.pool) == 4


def test_a_gzipped_file_that_ends_in_the_middle_is_refused_with_its_place(release, tmp_path):
    file = release / "metadata" / "metadata_0.jsonl.gz"
    file.write_bytes(file.read_bytes()[:-12])
    with pytest.raises(UserError, match=r"metadata_0\.jsonl\.gz:\d: expected a gzipped file, found one that ends"):
        load(tmp_path / "data")
    data = load(tmp_path / "data", lenient=True)
    assert data.skipped[0].file == "full/metadata/metadata_0.jsonl.gz"
    assert texts(data)[-1] == "Why? Abstract 5 goes on"


def test_a_release_without_the_field_is_refused(release, tmp_path):
    with pytest.raises(UserError, match="expected passages of computer science, found none"):
        load(tmp_path / "data", "corpus-computer-science")


def test_a_folder_that_cannot_be_written_is_an_error(release, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"passages cannot be kept there .* RESULTS_DIR"):
        load(tmp_path / "data", extracts=tmp_path / "file" / "extracts")


# ---- the hub ---------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Has the hub's repository be a folder that is laid out as it is."""
    repository = tmp_path / "hub"

    def publish(place, rows, column="text"):
        (repository / place).parent.mkdir(parents=True, exist_ok=True)
        datasets.Dataset.from_dict({"id": list(range(len(rows))), column: rows}).to_parquet(repository / place)

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    changed = {
        found.id: corpora.Corpus(**{**vars(found), "repository": str(repository), "revision": None})
        for found in corpora.CORPORA
    }
    monkeypatch.setattr(corpora, "CORPORA", tuple(changed.values()))

    def read(domain, lenient=False):
        return corpora.load(changed[domain], False, DataSource(None, lenient, tmp_path / "extracts"))

    publish.read = read
    return publish


def test_papers_of_the_hub_are_passages_by_paragraph(hub, monkeypatch):
    hub("Biology,2011-2011/train-00000-of-00001-a.parquet", ["A title\n\nAn abstract\n \nA body", ""])
    hub("Biology,2012-2012/train-00000-of-00001-b.parquet", ["Another"])
    hub("Biology,2012-2012/validation-00000-of-00001-c.parquet", ["not this"])
    hub("Chemistry,2012-2012/train-00000-of-00001-d.parquet", ["nor this"])
    assert texts(hub.read("biology")) == ["A title", "An abstract", "A body", "Another"]
    monkeypatch.setattr(corpora, "LIMIT", 2)
    data = hub.read("biology")
    assert (texts(data), data.notes) == (["A title", "An abstract"], ("the first 2 passages alone",))


def test_articles_of_the_hub_have_their_headings_left_out(hub):
    hub("wikitext-103-raw-v1/train-00000-of-00001.parquet", ["", " = Title = \n", " A line . \n"])
    hub("wikitext-103-raw-v1/validation-00000-of-00001.parquet", [" = Title = \n", " Another . \n"])
    data = hub.read("wikipedia")
    assert texts(data) == ["A line ."]
    assert [text for (text,) in data.central["valid"].texts] == ["Another ."]


def test_a_row_of_the_hub_that_is_no_text_is_refused_with_its_place(hub):
    hub("Biology,2011-2011/train-00000-of-00001-a.parquet", ["A title", "a\0b", "Another"])
    with pytest.raises(UserError, match=r"hub/Biology,.*parquet:2: expected text, found U\+0000; .*--lenient"):
        hub.read("biology")
    for _ in range(2):  # from the extract, too
        data = hub.read("biology", lenient=True)
        assert texts(data) == ["A title", "Another"]
        assert [(row.line, row.reason) for row in data.skipped] == [(2, "expected text, found U+0000")]


def test_a_hub_without_the_column_or_out_of_reach_is_an_error(hub):
    hub("Medicine,2012-2012/train-00000-of-00001.parquet", ["a"], column="body")
    with pytest.raises(UserError, match="expected a column 'text', found id, body"):
        hub.read("medicine")
    with pytest.raises(UserError, match=r"cannot load 'ComputerScience,.* from the Hugging Face hub .*or set DATA_DIR"):
        hub.read("computer-science")
    with pytest.raises(UserError, match=r"claran/modular-s2orc-parquet from the Hugging Face hub"):
        task("corpus-biology").load(DataSource())
