"""Every executor gives the same results, even if processes and nodes are lost."""

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.executors import executor_for, on_slurm, run_cells, run_jobs
from benchmarks.executors.jobs import Job, compute_elsewhere
from benchmarks.executors.processes import environments
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellFailed, CellFinished, CellStarted, CellWaits, RoundFinished
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell
from fedsim.locks import LEASE_SECONDS, Lock, held
from tests.benchmarks.conftest import cells_of, outcome, outcomes
from tests.conftest import ROOT
from tests.processes import wait_for

SHORT = ("training.rounds=2", "training.local_epochs=1")
LIBRARIES = {"slurm": "submitit", "ray": "ray"}


@pytest.fixture(scope="module")
def cells() -> list[RunConfig]:
    """Three cells; the last one starts from the first one's weights."""
    first, other = cells_of(("fedavg", "fedsplitbert"), *SHORT)
    return [first, other, replace(first, seed=1, initial=first)]


@pytest.fixture(scope="module")
def one_by_one(cells: list[RunConfig], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    settings = RunOptions(results_dir=tmp_path_factory.mktemp("serial"), device="cpu", executor="serial")
    assert run_cells(cells, settings, lambda _: None) == 0
    return outcomes(settings)


@pytest.fixture(autouse=True)
def importable_by_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs and tasks are processes that import this checkout."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))


def two_by(executor: str, settings: RunOptions, **changes: Any) -> RunOptions:
    """Two workers of an executor, SLURM's on this machine; the test is skipped without the executor's library."""
    if executor in LIBRARIES:
        pytest.importorskip(LIBRARIES[executor])
    slurm = ("cluster=local",) if executor == "slurm" else ()
    return replace(settings, **{"executor": executor, "workers": 2, "slurm": slurm, **changes})


@contextmanager
def ray_cluster(**resources: int) -> Iterator[Any]:
    """A Ray cluster with one node on this machine."""
    ray, cluster_utils = pytest.importorskip("ray"), pytest.importorskip("ray.cluster_utils")
    cluster = cluster_utils.Cluster(True, head_node_args={**resources, "include_dashboard": False})
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def holder_of(lock: Path) -> int | None:
    return Lock(lock, lease_duration=LEASE_SECONDS).pid


def kill_holder(settings: RunOptions, cell_id: str, number: int = signal.SIGKILL) -> None:
    pid = holder_of(settings.results_dir / "locks" / cell_id)
    assert pid is not None
    os.kill(pid, number)


def assert_nothing_left(settings: RunOptions) -> None:
    assert list((settings.results_dir / "locks").iterdir()) == []
    assert not list(settings.results_dir.glob("checkpoints/*"))


@contextmanager
def killer(settings: RunOptions, kills: int, seconds: float) -> Iterator[list[int]]:
    """Kill processes that hold a run's lock: the first at once, the others at random moments."""
    draw, stop, killed = random.Random(0), threading.Event(), list[int]()

    def strike() -> None:
        while len(killed) < kills and not stop.wait(draw.uniform(0, seconds) if killed else 0.01):
            locks = sorted((settings.results_dir / "locks").glob("*"))
            pid = holder_of(draw.choice(locks)) if locks else None
            if pid not in (None, os.getpid(), *killed):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "slurm", "ray"])
def test_a_table_whose_processes_are_killed_at_random_ends_the_same(executor, cells, one_by_one, settings, events):
    settings = two_by(executor, settings)
    with killer(settings, int(os.environ.get("KILLS", "4")), 2.0) as killed:
        while run_cells(cells, settings, events):  # a run that was killed three times goes on with the next start
            assert "its process died 3 times" in events.of(CellFailed)[0].message
    assert killed
    assert outcomes(settings) == one_by_one
    assert run_cells(cells, settings, events) == 0
    assert_nothing_left(settings)


@pytest.mark.slow
def test_ray_with_two_nodes_of_which_one_is_lost(cells, one_by_one, settings, events):
    with ray_cluster(num_cpus=1) as cluster:
        other = cluster.add_node(num_cpus=1)

        def lose(event: Any) -> None:
            events(event)
            if isinstance(event, CellFinished) and other in cluster.list_all_nodes():
                cluster.remove_node(other)

        assert run_cells(cells, two_by("ray", settings, ray_address=cluster.address), lose) == 0
    assert outcomes(settings) == one_by_one


