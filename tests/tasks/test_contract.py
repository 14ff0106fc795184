"""Properties of every task: registry, schema, files, and malformed lines. Digests: tests/contract."""

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.errors import NoDataError, UserError
from benchmarks.tasks import DataSource, Task, TaskData, tasks
from benchmarks.tasks.generated import VOCABULARY
from tests.tasks.samples import MALFORMED, files_of, kind_of, write

every_task = pytest.mark.parametrize("of", tasks(), ids=lambda of: of.id)


def parts_of(data: TaskData):
    return [data.pool, *data.held_out.values(), *data.central.values()]


def assert_schema(of: Task, data: TaskData) -> None:
    assert {"test", *data.held_out, *data.central} <= {*of.evaluations, "test", "validation"}
    assert (of.classes > 1) == (of.objective not in ("regression", "masked_lm", "causal_lm"))
    assert of.tags == () or of.tags == ("O", *(f"{mark}-{tag[2:]}" for tag in of.tags[1::2] for mark in "BI"))
    for part in parts_of(data):
        assert len(part.texts) == len(part.labels) > 0
        assert part.labels.dtype == (np.float64 if of.objective == "regression" else np.int64)
        if of.tags:
            assert [len(tokens) for tokens in part.texts] == [len(tags) for tags in part.tags]
            assert {tag for tags in part.tags for tag in tags} <= set(range(len(of.tags)))
        elif of.objective == "regression":
            assert (part.labels.min(), part.labels.max()) == (0, 5)
        else:
            assert set(part.labels.tolist()) <= set(range(len(of.labels or (0,))))


@every_task
def test_generated_data_have_the_schema_and_depend_on_the_seed(of):
    data = of.generate(0)
    assert_schema(of, data)
    assert of.generate(0).digest == data.digest != of.generate(1).digest
    vocabulary = {word for texts in data.pool.texts for text in texts for word in re.split("[ -]", text)}
    assert vocabulary <= set(VOCABULARY)
    assert all(examples.texts != data.pool.texts for examples in parts_of(data)[1:])


@every_task
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


@every_task
def test_a_malformed_line_is_an_error_with_file_and_line_and_leniency_counts_it(of, tmp_path):
    files = files_of(of)
    name = next(iter(files))
    line, reason = MALFORMED[kind_of(of)]
    sound = of.load(DataSource(write(tmp_path / "sound", files)))
    before = "\n" if kind_of(of) == "conll" else ""  # the line is a sentence
    damaged = {**files, name: f"{files[name]}{before}{line}\n"}
    folder = write(tmp_path, damaged)
    number = len(re.findall("\r\n|\n|\r", damaged[name]))
    with pytest.raises(UserError, match=rf"{re.escape(str(folder / name))}:{number}: {reason}; fix the .*--lenient"):
        of.load(DataSource(folder))
    data = of.load(DataSource(folder, lenient=True))
    assert [(row.file, row.line) for row in data.skipped] == [("/".join(name.split("/")[-2:]), number)]
    assert re.fullmatch(reason, data.skipped[0].reason)
    assert data.digest == sound.digest


@every_task
def test_missing_files_are_named(of, tmp_path):
    with pytest.raises(UserError, match=r"nowhere is not a folder; set DATA_DIR"):
        of.load(DataSource(tmp_path / "nowhere"))
    with pytest.raises(NoDataError, match=rf"^no .*looked in {re.escape(str(tmp_path))}/ for .*; put .*there") as error:
        of.load(DataSource(tmp_path, lenient=True))
    looked_for = str(error.value).partition("/ for ")[2].partition("; put ")[0].split(", ")
    assert len(set(looked_for)) == len(looked_for)
    on_hub = of.id not in ("nicta-piboso", "scierc")
    assert ("leave DATA_DIR unset" in str(error.value)) == on_hub
    if not on_hub:
        with pytest.raises(UserError, match=r"hub has no complete copy; set DATA_DIR .*github.com/.*with train.txt"):
            of.load(DataSource())
    *rest, last = files_of(of)
    if not rest or of.id.startswith("corpus-"):
        return
    folder = write(tmp_path, {name: content for name, content in files_of(of).items() if name != last})
    if of.family == "glue":
        with pytest.raises(UserError, match=rf"lacks {Path(last).name}; add it, or .*--lenient"):
            of.load(DataSource(folder))
        assert of.load(DataSource(folder, lenient=True)).notes == (f"partial: {Path(last).name} not found",)
    else:
        with pytest.raises(UserError, match=Path(last).name):
            of.load(DataSource(folder, lenient=True))


@every_task
def test_a_file_without_an_example_is_an_error_even_with_leniency(of, tmp_path):
    files = files_of(of)
    name = next(iter(files))
    header = files[name].split("\n")[0] if of.family in ("glue", "arsarcasm") and of.name != "CoLA" else ""
    folder = write(tmp_path, {**files, name: f"{header}\n\n"})
    for lenient in (False, True):
        with pytest.raises(UserError, match=rf"{Path(name).name}.*: expected .*found none"):
            of.load(DataSource(folder, lenient))
