"""Options for a run's inputs, outputs and machine; none of them affects a result."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from pydantic import Field

from benchmarks.encoders.backbones import backbone_name, is_folder
from benchmarks.errors import UserError
from benchmarks.run_config import RunConfig
from fedsim.strict import strict

MOST_SEEDS = 10_000  # more is a typing error
Count = Annotated[int, Field(ge=1, le=1024)]  # also for threads and workers
Texts = Annotated[int, Field(ge=1)]
CLUSTER_JOBS = 4
GPU_SHARE_BYTES = 32 * 2**30  # GPU memory per cell: several BERT-base cells share a larger GPU
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
ELSEWHERE = ("slurm", "ray")  # executors that may use machines with other devices


@strict(UserError)
class RunOptions:
    """Folders and machine. backbone: a folder or name that replaces the scale's encoder, as the user wrote it."""

    results_dir: Path = Path("results")
    data_dir: Path | None = None
    backbone: str | None = None
    lenient: bool = False
    threads: Count = 1
    workers: Count = 1
    client_workers: Count = 1  # clients per cell that train in parallel, in Ray tasks; 1: in the cell's process
    device: str | None = None
    micro_batch: Texts | None = None  # texts per forward pass; None: the batch on a CPU, what fits on a GPU
    checkpoint_activations: bool = False  # layers keep only their inputs, and are computed twice
    executor: str = ""  # a name in benchmarks.executors; "": processes
    ray_address: str | None = None  # a running Ray cluster; None: start one on this machine
    slurm: tuple[str, ...] = ()  # SLURM options, such as "partition=gpu"
    include: tuple[Path, ...] = ()  # folders with the user's tables, tasks and methods

    @property
    def cores(self) -> int:
        """The number of cores per cell."""
        return self.threads * self.client_workers

    @property
    def records_dir(self) -> Path:
        """The folder for finished cells' records."""
        return self.results_dir / "records"

    @property
    def checkpoints_dir(self) -> Path:
        """The folder for unfinished cells' states."""
        return self.results_dir / "checkpoints"

    def requested(self, backbone: str) -> str:
        """A run's backbone as the user wrote it, such as a folder; the run has only its name."""
        given = self.backbone
        return given if given is not None and backbone_name(given) == backbone else backbone

    def located(self, cell: RunConfig) -> RunConfig:
        """A run with its backbone as the user wrote it, to derive shapes; no record has its ids."""
        return replace(cell, backbone=self.requested(cell.backbone))

    def checkpoint_dir(self, cell_id: str, initial: str = "") -> Path:
        """The folder for a cell's state. initial: the digest of the weights that it started from, if any."""
        return self.checkpoints_dir / "-".join(filter(None, (cell_id, initial[:16])))

    def checkpoint_dirs(self, cell_id: str) -> list[Path]:
        """The folders with a cell's states, for any initial weights."""
        return sorted(self.checkpoints_dir.glob(f"{cell_id}*"))

    def absolute(self) -> RunOptions:
        """The same options with absolute paths, for processes in other working directories."""
        backbone = self.backbone
        if backbone is not None and is_folder(backbone):
            backbone = str(Path(backbone).expanduser().resolve())
        data_dir = self.data_dir and self.data_dir.resolve()
        include = tuple(folder.resolve() for folder in self.include)
        return replace(
            self, results_dir=self.results_dir.resolve(), data_dir=data_dir, backbone=backbone, include=include
        )

    def check(self) -> None:
        """Raise UserError before any computation if the machine or a folder is unusable."""
        if self.client_workers > 1 and find_spec("ray") is None:
            raise UserError("--client-workers: expected Ray, which is not installed: .venv/bin/pip install -e '.[ray]'")
        self._check_device()
        self.check_data_dir()
        for folder in ("", "records", "checkpoints", "locks"):
            require_writable(self.results_dir / folder)

    def check_data_dir(self) -> None:
        """UserError if the data directory is not a folder."""
        if self.data_dir is not None and not self.data_dir.is_dir():
            raise UserError(
                f"data directory {self.data_dir}: expected a folder, found "
                f"{'a file' if self.data_dir.exists() else 'nothing'}. Set DATA_DIR to the folder of your datasets."
            )

    def _check_device(self) -> None:
        """UserError for an unknown or missing device; a cluster's nodes may have other GPUs than this machine."""
        if self.device in (None, "cpu"):
            return
        named = re.fullmatch(r"cuda(?::(0|[1-9][0-9]{0,3}))?", self.device or "", re.ASCII)
        expected = f"device {self.device!r}: expected cpu, cuda, or cuda:0, cuda:1 and so on"
        if named is None:
            raise UserError(f"{expected}. Leave --device out to use a GPU if there is one.")
        if named[1] and (self.executor in ELSEWHERE or self.client_workers > 1):
            raise UserError(f"device {self.device!r}: expected cpu or cuda, as each job or task is given a GPU.")
        if self.executor not in ELSEWHERE and int(named[1] or 0) >= (gpus := len(gpu_memory())):
            there = f"cpu or a GPU up to cuda:{gpus - 1}" if gpus else "cpu, as this machine has no usable GPU"
            raise UserError(f"device {self.device!r}: expected {there}. Leave --device out, or name another.")


def require_writable(folder: Path, setting: str = "RESULTS_DIR") -> None:
    """Create a folder and try to write in it; UserError if that fails. setting: what the user sets to name it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"{folder}: expected a folder that you may write to, found one that cannot be written ({error.strerror}). "
            f"Set {setting} to another folder."
        ) from None


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpu_memory() -> list[int]:
    """The memory of each GPU on this machine, in bytes."""
    import torch  # `list` runs without it

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [torch.cuda.get_device_properties(number).total_memory for number in range(count)]


def default_workers(device: str | None, cells: int, executor: str | None = None, client_workers: int = 1) -> int:
    """The number of parallel cells: a few jobs on a cluster, one cell per GPU share, or one per core.

    client_workers: computing processes per cell.
    """
    if executor == "slurm":
        return min(CLUSTER_JOBS, cells)
    places, memory = available_cores(), [] if device == "cpu" else gpu_memory()
    if device and ":" in device:
        memory = memory[int(device.partition(":")[2]) :][:1]
    if memory:
        places = min(sum(max(1, size // GPU_SHARE_BYTES) for size in memory), places)
    return max(1, min(places // client_workers, cells))


def thread_limits(threads: int) -> dict[str, str]:
    """The environment variables that set a process's number of threads; libraries read them at import."""
    return dict.fromkeys(THREADS, str(threads))
