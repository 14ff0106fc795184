"""Jobs on a SLURM cluster through submitit, or processes on this machine (cluster=local)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.errors import UserError
from benchmarks.executors.jobs import End, Executor, Job, compute_elsewhere
from benchmarks.executors.processes import environments
from benchmarks.running.run_options import RunOptions, thread_limits

SHARED = ("timeout_min", "mem_gb", "cpus_per_task", "gpus_per_node", "name")  # submitit's names for any cluster
CLUSTERS = ("slurm", "local", "debug")
MINUTES = 240  # per job; longer jobs are requeued and resume
GPU_REQUESTS = {"gpus_per_node", "gpus_per_task", "gpus", "gres"}
REQUEUES = 1000
MOST_JOBS = 1000  # per array: SLURM's default


@contextmanager
def started(settings: RunOptions, count: int) -> Iterator[SlurmJobs]:
    """SLURM jobs; the block's end cancels unfinished ones."""
    jobs = SlurmJobs(settings.absolute())
    try:
        yield jobs
    finally:
        for job in jobs.submitted:
            if not job.done():
                job.cancel(check=False)


class Requeued:
    """The function of a SLURM job."""

    def __call__(self, *arguments: Any) -> End:
        return compute_elsewhere(*arguments)

    def checkpoint(self, *arguments: Any) -> Any:
        """Requeue a job that was preempted or ran out of time; submitit calls this."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, *arguments)


class SlurmJobs(Executor):
    """See `started`; it reports no progress within runs."""

    def __init__(self, settings: RunOptions) -> None:
        try:
            import submitit
        except ImportError:
            raise UserError("--executor slurm needs submitit: .venv/bin/pip install -e '.[slurm]'") from None
        given = parameters(settings.slurm)
        cluster = given.pop("cluster", "slurm")
        if cluster not in CLUSTERS:
            raise UserError(f"--slurm cluster: expected one of {', '.join(CLUSTERS)}, found {cluster!r}")
        self.room, self.poll_seconds = (settings.workers, 0.2) if cluster == "local" else (MOST_JOBS, 2.0)
        self.submitted: list[Any] = []
        self._settings = settings
        # Slots for jobs on this machine, each with its GPU and last job; SLURM needs none.
        self._places = environments(settings, settings.workers) if cluster == "local" else []
        self._last: dict[int, Any] = {}
        logs = settings.results_dir / "slurm" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        usual = {"timeout_min": MINUTES, "cpus_per_task": settings.cores, "name": "runs"}
        usual |= {"slurm_array_parallelism": settings.workers}
        if settings.device == "cuda" and not given.keys() & GPU_REQUESTS:
            usual |= {"gpus_per_node": settings.client_workers}
        requests = {name if name in SHARED else f"slurm_{name}": value for name, value in given.items()}
        with _refusals():
            self._executor = submitit.AutoExecutor(logs, cluster, slurm_max_num_timeout=REQUEUES)
            self._executor.update_parameters(**{**usual, **requests})

    def submit(self, jobs: Sequence[Job], wait: bool) -> Sequence[Any]:
        """Submit an array with one SLURM job per job."""
        count, places = len(jobs), range(len(self._places))
        idle = [place for place in places if place not in self._last or self._last[place].done()]
        given = [self._places[place] for place in idle[:count]] or [thread_limits(self._settings.threads)] * count
        with _refusals():
            arguments = jobs, [self._settings] * count, [wait] * count, given
            submitted = self._executor.map_array(Requeued(), *arguments)
        self._last |= zip(idle, submitted, strict=False)
        self.submitted += submitted
        return submitted


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise UserError in the block if SLURM rejects jobs."""
    try:
        yield
    except (NameError, TypeError, AssertionError) as error:  # of the given names and values
        raise UserError(
            "--slurm: expected submitit's names and types, such as partition=gpu, timeout_min=240 or mem_gb=32 (whole "
            f"numbers), found another ({_one_line(error)}). sbatch reads its other options from the environment, such "
            "as SBATCH_RESERVATION"
        ) from None
    except (RuntimeError, ValueError, OSError) as error:
        raise UserError(
            f"This machine cannot submit SLURM jobs ({_one_line(error)}). On a cluster, start this on a node with "
            "`sbatch`; `--slurm cluster=local` runs the jobs as processes on this machine."
        ) from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def parameters(texts: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE texts as submitit's parameters, with integers converted; UserError for other texts."""
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name.isidentifier() or not equals or not value:
            raise UserError(f"--slurm: expected NAME=VALUE, such as partition=gpu or timeout_min=60, found {text!r}")
        values[name] = int(value) if value.isdecimal() else value
    return values
