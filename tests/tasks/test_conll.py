"""JNLPBA and SciERC: CoNLL columns, the hub's copy, generated sentences, and what is wrong with files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import datasets
import numpy as np
import pytest

from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.tasks import DataSource, Task, official, task
from benchmarks.tasks.words import NOUNS

IDS = ("jnlpba", "scierc")
FILES = ("train.txt", "dev.txt", "test.txt")
# Two sentences, with words that hold quotes, other scripts and what some libraries take for the end of a line.
TRAIN = [
    [("IL-2", "B-DNA"), ("gene", "I-DNA"), ('"x"', "O"), ("NF-κB", "B-protein")],
    [("of", "O"), ("T\u2028cells", "B-cell_type"), ("no\xa0break", "I-cell_type"), ("\u200bc", "O")],
]
DEV = [[("a", "O")], [("b", "O"), ("c", "B-RNA")]]
TEST = [[("mRNA", "I-RNA"), ("line", "B-cell_line"), ("line", "B-cell_line"), ("line", "I-cell_line")]]
Sentences = list[list[tuple[str, str]]]


def columns(sentences: Sentences, row: str = "{}\tNN\tO\t{}\n") -> str:
    """A document as SciBERT's files have it."""
    return "-DOCSTART-\tO\n\n" + "\n".join("".join(row.format(*word) for word in words) for words in sentences)


def write(folder: Path, name: str = "JNLPBA", texts: tuple[str, ...] = tuple(map(columns, (TRAIN, DEV, TEST)))) -> Path:
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    for file, text in zip(FILES, texts, strict=True):
        (place / file).write_bytes(text.encode())
    return folder


@pytest.fixture
def found() -> Task:
    return task("jnlpba")


def words_and_tags(of: Task, examples) -> Sentences:
    return [
        [(word, of.tags[tag]) for word, tag in zip(words, tags, strict=True)]
        for words, tags in zip(examples.texts, examples.tags, strict=True)
    ]


# ---- files -----------------------------------------------------------------------------------------------------


def test_every_word_is_read_as_it_stands(found, tmp_path):
    data = found.load(DataSource(write(tmp_path)))
    assert words_and_tags(found, data.pool) == TRAIN
    assert {name: words_and_tags(found, part) for name, part in data.central.items()} == {
        "validation": DEV,
        "test": TEST,
    }
    assert (data.held_out, data.skipped, data.pool.labels.tolist()) == ({}, (), [0, 0])
    assert data.origin == "folder: JNLPBA/train.txt, JNLPBA/dev.txt, JNLPBA/test.txt"


@pytest.mark.parametrize("row", ["{} {}\n", "{}  {} \n", "{}\t{}\r\n", "{}\t_\t{}\n"])
def test_columns_stand_between_tabs_or_blanks(found, tmp_path, row):
    texts = tuple(columns(part, row).removeprefix("-DOCSTART-\tO\n\n") for part in (TRAIN, DEV, TEST))
    other = found.load(DataSource(write(tmp_path / "other", texts=texts)))
    assert other.digest == found.load(DataSource(write(tmp_path))).digest


def test_a_byte_order_mark_and_blank_lines_are_passed_over(found, tmp_path):
    texts = tuple("\ufeff\n \n" + columns(part).replace("\n\n", "\n\t\n\n") + "\n\n\n" for part in (TRAIN, DEV, TEST))
    other = found.load(DataSource(write(tmp_path / "other", texts=texts)))
    assert other.digest == found.load(DataSource(write(tmp_path))).digest


def test_the_folder_itself_may_be_the_data_directory_and_no_other(found, tmp_path):
    folder = write(tmp_path)
    assert found.load(DataSource(folder / "JNLPBA")).digest == found.load(DataSource(folder)).digest
    with pytest.raises(UserError, match="no data of SciERC"):  # the files there are called the same
        task("scierc").load(DataSource(folder / "JNLPBA"))


def test_an_entity_that_begins_with_i_is_kept_and_noted(found, tmp_path):
    """As the official test set of SciERC has one; every kind of beginning that IOB2 does not know."""
    strays = [
        ("a", "I-DNA"),
        ("b", "O"),
        ("c", "I-DNA"),
        ("d", "I-RNA"),
        ("e", "I-RNA"),
        ("f", "B-DNA"),
        ("g", "I-RNA"),
    ]
    texts = (columns([*TRAIN, strays]), columns(DEV), columns(TEST))
    data = found.load(DataSource(write(tmp_path, texts=texts)))
    assert words_and_tags(found, data.pool)[-1] == strays
    assert data.notes == ("entities that begin with I-: 4 in train.txt, 1 in test.txt",)


