"""Where cells run decides nothing: the same records by every executor, with workers and nodes that are lost."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.events import CellFailed, CellFinished, CellStarted, CellWaits, RoundFinished
from benchmarks.executors import on_slurm, run_cells
from benchmarks.executors.board import Board
from benchmarks.executors.queue import Queue
from benchmarks.executors.slots import environments
from benchmarks.record import read_records
from benchmarks.runner import run_cell
from benchmarks.settings import Settings
from benchmarks.spec import Cell
from fedsim.lease import claims, held

CellsOf = Callable[..., list[Cell]]
ROOT = Path(__file__).resolve().parents[2]
METHODS = ("fedavg", "fedsplitbert", "local-majority")
SHORT = ("training.rounds=2", "training.local_epochs=1")


@pytest.fixture(scope="module")
def cells(cells_of: CellsOf) -> list[Cell]:
    """Four cells, the last of which begins from the first."""
    first, *others = cells_of(METHODS, *SHORT)
    return [first, *others, replace(first, seed=1, initial=first)]


@pytest.fixture(scope="module")
def one_by_one(cells: list[Cell], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    settings = Settings(results_dir=tmp_path_factory.mktemp("serial"), device="cpu", executor="serial")
    assert run_cells(cells, settings, lambda _: None) == 0
    return outcomes(settings)


@pytest.fixture(autouse=True)
def found_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are processes of their own, which import this checkout."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def outcomes(settings: Settings) -> dict[str, Any]:
    return {record.cell_id: record.outcome for record in read_records(settings.records_dir)}


def assert_nothing_left(settings: Settings) -> None:
    assert list((settings.results_dir / "locks").iterdir()) == []
    assert not (settings.results_dir / "queues").exists()
    assert not list(settings.results_dir.glob("checkpoints/*"))


def assert_all_told(events: Any, cells: list[Cell]) -> None:
    assert not events.of(CellFailed)
    assert sorted(event.record.cell.spec_id for event in events.of(CellFinished)) == sorted(c.spec_id for c in cells)
    assert sorted(event.cell.spec_id for event in events.of(CellStarted)) == sorted(c.spec_id for c in cells)
    assert len(events.of(RoundFinished)) == sum(cell.training.rounds for cell in cells)


# ---- the same records ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [2, 3])
def test_processes(workers: int, cells: list[Cell], one_by_one: Any, settings: Settings, events: Any) -> None:
    settings = replace(settings, executor="processes", workers=workers)
    assert run_cells(cells[::-1], settings, events) == 0
    assert outcomes(settings) == one_by_one
    assert_all_told(events, cells)
    assert_nothing_left(settings)


def test_slurm_by_its_local_stand_in(cells: list[Cell], one_by_one: Any, settings: Settings, events: Any) -> None:
    pytest.importorskip("submitit")
    settings = replace(settings, executor="slurm", workers=2, slurm=("cluster=local", "timeout_min=5"))
    assert run_cells(cells, settings, events) == 0
    assert outcomes(settings) == one_by_one
    assert_all_told(events, cells)
    assert_nothing_left(settings)


def test_ray_started_here(cells: list[Cell], one_by_one: Any, settings: Settings, events: Any) -> None:
    pytest.importorskip("ray")
    settings = replace(settings, executor="ray", workers=2)
    assert run_cells(cells, settings, events) == 0
    assert outcomes(settings) == one_by_one
    assert_all_told(events, cells)
    assert_nothing_left(settings)
