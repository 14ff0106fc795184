"""What holds for every task: registry, schema, files, and malformed lines. Digests: tests/contract."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.errors import NoDataError, UserError
from benchmarks.tasks import DataSource, Task, TaskData, task, tasks
from benchmarks.tasks.generated import VOCABULARY
from tests.tasks.samples import MALFORMED, files_of, kind_of, write

TASKS = tasks()


def parts_of(data: TaskData):
    return [data.pool, *data.held_out.values(), *data.central.values()]


# ---- the registry ----------------------------------------------------------------------------------------------


def test_tasks_are_known_by_their_ids():
    assert all(task(of.id) is of for of in TASKS)
    with pytest.raises(UserError, match=r"unknown task 'MRCP': did you mean 'mrpc'.* the tasks are .*mrpc"):
        task("MRCP")


def test_the_registry_imports_nothing_heavy():
    code = (
        "import sys; from benchmarks.tasks import tasks; tasks(); "
        "print([m for m in ('torch', 'datasets', 'evaluate', 'pandas') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_tags_are_in_the_order_by_which_metrics_know_them():
    for tags in (of.tags for of in TASKS if of.tags):
        assert tags[0] == "O"
        assert [tag[:2] for tag in tags[1:]] == ["B-", "I-"] * (len(tags) // 2)
        assert all(begins[2:] == inside[2:] for begins, inside in zip(tags[1::2], tags[2::2], strict=True))


# ---- the schema ------------------------------------------------------------------------------------------------


def assert_schema(of: Task, data: TaskData) -> None:
    assert {"test", *data.held_out, *data.central} <= {*of.evaluations, "test", "validation"}
    assert (of.classes > 1) == (of.objective not in ("regression", "masked_lm", "causal_lm"))
    for part in parts_of(data):
        assert len(part.texts) == len(part.labels) > 0
        assert part.labels.dtype == (np.float64 if of.objective == "regression" else np.int64)
        if of.tags:
            assert [len(words) for words in part.texts] == [len(tags) for tags in part.tags]
            assert {tag for tags in part.tags for tag in tags} <= set(range(len(of.tags)))
        elif of.objective == "regression":
            assert (part.labels.min(), part.labels.max()) == (0, 5)
        else:
            assert set(part.labels.tolist()) <= set(range(len(of.labels or (0,))))


@pytest.mark.parametrize("of", TASKS, ids=lambda of: of.id)
def test_generated_data_have_the_schema_and_are_those_of_their_seed(of):
    data = of.generate(0)
    assert_schema(of, data)
    assert of.generate(0).digest == data.digest != of.generate(1).digest
    words = {word for texts in data.pool.texts for text in texts for word in re.split("[ -]", text)}
    assert words <= set(VOCABULARY)
    assert all(examples.texts != data.pool.texts for examples in parts_of(data)[1:])


# ---- files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", TASKS, ids=lambda of: of.id)
def test_a_small_dataset_is_loaded_and_its_files_are_known(of, tmp_path):
    files = files_of(of)
    data = of.load(DataSource(write(tmp_path, files), extracts=tmp_path / "extracts"))
    assert_schema(of, data)
    assert data.files == tuple(tmp_path / name for name in files)
    assert data.origin == "folder: " + ", ".join("/".join(name.split("/")[-2:]) for name in files)
    assert not data.skipped
    first = next(iter(files))
    changed = {**files, first: re.sub("it ended|words|gene|Goes", "changed", files[first])}
    assert of.load(DataSource(write(tmp_path / "other", changed))).digest != data.digest


@pytest.mark.parametrize("of", TASKS, ids=lambda of: of.id)
def test_a_malformed_line_is_an_error_with_file_and_line_and_leniency_counts_it(of, tmp_path):
    files = files_of(of)
    name = next(iter(files))
    line, reason = MALFORMED[kind_of(of)]
    before = DataSource(write(tmp_path / "whole", files))
    own_sentence = "\n" if kind_of(of) == "conll" else ""
    damaged = {**files, name: f"{files[name]}{own_sentence}{line}\n"}
    folder = write(tmp_path, damaged)
    number = len(re.findall("\r\n|\n|\r", damaged[name]))
    with pytest.raises(UserError, match=rf"{re.escape(str(folder / name))}:{number}: {reason}; mend the .*--lenient"):
        of.load(DataSource(folder))
    data = of.load(DataSource(folder, lenient=True))
    assert [(row.file, row.line) for row in data.skipped] == [("/".join(name.split("/")[-2:]), number)]
    assert re.fullmatch(reason, data.skipped[0].reason)
    assert data.digest == of.load(before).digest


@pytest.mark.parametrize("of", TASKS, ids=lambda of: of.id)
def test_what_is_missing_is_named(of, tmp_path):
    with pytest.raises(UserError, match=r"nowhere is not a folder; set DATA_DIR"):
        of.load(DataSource(tmp_path / "nowhere"))
    with pytest.raises(NoDataError, match=rf"^no .*looked for .*{re.escape(str(tmp_path))}/.*; put .*there") as error:
        of.load(DataSource(tmp_path, lenient=True))
    assert ("leave DATA_DIR unset" in str(error.value)) == (of.id not in ("nicta-piboso", "scierc"))
    *rest, last = files_of(of)
    if not rest or of.id.startswith("corpus-"):
        return
    folder = write(tmp_path, {name: content for name, content in files_of(of).items() if name != last})
    if of.family == "glue":
        with pytest.raises(UserError, match=rf"lacks {Path(last).name}; add what is missing, or .*--lenient"):
            of.load(DataSource(folder))
        assert of.load(DataSource(folder, lenient=True)).notes == (f"partial: {Path(last).name} not found",)
    else:
        with pytest.raises(UserError, match=Path(last).name):
            of.load(DataSource(folder, lenient=True))


@pytest.mark.parametrize("of", TASKS, ids=lambda of: of.id)
def test_a_file_without_an_example_is_an_error_even_with_leniency(of, tmp_path):
    files = files_of(of)
    name = next(iter(files))
    header = files[name].split("\n")[0] if of.family in ("glue", "arsarcasm") and of.name != "CoLA" else ""
    folder = write(tmp_path, {**files, name: f"{header}\n\n"})
    for lenient in (False, True):
        with pytest.raises(UserError, match=rf"{Path(name).name}.*: expected .*found none"):
            of.load(DataSource(folder, lenient))
