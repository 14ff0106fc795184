"""How many cells run on one machine side by side, and the environment of each one's process."""

from __future__ import annotations

import os
from collections.abc import Mapping

from benchmarks.running.run_options import RunOptions, available_cores

CLUSTER_JOBS = 4
SLOT_BYTES = 32 * 2**30  # of a GPU's memory: several cells of a BERT-base share a larger one
# Libraries read these when they are loaded: as many threads as the cell has, and no more.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
VISIBLE = "CUDA_VISIBLE_DEVICES"


def default_workers(device: str | None, cells: int, executor: str | None = None, client_workers: int = 1) -> int:
    """One process a core on CPUs, as cells are independent; on GPUs one for each slot; a few jobs on a cluster.

    client_workers: processes of a cell that compute.
    """
    if executor == "slurm":
        return min(CLUSTER_JOBS, cells)
    import torch

    gpu = device.startswith("cuda") if device else torch.cuda.is_available()
    places = min(sum(gpu_slots(device)), available_cores()) if gpu else available_cores()
    return max(1, min(places // client_workers, cells))


def gpu_slots(device: str | None) -> list[int]:
    """The number of cells that each GPU has memory for, at least one: all GPUs, or the one that the device names."""
    import torch

    chosen = [int(device.partition(":")[2])] if device and ":" in device else range(torch.cuda.device_count())
    if not torch.cuda.is_available() or max(chosen, default=0) >= torch.cuda.device_count():
        return [1]  # a missing GPU is an error where it is used
    return [max(1, torch.cuda.get_device_properties(number).total_memory // SLOT_BYTES) for number in chosen]


def threads(settings: RunOptions) -> dict[str, str]:
    """The environment that limits the threads of a worker's process."""
    return dict.fromkeys(THREADS, str(settings.threads))


def environments(settings: RunOptions, workers: int) -> list[Mapping[str, str]]:
    """The environment of each worker's process: its threads, and which GPU it sees unless the device names one.

    If there are more workers than GPUs, they share them, the first one first.
    """
    gpus: list[str] = []
    if settings.device in (None, "cuda"):
        import torch

        if torch.cuda.is_available():
            named = [name.strip() for name in os.environ.get(VISIBLE, "").split(",") if name.strip()]
            gpus = named or [str(number) for number in range(torch.cuda.device_count())]
    return [threads(settings) | ({VISIBLE: gpus[number % len(gpus)]} if gpus else {}) for number in range(workers)]
