"""Wikipedia by articles: where they begin, where they are found, and what of them is held back."""

from __future__ import annotations

import datasets
import pytest

from benchmarks.errors import UserError
from benchmarks.tasks import DataSource, passages, task
from tests.tasks.samples import ARTICLES, write

WIKITEXT = (
    "\n = One = \n\n The first . \n = x = \n = 1 = \n\n = = Section = = \n\n Goes  on . \n \n = Two = \n\n Ends . \n"
)
ONE = "= One =\nThe first .\n= x =\n= 1 =\n= = Section = =\nGoes on ."
TWO = "= Two =\nEnds ."


def load(folder, extracts=None):
    return task("wikitext").load(DataSource(folder, extracts=extracts))


def read(folder, content):
    """The data of a folder with this training text, next to one to be scored on."""
    return load(write(folder, {"wikipedia.valid.txt": ARTICLES, "wikipedia.train.txt": content}))


def texts(examples):
    return [text for (text,) in examples.texts]


@pytest.fixture
def download(tmp_path):
    contents = {"train": WIKITEXT, "valid": " = V = \n\n v \n", "test": " = T = \n\n t \n"}
    return write(tmp_path, {f"wikitext-103-raw/wiki.{split}.raw": content for split, content in contents.items()})


def test_an_article_goes_from_its_title_to_the_next_one(download):
    data = load(download)
    assert texts(data.pool) == [ONE, TWO]
    central = {name: texts(examples) for name, examples in data.central.items()}
    assert central == {"test": ["= T =\nt"], "validation": ["= V =\nv"]}
    assert data.origin == "folder: " + ", ".join(
        f"wikitext-103-raw/wiki.{part}.raw" for part in ("train", "valid", "test")
    )
    articles = data.pool.texts
    assert (articles[1], articles[-2], tuple(articles[1:])) == ((TWO,), (ONE,), ((TWO,),))


def test_a_title_needs_no_empty_line_where_the_first_one_has_none(download):
    files = {f"corpora/wikipedia.{part}.txt": "\ufeff" + ARTICLES for part in ("train", "valid")}
    data = load(write(download / "other", files))
    assert texts(data.pool) == ["= One =\nThe first.\nGoes on.", "= Two =\nEnds."]
    assert list(data.central) == ["test"]  # the one held-out text is what is scored on


def test_whole_text_is_preferred_and_wikitext_2_says_so(download):
    small = {f"wiki.{split}.tokens": ARTICLES for split in ("train", "test")}
    write(download / "wikitext-103", small)
    write(download / "other" / "wikitext-2", small)
    assert texts(load(download).pool) == [ONE, TWO]
    assert load(download / "other").notes == ("partial: WikiText-2",)


def test_an_article_may_be_long_and_its_lines_longer_than_is_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(passages, "LONGEST", 16)
    line = " ".join(f"wörter{number}" for number in range(30))
    data = read(tmp_path, f" = A =\n{line}\n{line}\n = B =\nend")
    assert (texts(data.pool), data.notes) == ([f"= A =\n{line}\n{line}", "= B =\nend"], ())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("just text\n = A =\nmore\n", "found text before the first one"),
        ("\n = = Section = =\n", "found text before the first one"),
        ("\n\n", 'headed by a line as " = Title = ", found none'),
    ],
)
def test_text_without_titles_is_refused(tmp_path, content, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, content)


@pytest.mark.slow
def test_real_articles_are_as_many_as_are_published(data_dir):
    data = load(data_dir)
    assert (len(data.pool), len(data.central["test"])) == (4943, 157)
    for split in ("valid", "test"):  # Merity et al. (2017), Table 1
        file = data_dir / "wikitext-2" / f"wikitext-2_{split}.txt"
        assert len(passages.find_articles(file, file.name, False).passages) == 60


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
