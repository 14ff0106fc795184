"""PubMed 20k RCT and NICTA-PIBOSO: a label and a sentence a line, the hub's copy, generated sentences."""

from __future__ import annotations

import json
from pathlib import Path

import datasets
import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from benchmarks.errors import UserError
from benchmarks.tasks import DataSource, Task, official, task

IDS = ("rct20k", "nicta-piboso")
FILES = ("train.txt", "dev.txt", "test.txt")
TRAIN = [("background", 'He said " nothing .'), ("results", "one\u2028line, naïve"), ("methods", " blank ")]
DEV = [("objective", "to ask")]
TEST = [("conclusions", "p < 0.05"), ("results", "no")]
Sentences = list[tuple[str, str]]


def abstract(sentences: Sentences, upper: bool = True) -> str:
    """As the authors' files have it."""
    lines = "".join(f"{label.upper() if upper else label}\t{text}\n" for label, text in sentences)
    return f"###24290286\n{lines}\n###1\n{lines}\n"


def write(folder: Path, name: str = "PubMed_20k_RCT", texts: tuple[str, ...] = (), upper: bool = True) -> Path:
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    for file, text in zip(FILES, texts or [abstract(part, upper) for part in (TRAIN, DEV, TEST)], strict=True):
        (place / file).write_bytes(text.encode())
    return folder


@pytest.fixture
def found() -> Task:
    return task("rct20k")


# ---- files -----------------------------------------------------------------------------------------------------


def test_every_sentence_is_read_as_it_stands(found, tmp_path):
    data = found.load(DataSource(write(tmp_path)))
    read = {"pool": data.pool, **data.central}
    for name, part in (("pool", TRAIN), ("validation", DEV), ("test", TEST)):
        assert [text for (text,) in read[name].texts] == [text for _, text in part] * 2
        assert [found.labels[label] for label in read[name].labels] == [label for label, _ in part] * 2
    assert (data.held_out, data.skipped, data.notes) == ({}, (), ())
    assert data.origin == "folder: PubMed_20k_RCT/train.txt, PubMed_20k_RCT/dev.txt, PubMed_20k_RCT/test.txt"


@pytest.mark.parametrize("name", ["RCT-20k", "pubmed-rct/PubMed_20k_RCT"])
def test_the_same_examples_from_each_layout(found, tmp_path, name):
    other = found.load(DataSource(write(tmp_path / "other", name, upper=False)))
    assert other.digest == found.load(DataSource(write(tmp_path))).digest
    itself = found.load(DataSource(tmp_path / "other" / name))
    assert itself.digest == other.digest


def test_the_other_task_has_its_own_folder_and_labels(tmp_path):
    rows = [("population", "105 women"), ("study design", "a trial"), ("other", "x")]
    data = task("nicta-piboso").load(DataSource(write(tmp_path, "nicta_piboso", (abstract(rows, upper=False),) * 3)))
    assert data.pool.labels.tolist() == [0, 4, 5] * 2
    with pytest.raises(UserError, match=r"no data of PubMed 20k RCT: looked for train\.txt, dev\.txt and test\.txt in"):
        task("rct20k").load(DataSource(tmp_path))
    with pytest.raises(UserError, match=r"NICTA-PIBOSO: no copy .* hub .*set DATA_DIR .*nicta_piboso .*jind11/HSLN"):
        task("nicta-piboso").load(DataSource())


