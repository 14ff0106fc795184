"""Wikipedia by articles: where they begin, where they are found, and what of them is held back."""

from __future__ import annotations

import datasets
import numpy as np
import pytest

from benchmarks.errors import NoDataError, UserError
from benchmarks.tasks import DataSource, passages, task
from benchmarks.tasks.words import VOCABULARY

WIKITEXT = (
    "\n = One = \n\n The first . \n = x = \n = 1 = \n\n = = Section = = \n\n Goes  on . \n \n = Two = \n\n Ends . \n"
)
ONE = "= One =\nThe first .\n= x =\n= 1 =\n= = Section = =\nGoes on ."
TWO = "= Two =\nEnds ."
PLAIN = " = One =\nThe first.\nGoes on.\n = Two =\nEnds.\n"  # as corpora/wikipedia.train.txt: no empty lines


def write(folder, name, content):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def load(folder, lenient=False, of="wikitext", extracts=None):
    return task(of).load(DataSource(folder, lenient, extracts))


def texts(examples):
    return [text for (text,) in examples.texts]


@pytest.fixture
def download(tmp_path):
    for split, content in (("train", WIKITEXT), ("valid", " = V = \n\n v \n"), ("test", " = T = \n\n t \n")):
        write(tmp_path, f"wikitext-103-raw/wiki.{split}.raw", content)
    return tmp_path


def test_an_article_goes_from_its_title_to_the_next_one(download):
    data = load(download)
    assert texts(data.pool) == [ONE, TWO]
    assert {name: texts(examples) for name, examples in data.central.items()} == {
        "test": ["= T =\nt"],
        "validation": ["= V =\nv"],
    }
    assert data.pool.labels.tolist() == [0, 0]
    names = ", ".join(f"wikitext-103-raw/wiki.{split}.raw" for split in ("train", "valid", "test"))
    assert (data.origin, data.notes, data.skipped) == (f"folder: {names}", (), ())


def test_a_title_needs_no_empty_line_where_the_first_one_has_none(tmp_path):
    write(tmp_path, "corpora/wikipedia.valid.txt", PLAIN)
    data = load(write(tmp_path, "corpora/wikipedia.train.txt", "\ufeff" + PLAIN))
    assert texts(data.pool) == ["= One =\nThe first.\nGoes on.", "= Two =\nEnds."]
    assert list(data.central) == ["test"]  # the one held-out text is what is scored on
    assert data.origin == "folder: corpora/wikipedia.train.txt, corpora/wikipedia.valid.txt"


def test_whole_text_comes_before_the_one_without_rare_words_and_wikitext_2_says_so(download, tmp_path):
    for split in ("train", "test"):
        write(tmp_path, f"wikitext-103/wiki.{split}.tokens", PLAIN)
        write(tmp_path, f"other/wikitext-2/wiki.{split}.tokens", PLAIN)
    assert texts(load(download).pool) == [ONE, TWO]
    small = load(tmp_path / "other")
    assert (small.notes, list(small.central)) == (("partial: WikiText-2",), ["test"])


def test_an_article_may_be_long_and_its_lines_longer_than_is_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(passages, "LONGEST", 16)
    line = " ".join(f"wörter{number}" for number in range(30))
    write(tmp_path, "wikipedia.valid.txt", PLAIN)
    data = load(write(tmp_path, "wikipedia.train.txt", f" = A =\n{line}\n{line}\n = B =\nend"))
    assert texts(data.pool) == [f"= A =\n{line}\n{line}", "= B =\nend"]
    assert data.notes == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("just text\n = A =\nmore\n", "found text before the first one"),
        ("\n = = Section = =\n", "found text before the first one"),
        ("\n\n", 'headed by a line as " = Title = ", found none'),
        (b" = A =\nbr\xfcken\n", r"wikipedia\.train\.txt:2: expected UTF-8, found the byte 0xfc.*--lenient"),
    ],
)
def test_text_that_is_no_articles_is_refused(tmp_path, content, message):
    write(tmp_path, "wikipedia.valid.txt", PLAIN)
    with pytest.raises(UserError, match=message):
        load(write(tmp_path, "wikipedia.train.txt", content))


