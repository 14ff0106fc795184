"""Jobs on a SLURM cluster, one a run, through submitit; or processes of this machine in their place."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.errors import UserError
from benchmarks.executors.jobs import End, Executor, Job, compute_elsewhere
from benchmarks.executors.slots import threads
from benchmarks.running.run_options import RunOptions

SHARED = ("timeout_min", "mem_gb", "cpus_per_task", "gpus_per_node", "name")  # submitit's own names, of any cluster
MINUTES = 240  # of a job; one that takes longer is put into the queue again, and goes on
REQUEUES = 1000
MOST_JOBS = 1000  # of an array: SLURM's default


@contextmanager
def started(settings: RunOptions, count: int) -> Iterator[Jobs]:
    """SLURM's jobs for so many runs; those that are left are cancelled with the block."""
    jobs = Jobs(settings.absolute())
    try:
        yield jobs
    finally:
        for job in jobs.submitted:
            if not job.done():
                job.cancel(check=False)


class Task:
    """What a job does."""

    def __call__(self, *arguments: Any) -> End:
        return compute_elsewhere(*arguments)

    def checkpoint(self, *arguments: Any) -> Any:
        """What to do where the job was preempted, or ran out of time: the same; submitit asks."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, *arguments)


class Jobs(Executor):
    """See `started`; progress within a run stays with its job."""

    def __init__(self, settings: RunOptions) -> None:
        try:
            import submitit
        except ImportError:
            raise UserError("--executor slurm needs submitit: pip install 'fedbert-bench[slurm]'") from None
        given = parameters(settings.slurm)
        cluster = given.pop("cluster", "slurm")
        is_local = cluster == "local"
        self.room, self.poll_seconds = (settings.workers, 0.2) if is_local else (MOST_JOBS, 2.0)
        self.submitted: list[Any] = []
        self._settings = settings
        self._logs = settings.results_dir / "slurm" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        asked = {name if name in SHARED else f"slurm_{name}": value for name, value in given.items()}
        usual = {"timeout_min": MINUTES, "cpus_per_task": settings.cores, "name": "runs"}
        with _refusals():
            self._executor = submitit.AutoExecutor(self._logs, cluster, slurm_max_num_timeout=REQUEUES)
            self._executor.update_parameters(**{**usual, "slurm_array_parallelism": settings.workers, **asked})

    def submit(self, jobs: Sequence[Job], wait: bool) -> Sequence[Any]:
        """Submit an array with a job for each run."""
        with _refusals():
            count, environment = len(jobs), threads(self._settings)
            arguments = jobs, [self._settings] * count, [wait] * count, [environment] * count
            submitted = self._executor.map_array(Task(), *arguments)
        self.submitted += submitted
        return submitted


@contextmanager
def _refusals() -> Iterator[None]:
    """UserError where SLURM takes no jobs."""
    try:
        yield
    except (RuntimeError, NameError, TypeError, ValueError, OSError) as error:
        raise UserError(
            f"SLURM takes no jobs here ({' '.join(str(error).split())[:300]}). On a cluster, start this where "
            "`sbatch` is; `--slurm cluster=local` makes the same jobs processes of this machine."
        ) from None


def parameters(texts: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE as submitit takes it, whole numbers as such; UserError where a text is something else."""
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name.isidentifier() or not equals or not value:
            raise UserError(f"--slurm: expected NAME=VALUE, such as partition=gpu or timeout_min=60, found {text!r}")
        values[name] = int(value) if value.isdecimal() else value
    return values
