"""A cell's clients as Ray tasks give the same record as one process; tests/fedsim varies the order of finishing."""

import os
import signal
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.running import clients
from benchmarks.running import run_options as settings_module
from benchmarks.running.clients import ClientTasks
from benchmarks.running.events import CellStarted, RoundFinished
from benchmarks.running.runner import run_cell
from tests.benchmarks.conftest import DEMO, outcome

TRAINING = replace(DEMO.training, rounds=2)
LABELS = {"scheme": "sizes", "sizes": [60, 25, 40, 30, 35]}
FEDAVG = replace(DEMO, clients=5, partition=LABELS, training=TRAINING)
MOMENTS = replace(TRAINING, optimizer="kept")
PASSAGES = {"task": "corpus-biology", "clients": 3, "partition": {"scheme": "equal", "share": 0.1}, "head": "masked-lm"}
PARALLEL = {"averaged": "head-embeddings", "transformer": "own"}
CELLS = (
    FEDAVG,
    replace(FEDAVG, algorithm="fedsplitbert", options={"critical_layer": 2}, training=MOMENTS),
    replace(FEDAVG, **PASSAGES, algorithm="fedbfpt", options={"local_layers": 2}),
    replace(FEDAVG, **PASSAGES, algorithm="fedbert_parallel", options=PARALLEL, training=MOMENTS, codec="fp16"),
)


@pytest.mark.slow
def test_clients_in_tasks_of_ray_whose_processes_are_killed(settings, events, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    made: list[ClientTasks] = []
    monkeypatch.setattr(clients, "ClientTasks", lambda *given: made.append(ClientTasks(*given)) or made[-1])

    def kill(event: Any) -> None:
        events(event)
        if isinstance(event, RoundFinished) and event.round.round == 1:
            for process in made[-1].processes:
                os.kill(int(process.split()[1]), signal.SIGKILL)

    for cell in CELLS:
        alone = run_cell(cell, replace(settings, results_dir=tmp_path / "alone"), lambda _: None)
        two = run_cell(cell, replace(settings, client_workers=2), kill)
        assert outcome(two) == outcome(alone)
        assert two.environment["client_workers"] == 2
    assert [len(event.finished) for event in events.of(CellStarted)] == [0] * len(CELLS)
    assert not [event.note for event in events.of(CellStarted) if event.note]
    assert not ray.is_initialized()


@pytest.mark.slow
def test_clients_that_take_turns_on_one_transformer_stay_in_one_process_and_the_run_says_so(settings, events):
    pytest.importorskip("ray")
    cell = replace(CELLS[-1], options={**PARALLEL, "transformer": "shared"}, training=replace(TRAINING, rounds=1))
    record = run_cell(cell, replace(settings, client_workers=2), events)
    assert "client_workers" not in record.environment
    (started,) = events.of(CellStarted)
    assert started.note == "fedbert_parallel: its rounds cannot be divided, so --client-workers has no effect"


def test_without_ray_there_is_one_clear_error(settings, monkeypatch):
    monkeypatch.setattr(settings_module, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"--client-workers: expected Ray, .*pip install -e '\.\[ray\]'"):
        replace(settings, client_workers=2).check()
    settings.check()
