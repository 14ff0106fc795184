"""What a client and a round cost beside training: the engine's rounds of a large model that nobody trains."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from benchmarks.performance.population import Cost, Population, rounds_of
from benchmarks.performance.workload import clients_of, setting_of, texts
from benchmarks.runner import hold_freed_memory, peak_memory_bytes, quiet_libraries
from benchmarks.settings import Settings


def fixed_cost(population: Population, settings: Settings, rounds: int) -> Cost:
    """Run a federation of clients that neither train nor are scored; the first round, which warms up, is left out.

    In this process; checkpoint and store are those of a cell.
    """
    quiet_libraries()
    torch.set_num_threads(settings.threads)
    # No epoch, so no step: what training costs whatever it does, an optimiser and a check of the outcome, is in it.
    setting = setting_of(population.backbone, "fp32", device=settings.device, config=population.config, epochs=0)
    clients = clients_of(texts(population.clients), population.clients)
    hold_freed_memory()
    settings.results_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="growth-", dir=settings.results_dir) as folder:
        seconds = rounds_of(setting, population, clients, Path(folder), rounds + 1)
        disk_bytes = sum(path.stat().st_size for path in Path(folder).iterdir())
    return Cost(tuple(seconds[1:]), peak_memory_bytes(), disk_bytes)
