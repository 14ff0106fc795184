"""Clients of a cell side by side, in tasks of Ray: the same record as from one process, in whatever order they end."""

import os
import pickle
import signal
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.run_config import RunConfig
from benchmarks.running import clients
from benchmarks.running import run_options as settings_module
from benchmarks.running.clients import ClientTasks
from benchmarks.running.events import CellStarted, RoundFinished, Trained
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell
from tests.benchmarks.conftest import DEMO

TRAINING = replace(DEMO.training, rounds=2)
LABELS = {"scheme": "sizes", "sizes": [60, 25, 40, 30, 35]}


def _cell(algorithm: str, codec: str = "fp32", **options: Any) -> RunConfig:
    return replace(
        DEMO, clients=5, partition=LABELS, algorithm=algorithm, options=options, training=TRAINING, codec=codec
    )


CELLS = {
    "fedavg": _cell("fedavg"),
    "fedprox, some clients drawn": replace(
        _cell("fedavg", proximal=0.05), training=replace(TRAINING, participation=0.6)
    ),
    "fedsplitbert, moments kept": replace(
        _cell("fedsplitbert", critical_layer=2), training=replace(TRAINING, optimizer="kept")
    ),
    "fedadam, fp16": _cell("fedavg", "fp16", server={"name": "adam", "learning_rate": 0.01}),
    "fedbfpt": replace(_cell("fedbfpt", local_layers=2), training=replace(TRAINING, rounds=4)),
    "fedavg that diverges": replace(_cell("fedavg"), training=replace(TRAINING, learning_rate=1e30)),
}


class LastFirst:
    """Ray in this process: the task that was submitted last ends first, on copies of what it is given."""

    exceptions = SimpleNamespace(RayTaskError=type("RayTaskError", (Exception,), {}), RayError=OSError)

    def __init__(self) -> None:
        self.ended: list[int] = []

    def put(self, value: Any) -> Any:
        return value

    def remote(self, function: Callable[..., Any]) -> Any:
        return SimpleNamespace(options=lambda **options: SimpleNamespace(remote=self._submitting(function)))

    def _submitting(self, function: Callable[..., Any]) -> Callable[..., SimpleNamespace]:
        def submit(work: Any, *arguments: Any) -> SimpleNamespace:
            copied = pickle.dumps(arguments)
            return SimpleNamespace(client=arguments[1], run=lambda: function(work, *pickle.loads(copied)), end=None)

        return submit

    def wait(self, tasks: Sequence[SimpleNamespace], num_returns: int) -> None:
        for task in list(tasks)[::-1][:num_returns]:
            self._end(task)

    def get(self, task: SimpleNamespace) -> Any:
        self._end(task)
        if isinstance(task.end, Exception):
            error = self.exceptions.RayTaskError()
            error.cause = task.end  # type: ignore[attr-defined]
            raise error
        return task.end

    def _end(self, task: SimpleNamespace) -> None:
        if task.end is None:
            self.ended.append(task.client)
            try:
                task.end = task.run()
            except Exception as error:  # noqa: BLE001 - raised where it is asked for
                task.end = error


@pytest.mark.parametrize("name", CELLS)
def test_clients_that_end_out_of_order(name, settings, tmp_path, events, monkeypatch):
    expected = run_cell(CELLS[name], replace(settings, results_dir=tmp_path / "alone"), lambda _: None)
    ray = LastFirst()

    @contextmanager
    def connected(settings: RunOptions) -> Any:
        yield "here"

    for attribute, value in {"connected": connected, "library": lambda _: ray, "gpu_share": lambda *_: 0.0}.items():
        monkeypatch.setattr(clients, attribute, value)
    monkeypatch.setattr(clients, "_trainers", {})
    record = run_cell(CELLS[name], replace(settings, client_workers=2), events)
    assert record.outcome == expected.outcome
    assert bool(record.diverged) == name.endswith("diverges")
    if not record.diverged:
        assert ray.ended != sorted(ray.ended)
        assert sum(event.examples for event in events.of(Trained)) == sum(events.of(CellStarted)[0].train_examples)
        files = [folder / record.predictions_name for folder in (settings.records_dir, tmp_path / "alone" / "records")]
        assert files[0].read_bytes() == files[1].read_bytes()


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

    for name in ("fedavg", "fedsplitbert, moments kept"):
        alone = run_cell(CELLS[name], replace(settings, results_dir=tmp_path / "alone"), lambda _: None)
        two = run_cell(CELLS[name], replace(settings, client_workers=2), kill)
        assert two.outcome == alone.outcome
        assert two.environment["client_workers"] == 2
    assert [len(event.finished) for event in events.of(CellStarted)] == [0, 0]
    assert not ray.is_initialized()


def test_without_ray_there_is_one_clear_error(settings, monkeypatch):
    monkeypatch.setattr(settings_module, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"--client-workers: expected Ray, .* pip install 'fedbert-bench\[ray\]'"):
        replace(settings, client_workers=2).check()
    settings.check()
