"""Results: the content of their files, and which files are rejected."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.results import (
    CHECKSUM,
    LedgerEntry,
    RoundRecord,
    RunResult,
    checksum,
    read_result,
    read_results,
    write_result,
    write_text,
)
from tests.benchmarks.test_run_config import CELL, INPUTS
from tests.conftest import ROOT

SCORES = ({"test": {"f1": 0.5, "accuracy": None}}, {"test": {"f1": 0.7, "accuracy": 0.5}})
RECORD = RunResult(
    cell=CELL,
    cell_id=CELL.cell_id(INPUTS),
    inputs={
        "data": {"digest": "d1", "origin": "folder: MRPC/train.tsv", "skipped": ["MRPC/dev.tsv:3: é"]},
        "backbone": {"digest": "b1", "origin": {"from": "folder"}},
    },
    partition={"scheme": "label-table", "sizes": [20, 20]},
    clients=({"client": 0, "train": 16, "test": 4}, {"client": 1, "train": 16, "test": 5}),
    rounds=tuple(
        RoundRecord(number, (0, 1), 0.6 / number, (0.5, 0.7), {"test": {"f1": f1, "accuracy": None}}, SCORES, 40, 30)
        for number, f1 in ((1, 0.8), (2, 0.6))
    ),
    sampling_errors={"test": {"f1": 0.02, "accuracy": None}},
    setup_bytes=100,
    ledger=(
        LedgerEntry(0, 0, "down", "parameters", 25, 100),
        LedgerEntry(1, 0, "up", "parameters", 10, 40, 2),
        LedgerEntry(1, 1, "down", "parameters", 10, 30),
        LedgerEntry(2, 0, "up", "parameters", 10, 40),
        LedgerEntry(2, 1, "down", "parameters", 10, 30),
    ),
    environment={"revision": "abc", "versions": {"torch": "2"}},
    timing={"train_seconds": 1.5, "setup_seconds": 0.5},
    finished="2026-01-01T00:00:00+00:00",
)
COMMITTED = sorted(ROOT.glob("benchmarks/*/records/*.json"))
replace = dataclasses.replace


def test_a_record_comes_back_as_it_was(tmp_path):
    path = write_result(tmp_path, RECORD)
    assert path.name == f"lite-mrpc-fedsplitbert-s0-{RECORD.cell_id}.json"
    again = read_result(path)
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept.pop(CHECKSUM) == checksum(kept)
    assert again.to_json() == kept
    assert (again.rounds, again.ledger, again.outcome) == (RECORD.rounds, RECORD.ledger, RECORD.outcome)
    assert again.folder == tmp_path
    assert [record.cell_id for record in read_results(tmp_path)] == [RECORD.cell_id]
    assert path.stat().st_mode & 0o777 == 0o644  # readable for others, as other results are


@pytest.mark.parametrize("path", COMMITTED[::100], ids=lambda path: path.stem)
def test_a_committed_record_is_written_as_it_was(path, tmp_path):
    assert write_result(tmp_path, read_result(path)).read_bytes() == path.read_bytes()


def test_a_finished_record_is_never_overwritten(tmp_path):
    path = write_result(tmp_path, RECORD)
    before = path.read_bytes()
    assert write_result(tmp_path, replace(RECORD, finished="2027-01-01T00:00:00+00:00")) == path
    assert path.read_bytes() == before


def test_a_crash_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "text"
    write_text(path, "old")

    def crash(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for owner, step in ((os, "fsync"), (Path, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, crash)
            with pytest.raises(OSError, match="No space left"):
                write_text(path, "new and longer")
        assert path.read_text() == "old"
        assert list(path.parent.iterdir()) == [path]


def forged(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A changed record with the matching checksum."""
    value = json.loads(json.dumps(RECORD.to_json()))
    change(value)
    value[CHECKSUM] = checksum(value)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def first(value: dict[str, Any]) -> dict[str, Any]:
    return value["rounds"][0]


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another schema": (lambda value: value.update(schema=0), "record schema 0, this version reads 1"),
    "an unknown field": (lambda value: value.update(mood="good"), "mood: .* found an unknown field"),
    "a text for a number": (
        lambda value: first(value).update(up_bytes="12"),
        "up_bytes: expected a valid integer",
    ),
    "no such rounds": (lambda value: value["cell"]["training"].update(rounds=0), "cell.training.rounds: .* above 0"),
    "another id": (lambda value: value.update(cell_id="0" * 16), "it was changed after the run"),
    "bytes below 0": (lambda value: value["ledger"][0].__setitem__(5, -1), "ledger.0.5: .* at least 0"),
    "other sums": (lambda value: first(value).update(up_bytes=41), "round 1: its ledger has 40 bytes up"),
    "a third direction": (lambda value: value["ledger"][0].__setitem__(2, "across"), "ledger.0.2: .*up.down"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_record_that_no_run_can_have_written_is_refused(name, tmp_path):
    change, found = CHANGES[name]
    path = forged(tmp_path / "it.json", change)
    with pytest.raises(UserError, match=rf"it\.json: expected a record of a finished cell, found a damaged .*{found}"):
        read_result(path)


def test_a_record_that_was_edited_is_refused(tmp_path):
    assert read_result(forged(tmp_path / "it.json", lambda value: None)).outcome == RECORD.outcome
    path = write_result(tmp_path, RECORD)
    path.write_text(path.read_text().replace('"train_loss": 0.6', '"train_loss": 0.1'))
    with pytest.raises(UserError, match="checksum does not match its content: it was changed after the run"):
        read_result(path)


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"schema": NaN}', b"[" * 100_000])
def test_a_file_that_is_not_json_is_refused(content, tmp_path):
    (tmp_path / "it.json").write_bytes(content)
    with pytest.raises(UserError, match=r"it.json: expected a record of a finished cell.*Restore the file, or move"):
        read_result(tmp_path / "it.json")
