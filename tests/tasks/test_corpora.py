"""Passages of text files, papers out of S2ORC's release, and the hub's parquet files."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
import tracemalloc
from collections import Counter

import datasets
import numpy as np
import pytest

from benchmarks.encoders import encoding
from benchmarks.encoders.tokenization import word_tokenizer
from benchmarks.encoders.encoding import record_batches
from benchmarks.errors import UserError
from benchmarks.tasks import DataSource, Examples, TaskData, corpora, passages, task
from benchmarks.tasks.words import VOCABULARY
from tests.tasks.samples import write

DOMAINS = ("biology", "computer-science", "medicine", "wikipedia")


def load(folder, of="corpus-biology", lenient=False, extracts=None):
    return task(of).load(DataSource(folder, lenient, extracts))


def read(folder, content, of="corpus-biology", name="corpora/biology.txt"):
    """A task's data from a folder with one file."""
    return load(write(folder, {name: content}), of)


def texts(examples):
    return [text for (text,) in examples.texts]


# ---- passages --------------------------------------------------------------------------------------------------


def test_a_passage_is_a_line_and_empty_lines_are_counted(tmp_path):
    data = read(tmp_path, "\ufeffone\n\n  two  words \r\n\t\n\u00a0\na\u2028b\x0bc\u0085d\nohne Zeilenende: ß")
    assert texts(data.pool) == ["one", "two  words", "a\u2028b\x0bc\u0085d", "ohne Zeilenende: ß"]
    assert data.notes == ("empty lines: 3",)
    assert data.pool.labels.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("blank", [" ", "", "ä"])
def test_a_very_long_line_becomes_several_passages_that_lose_nothing(tmp_path, monkeypatch, blank):
    monkeypatch.setattr(passages, "LONGEST", 10)
    line = blank.join(f"wört{number}" for number in range(40))
    data = read(tmp_path, f"short\n{line}\nend\n")
    assert data.notes == ("lines longer than 10 bytes, in several passages: 1",)
    first, *pieces, last = texts(data.pool)
    assert (first, last) == ("short", "end")
    assert (" " if blank == " " else "").join(pieces) == line
    assert max(len(text.encode()) for text in pieces) <= 10
    with pytest.raises(UserError, match=r"biology\.txt:2: expected UTF-8, found the byte 0xff"):
        read(tmp_path, f"short\n{'many words ' * 5}\udcff\nend\n")


@pytest.mark.parametrize(("content", "line"), [("a\0b\nfine\n", 1), ("fine\n\na\0\n", 3)])
def test_a_null_byte_is_no_text(tmp_path, content, line):
    with pytest.raises(UserError, match=rf"biology\.txt:{line}: expected text in UTF-8, found the byte 0x00"):
        read(tmp_path, content)


def test_headings_are_no_passages_and_the_validation_text_is_central(tmp_path):
    content = " = Alloy =\nAn alloy is = or =\n\n = = Use = =\nx = y\n"
    write(tmp_path, {"corpora/wikipedia.valid.txt": " = A =\nvalid\n"})
    data = read(tmp_path, content, "corpus-wikipedia", "corpora/wikipedia.train.txt")
    assert texts(data.pool) == ["An alloy is = or =", "x = y"]
    assert texts(data.central["valid"]) == ["valid"]
    assert data.notes == ("empty lines: 1", "headings: 2")
    assert len(read(tmp_path, content).pool) == 4  # of another domain, they are


def test_sentences_are_passages_of_their_own(tmp_path):
    content = "Cells divide. They grow! Do they? 2 of 3 do.\nThe value was 0. 5 e.g. in mice.\n(Fig. 1) shows it."
    assert texts(read(tmp_path, content, "corpus-biology-sentences").pool) == [
        *("Cells divide.", "They grow!", "Do they?", "2 of 3 do."),
        *("The value was 0.", "5 e.g. in mice."),  # the rule is simple, and documented
        *("(Fig.", "1) shows it."),
    ]


def test_passages_are_a_sequence_that_is_read_when_asked_for(tmp_path):
    eager = tuple((f"passage {number} — ü",) for number in range(20))
    lazy = read(tmp_path, "\n".join(text for (text,) in eager)).pool.texts
    assert (tuple(lazy), len(lazy), lazy[3], lazy[-1]) == (eager, 20, eager[3], eager[-1])
    assert (tuple(lazy[5:9]), tuple(lazy[::-3])) == (eager[5:9], eager[::-3])
    for other in (pickle.loads(pickle.dumps(lazy)), copy.deepcopy(lazy)):
        assert tuple(other) == eager
    with pytest.raises(IndexError):
        lazy[20]
    labels = np.zeros(20, dtype=np.int64)
    assert TaskData(Examples(lazy, labels), "").digest == TaskData(Examples(eager, labels), "").digest
    lazy.file.write_text("another\n" * 40)
    with pytest.raises(UserError, match="has changed since its passages were counted; run again"):
        list(lazy)


