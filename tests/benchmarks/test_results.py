"""Results: the content of their files, and which files are rejected."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.results import CHECKSUM, checksum, read_folders, read_result, read_results, write_result, write_text
from tests.benchmarks.conftest import outcome
from tests.conftest import ROOT

COMMITTED = sorted(ROOT.glob("benchmarks/*/records/*.json"))
RECORD = read_result(next(path for path in COMMITTED if path.name.startswith("lite-mrpc-fedavg-s0-")))


@pytest.mark.parametrize("path", COMMITTED[::100], ids=lambda path: path.stem)
def test_a_committed_record_is_read_and_written_as_it_was(path, tmp_path):
    written = write_result(tmp_path, read_result(path))
    assert written == tmp_path / path.name
    assert written.read_bytes() == path.read_bytes()
    assert written.stat().st_mode & 0o777 == 0o644  # readable for others, as other results are
    (again,) = read_results(tmp_path)
    assert again.folder == tmp_path


def test_a_finished_record_is_never_overwritten(tmp_path):
    path = write_result(tmp_path, RECORD)
    before = path.read_bytes()
    assert write_result(tmp_path, dataclasses.replace(RECORD, finished="2027-01-01T00:00:00+00:00")) == path
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
    "another schema": (lambda value: value.update(schema=0), "expected the record schema 1, found 0"),
    "an unknown field, and more": (
        lambda value: value["cell"]["training"].update(mood="good", rounds=0),
        "cell.training.rounds: .* above 0",
    ),
    "a text for a number": (
        lambda value: first(value).update(up_bytes="12"),
        "up_bytes: expected a valid integer",
    ),
    "no such rounds": (lambda value: value["cell"]["training"].update(rounds=0), "cell.training.rounds: .* above 0"),
    "another id": (lambda value: value.update(cell_id="0" * 16), "it was changed after the run"),
    "bytes below 0": (lambda value: value["ledger"][0].__setitem__(5, -1), "ledger.0.5: .* at least 0"),
    "other sums": (
        lambda value: first(value).update(up_bytes=1),
        f"round 1: expected the ledger's {RECORD.rounds[0].up_bytes} bytes up, found 1",
    ),
    "a third direction": (lambda value: value["ledger"][0].__setitem__(2, "across"), "ledger.0.2: .*up.down"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_record_that_no_run_can_have_written_is_refused(name, tmp_path):
    change, fault = CHANGES[name]
    path = forged(tmp_path / "it.json", change)
    with pytest.raises(UserError, match=rf"it\.json: expected a record of a finished cell, found a damaged .*{fault}"):
        read_result(path)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda value: value.update(schema=2, mood="good"), "schema 2, this version reads schema 1"),
        (lambda value: value.update(mood="good"), "this version does not know field mood"),
        (
            lambda value: (value["cell"]["training"].update(mood="good"), first(value).update(mood="good")),
            "this version does not know fields cell.training.mood, rounds.0.mood",
        ),
    ],
)
def test_a_record_of_a_newer_version_is_not_called_damaged(change, found, tmp_path):
    path = forged(tmp_path / "it.json", change)
    with pytest.raises(UserError, match=rf"found one of a newer version of the project \({found}\)\. Update this"):
        read_result(path)
    path.write_text(path.read_text().replace("good", "bad"))
    with pytest.raises(UserError, match=r"found a damaged one \(its checksum does not match its content"):
        read_result(path)


def test_a_record_that_may_not_be_read_is_not_called_damaged(monkeypatch, tmp_path):
    def refuse(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    path = write_result(tmp_path, RECORD)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UserError, match=r"cannot be read: Permission denied; correct its permissions") as raised:
        read_result(path)
    assert "damaged" not in str(raised.value)


def test_a_record_that_was_edited_is_refused(tmp_path):
    assert outcome(read_result(forged(tmp_path / "it.json", lambda value: None))) == outcome(RECORD)
    path = write_result(tmp_path, RECORD)
    path.write_text(path.read_text().replace('"finished": "20', '"finished": "19'))
    with pytest.raises(UserError, match="checksum does not match its content: it was changed after the run"):
        read_result(path)


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"schema": NaN}', b"[" * 100_000])
def test_a_file_that_is_not_json_is_refused(content, tmp_path):
    (tmp_path / "it.json").write_bytes(content)
    with pytest.raises(UserError, match=r"it.json: expected a record of a finished cell.*Restore the file, or move"):
        read_result(tmp_path / "it.json")


@pytest.mark.parametrize(("name", "found"), [("absent", "found nothing"), (".", "found its parent; name .*records")])
def test_a_folder_without_records_is_refused(tmp_path, name, found):
    (tmp_path / "records").mkdir()
    with pytest.raises(UserError, match=f"expected a folder of records, {found}"):
        read_folders([tmp_path / name])
    assert read_folders([tmp_path / "records"]) == []
