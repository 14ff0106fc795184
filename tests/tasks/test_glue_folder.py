"""GLUE's TSV files: what is read from sound ones, and what is said of others."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.errors import UserError
from benchmarks.tasks import DataSource, task
from benchmarks.tasks.glue import CENTRAL_EXAMPLES, FINE_TUNED, GLUE
from fedsim.files import FileError


def load(task_id, folder, lenient=False):
    return task(task_id).load(DataSource(folder, lenient))


@pytest.fixture
def mrpc(tmp_path):
    """A folder with a sound MRPC, whose train.tsv can be replaced by other lines."""
    place = tmp_path / "MRPC"
    place.mkdir()
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    (place / "dev.tsv").write_text(f"{header}\n1\t1\t2\tfirst\tsecond\n")

    def write(*lines: str | bytes, header: str = header):
        encoded = [line.encode() if isinstance(line, str) else line for line in (header, *lines)]
        (place / "train.tsv").write_bytes(b"\n".join(encoded) + b"\n")
        return tmp_path

    return write


GOOD = "0\t1\t2\ta\tb"


@pytest.mark.parametrize("bom", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_text_and_label_is_read_as_it_stands(task_id, layout, rows, write_download, end, bom):
    data = load(task_id, write_download(layout, rows, end, bom))
    pooled = [row for part in rows[:2] for row in part]  # training file, then development file
    assert data.pool.texts == tuple(texts for texts, _ in pooled)
    if task_id == "stsb":
        assert data.pool.labels.dtype == np.float64
        np.testing.assert_allclose(data.pool.labels, [float(code) for _, code in pooled], rtol=1e-7)
    else:
        assert data.pool.labels.dtype == np.int64
        assert data.pool.labels.tolist() == [layout.codes.index(code) for _, code in pooled]
    assert (data.skipped, data.notes) == ((), ())
    assert data.origin == "folder: " + ", ".join(f"{layout.folder}/{file}" for file, _ in layout.files)


def test_held_out_sets_are_no_part_of_the_pool(task_id, layout, rows, write_download):
    data = load(task_id, write_download(layout, rows))
    assert tuple(data.held_out) == task(task_id).evaluations[1:]
    assert [examples.texts for examples in data.held_out.values()] == [
        tuple(texts for texts, _ in part) for part in rows[2:]
    ]


def test_the_folder_glue_data_may_be_named_itself(task_id, layout, rows, write_download):
    folder = write_download(layout, rows)
    assert load(task_id, folder / "glue_data").digest == load(task_id, folder).digest


def test_columns_are_found_by_their_names(tmp_path):
    place = tmp_path / "MNLI"
    place.mkdir()
    for file in ("train.tsv", "dev_matched.tsv", "dev_mismatched.tsv"):
        (place / file).write_text("gold_label\tsentence2\tindex\tsentence1\ncontradiction\thypothesis\t0\tpremise\n")
    data = load("mnli", tmp_path)
    assert data.pool.texts == (("premise", "hypothesis"),) * 2
    assert data.pool.labels.tolist() == [2, 2]


def test_blank_lines_are_no_rows(mrpc):
    assert len(load("mrpc", mrpc("", GOOD, "", "")).pool) == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("0\t1\t2\ta", "expected 5 columns, found 4"),
        ("0\t1\t2\ta\tb\tc", "expected 5 columns, found 6"),
        (" ", "expected 5 columns, found 1"),
        ("2\t1\t2\ta\tb", "expected one of the labels 0, 1, found '2'"),
        ("\t1\t2\ta\tb", "expected one of the labels 0, 1, found ''"),
        ("equivalent\t1\t2\ta\tb", "expected one of the labels 0, 1, found 'equivalent'"),
        ("0\t1\t2\t\tb", "expected a text in column '#1 String', found ''"),
        ("0\t1\t2\ta\t ", "expected a text in column '#2 String', found ' '"),
        (b"0\t1\t2\ta\tb\xff", "expected UTF-8, found the byte 0xff"),
    ],
)
class TestMalformedRow:
    def test_is_an_error_with_file_and_line(self, mrpc, line, reason):
        folder = mrpc(GOOD, line, GOOD)
        with pytest.raises(UserError) as error:
            load("mrpc", folder)
        assert str(error.value).startswith(f"{folder}/MRPC/train.tsv:3: {reason}; ")
        assert "--lenient" in str(error.value)

    def test_is_skipped_and_reported_where_asked(self, mrpc, line, reason):
        data = load("mrpc", mrpc(GOOD, line, GOOD, line), lenient=True)
        assert len(data.pool) == 3  # two of these, one of the development file
        assert [(row.file, row.line, row.reason) for row in data.skipped] == [
            ("MRPC/train.tsv", 3, reason),
            ("MRPC/train.tsv", 5, reason),
        ]
        assert data.notes == ()


@pytest.mark.parametrize("score", ["5.001", "-0.1", "nan", "inf", "high", ""])
def test_a_score_must_be_a_number_from_0_to_5(tmp_path, score):
    place = tmp_path / "STS-B"
    place.mkdir()
    (place / "train.tsv").write_text(f"sentence1\tsentence2\tscore\na\tb\t0\na\tb\t{score}\n")
    (place / "dev.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t5\n")
    with pytest.raises(UserError, match=rf"STS-B/train\.tsv:3: expected a score from 0 to 5, found '{score}'"):
        load("stsb", tmp_path)
    assert load("stsb", tmp_path, lenient=True).pool.labels.tolist() == [0, 5]


def test_a_row_without_gold_label_is_malformed(tmp_path):
    place = tmp_path / "MNLI"
    place.mkdir()
    for file in ("train.tsv", "dev_matched.tsv", "dev_mismatched.tsv"):
        (place / file).write_text("sentence1\tsentence2\tgold_label\na\tb\tneutral\n")
    (place / "dev_mismatched.tsv").write_text("sentence1\tsentence2\tgold_label\na\tb\tneutral\na\tb\t-\n")
    with pytest.raises(UserError, match=r"dev_mismatched\.tsv:3: expected one of the labels entailment, .* '-'"):
        load("mnli", tmp_path)


def test_colas_first_line_is_a_row(tmp_path):
    place = tmp_path / "CoLA"
    place.mkdir()
    (place / "train.tsv").write_text("gj04\tx\t\ta\n")
    (place / "dev.tsv").write_text("gj04\t1\t\ta\n")
    with pytest.raises(UserError, match=r"CoLA/train\.tsv:1: expected one of the labels 0, 1, found 'x'"):
        load("cola", tmp_path)


@pytest.mark.parametrize(
    "header", ["Quality\t#1 ID\t#2 ID\tfirst\tsecond", "Quality\tQuality\t#2 ID\t#1 String\t#2 String", ""]
)
@pytest.mark.parametrize("lenient", [False, True])
def test_a_header_without_the_columns_is_an_error_even_with_leniency(mrpc, header, lenient):
    with pytest.raises(UserError, match=r"train\.tsv:1: expected a header with each of the columns #1 String"):
        load("mrpc", mrpc(GOOD, header=header), lenient)


@pytest.mark.parametrize("lenient", [False, True])
def test_a_file_without_any_sound_row_is_an_error_even_with_leniency(mrpc, lenient):
    with pytest.raises(UserError, match=r"train\.tsv: expected at least one example, found none"):
        load("mrpc", mrpc(), lenient)


def test_a_file_in_another_encoding_is_an_error_at_its_header(mrpc, tmp_path):
    mrpc(GOOD)
    file = tmp_path / "MRPC" / "train.tsv"
    file.write_text(file.read_text(), encoding="utf-16")
    with pytest.raises(UserError, match=r"train\.tsv:1: expected a header in UTF-8"):
        load("mrpc", tmp_path)


class TestMissingFile:
    @pytest.fixture
    def folder(self, layout, rows, write_download):
        return write_download(layout, rows)

    @pytest.mark.parametrize(
        ("task_id", "missing"),
        [(glue.id, missing) for glue in GLUE for missing in range(len(glue.parts))],
    )
    def test_is_an_error_unless_lenient(self, task_id, layout, rows, folder, missing):
        file, _ = layout.files[missing]
        (folder / "glue_data" / layout.folder / file).unlink()
        with pytest.raises(UserError, match=f"{layout.folder} lacks {file}; .*--lenient"):
            load(task_id, folder)
        data = load(task_id, folder, lenient=True)
        assert data.notes == (f"partial: {file} not found",)
        left = [part for number, part in enumerate(rows[:2]) if number != missing]
        assert data.pool.texts == tuple(texts for part in left for texts, _ in part)
        assert len(data.held_out) == sum(number != missing for number in range(2, len(rows)))
        assert file not in data.origin.replace(", ", "/").split("/")

    @pytest.mark.parametrize("lenient", [False, True])
    def test_without_any_the_error_names_every_place(self, task_id, layout, folder, lenient):
        for file, _ in layout.files[:2]:
            (folder / "glue_data" / layout.folder / file).unlink()
        with pytest.raises(UserError, match=f"no data of {layout.folder}: looked for") as error:
            load(task_id, folder, lenient)
        for file, split in layout.files[:2]:
            for place in (
                f"{folder}/glue_data/{layout.folder}/{file}",
                f"{folder}/{layout.folder}/{file}",
                f"{folder}/{task_id}/{split}-00000-of-00001.parquet",
                f"{folder}/glue/{task_id}/{split}-00000-of-00001.parquet",
            ):
                assert place in str(error.value)


def test_a_data_directory_that_is_no_folder_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"nowhere is no folder; set DATA_DIR"):
        load("rte", tmp_path / "nowhere")


def test_an_unreadable_file_is_an_error(mrpc, monkeypatch):
    folder = mrpc(GOOD)

    def refuse(path, flags):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("fedsim.files.os.open", refuse)  # modes do not bind the superuser
    with pytest.raises(FileError, match=r"train\.tsv: .* found one that cannot be read: Permission denied"):
        load("mrpc", folder)


def test_a_central_development_set_beside_a_subset_that_is_always_the_same(tmp_path):
    place = tmp_path / "SST-2"
    place.mkdir()
    lines = [f"phrase {number}\t{number % 2}" for number in range(CENTRAL_EXAMPLES + 5)]
    (place / "train.tsv").write_text("\n".join(["sentence\tlabel", *lines]) + "\n")
    (place / "dev.tsv").write_text("sentence\tlabel\nwhole\t1\n")
    found, whole = load("sst2-central", tmp_path), load("sst2", tmp_path)
    assert len(found.pool) == CENTRAL_EXAMPLES
    assert found.central["test"].texts == (("whole",),)
    assert found.held_out == {}
    assert set(found.pool.texts) < set(whole.pool.texts) - {("whole",)}
    assert all(int(text.split()[1]) % 2 == label for (text,), label in zip(*_of(found.pool), strict=True))
    assert found.digest == load("sst2-central", tmp_path).digest
    assert found.notes == (f"a random subset: {CENTRAL_EXAMPLES} of {len(lines)} training examples",)


def _of(examples):
    return examples.texts, examples.labels.tolist()


def test_generated_data_have_a_central_set_of_their_own():
    found = task("sst2-central").generate(0)
    assert found.pool.texts == task("sst2").generate(0).pool.texts
    assert found.central["test"].texts != found.pool.texts


@pytest.mark.parametrize("task_id", FINE_TUNED)
def test_the_development_set_is_central_beside_the_whole_training_set(task_id, rows, layout, write_download):
    folder = write_download(layout, rows)
    found, merged = load(f"{task_id}-central", folder), load(task_id, folder)
    train = len(rows[0])
    assert found.pool.texts == merged.pool.texts[:train]
    assert found.pool.labels.tolist() == merged.pool.labels.tolist()[:train]
    assert found.central["test"].texts == merged.pool.texts[train:]
    assert (found.held_out, found.notes) == ({}, ())
    if task_id == "mnli":
        assert found.central["mismatched"].texts == merged.held_out["mismatched"].texts
    assert len(found.central) == len(rows) - 1


@pytest.mark.parametrize("task_id", ["qnli"])
def test_a_missing_training_set_is_an_error_even_to_the_lenient(task_id, rows, layout, write_download):
    folder = write_download(layout, rows)
    (folder / "glue_data" / "QNLI" / "train.tsv").unlink()
    with pytest.raises(UserError, match="no data of QNLI"):
        load("qnli-central", folder, lenient=True)


def test_the_whole_of_sst2_is_a_task_of_its_own(tmp_path):
    place = tmp_path / "SST-2"
    place.mkdir()
    lines = [f"phrase {number}\t{number % 2}" for number in range(CENTRAL_EXAMPLES + 5)]
    (place / "train.tsv").write_text("\n".join(["sentence\tlabel", *lines]) + "\n")
    (place / "dev.tsv").write_text("sentence\tlabel\nwhole\t1\n")
    found = load("sst2-whole-central", tmp_path)
    assert (len(found.pool), len(found.central["test"]), found.notes) == (len(lines), 1, ())


@pytest.mark.parametrize("name", [*FINE_TUNED, "sst2", "sst2-whole"])
def test_generated_central_sets_are_of_other_examples(name):
    found, pool = task(f"{name}-central").generate(0), task(name.removesuffix("-whole")).generate(0).pool
    assert found.pool.texts == pool.texts
    assert set(found.central) == set(task(f"{name}-central").evaluations)
    assert all(examples.texts != pool.texts for examples in found.central.values())
    assert found.held_out == {}
