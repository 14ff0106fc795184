"""Commands around the runs: ui, doctor, bench."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator

from benchmarks.cli.select import settings
from benchmarks.errors import UserError
from benchmarks.settings import Settings, available_cores


def ui_command(words: argparse.Namespace) -> int:
    """MLflow's own pages, for this machine alone unless another address is asked for."""
    from benchmarks.tracking import default_tracking_uri, serve

    made = Settings(results_dir=words.results_dir)
    return serve(default_tracking_uri(made.results_dir), made.results_dir, words.host, words.port)


def doctor_command(words: argparse.Namespace) -> int:
    """What this machine has; status 2 where something that every run needs is missing."""
    problems = 0
    for name, good, text in _findings(words):
        print(f"{'ok  ' if good else 'none'} {name}: {text}")
        problems += not good and name == "results"
    return 2 if problems else 0


def _findings(words: argparse.Namespace) -> Iterator[tuple[str, bool, str]]:
    import torch

    from benchmarks.backbones import KNOWN, locate
    from benchmarks.environment import describe_environment
    from benchmarks.tasks import DataSource, tasks
    from benchmarks.tracking import default_tracking_uri
    from benchmarks.tracking.store import shown
    from fedsim.precision import resolve_precision

    precision = resolve_precision()
    environment = describe_environment(precision, 1)
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    yield "python", True, f"{environment['python']}; {versions}"
    yield (
        "device",
        True,
        f"{environment['device']} ({precision.device.type}, {precision.name}), {available_cores()} cores",
    )
    if torch.cuda.is_available():
        yield "gpu memory", True, f"{torch.cuda.get_device_properties(0).total_memory / 2**30:.0f} GiB"
    try:
        settings(words)
        free = shutil.disk_usage(words.results_dir).free / 2**30
        yield "results", True, f"{words.results_dir} is writable, {free:.0f} GiB free"
    except UserError as error:
        yield "results", False, str(error)
    yield "tracking", True, shown(default_tracking_uri(words.results_dir))
    for backbone, known in KNOWN.items():
        try:
            found = locate(backbone, True, words.data_dir, words.results_dir)
            made_by = known.made_by
            how = f"; trained by {made_by[0]}, which is run first" if made_by else ""
            yield f"encoder {backbone}", True, ", ".join(found.origin.values()) + how
        except ValueError:
            yield f"encoder {backbone}", False, "not on this machine; it would be fetched from the Hugging Face hub"
    if words.data_dir is None:
        yield "data", False, "DATA_DIR is not set: real tasks are read from the Hugging Face hub"
        return
    for task in tasks():
        try:
            data = task.load(DataSource(words.data_dir, extracts=words.results_dir / "corpora"))
            yield f"task {task.id}", True, f"{len(data.pool)} examples ({data.origin})"
        except ValueError as error:
            yield f"task {task.id}", False, str(error)


def bench_command(words: argparse.Namespace) -> int:
    """Speed and memory, part by part; status 1 where a bar is not met. Or the page of what was measured."""
    from benchmarks.performance.suite import page, run_suite

    if words.page:
        print(page(words.page), end="")
        return 0
    words.threads = words.threads or available_cores()
    return run_suite(words.parts, settings(words), words.repeats)
