"""Any bytes in a file from outside give a value or one error that the user can act on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.errors import UserError
from benchmarks.predictions import predictions_file, read_predictions
from benchmarks.results import read_result
from benchmarks.running.run_options import RunOptions
from benchmarks.running.stages import find_outcome, keep_outcome
from benchmarks.sweeps.tuning import read_sweep
from fedsim.checkpoint import Checkpoint
from fedsim.errors import FederationError
from fedsim.store import read_tensors, write_tensors
from reports import ReportError
from reports.evidence.published import HEADER, read_published

Placed = tuple[Path, Callable[[], Any]]


def record(folder: Path, finished: Path) -> Placed:
    path = shutil.copy(next((finished / "records").glob("*.json")), folder)
    return Path(path), lambda: read_result(Path(path))


def predictions(folder: Path, finished: Path) -> Placed:
    shutil.copytree(finished / "records", folder / "records")
    result = read_result(next((folder / "records").glob("*.json")))
    return predictions_file(folder / "records", result), lambda: read_predictions(folder / "records", result)


def manifest(folder: Path, _: Path) -> Placed:
    path = folder / "state.json"
    path.write_bytes(b'0123\n{"version": 3}')
    return path, lambda: Checkpoint(folder, "cell").restore(cast(Any, None))


def tensors(folder: Path, _: Path) -> Placed:
    path = folder / "server.safetensors"
    sha256 = write_tensors(path, {"a": torch.ones(100)})
    return path, lambda: read_tensors(path, sha256)


def weights(folder: Path, finished: Path) -> Placed:
    cell = read_result(next((finished / "records").glob("*.json"))).cell
    kept = keep_outcome(RunOptions(results_dir=folder), cell, "c" * 32, {"a": torch.ones(100)})

    def read() -> Any:
        outcome = find_outcome(RunOptions(results_dir=folder), cell, "c" * 32)
        return outcome and outcome.tensors()

    return kept.path, read


def sweep(folder: Path, _: Path) -> Placed:
    path = folder / "sweep.json"
    path.write_text('{"tunings": [{"task": "mrpc", "method": "fedavg"}]}')
    return path, lambda: read_sweep(path)


def published(folder: Path, _: Path) -> Placed:
    path = folder / "published.csv"
    path.write_text(",".join(HEADER) + "\nTable 1,a,b,f1,0.5\n")
    return path, lambda: read_published(path)


def error_of(read: Callable[[], Any], default: str) -> str:
    """The message of the one error that a reader may raise, or the default where it reads a value."""
    try:
        read()
    except (UserError, FederationError, ReportError) as error:
        return str(error)
    return default


READERS = (record, predictions, manifest, tensors, weights, sweep, published)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_changed_bytes_are_read_or_refused_with_the_files_name(
    reader: Callable[[Path, Path], Placed], finished_results: Path, tmp_path: Path
) -> None:
    path, read = reader(tmp_path, finished_results)
    whole = path.read_bytes()

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(start, min(len(whole), start + 50)))
        path.write_bytes(whole[:start] + data.draw(st.binary(max_size=50)) + whole[end:])
        assert path.name in error_of(read, default=path.name)

    check()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises((UserError, FederationError, ReportError), match=r"expected|damaged"):
        read()
