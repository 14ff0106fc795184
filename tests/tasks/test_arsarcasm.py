"""ArSarcasm-v2: the authors' files, the hub's copy, generated examples; and how five clients share it out."""

from __future__ import annotations

import csv
from pathlib import Path

import datasets
import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.tasks import DataSource, Task, arsarcasm, task
from benchmarks.tasks.words import VOCABULARY
from partitions import from_description

TRAIN = [  # what tweets hold: quotes in the text, emoji, mixed scripts, ends of lines, blanks at the ends, nothing
    ('"""قال: نعم"""', "NEG"),
    ("أحب هذا 😍👨‍👩‍👧 I ❤ it, really", "POS"),
    ("سطر\nوآخر\u2028وآخر", "NEU"),
    (" مسافة  ", "NEG"),
    ("", "NEU"),
    ("RT @x: #وسم https://t.co/1", "NEU"),
]
TEST = [("لا بأس", "NEU"), ("سيئ جدا 😡", "NEG"), ("رائع", "POS")]


def write(folder: Path, train: list[tuple[str, str]] = TRAIN, test: list[tuple[str, str]] = TEST) -> Path:
    """The authors' layout; their test file ends lines with CR LF."""
    place = folder / "ArSarcasm-v2"
    place.mkdir(parents=True, exist_ok=True)
    for name, rows, end in (("training_data.csv", train, "\n"), ("testing_data.csv", test, "\r\n")):
        with (place / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator=end)
            writer.writerow(["tweet", "sarcasm", "sentiment", "dialect"])
            writer.writerows([text, "FALSE", label, "msa"] for text, label in rows)
    return folder


@pytest.fixture
def found() -> Task:
    return task("arsarcasm")


def test_every_tweet_is_read_as_it_stands(found, tmp_path):
    data = found.load(DataSource(write(tmp_path)))
    assert [text for (text,) in data.pool.texts] == [text for text, _ in TRAIN]
    assert data.pool.labels.tolist() == [0, 2, 1, 0, 1, 1]
    assert [text for (text,) in data.central["test"].texts] == [text for text, _ in TEST]
    assert data.central["test"].labels.tolist() == [1, 0, 2]
    assert (data.held_out, data.skipped) == ({}, ())
    assert data.notes == ("empty texts: 1",)
    assert data.origin == "folder: ArSarcasm-v2/training_data.csv, ArSarcasm-v2/testing_data.csv"


def test_the_folder_itself_may_be_the_data_directory(found, tmp_path):
    folder = write(tmp_path)
    assert found.load(DataSource(folder / "ArSarcasm-v2")).digest == found.load(DataSource(folder)).digest


def test_the_digest_covers_the_central_test_set_and_tells_it_from_the_pool(found, tmp_path):
    digests = {
        found.load(DataSource(write(tmp_path / str(number), train, test))).digest
        for number, (train, test) in enumerate([(TRAIN, TEST), (TRAIN, TEST[:2]), (TEST, TRAIN), (TRAIN, TRAIN)])
    }
    assert len(digests) == 4


class TestMalformedRow:
    @pytest.fixture
    def folder(self, tmp_path):
        return write(tmp_path, [*TRAIN, ("x", "MIXED"), *TRAIN])

    def test_is_an_error_with_file_and_line(self, found, folder):
        # One of the six tweets above spans two lines, and the header is line 1.
        with pytest.raises(UserError) as error:
            found.load(DataSource(folder))
        place = folder / "ArSarcasm-v2" / "training_data.csv"
        assert str(error.value).startswith(f"{place}:9: expected one of the labels NEG, NEU, POS, found 'MIXED'; ")

    def test_is_skipped_and_reported_where_asked(self, found, folder):
        data = found.load(DataSource(folder, lenient=True))
        assert len(data.pool) == 2 * len(TRAIN)
        assert [(row.file, row.line) for row in data.skipped] == [("ArSarcasm-v2/training_data.csv", 9)]


def encoded(folder: Path, name: str, encoding: str) -> Path:
    file = folder / "ArSarcasm-v2" / name
    file.write_bytes(file.read_bytes().decode().encode(encoding, "replace"))
    return file


def test_another_encoding_is_an_error_with_file_and_line(found, tmp_path):
    file = encoded(write(tmp_path), "training_data.csv", "cp1256")
    with pytest.raises(UserError, match=rf"{file}:2: expected UTF-8, found the byte 0xde"):
        found.load(DataSource(tmp_path))


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("name", arsarcasm.FILES)
def test_a_wrong_header_is_an_error_even_with_leniency(found, tmp_path, name, lenient):
    file = write(tmp_path) / "ArSarcasm-v2" / name
    file.write_text(file.read_text().replace("sentiment", "original_sentiment", 1))
    with pytest.raises(UserError, match=rf"{file}:1: expected a header with each of the columns tweet, sentiment"):
        found.load(DataSource(tmp_path, lenient))


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("name", arsarcasm.FILES)
def test_a_missing_file_is_an_error_even_with_leniency(found, tmp_path, name, lenient):
    (write(tmp_path) / "ArSarcasm-v2" / name).unlink()
    with pytest.raises(UserError, match=f"ArSarcasm-v2 lacks {name}; add it"):
        found.load(DataSource(tmp_path, lenient))