def test_lenience_skips_lines_that_are_no_text(tmp_path):
    write(tmp_path, "wikipedia.valid.txt", PLAIN)
    data = load(write(tmp_path, "wikipedia.train.txt", b" = A =\nbr\xfcken\nfine\n"), lenient=True)
    assert texts(data.pool) == ["= A =\nfine"]
    assert [(row.file.split("/")[-1], row.line) for row in data.skipped] == [("wikipedia.train.txt", 2)]


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(NoDataError, match=r"wikitext-103-raw/wiki\.train\.raw.*wikipedia\.train\.txt; put WikiText"):
        load(tmp_path)
    with pytest.raises(UserError, match="expected a text to be scored on beside it"):
        load(write(tmp_path, "corpora/wikipedia.train.txt", PLAIN))
    with pytest.raises(UserError, match="is no folder"):
        load(tmp_path / "nowhere")


def test_the_hub_has_the_same_articles(download, tmp_path, monkeypatch):
    asked = []

    def load_dataset(repository, data_files, split, revision, streaming):
        asked.append((repository, data_files["all"], revision))
        name = data_files["all"].split("/")[1].split("-")[0].replace("validation", "valid")
        lines = (download / "wikitext-103-raw" / f"wiki.{name}.raw").read_text().splitlines(keepends=True)
        return iter([{"text": "" if line.isspace() else line} for line in lines])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    found = [load(None, extracts=tmp_path / "extracts") for _ in range(2)]
    assert {data.digest for data in found} == {load(download).digest}
    assert [files for _, files, _ in asked] == [
        f"wikitext-103-raw-v1/{split}-*.parquet" for split in ("train", "validation", "test")
    ]
    assert found[0].origin.startswith("Salesforce/wikitext@b08601e0")


def test_a_row_of_the_hub_that_is_no_text_is_refused_or_skipped(tmp_path, monkeypatch):
    rows = [" = One = \n", "", "a\0b\n", "Words .\n"]
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: iter([{"text": row} for row in rows]))
    with pytest.raises(UserError, match=r"train-\*\.parquet:3: expected text, found U\+0000; .*--lenient"):
        load(None, extracts=tmp_path / "extracts")
    data = load(None, lenient=True, extracts=tmp_path / "extracts")
    assert texts(data.pool) == ["= One =\nWords ."]
    assert [row.line for row in data.skipped] == [3] * 3


def test_articles_are_read_when_they_are_asked_for(download):
    articles = load(download).pool.texts
    assert (articles[1], articles[-2], tuple(articles[1:])) == ((TWO,), (ONE,), ((TWO,),))
    articles.file.write_text("another\n")
    with pytest.raises(UserError, match="has changed since"):
        list(articles)


def test_both_tasks_are_of_the_same_text():
    masked, causal = task("wikitext"), task("wikitext-causal")
    assert (masked.objective, causal.objective) == ("masked_lm", "causal_lm")
    assert masked.load is causal.load
    assert {masked.long_texts, causal.long_texts} == {"packed"}
    assert masked.metrics == causal.metrics == ("perplexity",)


def test_generated_articles_have_the_schema_and_the_closed_vocabulary():
    data = task("wikitext").generate(0)
    assert {word for text in texts(data.pool) for word in text.split()} <= set(VOCABULARY)
    assert list(data.central) == ["test"]
    assert data.pool.labels.dtype == np.int64
    assert task("wikitext-causal").generate(0).digest == data.digest != task("wikitext").generate(1).digest


def test_real_articles_are_as_many_as_are_published(data_dir):
    data = load(data_dir)
    assert (len(data.pool), len(data.central["test"])) == (4943, 157)
    for split in ("valid", "test"):  # Merity et al. (2017), Table 1
        file = data_dir / "wikitext-2" / f"wikitext-2_{split}.txt"
        assert len(passages.find_articles(file, file.name, False).passages) == 60
