"""The hub's repository: as a folder on disk, and through the same call that reaches the hub."""

from __future__ import annotations

import shutil

import datasets
import pytest

from benchmarks.errors import UserError
from benchmarks.tasks import DataSource, glue, task


def load(task_id, folder=None, lenient=False):
    return task(task_id).load(DataSource(folder, lenient))


@pytest.fixture
def rte(tmp_path):
    """A folder with RTE in the hub's layout; what a test gives goes into the training split."""

    def write(table: datasets.Dataset | None = None):
        place = tmp_path / "rte"
        place.mkdir(exist_ok=True)
        sound = datasets.Dataset.from_dict({"sentence1": ["a"], "sentence2": ["b"], "label": [1]})
        (table or sound).to_parquet(place / "train-00000-of-00001.parquet")
        sound.to_parquet(place / "validation-00000-of-00001.parquet")
        return tmp_path

    return write


@pytest.fixture
def local_hub(tmp_path, monkeypatch):
    """Has `load_dataset` find a local folder where it would look for the hub's repository."""

    def use(repository):
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
        monkeypatch.setattr(glue, "REPOSITORY", str(repository))

    return use


def test_a_clone_has_the_same_examples_and_digest_as_the_download(task_id, layout, rows, write_download, write_hub):
    clone = load(task_id, write_hub(task_id, layout, rows))
    download = load(task_id, write_download(layout, rows))
    assert clone.pool.texts == download.pool.texts
    assert clone.pool.labels.tolist() == download.pool.labels.tolist()
    assert clone.pool.labels.dtype == download.pool.labels.dtype
    assert clone.digest == download.digest
    assert clone.origin == "folder: " + ", ".join(
        f"{task_id}/{split}-00000-of-00001.parquet" for _, split in layout.files
    )


def test_the_hub_has_the_same_examples_and_digest_as_the_download(
    task_id, layout, rows, write_download, write_hub, local_hub
):
    local_hub(write_hub(task_id, layout, rows))
    hub = load(task_id)
    assert hub.digest == load(task_id, write_download(layout, rows)).digest
    assert glue.REVISION in hub.origin


def test_other_examples_have_another_digest(task_id, layout, rows, write_hub):
    before = load(task_id, write_hub(task_id, layout, rows)).digest
    rows[0][0], rows[0][1] = rows[0][1], rows[0][0]
    assert load(task_id, write_hub(task_id, layout, rows)).digest != before


def test_a_clone_may_stand_in_a_folder_glue(task_id, layout, rows, write_hub, tmp_path):
    folder = write_hub(task_id, layout, rows)
    expected = load(task_id, folder).digest
    (tmp_path / "data").mkdir()
    folder.rename(tmp_path / "data" / "glue")
    assert load(task_id, tmp_path / "data").digest == expected


def test_the_download_is_taken_where_a_clone_lies_beside_it(layout, rows, task_id, write_download, write_hub):
    folder = write_download(layout, rows)
    shutil.copytree(write_hub(task_id, layout, [part[:2] for part in rows]), folder / "glue")
    assert len(load(task_id, folder).pool) == len(rows[0]) + len(rows[1])


def test_a_missing_split_is_an_error_unless_lenient(rte):
    folder = rte()
    (folder / "rte" / "train-00000-of-00001.parquet").unlink()
    with pytest.raises(UserError, match=r"RTE lacks train-00000-of-00001\.parquet; .*--lenient"):
        load("rte", folder)
    assert load("rte", folder, lenient=True).notes == ("partial: train-00000-of-00001.parquet not found",)


@pytest.mark.parametrize(
    ("text", "label", "reason"),
    [
        ("", 0, "expected a text in column 'sentence1', found ''"),
        (None, 0, "expected a text in column 'sentence1', found None"),
        ("a", -1, "expected one of the labels 0, 1, found -1"),
        ("a", None, "expected one of the labels 0, 1, found None"),
    ],
)
def test_a_malformed_row_is_an_error_unless_lenient(rte, text, label, reason):
    columns = {"sentence1": ["a", text], "sentence2": ["b", "b"], "label": [1, label]}
    folder = rte(datasets.Dataset.from_dict(columns))
    with pytest.raises(UserError) as error:
        load("rte", folder)
    assert str(error.value).startswith(f"{folder}/rte/train-00000-of-00001.parquet:2: {reason}; ")
    data = load("rte", folder, lenient=True)
    assert len(data.pool) == 2
    assert [(row.file, row.line, row.reason) for row in data.skipped] == [
        ("rte/train-00000-of-00001.parquet", 2, reason)
    ]


def test_labels_in_another_order_are_an_error(rte):
    features = datasets.Features(
        {
            "sentence1": datasets.Value("string"),
            "sentence2": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["not_entailment", "entailment"]),
        }
    )
    columns = {"sentence1": ["a"], "sentence2": ["b"], "label": [0]}
    with pytest.raises(UserError, match="in the order entailment, not_entailment, found not_entailment, entail"):
        load("rte", rte(datasets.Dataset.from_dict(columns, features)))


def test_missing_columns_are_an_error(rte):
    table = datasets.Dataset.from_dict({"premise": ["a"], "sentence2": ["b"], "label": [0]})
    with pytest.raises(UserError, match="expected the columns sentence1, sentence2, label, found premise"):
        load("rte", rte(table))


def test_a_pointer_of_git_lfs_is_an_error_that_says_so(rte):
    folder = rte()
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    (folder / "rte" / "train-00000-of-00001.parquet").write_text(pointer)
    with pytest.raises(UserError, match=r"train-00000-of-00001\.parquet: expected a parquet file .*git lfs pull"):
        load("rte", folder)


def test_without_a_hub_the_error_says_what_to_do():
    # tests/conftest.py sets HF_HUB_OFFLINE
    with pytest.raises(UserError, match=r"cannot load 'rte' of nyu-mll/glue@.* HF_HUB_OFFLINE .*set DATA_DIR"):
        load("rte")


def test_a_hub_without_a_split_is_an_error(monkeypatch):
    train = datasets.Dataset.from_dict({"sentence1": ["a"], "sentence2": ["b"], "label": [1]})
    monkeypatch.setattr(glue, "load_config", lambda *_: datasets.DatasetDict(train=train))
    with pytest.raises(UserError, match="nyu-mll/glue/rte/validation: expected this split, found train"):
        load("rte", lenient=True)