# ---- lost processes -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_whose_process_dies_three_times_fails_alone_and_is_named(cells, one_by_one, settings, events):
    def kill(event: Any) -> None:
        events(event)
        if isinstance(event, CellStarted) and event.cell.spec_id == cells[0].spec_id:
            kill_holder(settings, event.cell_id)

    two = replace(settings, workers=2)
    assert run_cells(cells, two, kill) == 2
    first, then = events.of(CellFailed)
    assert first.cell == cells[0]
    assert "its process died 3 times, possibly out of memory; finished rounds are saved" in first.message
    assert then.message == f"its parent run {cells[0].label} failed"
    assert [event.record.cell.spec_id for event in events.of(CellFinished)] == [cells[1].spec_id]
    for reused in (1, len(cells)):  # the next start computes the others, with the events of their processes
        events.clear()
        assert run_cells([*cells, cells[0]], two, events) == 0
        assert outcomes(settings) == one_by_one
        assert sum(event.reused for event in events.of(CellFinished)) == reused
        assert len(events.of(CellStarted)) == len(cells) - reused
        assert len(events.of(RoundFinished)) == 2 * (len(cells) - reused)


@pytest.mark.slow
def test_a_preempted_job_resumes_after_the_last_round(cells, settings):
    """SLURM sends a signal some time before it kills."""
    cell = replace(cells[0], training=replace(cells[0].training, rounds=8))
    settings = two_by("slurm", settings, workers=1)
    states = settings.results_dir / "checkpoints"
    begun: list[float] = []

    def preempt() -> None:
        while not (saved := list(states.glob("*/state.json"))):
            if ended.wait(0.01):
                return
        begun.append(saved[0].stat().st_mtime)
        kill_holder(settings, saved[0].parent.name, signal.SIGUSR2)

    ended = threading.Event()
    thread = threading.Thread(target=preempt)
    thread.start()
    assert run_cells([cell], settings, lambda _: None) == 0
    ended.set()
    thread.join()
    assert begun
    (log,) = settings.results_dir.glob("slurm/*/*_log.out")
    assert "Requeued job" in log.read_text()
    assert len(outcomes(settings)) == 1


def test_a_failed_cell_stops_those_that_start_from_it_alone(cells, settings, events):
    bad = replace(cells[0], head="no-such-head")
    assert run_cells([bad, replace(cells[0], initial=bad), cells[1]], settings, events) == 2
    first, then = events.of(CellFailed)
    assert "no-such-head" in first.message
    assert then.message == f"its parent run {bad.label} failed"
    assert [event.record.cell.spec_id for event in events.of(CellFinished)] == [cells[1].spec_id]


def test_a_cell_that_another_invocation_computes_is_waited_for(cells, one_by_one, settings, events):
    ids = {RunConfig.from_json(outcome["cell"]).spec_id: name for name, outcome in one_by_one.items()}
    said = threading.Event()

    def listen(event: Any) -> None:
        events(event)
        if isinstance(event, CellWaits):
            said.set()

    thread = threading.Thread(target=run_cells, args=(cells[:2], settings, listen))
    with held(settings.results_dir / "locks" / ids[cells[0].spec_id]):
        thread.start()
        assert said.wait(300)
        assert [event.record.cell.spec_id for event in events.of(CellFinished)] == [cells[1].spec_id]
    thread.join()
    (waits,) = events.of(CellWaits)
    assert (waits.cell, f"process {os.getpid()} on " in waits.holder) == (cells[0], True)
    assert len(outcomes(settings)) == 2


def test_a_lock_that_was_lost_while_the_machine_slept(cells, one_by_one, settings, events):
    def lose(event: Any) -> None:
        events(event)
        if isinstance(event, RoundFinished) and event.round.round == 1 and len(events.of(CellStarted)) == 1:
            (lock,) = (settings.results_dir / "locks").iterdir()
            lock.unlink()  # as another machine does that has not seen it renewed

    record = run_cell(cells[1], settings, lose)
    assert outcome(record) == one_by_one[record.cell_id]
    assert [len(event.finished) for event in events.of(CellStarted)] == [0, 1]
    assert_nothing_left(settings)


def test_a_machine_without_the_results_folder(cells, settings):
    end = compute_elsewhere(Job(cells[0], False), settings, False, {})
    assert isinstance(end, CellFailed)
    assert "set RESULTS_DIR to a folder with the same path on all of them" in end.message


