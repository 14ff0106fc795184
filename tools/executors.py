"""A table through every executor, in folders of their own: the records are the same.

`python tools/executors.py fedsplitbert-table3 [--tasks mrpc,rte]`: one cell after the other, processes, SLURM by
submitit's local executor, and Ray with two nodes that are started here. The status is 1 where a record differs or
lacks.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.record import read_folders  # noqa: E402 - after its place is known

EXECUTORS = ("serial", "processes", "slurm", "ray")


@contextmanager
def _cluster(executor: str) -> Iterator[list[str]]:
    """What the command is told of where it finds the executor's machines, as long as they are there."""
    if executor == "slurm":
        yield ["--slurm", "cluster=local"]
    elif executor == "ray":
        from ray.cluster_utils import Cluster

        made = Cluster(True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            made.add_node(num_cpus=1)
            yield ["--ray-address", made.address]
        finally:
            made.shutdown()
    else:
        yield []


def outcomes(executor: str, folder: Path, words: list[str]) -> dict[str, object]:
    """The outcome of every cell of a table that an executor computed in a folder, by the cell's id."""
    with _cluster(executor) as own:
        command = [sys.executable, "-m", "benchmarks", "run", *words, *own, "--executor", executor, "--device", "cpu"]
        subprocess.run(
            [*command, "--workers", "2", "--no-tracking", "--results-dir", str(folder)],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return {record.cell_id: record.outcome for record in read_folders([folder / "records"])}


def main() -> int:
    """Print how many records of each executor are those of the first one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", help="what `run` understands besides goes with it, such as --tasks mrpc")
    words, more = parser.parse_known_args()
    expected: dict[str, object] = {}
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for executor in EXECUTORS:
            start = time.monotonic()
            found = outcomes(executor, Path(folder) / executor, [words.table, *more])
            expected = expected or found
            same = sum(found.get(cell) == outcome for cell, outcome in expected.items())
            wrong += same != len(expected) or len(found) != len(expected)
            seconds = time.monotonic() - start
            print(f"{executor}: {same} of {len(expected)} records the same, {seconds:.0f} s", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
