"""Growth with the number of clients, on federations that train in milliseconds."""

from pathlib import Path

import pytest
import torch

from benchmarks.performance import growth
from benchmarks.performance.growth import Population, cost_of
from benchmarks.running.process import peak_memory_bytes
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import MANY_CLIENTS

CONFIG = {"vocab_size": 1200, "hidden_size": 32, "intermediate_size": 32, "max_position_embeddings": 128}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunOptions:
    monkeypatch.setattr(growth, "hold_freed_memory", lambda: None)  # this process's memory stays as it is
    return RunOptions(results_dir=tmp_path / "results")


@pytest.mark.parametrize(("algorithm", "options"), [("fedavg", {}), ("fedsplitbert", {"critical_layer": 2})])
@pytest.mark.parametrize("clients", [3, MANY_CLIENTS + 1])
def test_a_population_costs_time_memory_and_disk_and_leaves_nothing(settings, algorithm, options, clients):
    cost = cost_of(Population(clients, algorithm, options, "tiny", CONFIG), settings)
    assert len(cost.seconds) == growth.ROUNDS
    assert min(cost.seconds) > 0
    assert cost.peak_bytes > 0
    assert not any(path.is_file() for path in settings.results_dir.rglob("*"))


def test_tensors_that_stay_with_clients_grow_on_disk_with_their_number(settings):
    few, many = (
        cost_of(Population(clients, "fedsplitbert", {"critical_layer": 2}, "tiny", CONFIG), settings).disk_bytes
        for clients in (2, 12)
    )
    assert many > 3 * few


def test_a_peak_is_at_least_the_memory_that_is_held():
    held = torch.ones(30_000_000)
    assert peak_memory_bytes() > held.nbytes
