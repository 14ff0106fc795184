"""Representative wrong inputs: status 2, one message that says what to do, and earlier results stay as they were."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

TABLE = "fedsplitbert-table3"
RUN = ["run", TABLE, "--no-tracking"]
Refusal = Callable[..., str]

# Twelve of them end in the command line itself, before any library is loaded or a file written.
WRONG: dict[str, tuple[list[str], str]] = {
    "misspelled benchmark": (["plan", "fedsplitbert-tabel3"], "Did you mean 'fedsplitbert-table3'?"),
    "unknown flag": ([*RUN, "--sacle", "lite"], "unrecognized arguments: --sacle"),
    "unknown task": ([*RUN, "--tasks", "squad"], "unknown task 'squad': expected one of mrpc, cola"),
    "misspelled method": ([*RUN, "--methods", "fedavgg"], "Did you mean 'fedavg'?"),
    "unknown scale": ([*RUN, "--scale", "huge"], "unknown scale 'huge': expected one of demo, lite, literal, paper"),
    "no seeds": ([*RUN, "--seeds", "0"], "--seeds: expected a number of seeds from 1 to 10,000"),
    "unknown field": ([*RUN, "--set", "training.round=2"], "training.round"),
    "another type": ([*RUN, "--set", "training.rounds=two"], "training.rounds"),
    "no such device": ([*RUN, "--tasks", "mrpc", "--device", "toaster"], "device 'toaster': expected cpu, cuda"),
    "no such encoder": (["plan", TABLE, "--backbone", "nobody/no-such-bert"], "BACKBONE to a folder that holds"),
    "no data folder": ([*RUN, "--data-dir", "/no/such/folder"], "expected a folder, found nothing. Set DATA_DIR"),
    "no records": (["report", TABLE, "--tasks", "rte"], "belongs to what was asked for: run it first"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_input_ends_with_one_message(case: str, refusal: Refusal, results: Path) -> None:
    arguments, expected = WRONG[case]
    assert expected in refusal([*arguments, "--results-dir", str(results)])


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("options.critical_layer=13", "critical layer 13: expected 0 to 12, of the paper's 12 layers"),
        ("options.dropout=0.5", "fedsplitbert: unknown options ['dropout']"),
        ("training.precision=fp16", "precision fp16 needs a GPU"),
        ("clients=100000", "100000 clients cannot share 240 examples"),
        ('partition={"scheme":"alphabetical"}', "unknown partition scheme 'alphabetical', known are"),
    ],
)
def test_a_wrong_value_ends_with_one_message(
    assignment: str, expected: str, refusal: Refusal, results: Path, run_words: Callable[..., list[str]]
) -> None:
    assert expected in refusal(run_words(results, "fedsplitbert", "training.rounds=1", assignment))


def test_seeds_that_are_neither_a_count_nor_a_range_are_named(refusal: Refusal, results: Path) -> None:
    for text in ("0", "-3", "10-5", "5-", "a-b", "1-2-3", "5-10001", "0-10000"):
        assert repr(text) in refusal([*RUN, f"--seeds={text}", "--results-dir", str(results)])


def test_a_results_folder_below_a_file_is_refused(
    refusal: Refusal, tmp_path: Path, run_words: Callable[..., list[str]]
) -> None:
    (tmp_path / "file").touch()
    message = refusal(run_words(tmp_path / "file" / "results", "fedavg"))
    assert "cannot be written (Not a directory). Set RESULTS_DIR" in message


def test_a_damaged_record_is_named_and_nothing_is_lost(
    refusal: Refusal,
    finished_results: Path,
    tmp_path: Path,
    run_words: Callable[..., list[str]],
    contents: Callable[[Path], dict[str, bytes]],
) -> None:
    copy = tmp_path / "results"
    shutil.copytree(finished_results, copy)
    (record,) = (copy / "records").glob("*.json")
    record.write_text(record.read_text().replace('"seed": 0', '"seed": 7'))
    before = contents(copy)
    for arguments in (
        run_words(copy, "fedsplitbert", "training.rounds=1"),
        ["report", "--results-dir", str(copy)],
        ["import", str(copy / "records"), "--results-dir", str(tmp_path / "other")],
    ):
        message = refusal(arguments)
        assert message.startswith(f"{record}: expected a record of a finished cell, found a damaged one")
        assert "move it away to compute the cell again; other records are not touched" in message
    assert contents(copy) == before
    assert not list((tmp_path / "other").rglob("*.json"))
