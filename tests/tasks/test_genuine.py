"""Published data are recognised with any line endings; other data are named as such."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.registry import benchmark
from benchmarks.running.counts import stand_ins
from benchmarks.running.federation import stand_in_of
from benchmarks.running.run_options import RunOptions
from benchmarks.tasks import task
from benchmarks.tasks.base import BySizes, DataSource, TaskData, TextExamples


def data_of(pool: int, **central: int) -> TaskData:
    def texts(count: int) -> TextExamples:
        return TextExamples([("a text",)] * count, np.zeros(count, dtype=np.int64))

    return TaskData(texts(pool), "folder: a/train.txt", central={name: texts(count) for name, count in central.items()})


def test_sizes_are_those_of_all_sets():
    is_genuine = BySizes(({"pool": 100, "test": 10}, {"pool": 50}), tolerance=0.05)
    assert is_genuine(data_of(96, test=10))
    assert is_genuine(data_of(50))
    for other in (data_of(94, test=10), data_of(100), data_of(100, test=12), data_of(50, test=10)):
        assert not is_genuine(other)


@pytest.mark.parametrize(("name", "file"), [("scierc", "SciERC/train.txt"), ("rte", "glue_data/RTE/train.tsv")])
def test_line_endings_do_not_matter_and_words_do(name, file, data_dir, tmp_path):
    shutil.copytree(data_dir / file.rpartition("/")[0], folder := tmp_path / file.rpartition("/")[0])
    copy = tmp_path / file
    for path in folder.iterdir():
        path.chmod(0o644)
    copy.write_bytes(copy.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    of, source = task(name), DataSource(tmp_path)
    assert of.stand_in(of.load(source)) == ""
    copy.write_bytes(copy.read_bytes().replace(b"the", b"The", 1))
    data = of.load(source)
    assert of.stand_in(data) == f"{data.origin.removeprefix('folder: ')}: {len(data.pool):,} examples"


def test_what_is_not_the_published_text_has_its_own_name(data_dir, tmp_path):
    table = benchmark("fedbfpt-table3")
    (column,) = (each for each in table.columns if each.task == "scierc")
    cell = table.cell(table.row("fedbfpt"), column, table.scale("paper"), 0)
    options = RunOptions(tmp_path, data_dir)
    text = stand_in_of(cell, options)
    assert text == "corpora/computer_science.txt: 22,160 examples"
    assert stand_ins([cell.initial, cell], options) == [text]
    assert stand_in_of(replace(cell, scale="lite"), options) == ""
