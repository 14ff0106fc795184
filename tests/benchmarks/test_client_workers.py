"""Clients of a cell side by side: the same record from one process and from several, with some that are lost."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks import runner
from benchmarks.cell import Cell, Training
from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.events import CellStarted, RoundFinished, Trained
from benchmarks.executors.clients import ClientWorkers, Work, _computing, _portable, _receive, _send, in_order
from benchmarks.executors.queue import _event, _line
from benchmarks.executors.slots import default_workers
from benchmarks.progress import ProgressDisplay
from benchmarks.record import RunRecord, read_records
from benchmarks.runner import run_cell
from benchmarks.settings import Settings
from fedsim.errors import DivergedError
from fedsim.turns import Turn, TurnOutcome
from fedsim.wire import Params
from tests.processes import PATIENCE_SECONDS, command, running, wait_for

TRAINING = Training(rounds=2, learning_rate=2e-3, batch_size=16, max_length=32, precision="fp32")
LABELS = {"scheme": "sizes", "sizes": [60, 25, 40, 30, 35]}


def _cell(algorithm: str, codec: str = "fp32", **options: Any) -> Cell:
    return Cell(
        "demo", "mrpc", 1, "generated", "tiny", 5, LABELS, algorithm, options, training=TRAINING, seed=0, codec=codec
    )


CELLS = {
    "fedavg": _cell("fedavg"),
    "fedprox, some clients drawn": replace(
        _cell("fedavg", proximal=0.05), training=replace(TRAINING, participation=0.6, rounds=3)
    ),
    "fedsplitbert": _cell("fedsplitbert", critical_layer=2),
    "fedsplitbert, moments kept": replace(
        _cell("fedsplitbert", critical_layer=2), training=replace(TRAINING, optimizer="kept")
    ),
    "fedadam, fp16": _cell("fedavg", "fp16", server={"name": "adam", "learning_rate": 0.01}),
    "fedbfpt": replace(_cell("fedbfpt", local_layers=2), training=replace(TRAINING, rounds=6)),
    "fedfreezebert": _cell("fedfreezebert"),
}


def computed(cell: Cell, settings: Settings, tell: Any = lambda _: None) -> tuple[dict[str, Any], bytes]:
    """A cell's outcome and its predictions."""
    record = run_cell(cell, settings, tell)
    return record.outcome, (settings.records_dir / record.predictions_name).read_bytes()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[dict[str, Any], bytes]]:
    """What each of CELLS comes to with the clients one after the other."""
    settings = Settings(results_dir=tmp_path_factory.mktemp("alone"), device="cpu")
    known: dict[str, tuple[dict[str, Any], bytes]] = {}

    def find(name: str) -> tuple[dict[str, Any], bytes]:
        if name not in known:
            known[name] = computed(CELLS[name], settings)
        return known[name]

    return find


# ---- the order -------------------------------------------------------------------------------------------------------


class Disorderly:
    """A crew that computes the square of a turn: the one begun last ends first, or a drawn one."""

    def __init__(self, size: int, draw: random.Random | None = None) -> None:
        self.size, self.draw = size, draw
        self.at_work: list[tuple[int, int]] = []
        self.begun: list[int] = []
        self.ended = 0

    def free(self) -> bool:
        return len(self.at_work) < self.size

    def begin(self, place: int, turn: int) -> None:
        assert self.free()
        self.begun.append(place)
        self.at_work.append((place, turn))

    def heard(self) -> list[tuple[int, int | Exception]]:
        drawn = self.draw.randrange(len(self.at_work)) if self.draw else -1
        place, turn = self.at_work.pop(drawn)
        self.ended += 1
        return [(place, turn**2 if turn >= 0 else ValueError(f"turn {place}"))]


@pytest.mark.parametrize("most_early", [1, 2, 5])
@pytest.mark.parametrize("draw", [None, random.Random(0)], ids=["last first", "drawn"])
def test_outcomes_come_in_order_and_few_wait(most_early: int, draw: random.Random | None) -> None:
    crew = Disorderly(most_early, draw)
    waited = 0
    found = []
    for outcome in in_order(crew, range(40), most_early):
        found.append(outcome)
        waited = max(waited, crew.ended - len(found))
    assert found == [turn**2 for turn in range(40)]
    assert crew.begun == list(range(40))
    assert waited <= most_early


def test_no_turn_is_asked_for_before_its_time() -> None:
    asked: list[int] = []

    def turns() -> Iterator[int]:
        for turn in range(10):
            asked.append(turn)
            yield turn

    found = in_order(Disorderly(2), turns(), 2)
    for given in range(10):
        assert next(found) == given**2
        assert len(asked) <= given + 3  # it, and two that wait


