"""Where cells run decides nothing: the same records by every executor, with workers and nodes that are lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cli.main import main
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
from fedsim.leases import _is_dead, claims, held

CellsOf = Callable[..., list[Cell]]
ROOT = Path(__file__).resolve().parents[2]
METHODS = ("fedavg", "fedsplitbert")
SHORT = ("training.rounds=2", "training.local_epochs=1")


@pytest.fixture(scope="module")
def cells(cells_of: CellsOf) -> list[Cell]:
    """Three cells, the last of which begins from the first."""
    first, other = cells_of(METHODS, *SHORT)
    return [first, other, replace(first, seed=1, initial=first)]


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


def test_ray_with_two_nodes_of_which_one_is_lost(
    cells: list[Cell], one_by_one: Any, settings: Settings, events: Any
) -> None:
    ray = pytest.importorskip("ray")
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    cluster = cluster_utils.Cluster(True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    other = cluster.add_node(num_cpus=1)

    def lose(event: Any) -> None:
        events(event)
        if isinstance(event, RoundFinished) and other in cluster.list_all_nodes():
            cluster.remove_node(other)

    try:
        settings = replace(settings, executor="ray", workers=2, ray_address=cluster.address)
        assert run_cells(cells, settings, lose) == 0
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert outcomes(settings) == one_by_one
    assert not events.of(CellFailed)
    assert len(events.of(CellFinished)) == len(cells)
    assert_nothing_left(settings)


def test_ray_started_here(cells: list[Cell], one_by_one: Any, settings: Settings, events: Any) -> None:
    pytest.importorskip("ray")
    settings = replace(settings, executor="ray", workers=2)
    assert run_cells(cells, settings, events) == 0
    assert outcomes(settings) == one_by_one
    assert_all_told(events, cells)
    assert_nothing_left(settings)


# ---- workers that are lost -------------------------------------------------------------------------------------------


def kill_holder(settings: Settings, cell_id: str, number: int = signal.SIGKILL) -> None:
    """A signal to the process that holds a cell."""
    for claim in claims(settings.results_dir / "locks" / cell_id):
        if not _is_dead(claim):
            os.kill(int(claim.name.rpartition(".")[2].split("-")[1]), number)


def test_a_worker_that_is_killed_is_replaced(
    cells: list[Cell], one_by_one: Any, settings: Settings, events: Any
) -> None:
    def kill_once(event: Any) -> None:
        events(event)
        if isinstance(event, CellStarted) and len(events.of(CellStarted)) in (1, 2):
            kill_holder(settings, event.cell_id)

    settings = replace(settings, workers=2)
    assert run_cells(cells, settings, kill_once) == 0
    assert outcomes(settings) == one_by_one
    assert len(events.of(CellFinished)) == len(cells)
    assert_nothing_left(settings)


def test_a_cell_that_kills_its_workers_fails_alone(
    cells: list[Cell], one_by_one: Any, settings: Settings, events: Any
) -> None:
    def kill(event: Any) -> None:
        events(event)
        if isinstance(event, CellStarted) and event.cell.spec_id == cells[1].spec_id:
            kill_holder(settings, event.cell_id)

    settings = replace(settings, workers=2)
    assert run_cells(cells, settings, kill) == 1
    (failed,) = events.of(CellFailed)
    assert failed.cell == cells[1]
    assert "3 worker processes were killed while they computed it, perhaps for want of memory" in failed.message
    assert len(outcomes(settings)) == len(cells) - 1


def test_a_job_that_is_killed_stops_no_other(
    cells: list[Cell], one_by_one: Any, settings: Settings, events: Any
) -> None:
    pytest.importorskip("submitit")

    def kill_once(event: Any) -> None:
        events(event)
        if isinstance(event, CellStarted) and len(events.of(CellStarted)) == 1:
            kill_holder(settings, event.cell_id)

    settings = replace(settings, executor="slurm", workers=2, slurm=("cluster=local",))
    assert run_cells(cells, settings, kill_once) == 0
    assert outcomes(settings) == one_by_one
    assert not events.of(CellFailed)
    assert len(events.of(CellFinished)) == len(cells)
    assert_nothing_left(settings)


def test_a_job_that_is_preempted_is_done_again_from_the_last_round(
    cells: list[Cell], one_by_one: Any, settings: Settings, events: Any
) -> None:
    pytest.importorskip("submitit")

    def preempt(event: Any) -> None:
        events(event)
        if isinstance(event, RoundFinished) and len(events.of(RoundFinished)) == 1:
            kill_holder(settings, event.cell_id, signal.SIGUSR2)  # as SLURM does, some time before it kills

    cell = replace(cells[0], training=replace(cells[0].training, rounds=8))
    settings = replace(settings, executor="slurm", workers=1, slurm=("cluster=local",))
    assert run_cells([cell], settings, preempt) == 0
    again = [len(event.finished) for event in events.of(CellStarted)]
    assert len(again) == 2
    assert again[1] >= 1
    assert_nothing_left(settings)


def test_jobs_that_are_all_killed_are_said(cells: list[Cell], settings: Settings, events: Any) -> None:
    pytest.importorskip("submitit")

    def kill(event: Any) -> None:
        events(event)
        if isinstance(event, CellStarted):
            kill_holder(settings, event.cell_id)

    settings = replace(settings, executor="slurm", workers=1, slurm=("cluster=local",))
    assert run_cells(cells[:1], settings, kill) == 1
    assert "no worker is left that could compute it" in events.of(CellFailed)[0].message


def test_a_cell_that_cannot_be_computed_stops_what_begins_from_it_alone(
    cells: list[Cell], settings: Settings, events: Any
) -> None:
    bad = replace(cells[0], head="no-such-head")
    settings = replace(settings, executor="processes", workers=2)
    assert run_cells([bad, replace(cells[0], initial=bad), cells[1]], settings, events) == 2
    first, then = events.of(CellFailed)
    assert "no-such-head" in first.message
    assert then.message == f"{bad.label}, from which it begins, could not be computed"
    assert [event.record.cell.spec_id for event in events.of(CellFinished)] == [cells[1].spec_id]


# ---- several invocations ---------------------------------------------------------------------------------------------


def test_what_another_invocation_computes_is_left_to_it_and_waited_for(
    cells: list[Cell], one_by_one: Any, settings: Settings, events: Any
) -> None:
    ids = {Cell.from_json(outcome["cell"]).spec_id: name for name, outcome in one_by_one.items()}
    cell_id = ids[cells[1].spec_id]
    said = threading.Event()

    def listen(event: Any) -> None:
        events(event)
        if isinstance(event, CellWaits):
            said.set()

    thread = threading.Thread(target=run_cells, args=(cells, settings, listen))
    with held(settings.results_dir / "locks" / cell_id):
        thread.start()
        assert said.wait(300)
        assert len(events.of(CellFinished)) == len(cells) - 1
    thread.join()
    (waits,) = events.of(CellWaits)
    assert (waits.cell, f"process {os.getpid()} on " in waits.holder) == (cells[1], True)
    assert outcomes(settings) == one_by_one


def test_who_lost_a_cell_while_it_slept_goes_on_from_the_last_round(
    cells: list[Cell], one_by_one: Any, settings: Settings, events: Any
) -> None:
    def lose(event: Any) -> None:
        events(event)
        if isinstance(event, RoundFinished) and event.round.round == 1 and len(events.of(CellStarted)) == 1:
            (claim,) = (settings.results_dir / "locks").iterdir()
            claim.unlink()  # as another machine does that has not seen it renewed

    record = run_cell(cells[1], settings, lose)
    assert record.outcome == one_by_one[record.cell_id]
    assert [len(event.finished) for event in events.of(CellStarted)] == [0, 1]
    assert_nothing_left(settings)


def test_two_invocations_share_the_cells(cells: list[Cell], one_by_one: Any, settings: Settings, events: Any) -> None:
    threads = [
        threading.Thread(target=run_cells, args=(cells, replace(settings, executor="processes", workers=2), events))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes(settings) == one_by_one
    assert len(events.of(CellStarted)) == len(cells)
    assert sorted(event.reused for event in events.of(CellFinished)) == [False] * len(cells) + [True] * len(cells)


def test_the_command_that_works_leaves_the_table_to_the_one_that_runs(
    settings: Settings, run_words: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    words = run_words(settings.results_dir, "local-majority", "training.rounds=1")
    assert main(["work", *words[1:]]) == 0
    assert len(list(settings.records_dir.glob("*.json"))) == 1
    assert not (settings.results_dir / "reports").exists()
    assert main(words) == 0
    assert capsys.readouterr().err.endswith("MRPC · Majority-class baseline, by client · seed 0: found\n")


# ---- what cannot work ------------------------------------------------------------------------------------------------


def test_workers_that_do_not_share_the_results_folder(cells: list[Cell], settings: Settings, tmp_path: Path) -> None:
    board = Board.of(cells, False, lambda cell, with_weights: False)
    queue = Queue.made(board, settings)
    assert Board(Queue.opened(queue.folder).jobs).open.keys() == board.open.keys()
    assert Queue.opened(queue.folder).settings == queue.settings
    queue.remove()
    with pytest.raises(UserError, match="set RESULTS_DIR to a folder that all of them see under the same name"):
        Queue.opened(queue.folder)


@pytest.mark.parametrize("word", ["partition", "=gpu", "partition=", "two words=1"])
def test_words_for_slurm(word: str) -> None:
    with pytest.raises(UserError, match="--slurm: expected NAME=VALUE"):
        on_slurm.parameters([word])


def test_slurm_where_there_is_none(cells: list[Cell], settings: Settings) -> None:
    pytest.importorskip("submitit")
    with pytest.raises(UserError, match="--slurm cluster=local"):
        run_cells(cells, replace(settings, executor="slurm", slurm=("cluster=nowhere",)), lambda _: None)


@pytest.mark.parametrize("address", ["head-node", "head-node:", ":6379x", "a:99999"])
def test_words_for_ray(address: str, cells: list[Cell], settings: Settings) -> None:
    pytest.importorskip("ray")
    with pytest.raises(UserError, match=r"expected auto or a host and port, such as head-node:6379"):
        run_cells(cells, replace(settings, executor="ray", ray_address=address), lambda _: None)


def test_a_ray_cluster_that_does_not_answer(cells: list[Cell], settings: Settings) -> None:
    pytest.importorskip("ray")
    with pytest.raises(UserError, match=r"no Ray cluster answers at 127\.0\.0\.1:1 "):
        run_cells(cells, replace(settings, executor="ray", ray_address="127.0.0.1:1"), lambda _: None)


# ---- slots -----------------------------------------------------------------------------------------------------------


def test_each_worker_has_its_gpu_and_as_many_threads_as_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def seen(device: str | None) -> list[str | None]:
        found = environments(Settings(device=device, threads=3), 3)
        assert {entry["OMP_NUM_THREADS"] for entry in found} == {"3"}
        return [entry.get("CUDA_VISIBLE_DEVICES") for entry in found]

    assert seen(None) == seen("cuda") == ["0", "1", "0"]
    assert seen("cuda:1") == seen("cpu") == [None] * 3  # the first of these is what all of them use
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, GPU-b")
    assert seen(None) == ["GPU-a", "GPU-b", "GPU-a"]