def test_neither_loading_nor_tokenising_holds_the_texts(tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "CHARACTERS_AT_ONCE", 50_000)
    lines = 2_000
    text = " ".join(VOCABULARY[number % len(VOCABULARY)] for number in range(400))
    size = lines * len(text)
    tokenizer = word_tokenizer(VOCABULARY)
    write(tmp_path, {"corpora/biology.txt": f"{text}\n" * lines})
    tracemalloc.start()
    try:
        data = load(tmp_path)
        assert len(data.pool) == lines
        assert data.digest
        loaded = tracemalloc.get_traced_memory()[1]
        batches = record_batches(data.pool, tokenizer, 128, task("corpus-biology"))
        for _ in range(3):
            next(batches)
        tokenised = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert loaded < 3 * passages.BUFFER_BYTES + 100 * lines
    assert tokenised < 2 * size


def test_generated_domains_differ_in_words_and_in_their_order():
    words, followers = [], []
    for domain in DOMAINS:
        data = texts(task(f"corpus-{domain}").generate(0).pool)
        words.append(Counter(word for text in data for word in text.split()))
        followers.append({pair for text in data for pair in zip(text.split(), text.split()[1:], strict=False)})
    for one in range(len(DOMAINS)):
        for other in range(one):
            assert sum((words[one] & words[other]).values()) < 0.6 * words[one].total()
            assert len(followers[one] & followers[other]) < 0.1 * len(followers[one])


@pytest.mark.slow
def test_sentences_of_a_real_corpus_make_up_its_passages(data_dir):
    whole, cut = (texts(load(data_dir, f"corpus-medicine{variant}").pool) for variant in ("", "-sentences"))
    assert (len(whole), len(cut)) == (11890, 28693)
    assert Counter("".join(" ".join(whole).split())) == Counter("".join(" ".join(cut).split()))


# ---- S2ORC's release -------------------------------------------------------------------------------------------


def paper(number, fields=("Biology",), **changes):
    content = {
        "title": f"Title {number}",
        "abstract": f"Abstract {number} ::: goes\non",
        "mag_field_of_study": None if fields is None else list(fields),
    }
    return json.dumps(content | changes)


@pytest.fixture
def release(tmp_path):
    """A release's folder: metadata in two files, one of them gzipped, next to full texts."""
    folder = tmp_path / "data" / "s2orc" / "full"
    first = "\n".join([paper(1), paper(2, ("Medicine", "Biology")), paper(3, None), paper(4, ("Physics",))])
    second = "\n".join([paper(5, title="Why?"), paper(6, abstract=None), paper(7, ("Medicine",)), ""])
    write(folder, {"metadata/metadata_10.jsonl": second, "pdf_parses/pdf_parses_0.jsonl": "{}"})
    (folder / "metadata" / "metadata_0.jsonl.gz").write_bytes(gzip.compress(first.encode()))
    return folder / "metadata"


def test_papers_of_the_field_are_passages(release, tmp_path):
    data = load(tmp_path / "data", extracts=tmp_path / "extracts")
    bodies = ["Title 1. Abstract 1 goes on", "Title 2. Abstract 2 goes on", "Why? Abstract 5 goes on"]
    assert texts(data.pool) == bodies
    assert data.notes == ("papers without an abstract, left out: 1",)
    assert data.origin == "folder: s2orc, 2 files, field Biology"
    assert {path.name for path in data.files} == {"metadata_0.jsonl.gz", "metadata_10.jsonl"}
    assert texts(load(tmp_path / "data", "corpus-medicine").pool) == [bodies[1], "Title 7. Abstract 7 goes on"]
    with pytest.raises(UserError, match="expected passages of computer science, found none"):
        load(tmp_path / "data", "corpus-computer-science")


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({"abstract": " ::: "}, "Title 2. Abstract 2 goes on"),
        ({"abstract": ""}, "Title 2. Abstract 2 goes on"),
        ({"title": "  "}, "Abstract 5 goes on"),
    ],
)
def test_a_paper_of_blanks_is_left_out_and_a_title_of_blanks_is_none(release, tmp_path, changes, last):
    (release / "metadata_10.jsonl").write_text(paper(5, **changes))
    assert texts(load(tmp_path / "data").pool)[-1] == last


def test_papers_are_extracted_once_and_a_damaged_extract_again(release, tmp_path, monkeypatch):
    calls, papers = [], corpora.papers
    monkeypatch.setattr(corpora, "papers", lambda *words: calls.append(1) or papers(*words))
    folder = tmp_path / "extracts"
    found = [load(tmp_path / "data", of, extracts=folder) for of in ("corpus-biology", "corpus-biology-sentences")]
    assert len(calls) == 1
    assert found[0].notes == found[1].notes
    before = found[0].digest
    (file,) = folder.glob("*.txt")
    file.write_text(file.read_text().replace("Title 1", "Title 9"))
    assert load(tmp_path / "data", extracts=folder).digest == before
    assert len(calls) == 2
    (release / "metadata_10.jsonl").write_text(paper(8))
    assert texts(load(tmp_path / "data", extracts=folder).pool)[-1] == "Title 8. Abstract 8 goes on"
    with pytest.raises(UserError, match=r"passages cannot be kept there .* RESULTS_DIR"):
        load(tmp_path / "data", extracts=file / "extracts")