def test_an_error_is_met_at_its_own_place() -> None:
    found = in_order(Disorderly(3), [1, -1, -2, 3], 3)
    assert next(found) == 1
    with pytest.raises(ValueError, match="turn 1"):  # turn 2 had failed before it
        next(found)


def test_no_turns_are_no_outcomes() -> None:
    assert list(in_order(Disorderly(2), [], 2)) == []


# ---- the same record, whoever computes the turns ---------------------------------------------------------------------


def _copied(tensors: Params) -> Params:
    return {name: tensor.clone() for name, tensor in tensors.items()}


class OutOfOrder(ClientWorkers):
    """The same in this process: each worker has a federation of its own, and the turn begun last ends first."""

    def _hired(self, environment: Any) -> Any:
        return SimpleNamespace(place=None, turn=None, compute=_computing(self.work, self.on_batch), peak_bytes=0)

    def begin(self, place: int, turn: Turn) -> None:
        worker: Any = next(worker for worker in self.workers if worker.place is None)
        given = (_copied(turn.shared), _copied(turn.private), _copied(turn.received))
        worker.place, worker.turn = place, (turn.round, turn.client.id, *given)

    def heard(self) -> Iterator[tuple[int, TurnOutcome | Exception]]:
        worker: Any = max(self.workers, key=lambda worker: -1 if worker.place is None else worker.place)
        outcome, _ = worker.compute(*worker.turn)
        place, worker.place = worker.place, None
        yield place, TurnOutcome(_copied(outcome.uploaded), _copied(outcome.kept), outcome.loss)

    def close(self) -> None:
        self.workers.clear()


