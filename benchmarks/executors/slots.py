"""How many cells go on one machine side by side, and the environment in which each runs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from benchmarks.running.run_options import RunOptions, available_cores

CLUSTER_JOBS = 4
SLOT_BYTES = 32 * 2**30  # of a GPU's memory: several cells of a BERT-base share a larger one
# Read by libraries when they are loaded: as many threads as the cell has, and no more.
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
    if not gpu:
        return max(1, min(available_cores() // client_workers, cells))
    return max(1, min(min(sum(gpu_slots(device)), available_cores()) // client_workers, cells))


def gpu_slots(device: str | None) -> list[int]:
    """How many cells each of the GPUs has memory for, at least one: all GPUs, or the one that the device names."""
    import torch

    chosen = [int(device.partition(":")[2])] if device and ":" in device else range(torch.cuda.device_count())
    if not torch.cuda.is_available() or max(chosen, default=0) >= torch.cuda.device_count():
        return [1]  # what is not there is refused where it is used
    return [max(1, torch.cuda.get_device_properties(number).total_memory // SLOT_BYTES) for number in chosen]


def threads(settings: RunOptions) -> dict[str, str]:
    """What a worker's process is told of its threads."""
    return dict.fromkeys(THREADS, str(settings.threads))


def environments(settings: RunOptions, workers: int) -> list[Mapping[str, str]]:
    """What each worker's process is told: its threads, and, where the device names no GPU, which one it sees.

    Workers beyond the GPUs share them, the first one first.
    """
    gpus = _visible() if settings.device in (None, "cuda") else []
    return [threads(settings) | ({VISIBLE: gpus[number % len(gpus)]} if gpus else {}) for number in range(workers)]


def _visible() -> list[str]:
    """The GPUs that this process may use, as the driver names them."""
    import torch

    if not torch.cuda.is_available():
        return []
    named = [name.strip() for name in os.environ.get(VISIBLE, "").split(",") if name.strip()]
    return named or [str(number) for number in range(torch.cuda.device_count())]