def test_without_any_file_the_error_names_every_place(found, tmp_path):
    with pytest.raises(UserError, match="no data of ArSarcasm-v2: looked for") as error:
        found.load(DataSource(tmp_path))
    for place in (tmp_path / "ArSarcasm-v2", tmp_path):
        assert all(str(place / name) in str(error.value) for name in arsarcasm.FILES)
    with pytest.raises(UserError, match="nowhere is no folder"):
        found.load(DataSource(tmp_path / "nowhere"))


def test_the_command_line_says_it_in_one_message(tmp_path, capsys):
    encoded(write(tmp_path), "testing_data.csv", "cp1256")
    assert main(["pretrain", "arabic-mini", "--data-dir", str(tmp_path), "--results-dir", str(tmp_path / "r")]) == 2
    assert capsys.readouterr().err.count("error: ") == 1


# ---- the hub ---------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Has `load_dataset` find a folder with the layout of the hub's copy where it would look for that."""

    def publish(**splits: list[tuple[str, str]]) -> None:
        repository = tmp_path / "hub"
        (repository / "data").mkdir(parents=True)
        listed = ""
        for split, rows in splits.items():
            columns = {"tweet": [text for text, _ in rows], "sentiment": [label for _, label in rows]}
            table = datasets.Dataset.from_dict({**columns, "dialect": ["msa"] * len(rows), "label": [0] * len(rows)})
            table.to_parquet(repository / "data" / f"{split}-00000-of-00001.parquet")
            listed += f"  - split: {split}\n    path: data/{split}-*\n"
        card = f"---\nconfigs:\n- config_name: default\n  data_files:\n{listed}---\n"
        (repository / "README.md").write_text(card)
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
        monkeypatch.setattr(arsarcasm, "REPOSITORY", str(repository))

    return publish


def test_the_hub_has_the_same_examples_and_digest_as_the_files(found, hub, tmp_path):
    hub(train=TRAIN, test=TEST)
    assert found.load(DataSource()).digest == found.load(DataSource(write(tmp_path))).digest


def test_a_hub_without_the_test_set_is_an_error(found, hub):
    hub(train=TRAIN)
    with pytest.raises(UserError, match="expected the splits train, test, found train; set DATA_DIR"):
        found.load(DataSource())


def test_without_a_hub_the_error_says_what_to_do(found):
    with pytest.raises(UserError, match=r"arbml/ArSarcasm_v2 from the Hugging Face hub .*or set DATA_DIR"):
        found.load(DataSource())


# ---- generated and real ----------------------------------------------------------------------------------------


def test_generated_examples_have_the_schema_and_the_real_shares(found):
    data = found.generate(0)
    assert (len(data.pool), len(data.central["test"])) == arsarcasm.GENERATED_EXAMPLES
    for part in (data.pool, data.central["test"]):
        assert {word for (text,) in part.texts for word in text.split()} <= set(VOCABULARY)
        np.testing.assert_allclose(np.bincount(part.labels) / len(part), (0.37, 0.46, 0.17), atol=0.01)
    assert found.generate(0).digest == data.digest != found.generate(1).digest


def test_generated_sentiment_can_be_learnt_from_the_pool(found):
    data = found.generate(0)
    words = CountVectorizer().fit([text for (text,) in data.pool.texts])
    features = [words.transform([text for (text,) in part.texts]) for part in (data.pool, data.central["test"])]
    model = LogisticRegression().fit(features[0], data.pool.labels)
    assert model.score(features[1], data.central["test"].labels) > 0.46 + 0.2  # the majority's share, and more


def test_the_real_files(found, data_dir):
    data = found.load(DataSource(data_dir))
    assert np.bincount(data.pool.labels).tolist() == [4621, 5747, 2180]  # 12548 as the paper's n_s
    assert np.bincount(data.central["test"].labels).tolist() == [1677, 748, 575]  # 3000
    assert (data.skipped, data.notes) == ((), ())
    assert data.central["test"].texts[0][0].endswith("RELAX  ")


def test_dirichlet_gives_every_one_of_five_clients_tweets(found, data_dir):
    labels = found.load(DataSource(data_dir)).pool.labels
    share_out = from_description({"scheme": "dirichlet", "alpha": 1.0})
    for seed in range(5):
        first, second = (share_out(labels, 5, np.random.default_rng(seed)).indices for _ in range(2))
        assert min(len(indices) for indices in first) > 100
        assert np.array_equal(np.sort(np.concatenate(first)), np.arange(len(labels)))
        assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