FAULTS = {
    "ragged": ("c\tNN\tO", "expected 4 columns, found 3"),
    "too wide": ("c\tNN\tO\tO\tO", "expected 4 columns, found 5"),
    "no tag": ("c", "expected 4 columns, found 1"),
    "unknown tag": ("c\tNN\tO\tB-lipid", "expected one of the tags O, B-DNA, I-DNA, .*, found 'B-lipid'"),
    "no word": ("\tNN\tO\tO", "expected a word, found ''"),
    "a word that tokenizers drop": ("\u200b\ufffd\tNN\tO\tO", r"expected a word, found '\\u200b\\ufffd'"),
    "accents alone": ("\u0301\u1734\tNN\tO\tO", r"expected a word, found '\\u0301\\u1734'"),
    "a variation selector alone": ("\ufe0f\tNN\tO\tO", r"expected a word, found '\\ufe0f'"),
    "not UTF-8": ("caf\udce9\tNN\tO\tO", "expected UTF-8, found the byte 0xe9"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("line", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_malformed_row_is_an_error_with_file_and_line_unless_lenient(found, tmp_path, name, line, reason):
    folder = write(tmp_path)
    path = folder / "JNLPBA" / name
    good = path.read_text(encoding="utf-8")
    path.write_bytes((good + f"\na\tNN\tO\tO\n{line}\nd\tNN\tO\tO\n").encode("utf-8", "surrogateescape"))
    number = len(good.split("\n")) + 2
    with pytest.raises(UserError, match=rf"{path}:{number}: {reason}; mend the row, or skip .*--lenient"):
        found.load(DataSource(folder))
    data = found.load(DataSource(folder, lenient=True))
    assert [(row.file, row.line) for row in data.skipped] == [(f"JNLPBA/{name}", number)]
    path.write_text(good, encoding="utf-8")
    assert data.digest == found.load(DataSource(folder)).digest  # the whole sentence is left out


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("text", ["", "\n\n", "-DOCSTART-\tO\n\n"])
def test_an_empty_file_is_an_error_even_with_leniency(found, tmp_path, text, lenient):
    folder = write(tmp_path, texts=(columns(TRAIN), text, columns(TEST)))
    with pytest.raises(UserError, match=r"JNLPBA/dev\.txt: expected at least one example, found none"):
        found.load(DataSource(folder, lenient))


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_an_error_even_with_leniency(found, tmp_path, name, lenient):
    (write(tmp_path) / "JNLPBA" / name).unlink()
    with pytest.raises(UserError, match=f"JNLPBA lacks {name}; add what is missing"):
        found.load(DataSource(tmp_path, lenient))


def test_without_any_file_the_error_says_where_they_are_published(found, tmp_path):
    with pytest.raises(UserError, match=r"looked for train.txt, dev.txt and test.txt in .*/JNLPBA; .*allenai/scibert"):
        found.load(DataSource(tmp_path))
    with pytest.raises(UserError, match="nowhere is no folder"):
        found.load(DataSource(tmp_path / "nowhere"))


def test_the_command_line_says_it_in_one_message(tmp_path, capsys):
    write(tmp_path, texts=("a\tO\nb\n", "a\tO\n", "a\tO\n"))
    assert main(["doctor", "--data-dir", str(tmp_path), "--results-dir", str(tmp_path / "r")]) == 0
    assert f"none task jnlpba: {tmp_path}/JNLPBA/train.txt:2: expected 2 columns, found 1" in capsys.readouterr().out


# ---- the hub ---------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(tmp_path, monkeypatch, found):
    """Has `load_dataset` find a folder with the layout of the hub's own conversion where it would look for the copy."""

    def publish(names: tuple[str, ...] | None = None, **splits: Sentences) -> None:
        kind = datasets.Value("int32") if names is None else datasets.ClassLabel(names=list(names))
        features = datasets.Features({"tokens": datasets.List(datasets.Value("string")), "tags": datasets.List(kind)})
        for split, sentences in splits.items():
            folder = tmp_path / "hub" / "bionlp2004" / split
            folder.mkdir(parents=True)
            rows = {
                "tokens": [[word for word, _ in words] for words in sentences],
                "tags": [[found.tags.index(tag) for _, tag in words] for words in sentences],
            }
            datasets.Dataset.from_dict(rows, features).to_parquet(folder / "0000.parquet")
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
        real = official.load_config

        def load_config(repository, config, revision):
            assert (repository, config, revision) == ("tner/bionlp2004", None, "refs/convert/parquet")
            return real(str(tmp_path / "hub"), config, revision)

        monkeypatch.setattr(official, "load_config", load_config)

    return publish


@pytest.mark.parametrize("is_named", [False, True])
def test_the_hub_has_the_same_examples_and_digest_as_the_files(found, hub, tmp_path, is_named):
    hub(found.tags if is_named else None, train=TRAIN, validation=DEV, test=TEST)
    data = found.load(DataSource())
    assert data.digest == found.load(DataSource(write(tmp_path))).digest
    assert data.origin == "tner/bionlp2004@refs/convert/parquet"
    assert data.notes == ("entities that begin with I-: 1 in test.txt",)


def test_a_hub_without_the_test_set_is_an_error(found, hub):
    hub(train=TRAIN, validation=DEV)
    with pytest.raises(UserError, match="expected the splits train, validation, test, found train, validation; set"):
        found.load(DataSource())


def test_tags_in_another_order_are_an_error(found, hub):
    hub(tuple(reversed(found.tags)), train=TRAIN, validation=DEV, test=TEST)
    with pytest.raises(
        UserError, match=r"tner/bionlp2004/train: expected the tags in the order O, B-DNA, .*found I-RNA"
    ):
        found.load(DataSource())


@pytest.mark.parametrize(
    ("tokens", "tags", "reason"),
    [
        (["a", "b"], [0], "expected words and as many tags, found 2 words and 1 tags"),
        ([], [], "expected words and as many tags, found 0 words and 0 tags"),
        (["a"], [11], "expected tags from 0 to 10, found 11"),
        (["a", None], [0, 0], "expected a word, found None"),
    ],
)
def test_a_malformed_row_of_the_hub(found, monkeypatch, tokens, tags, reason):
    split = datasets.Dataset.from_dict({"tokens": [["a"], tokens], "tags": [[0], tags]})
    splits = datasets.DatasetDict(train=split, validation=split, test=split)
    monkeypatch.setattr(official, "load_config", lambda *_: splits)
    with pytest.raises(UserError, match=f"tner/bionlp2004/train:2: {reason}; mend"):
        found.load(DataSource())
    data = found.load(DataSource(lenient=True))
    assert [(row.file, row.line) for row in data.skipped] == [
        (f"tner/bionlp2004/{name}", 2) for name in ("train", "validation", "test")
    ]


def test_missing_columns_of_the_hub_are_an_error(found, monkeypatch):
    split = datasets.Dataset.from_dict({"tokens": [["a"]], "ner_tags": [[0]]})
    monkeypatch.setattr(
        official, "load_config", lambda *_: datasets.DatasetDict(train=split, validation=split, test=split)
    )
    with pytest.raises(UserError, match="expected the columns tokens, tags, found tokens, ner_tags"):
        found.load(DataSource())


def test_without_a_hub_the_error_says_what_to_do(found):
    with pytest.raises(UserError, match=r"cannot load tner/bionlp2004@refs/convert/parquet from .*or set DATA_DIR"):
        found.load(DataSource())
    with pytest.raises(UserError, match=r"SciERC: no copy on the .* hub .*set DATA_DIR .*github.com/Hanzhouu/FedBFPT"):
        task("scierc").load(DataSource())


# ---- generated and real ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task_id", IDS)
def test_tags_are_in_the_order_by_which_metrics_know_them(task_id):
    tags = task(task_id).tags
    assert tags[0] == "O"
    assert [tag[:2] for tag in tags[1:]] == ["B-", "I-"] * (len(tags) // 2)
    assert all(begins[2:] == inside[2:] for begins, inside in zip(tags[1::2], tags[2::2], strict=True))
    assert task(task_id).classes == len(tags)
    assert {"entity_f1", "entity_f1_concatenated"} == set(task(task_id).metrics)


@pytest.mark.parametrize("task_id", IDS)
def test_generated_sentences_have_every_tag_and_a_signal(task_id):
    of, data = task(task_id), task(task_id).generate(0)
    assert data.digest == of.generate(0).digest != of.generate(1).digest
    assert set(data.central) | {"test"} == set(of.evaluations)
    kinds: dict[str, set[int]] = {}
    for part in (data.pool, *data.central.values()):
        assert {tag for tags in part.tags for tag in tags} == set(range(len(of.tags)))
        for words, tags in zip(part.texts, part.tags, strict=True):
            assert len(words) == len(tags)
            assert all(before in (tag - 1, tag) for before, tag in pairwise(tags) if tag in (2, 4, 6))
            for word, tag in zip(words, tags, strict=True):
                kinds.setdefault(word, set()).add((tag + 1) // 2)
    assert all(len(kinds[noun] - {0}) == 1 for noun in NOUNS if noun in kinds)  # a noun's kind can be known


def test_the_real_files(data_dir):
    found = {name: task(name).load(DataSource(data_dir)) for name in IDS}
    sizes = {name: (len(data.pool), *(len(part) for part in data.central.values())) for name, data in found.items()}
    assert sizes["scierc"] == (1861, 275, 551)
    assert sizes["jnlpba"][1:] == (1739, 3856)
    assert {name: data.notes for name, data in found.items()} == {
        "jnlpba": (),
        "scierc": ("entities that begin with I-: 1 in test.txt",),
    }
    for name, data in found.items():
        for part in (data.pool, *data.central.values()):
            counts = np.bincount([tag for tags in part.tags for tag in tags], minlength=len(task(name).tags))
            assert counts.all()
            assert counts.argmax() == 0
