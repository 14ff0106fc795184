"""Records whose checksum was made to fit: what no run can have written is refused all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.record import CHECKSUM, checksum, read_record
from tests.conftest import ROOT

SOURCE = sorted((ROOT / "benchmarks" / "fedsplitbert" / "records").glob("lite-mrpc-fedavg-*.json"))[0]


def forged(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """A committed record with a change, and the checksum of what it then holds."""
    value = json.loads(SOURCE.read_text(encoding="utf-8"))
    del value[CHECKSUM]
    change(value)
    value[CHECKSUM] = checksum(value)
    path = folder / SOURCE.name
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_one_that_was_not_changed_is_read(tmp_path: Path) -> None:
    assert read_record(forged(tmp_path, lambda value: None)) == read_record(SOURCE)


def first(value: dict[str, Any]) -> dict[str, Any]:
    return value["rounds"][0]


def doubled(value: dict[str, Any]) -> None:
    value["rounds"].append(value["rounds"][-1])


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a text for a number": (lambda value: first(value).update(up_bytes="12"), r"rounds.0.up_bytes: .*valid integer"),
    "a truth for a number": (lambda value: value.update(setup_bytes=True), r"setup_bytes: .*valid integer"),
    "part of a byte": (lambda value: first(value).update(down_bytes=1.5), r"rounds.0.down_bytes"),
    "a score in words": (lambda value: first(value)["scores"]["test"].update(f1="high"), r"rounds.0.scores.test.f1"),
    "clients as a number": (lambda value: value.update(clients=3), r"not iterable"),
    "a rate in words": (
        lambda value: value["cell"]["training"].update(learning_rate="fast"),
        r"its content gives the id",
    ),
    "fewer clients": (lambda value: value["clients"].pop(), r"clients: expected 3, found 2"),
    "other bytes": (lambda value: first(value).update(up_bytes=1), r"round 1: 1 bytes up, and \d+ in the ledger"),
    "another ledger": (lambda value: value["ledger"].pop(), r"in the ledger"),
    "bytes below 0": (lambda value: value["ledger"][0].__setitem__(5, -1), r"ledger: .* cannot be"),
    "a third direction": (lambda value: value["ledger"][0].__setitem__(2, "across"), r"names no direction"),
    "a client too many": (lambda value: value["ledger"][0].__setitem__(1, 99), r"names no direction or client"),
    "a round twice": (doubled, r"rounds: expected 1, 2, 3 and so on"),
    "an encoder from nowhere": (lambda value: value["inputs"]["backbone"].pop("origin"), r"the origin of the backbone"),
    "no rounds": (lambda value: value["rounds"].clear(), r"expected some of a cell that did not diverge"),
    "a stranger": (lambda value: first(value).update(cohort=[7]), r"round 1: a cohort of clients that there are not"),
    "scores of two": (lambda value: first(value)["client_scores"].pop(), r"expected scores of 3 clients, found 2"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_one_that_no_run_can_have_written_is_refused(name: str, tmp_path: Path) -> None:
    change, found = CHANGES[name]
    with pytest.raises(UserError, match=f"expected a record of a finished cell, found a damaged one .*{found}"):
        read_record(forged(tmp_path, change))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "it.json").mkdir()
    with pytest.raises(UserError, match=r"it.json: expected a record of a finished cell.*found a folder"):
        read_record(tmp_path / "it.json")


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff", b'{"schema": NaN}', b"[]", b"3", b""])
def test_what_is_no_record_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "it.json").write_bytes(content)
    with pytest.raises(UserError, match=r"it.json: expected a record of a finished cell"):
        read_record(tmp_path / "it.json")
