"""The fault campaign itself: what it would say of records that differ, of what is left, and of a traceback."""

from __future__ import annotations

import random
import runpy
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.record import read_records

TOOLS = Path(__file__).resolve().parent.parent / "tools"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "path", [str(TOOLS), *sys.path])
    return runpy.run_path(str(TOOLS / "torture.py"))


@pytest.fixture
def campaign(tool: dict[str, Any], tmp_path: Path) -> Any:
    made = tool["Campaign"](tmp_path, random.Random(0), 0.0, None, ())
    source = min((TOOLS.parent / "benchmarks").glob("*/records/*.json"), key=lambda path: path.stat().st_size)
    (tmp_path / "results" / "records").mkdir(parents=True)
    shutil.copy(source, tmp_path / "results" / "records")
    found = list(read_records(tmp_path / "results" / "records"))
    made.expected = {record.cell_id: record.outcome for record in found}
    return made


def test_the_same_records_are_well(campaign: Any, tmp_path: Path) -> None:
    campaign.compare(tmp_path / "results", "nothing")
    assert campaign.problems == []


@pytest.mark.parametrize("kind", ["lacks", "differs", "claim", "checkpoint", "traceback"])
def test_what_is_wrong_is_said(kind: str, campaign: Any, tool: dict[str, Any], tmp_path: Path) -> None:
    results = tmp_path / "results"
    if kind == "lacks":
        next((results / "records").iterdir()).unlink()
    elif kind == "differs":
        campaign.expected = {name: {"rounds": []} for name in campaign.expected}
    elif kind == "traceback":
        (results / "said").write_text(f"{tool['TRACES']}:\n")
    else:
        (results / {"claim": "locks", "checkpoint": "checkpoints"}[kind] / "cell").mkdir(parents=True)
    campaign.compare(results, "a fault")
    (problem,) = campaign.problems
    assert problem.startswith("a fault: ")


def test_a_round_saved_twice_is_said(campaign: Any, tool: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "results" / tool["ROUNDS"]).write_text("a round 1\na round 2\nb round 1\na round 2\n")
    campaign.compare_rounds(tmp_path / "results", "a kill")
    assert campaign.problems == ["a kill: saved more than once: a round 2"]


def test_advice_is_followed_for_what_is_named_alone(tool: dict[str, Any], tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    (tmp_path / "said").write_text(f"error: Remove the folder {tmp_path / 'checkpoints' / 'one'} to start\n")
    tool["_follow_advice"](tmp_path)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["other"]


def test_a_dead_command_has_no_children(tool: dict[str, Any]) -> None:
    ended = SimpleNamespace(pid=2**22 + 1, join=lambda: None)
    assert tool["_children"](ended.pid) == []
    tool["_kill"](ended)