FAULTS = {
    "no label": ("a sentence", "expected a label, a tab and a sentence, found 1 columns"),
    "two tabs": ("METHODS\ta\tb", "expected a label, a tab and a sentence, found 3 columns"),
    "no sentence": ("METHODS\t ", "expected a text in column 'text', found ' '"),
    "unknown label": ("OTHER\ta", "expected one of the labels background, .*, conclusions, found 'other'"),
    "not UTF-8": ("METHODS\tcaf\udce9", "expected UTF-8, found the byte 0xe9"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("line", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_malformed_row_is_an_error_with_file_and_line_unless_lenient(found, tmp_path, name, line, reason):
    folder = write(tmp_path)
    path = folder / "PubMed_20k_RCT" / name
    good = path.read_text(encoding="utf-8")
    path.write_bytes(f"{good}###2\n{line}\n".encode("utf-8", "surrogateescape"))
    number = len(good.split("\n")) + 1
    with pytest.raises(UserError, match=rf"{path}:{number}: {reason}; mend the row, or skip .*--lenient"):
        found.load(DataSource(folder))
    data = found.load(DataSource(folder, lenient=True))
    assert [(row.file, row.line) for row in data.skipped] == [(f"PubMed_20k_RCT/{name}", number)]
    path.write_text(good, encoding="utf-8")
    assert data.digest == found.load(DataSource(folder)).digest


@pytest.mark.parametrize("lenient", [False, True])
def test_an_empty_or_missing_file_is_an_error_even_with_leniency(found, tmp_path, lenient):
    folder = write(tmp_path, texts=(abstract(TRAIN), "###1\n\n", abstract(TEST)))
    with pytest.raises(UserError, match=r"dev\.txt: expected at least one example, found none"):
        found.load(DataSource(folder, lenient))
    (folder / "PubMed_20k_RCT" / "dev.txt").unlink()
    with pytest.raises(UserError, match=r"PubMed 20k RCT lacks dev\.txt; add what is missing"):
        found.load(DataSource(folder, lenient))


# ---- the hub ---------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Has `load_dataset` find a folder with the layout of the hub's copy where it would look for that."""

    def publish(**parts: Sentences) -> None:
        (tmp_path / "hub").mkdir()
        (tmp_path / "hub" / "README.md").write_text("The small 20K version of the Pubmed-RCT dataset\n")
        for name, sentences in parts.items():
            rows = [
                {"abstract_id": "24290286", "label": label, "text": text, "sentence_id": number}
                for number, (label, text) in enumerate(sentences)
            ]
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / "hub" / f"{name}.jsonl").write_text(text, encoding="utf-8")
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
        real = official.load_config

        def load_config(repository, config, revision):
            assert (repository, config, revision) == ("armanc/pubmed-rct20k", None, None)
            return real(str(tmp_path / "hub"), config, revision)

        monkeypatch.setattr(official, "load_config", load_config)

    return publish


def test_the_hub_has_the_same_examples_and_digest_as_the_files(found, hub, tmp_path):
    hub(train=TRAIN * 2, dev=DEV * 2, test=TEST * 2)
    data = found.load(DataSource())
    assert data.digest == found.load(DataSource(write(tmp_path))).digest
    assert data.origin == "armanc/pubmed-rct20k"


def test_a_hub_without_the_development_set_is_an_error(found, hub):
    hub(train=TRAIN, test=TEST)
    with pytest.raises(UserError, match="expected the splits train, validation, test, found train, test; set DATA_DIR"):
        found.load(DataSource())


def test_labels_of_the_hub_may_be_ids_of_names(found, monkeypatch):
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["METHODS", "RESULTS", "NONE"])}
    )
    split = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features)
    monkeypatch.setattr(
        official, "load_config", lambda *_: datasets.DatasetDict(train=split, validation=split, test=split)
    )
    assert [found.labels[label] for label in found.load(DataSource()).pool.labels] == ["results", "methods"]
    wrong = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 2]}, features)
    monkeypatch.setattr(
        official, "load_config", lambda *_: datasets.DatasetDict(train=wrong, validation=split, test=split)
    )
    with pytest.raises(UserError, match=r"rct20k/train:2: expected one of the labels background, .*, found 'none'"):
        found.load(DataSource())


def test_without_a_hub_the_error_says_what_to_do(found):
    with pytest.raises(UserError, match=r"cannot load armanc/pubmed-rct20k from the Hugging Face hub .*set DATA_DIR"):
        found.load(DataSource())


# ---- generated and real ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task_id", IDS)
def test_generated_sentences_have_the_schema_and_can_be_learnt(task_id):
    of, data = task(task_id), task(task_id).generate(0)
    assert data.digest == of.generate(0).digest != of.generate(1).digest
    assert set(data.central) | {"test"} == set(of.evaluations)
    parts = (data.pool, *data.central.values())
    assert all(set(part.labels.tolist()) == set(range(of.classes)) for part in parts)
    words = CountVectorizer().fit([text for (text,) in data.pool.texts])
    features = [words.transform([text for (text,) in part.texts]) for part in (data.pool, data.central["test"])]
    labels = data.central["test"].labels
    model = LogisticRegression().fit(features[0], data.pool.labels)
    assert model.score(features[1], labels) > np.bincount(labels).max() / len(labels) + 0.2


def test_the_real_files(data_dir):
    data = task("nicta-piboso").load(DataSource(data_dir))
    assert np.bincount(data.pool.labels).tolist() == [504, 258, 1832, 3186, 85, 1114]
    assert {name: len(part) for name, part in data.central.items()} == {"validation": 801, "test": 1991}
    assert (data.skipped, data.notes) == ((), ())
