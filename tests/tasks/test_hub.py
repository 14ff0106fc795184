"""The hub's repositories, as folders and through the hub's call, and incomplete datasets."""

import datasets
import pytest

from benchmarks.errors import UserError
from benchmarks.tasks import sources, task
from benchmarks.tasks.glue import FINE_TUNED, REPOSITORY, REVISION
from tests.tasks.samples import GLUES, files_of, glue_id, glue_rows, load, write


def clone(folder, dataset):
    """A folder in the layout of the hub's repository."""
    (folder / dataset).mkdir(parents=True)
    glue, listed = GLUES[dataset], ""
    label = float if glue.labels is None else glue.codes.index
    for number, part in enumerate(glue.parts):
        rows = glue_rows(dataset, number)
        texts = {name: [row[place] for row in rows] for place, name in enumerate(glue.hub_texts or glue.texts)}
        columns = {**texts, "label": [label(row[2]) for row in rows], "idx": list(range(len(rows)))}
        table = datasets.Dataset.from_dict(columns)
        if dataset == "stsb":
            table = table.cast_column("label", datasets.Value("float32"))
        table.to_parquet(folder / dataset / f"{part.split}-00000-of-00001.parquet")
        listed += f"  - split: {part.split}\n    path: {dataset}/{part.split}-*\n"
    (folder / "README.md").write_text(f"---\nconfigs:\n- config_name: {dataset}\n  data_files:\n{listed}---\n")
    return folder


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Fill the hub with splits, or with a folder in a repository's layout; return the requests."""
    asked = []

    def use(splits=None, folder=None):
        real = sources.load_config

        def load_config(*args):
            asked.append(args)
            if splits is not None:
                return datasets.DatasetDict(splits)
            return real(str(folder), args[1], args[2])

        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
        monkeypatch.setattr(sources, "load_config", load_config)
        return asked

    return use


@pytest.mark.parametrize("dataset", GLUES)
def test_a_clone_and_the_hub_have_the_same_examples_as_the_download(dataset, tmp_path, hub):
    folder, download = clone(tmp_path / "hub", dataset), write(tmp_path, files_of(task(dataset)))
    expected = load(dataset, download)
    rows = [row for part in (0, 1) for row in glue_rows(dataset, part)]
    width = len(GLUES[dataset].texts)
    assert expected.pool.texts == tuple(row[:width] for row in rows)
    cloned = load(dataset, folder)
    assert cloned.digest == expected.digest
    files = [f"{dataset}/{part.split}-00000-of-00001.parquet" for part in GLUES[dataset].parts]
    assert cloned.origin == f"folder: {', '.join(files)}"
    assert hub(folder=folder) == []
    online = load(dataset)
    assert online.digest == expected.digest
    assert online.origin == f"{REPOSITORY}@{REVISION}, {dataset}"


def test_malformed_rows_are_errors_unless_lenient(hub):
    rows = {"sentence1": ["a", "", "a"], "sentence2": ["b", "b", "b"], "label": [1, 0, -1]}
    split = datasets.Dataset.from_dict(rows)
    hub({"train": split, "validation": split})
    reasons = ["expected a text in column 'sentence1', found ''", "expected one of the labels entailment, not_entail"]
    with pytest.raises(UserError, match=f"^nyu-mll/glue/rte/train:2: {reasons[0]}; .*--lenient"):
        load("rte")
    data = load("rte", lenient=True)
    assert [(row.file, row.line) for row in data.skipped] == [
        (f"nyu-mll/glue/rte/{split}", line) for split in ("train", "validation") for line in (2, 3)
    ]
    assert [row.reason[: len(reason)] for row, reason in zip(data.skipped, reasons, strict=False)] == reasons


def test_labels_in_another_order_and_missing_columns_and_splits_are_errors(hub):
    with pytest.raises(UserError, match=r"cannot load .* from the Hugging Face hub .*HF_HUB_OFFLINE.*set DATA_DIR"):
        load("rte")  # tests/conftest.py sets HF_HUB_OFFLINE
    names = datasets.ClassLabel(names=["not_entailment", "entailment"])
    columns = {"sentence1": ["a"], "sentence2": ["b"], "label": [0]}
    split = datasets.Dataset.from_dict(columns).cast_column("label", names)
    hub({"train": split, "validation": split})
    with pytest.raises(UserError, match="in the order entailment, not_entailment, found not_entailment, entail"):
        load("rte")
    hub({"train": split.remove_columns("sentence1"), "validation": split})
    with pytest.raises(UserError, match="expected the columns sentence1, sentence2, label, found sentence2, label"):
        load("rte")
    hub({"train": split})
    with pytest.raises(UserError, match=r"nyu-mll/glue/rte: expected the splits train, .*, found train; set DATA_DIR"):
        load("rte", lenient=True)


# ---- parts of datasets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task_id", [f"{dataset}-central" for dataset in FINE_TUNED])
def test_the_development_set_is_central_and_the_training_set_the_pool(task_id, tmp_path):
    dataset = glue_id(task(task_id))
    folder = write(tmp_path, files_of(task(dataset)))
    data, merged = load(task_id, folder), load(dataset, folder)
    train = len(glue_rows(dataset, 0))
    assert data.pool.texts == merged.pool.texts[:train]
    central = {"test": merged.pool.texts[train:], **{name: part.texts for name, part in merged.held_out.items()}}
    assert {name: part.texts for name, part in data.central.items()} == central
    assert (data.held_out, data.notes) == ({}, ())


def test_tweets_are_unchanged(tmp_path):
    files = files_of(task("arsarcasm"))
    name = next(iter(files))
    rows = '"سطر\nوآخر",NEU,\n"",NEU,\n"",POS,\nb,NEG,\n'
    data = load("arsarcasm", write(tmp_path, {**files, name: files[name] + rows}))
    assert data.notes[0].endswith("records: 1 over several lines, the longest over 2 (line 8)")
    assert data.notes[1:] == ("empty texts: 2",)
    assert data.pool.texts[6:8] == (("سطر\nوآخر",), ("",))


def test_an_entity_that_begins_with_i_is_kept_and_noted(tmp_path):
    """SciERC's official test set has one; here is every start that IOB2 forbids."""
    strays = "a I-DNA\nb O\nc I-DNA\nd I-RNA\ne I-RNA\nf B-DNA\ng I-RNA\n\nx O\n"
    write(tmp_path, {"JNLPBA/train.txt": strays, "JNLPBA/test.txt": "a I-DNA\n", "JNLPBA/dev.txt": "a O\n"})
    assert load("jnlpba", tmp_path).notes == ("entities that begin with I-: 4 in train.txt, 1 in test.txt",)
