"""Nothing is dropped in silence: records over several lines, parts of parquet files, and heads of documents."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.errors import UserError
from benchmarks.tasks import DataSource, task
from benchmarks.tasks.base import TaskData
from benchmarks.tasks.rows import TableReader

READER = TableReader(("tweet",), "sentiment", ("NEG", "NEU", "POS"), blank=True)
HEADER = "tweet,sarcasm,sentiment,dialect\n"


def tweets(folder: Path, rows: list[str]) -> Path:
    """A data directory with ArSarcasm's two files of these rows."""
    (folder / "ArSarcasm-v2").mkdir(parents=True, exist_ok=True)
    for name in ("training_data.csv", "testing_data.csv"):
        (folder / "ArSarcasm-v2" / name).write_text(HEADER + "\n".join(rows) + "\n", encoding="utf-8")
    return folder


def load(name: str, folder: Path, lenient: bool = False) -> TaskData:
    return task(name).load(DataSource(folder, lenient))


def rows_of(count: int) -> list[str]:
    return [f"tweet number {number},False,{('NEG', 'NEU', 'POS')[number % 3]},msa" for number in range(count)]


def test_a_quote_that_is_not_closed_swallows_no_tweets(tmp_path):
    rows = rows_of(1200)
    rows[10], rows[900] = '"' + rows[10], 'tweet number 900",False,NEG,msa'
    folder = tweets(tmp_path, rows)
    with pytest.raises(UserError, match=r"training_data\.csv:12: .* one of 891 lines, up to line 902: a quote is not"):
        load("arsarcasm", folder)
    data = load("arsarcasm", folder, lenient=True)
    assert len(data.pool) == 1200 - 891
    assert [(row.line, row.lines) for row in data.skipped] == [(12, 891)] * 2


@pytest.mark.parametrize(("lines", "is_sound"), [(5, True), (9, True), (10, False), (21, False)])
def test_a_record_may_span_some_lines_and_the_longest_is_named(lines, is_sound, tmp_path):
    rows = [*rows_of(20), '"' + "\n".join(["a line"] * lines) + '",False,POS,msa']
    folder = tweets(tmp_path, rows)
    if is_sound:
        data = load("arsarcasm", folder)
        assert len(data.pool) == 21
        assert f"1 over several lines, the longest over {lines} (line 22)" in data.notes[0]
    else:
        with pytest.raises(UserError, match=f"found one of {lines} lines, up to line {21 + lines}"):
            load("arsarcasm", folder)


CELLS = st.text(st.sampled_from('ab",\n'), max_size=6)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12))
def test_the_lines_of_all_records_add_up_to_the_file(tmp_path, cells):
    text = "tweet,sentiment\n" + "".join(f"{one},{other}\n" for one, other in cells)
    file = tmp_path / "file.csv"
    file.write_text(text, encoding="utf-8", newline="")
    rows = list(READER.read_file(file))
    covered = {row.line + place for row in rows for place in range(row.lines)}
    assert len(covered) == sum(row.lines for row in rows)  # no line twice
    lines = text.removesuffix("\n").split("\n")
    assert {number for number, line in enumerate(lines, start=1) if line} - {1} <= covered
    assert max(covered, default=1) <= len(lines)


PAIRS = pd.DataFrame({"sentence1": list("abcd"), "sentence2": list("efgh"), "label": [0, 1, 0, 1], "idx": range(4)})


def shards(folder: Path, *names: str) -> Path:
    (folder / "rte").mkdir(parents=True)
    for name in names:
        PAIRS.to_parquet(folder / "rte" / f"{name}.parquet")
    return folder


def test_a_training_set_in_two_files_is_read_whole(tmp_path):
    folder = shards(tmp_path, "train-00000-of-00002", "train-00001-of-00002", "validation-00000-of-00001")
    data = load("rte", folder)
    assert len(data.pool) == 8 + 4
    assert len(data.files) == 3


@pytest.mark.parametrize("lenient", [False, True])
def test_a_missing_file_of_two_is_refused(lenient, tmp_path):
    folder = shards(tmp_path, "train-00000-of-00002", "validation-00000-of-00001")
    with pytest.raises(UserError, match=r"add train-00001-of-00002\.parquet"):
        load("rte", folder, lenient)


def test_a_training_set_that_is_absent_as_a_whole_is_accepted_leniently_and_noted(tmp_path):
    folder = shards(tmp_path, "validation-00000-of-00001")
    with pytest.raises(UserError, match=r"RTE lacks train-00000-of-00001\.parquet; add what is missing, or accept"):
        load("rte", folder)
    data = load("rte", folder, lenient=True)
    assert (len(data.pool), data.notes) == (4, ("partial: train.tsv not found",))


def test_jnlpba_is_read_as_its_authors_publish_it(tmp_path):
    text = "###MEDLINE:95369245\n\nIL-2\tB-DNA\ngene\tI-DNA\n\n###MEDLINE:90000001\n\nCells\tO\n\n"
    (tmp_path / "JNLPBA").mkdir()
    for name in ("train.txt", "dev.txt", "test.txt"):
        (tmp_path / "JNLPBA" / name).write_text(text, encoding="utf-8")
    data = load("jnlpba", tmp_path)
    assert data.pool.texts == (("IL-2", "gene"), ("Cells",))
    assert data.pool.tags == ((1, 2), (0,))