@pytest.mark.parametrize(("limit", "notes"), [(2, ("the first 2 passages alone",)), (3, None)])
def test_no_more_than_the_limit_is_taken_and_a_note_says_so(release, tmp_path, monkeypatch, limit, notes):
    monkeypatch.setattr(corpora, "LIMIT", limit)
    data = load(tmp_path / "data")
    assert len(data.pool) == limit
    assert data.notes == (notes or ("papers without an abstract, left out: 1",))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (paper(1)[:40], "a JSON object, found a line that is cut"),
        ('{"paper_id": "1", "title": "a"}', "found none called abstract, mag_field_of_study"),
        ("[1]", "expected the fields title, abstract, mag_field_of_study"),
        (paper(1, title=7), "expected a title in words"),
        (paper(1, abstract="a\0b"), r"expected text, found U\+0000"),
        (paper(1, title="a\ud800"), "expected text, found half of a surrogate pair"),
    ],
)
def test_a_line_that_is_no_paper_is_refused_with_its_place(release, tmp_path, line, fault):
    (release / "metadata_10.jsonl").write_text(f"{paper(1)}\n{line}\n{paper(2)}")
    with pytest.raises(UserError, match=rf"metadata_10\.jsonl:2: .*{fault}.*--lenient"):
        load(tmp_path / "data", extracts=tmp_path / "extracts")
    for _ in range(2):  # from the extract, too
        data = load(tmp_path / "data", lenient=True, extracts=tmp_path / "extracts")
        assert [(row.file, row.line) for row in data.skipped] == [("full/metadata/metadata_10.jsonl", 2)]
        assert len(data.pool) == 4


def test_a_gzipped_file_that_ends_in_the_middle_is_refused_with_its_place(release, tmp_path):
    file = release / "metadata_0.jsonl.gz"
    file.write_bytes(file.read_bytes()[:-12])
    with pytest.raises(UserError, match=r"metadata_0\.jsonl\.gz:\d: expected a gzipped file, found one that ends"):
        load(tmp_path / "data")
    assert texts(load(tmp_path / "data", lenient=True).pool)[-1] == "Why? Abstract 5 goes on"


# ---- the hub ---------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Writes parquet files where the hub's repository would be; `read` gives a domain from there."""
    repository = tmp_path / "hub"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    changed = [
        corpora.Corpus(**{**vars(each), "repository": str(repository), "revision": None}) for each in corpora.CORPORA
    ]
    monkeypatch.setattr(corpora, "CORPORA", tuple(changed))

    def publish(place, rows, column="text"):
        (repository / place).parent.mkdir(parents=True, exist_ok=True)
        datasets.Dataset.from_dict({"id": list(range(len(rows))), column: rows}).to_parquet(repository / place)

    def read(domain, lenient=False):
        (corpus,) = (each for each in changed if each.id == domain)
        return corpora.load(corpus, False, DataSource(None, lenient, tmp_path / "extracts"))

    publish.read = read
    return publish


def test_papers_of_the_hub_are_passages_by_paragraph(hub, monkeypatch):
    hub("Biology,2011-2011/train-00000-of-00001-a.parquet", ["A title\n\nAn abstract\n \nA body", ""])
    hub("Biology,2012-2012/train-00000-of-00001-b.parquet", ["Another"])
    hub("Biology,2012-2012/validation-00000-of-00001-c.parquet", ["not this"])
    hub("Chemistry,2012-2012/train-00000-of-00001-d.parquet", ["nor this"])
    assert texts(hub.read("biology").pool) == ["A title", "An abstract", "A body", "Another"]


def test_a_row_of_the_hub_that_is_no_text_is_refused_with_its_place(hub):
    hub("Biology,2011-2011/train-00000-of-00001-a.parquet", ["A title", "a\0b", "Another"])
    with pytest.raises(UserError, match=r"hub/Biology,.*parquet:2: expected text, found U\+0000; .*--lenient"):
        hub.read("biology")
    data = hub.read("biology", lenient=True)
    assert texts(data.pool) == ["A title", "Another"]
    assert [(row.line, row.reason) for row in data.skipped] == [(2, "expected text, found U+0000")]


def test_a_hub_without_the_column_or_out_of_reach_is_an_error(hub):
    hub("Medicine,2012-2012/train-00000-of-00001.parquet", ["a"], column="body")
    with pytest.raises(UserError, match="expected a column 'text', found id, body"):
        hub.read("medicine")
    with pytest.raises(UserError, match=r"cannot load 'ComputerScience,.* from the Hugging Face hub .*or set DATA_DIR"):
        hub.read("computer-science")