def test_slurm_and_ray_that_cannot_work_are_refused(cells, settings):
    for text in ("partition", "=gpu", "partition=", "two words=1"):
        with pytest.raises(UserError, match="--slurm: expected NAME=VALUE"):
            on_slurm.parameters([text])
    with pytest.raises(UserError, match="--slurm cluster=local"):
        run_cells(cells, two_by("slurm", settings, slurm=("cluster=slurm",)), lambda _: None)
    with pytest.raises(UserError, match="--slurm cluster: expected one of slurm, local, debug, found 'nowhere'"):
        run_cells(cells, two_by("slurm", settings, slurm=("cluster=nowhere",)), lambda _: None)
    for address in ("head-node", "head-node:", ":6379x", "a:99999", "127.0.0.1:1"):
        with pytest.raises(UserError, match=f"no Ray cluster answers at {address} .* such as head-node:6379"):
            run_cells(cells, two_by("ray", settings, ray_address=address), lambda _: None)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two simulated GPUs."""
    monkeypatch.setattr("benchmarks.executors.processes.gpu_memory", lambda: [2**35, 2**35])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_each_process_has_its_gpu_and_as_many_threads_as_a_run(two_gpus, monkeypatch):
    def seen(device: str | None) -> list[str | None]:
        given = environments(RunOptions(device=device, threads=3), 3)
        assert {entry["OMP_NUM_THREADS"] for entry in given} == {"3"}
        return [entry.get("CUDA_VISIBLE_DEVICES") for entry in given]

    assert seen(None) == seen("cuda") == ["0", "1", "0"]
    assert seen("cuda:1") == seen("cpu") == [None] * 3  # the first of these is what all of them use
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, GPU-b")
    assert seen(None) == ["GPU-a", "GPU-b", "GPU-a"]


@dataclass(frozen=True)
class NamesGpus(Job):
    """A job of a pair: it waits for the other one's begin and ends by naming the GPUs that its process sees."""

    def run(self, settings: RunOptions, sink: Any, wait: bool) -> None:
        settings.results_dir.mkdir(exist_ok=True)
        begun = [settings.results_dir / f"begun-{number}" for number in range(4)]
        place = next(number for number, file in enumerate(begun) if _created(file))
        wait_for(begun[place ^ 1].exists)
        raise UserError(os.environ["CUDA_VISIBLE_DEVICES"])


def _created(file: Path) -> bool:
    with suppress(FileExistsError):
        file.touch(exist_ok=False)
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "slurm", "ray"])
def test_runs_side_by_side_have_a_gpu_each(executor, cells, settings, two_gpus):
    options = two_by(executor, settings, device=None)
    jobs = [NamesGpus(replace(cells[0], seed=seed)) for seed in range(4)]
    with ray_cluster(num_cpus=4, num_gpus=2) if executor == "ray" else nullcontext() as cluster:
        options = replace(options, ray_address=cluster and cluster.address)
        with executor_for(options, lambda _: None, len(jobs)) as made:
            ends = [end for _, end in run_jobs(made, jobs, lambda _: None)]
    assert sorted(end.message for end in ends) == ["0", "0", "1", "1"]


@pytest.mark.slow
def test_a_run_in_a_task_of_ray_leaves_gpus_for_its_clients(cells, one_by_one, settings, two_gpus):
    """Two runs on two GPUs with two clients each: no run holds a GPU that a client needs."""
    with ray_cluster(num_cpus=4, num_gpus=2) as cluster:
        options = two_by("ray", settings, client_workers=2, ray_address=cluster.address, device=None)
        assert run_cells(cells, options, lambda _: None) == 0
    assert outcomes(options) == one_by_one


def test_devices_by_number_are_refused_where_each_task_is_given_its_gpu(settings):
    for changes in ({"executor": "slurm"}, {"executor": "ray"}, {"client_workers": 2}):
        with pytest.raises(
            UserError, match="device 'cuda:1': expected cpu or cuda, as each job or task is given a GPU"
        ):
            replace(settings, device="cuda:1", **changes)._check_device()


def test_slurm_is_asked_for_a_gpu_for_each_client_unless_the_user_asks_for_some(settings, monkeypatch):
    submitit = pytest.importorskip("submitit")
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(submitit.AutoExecutor, "update_parameters", lambda _, **given: asked.append(given))
    local = replace(settings, executor="slurm", device="cuda", client_workers=4)
    for requests in ((), ("gres=gpu:2",), ("gpus_per_node=1",), ("partition=gpu",)):
        on_slurm.SlurmJobs(replace(local, slurm=("cluster=local", *requests)))
    assert [given.get("gpus_per_node") for given in asked] == [4, None, 1, 4]
