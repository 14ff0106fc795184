"""Jobs on a SLURM cluster, each a worker that drains the queue; or processes of this machine in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import UserError
from benchmarks.events import Sink
from benchmarks.executors.board import Board
from benchmarks.executors.queue import Queue
from benchmarks.executors.slots import threads
from benchmarks.executors.workers import watch, work
from benchmarks.settings import Settings

SHARED = ("timeout_min", "mem_gb", "cpus_per_task", "gpus_per_node", "name")  # submitit's own names, of any cluster
MINUTES = 240  # of a job; one that runs longer is put into the queue again, and goes on
REQUEUES = 1000


def run(board: Board, settings: Settings, sink: Sink) -> None:
    """Have jobs compute what is open; one that fails, or runs out of time, keeps the others from nothing."""
    watch(board, settings, sink, lambda queue: _Jobs(queue, settings))


class _Drain:
    """What a job does. submitit asks for `checkpoint` where it is preempted, or runs out of time: it is done again."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder, self.environment = folder, environment

    def __call__(self) -> None:
        work(self.folder, self.environment)

    def checkpoint(self) -> Any:
        """The same again: what was finished is on the disk, and the claim of a process that ended is taken over."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class _Jobs:
    """The jobs of one array."""

    def __init__(self, queue: Queue, settings: Settings) -> None:
        given = parameters(settings.slurm)
        try:
            import submitit
        except ImportError:
            raise UserError("--executor slurm needs submitit: pip install -e '.[slurm]'") from None
        logs = queue.settings.results_dir / "slurm" / queue.folder.name
        try:
            executor = submitit.AutoExecutor(logs, given.pop("cluster", "slurm"), slurm_max_num_timeout=REQUEUES)
            executor.update_parameters(timeout_min=MINUTES, cpus_per_task=settings.cores, name="cells")
            executor.update_parameters(**{name if name in SHARED else f"slurm_{name}": given[name] for name in given})
            environment = threads(settings)
            with executor.batch():
                count = min(settings.workers, len(queue.jobs))
                self.jobs = [executor.submit(_Drain(queue.folder, environment)) for _ in range(count)]
        except (RuntimeError, NameError, TypeError, ValueError, OSError) as error:
            raise UserError(
                f"SLURM takes no jobs here ({' '.join(str(error).split())[:300]}). On a cluster, start this where "
                "`sbatch` is; `--slurm cluster=local` makes the same jobs processes of this machine."
            ) from None
        self.logs = logs

    def running(self) -> bool:
        """Whether a job waits for its turn, or runs."""
        return not all(job.done() for job in self.jobs)

    def problems(self) -> Sequence[str]:
        """The last line of what each failed job said, and where the rest is."""
        errors = [job.exception() for job in self.jobs if job.done()]
        return [
            f"{str(error).strip().splitlines()[-1]} (logs: {self.logs})" for error in errors if str(error or "").strip()
        ]

    def stop(self) -> None:
        """Take back the jobs that are left: those that run have nothing more to do."""
        for job in self.jobs:
            if not job.done():
                job.cancel(check=False)


def parameters(words: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE as submitit takes it, whole numbers as such; UserError where one is not that."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name.isidentifier() or not equals or not value:
            raise UserError(f"--slurm: expected NAME=VALUE, such as partition=gpu or timeout_min=60, found {word!r}")
        found[name] = int(value) if value.isdecimal() else value
    return found