@pytest.mark.parametrize("name", CELLS)
def test_turns_that_end_out_of_order(
    name: str, alone: Any, settings: Settings, events: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = alone(name)  # before anything is put in place of what it tests
    made: list[OutOfOrder] = []

    @contextmanager
    def spread(work: Work, on_batch: Any) -> Iterator[OutOfOrder]:
        made.append(OutOfOrder(work, on_batch))
        yield made[-1]

    monkeypatch.setattr(runner, "spread_of", spread)
    assert computed(CELLS[name], replace(settings, client_workers=3), events) == expected
    assert len(made[0].workers) == 3
    trained = sum(event.examples for event in events.of(Trained))
    assert trained == sum(events.of(CellStarted)[0].train_examples)


@pytest.mark.parametrize(("name", "count"), [("fedsplitbert, moments kept", 2), ("fedadam, fp16", 3), ("fedbfpt", 2)])
def test_turns_in_processes(name: str, count: int, alone: Any, settings: Settings, events: Any) -> None:
    started = replace(settings, client_workers=count, executor="serial")
    assert computed(CELLS[name], started, events) == alone(name)
    (record,) = read_records(settings.records_dir)
    assert record.environment["client_workers"] == count
    assert sum(event.examples for event in events.of(Trained)) == sum(events.of(CellStarted)[0].train_examples)
    assert multiprocessing.active_children() == []


def test_no_more_processes_than_clients_in_a_round(settings: Settings) -> None:
    def processes(cell: Cell) -> int:
        return len(
            ClientWorkers(Work(cell, "", replace(settings, client_workers=9), None), lambda _: None).environments
        )

    assert processes(CELLS["fedavg"]) == 5
    assert processes(CELLS["fedprox, some clients drawn"]) == 3


# ---- what goes through a pipe ----------------------------------------------------------------------------------------


def test_tensors_arrive_as_they_were_sent() -> None:
    ours, theirs = multiprocessing.Pipe()
    groups = [
        {"matrix": torch.arange(12.0).view(3, 4).T, "step": torch.tensor(3.0), "none": torch.zeros(0, 4)},
        {},
        {"half": torch.randn(5).half(), "bf16": torch.randn(2, 3).bfloat16(), "ids": torch.arange(7)},
    ]
    _send(ours, ("a word", 1), *groups)
    said, found = _receive(theirs)
    assert said == ("a word", 1)
    assert [list(group) for group in found] == [list(group) for group in groups]
    for sent, got in zip(groups, found, strict=True):
        for name, tensor in sent.items():
            assert got[name].dtype == tensor.dtype
            assert torch.equal(got[name], tensor)


class OddError(Exception):
    """It cannot be made from what pickle keeps of it."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (DivergedError("training diverged"), DivergedError, "training diverged"),
        (UserError("expected this, found that"), UserError, "expected this, found that"),
        (OSError(28, "No space left on device", "file"), OSError, "[Errno 28] No space left on device: 'file'"),
        (OddError("one", "two"), RuntimeError, "OddError: one"),
    ],
)
def test_errors_arrive_as_they_are_where_that_can_be(error: Exception, kind: type, text: str) -> None:
    found = pickle.loads(pickle.dumps(_portable(error)))
    assert type(found) is kind
    assert str(found) == text


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def test_training_that_diverges_ends_the_cell_with_the_same_record(settings: Settings, tmp_path: Path) -> None:
    cell = replace(CELLS["fedavg"], training=replace(TRAINING, learning_rate=1e30))
    one = run_cell(cell, replace(settings, results_dir=tmp_path / "one"), lambda _: None)
    two = run_cell(cell, replace(settings, client_workers=2), lambda _: None)
    assert one.outcome == two.outcome
    assert "on client 0" in two.diverged["reason"]
    assert multiprocessing.active_children() == []


def test_a_process_that_is_killed_ends_the_cell_and_it_goes_on_from_the_last_round(
    alone: Any, settings: Settings, events: Any
) -> None:
    def kill(event: Any) -> None:
        events(event)
        if isinstance(event, RoundFinished):
            process = multiprocessing.active_children()[0]
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)

    two = replace(settings, client_workers=2)
    with pytest.raises(UserError, match="one of its 2 client workers was killed, perhaps for want of memory"):
        run_cell(CELLS["fedsplitbert"], two, kill)
    assert multiprocessing.active_children() == []
    assert computed(CELLS["fedsplitbert"], settings, events) == alone("fedsplitbert")
    assert [len(event.finished) for event in events.of(CellStarted)] == [0, 1]


def test_data_that_change_under_a_cell_are_refused(settings: Settings) -> None:
    with pytest.raises(UserError, match="its data or its encoder have changed since it began"):
        _computing(Work(CELLS["fedavg"], "another", settings, None), lambda _: None)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_ended_leaves_no_process_and_goes_on(
    number: int, settings: Settings, run_words: Callable[..., list[str]]
) -> None:
    words = run_words(settings.results_dir, "fedavg", "training.rounds=50", "training.local_epochs=1")
    with command(*words, "--client-workers", "2") as process:
        wait_for(
            lambda: bool(list(settings.results_dir.glob("checkpoints/*/state.json"))) or process.poll() is not None
        )
        assert running(process.pid) >= 3
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        _, stderr = process.communicate(timeout=PATIENCE_SECONDS)
        wait_for(lambda: running(process.pid) == 0)
    assert process.returncode == 128 + number
    assert "interrupted: finished rounds are saved; the same command goes on from there" in stderr
    assert "Traceback" not in stderr
    assert list(settings.results_dir.glob("checkpoints/*/state.json"))


# ---- the setting -----------------------------------------------------------------------------------------------------


def test_rounds_of_one_piece_are_said_once_and_start_no_process(
    settings: Settings, events: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = replace(CELLS["fedavg"], algorithm="central")
    record: RunRecord = run_cell(cell, replace(settings, client_workers=2), events)
    assert "client_workers" not in record.environment
    (started,) = events.of(CellStarted)
    assert started.note == "central: its rounds are one piece each, --client-workers is without effect"
    assert _event(_line(started), settings) == started
    display = ProgressDisplay("a table", [cell], {})
    for _ in range(2):
        display(started)
    assert capsys.readouterr().err.count(started.note) == 1


def test_what_trains_nothing_is_not_spoken_of(settings: Settings, events: Any) -> None:
    run_cell(replace(CELLS["fedavg"], algorithm="local_majority"), replace(settings, client_workers=2), events)
    assert events.of(CellStarted)[0].note == ""


def test_where_a_cell_runs_is_no_part_of_it(settings: Settings) -> None:
    assert settings.cores == 1
    assert replace(settings, threads=2, client_workers=3).cores == 6


def test_fewer_cells_stand_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.executors.slots.available_cores", lambda: 8)
    assert [default_workers("cpu", 20, None, count) for count in (1, 2, 3, 16)] == [8, 4, 2, 1]


@pytest.mark.parametrize("given", ["0", "-1", "1025", "1000000000", "two"])
def test_numbers_that_cannot_be(
    given: str, settings: Settings, run_words: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*run_words(settings.results_dir, "fedavg"), f"--client-workers={given}"]
    try:
        status = main(words)
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert "--client-workers" in capsys.readouterr().err
    assert not settings.results_dir.exists()
