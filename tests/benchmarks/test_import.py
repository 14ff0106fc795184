"""`import`: records computed elsewhere are taken in under their names, inside the results folder and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.record import checksum
from benchmarks.spec import Cell, digest

Refusal = Callable[..., str]


def forged(value: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A record whose cell was changed, with the id and the checksum that fit it."""
    value = {name: entry for name, entry in value.items() if name != "sha256"}
    value["cell"] = {**value["cell"], **changes}
    inputs = {name: entry["digest"] for name, entry in value["inputs"].items()}
    value["cell_id"] = digest({"cell": value["cell"], "inputs": inputs})
    return {**value, "sha256": checksum(value)}


@pytest.fixture
def record(finished_results: Path) -> dict[str, Any]:
    (path,) = (finished_results / "records").glob("*.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_a_record_of_another_cell_is_taken_in(record: dict[str, Any], tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    value = forged(record, seed=7)
    (given / "any name.json").write_text(json.dumps(value), encoding="utf-8")
    assert main(["import", str(given), "--results-dir", str(tmp_path / "results")]) == 0
    (kept,) = (tmp_path / "results" / "records").iterdir()
    assert kept.name == f"demo-mrpc-fedsplitbert-s7-{value['cell_id']}.json"


NAMES = ["../../outside", "{here}/outside", "in/side", "..", "", "a\x00b", "x" * 300, 0.5, 10**300]


@pytest.mark.parametrize("field", ["scale", "task", "algorithm", "seed"])
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_name_that_leads_elsewhere_is_refused_and_nothing_is_written(
    field: str, name: Any, record: dict[str, Any], refusal: Refusal, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    name = name.format(here=tmp_path) if isinstance(name, str) else name
    (given / "a.json").write_text(json.dumps(forged(record, seed=7)), encoding="utf-8")
    (given / "b.json").write_text(json.dumps(forged(record, **{field: name})), encoding="utf-8")
    message = refusal(["import", str(given), "--results-dir", str(tmp_path / "some" / "results")])
    assert f"{given / 'b.json'}: expected a record of a finished cell" in message
    assert f"{field}: expected a " in message
    assert repr(name) in message
    assert "move it away" in message
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(files) == [given / "a.json", given / "b.json"]


def test_no_cell_has_such_a_name(record: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"task: expected a name of at most 64 .*, found '\.\./mrpc'"):
        Cell.from_json({**record["cell"], "task": "../mrpc"})
