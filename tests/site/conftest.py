"""A site of some committed records, one of them with hostile words, made by a process that cannot import torch."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.record import RunRecord, read_record, write_record

ROOT = Path(__file__).resolve().parents[2]
# Several tasks with all seeds, curves of some methods, an attack, and a table of another paper.
SHOWN = ("lite-mrpc-*", "lite-rte-local*", "lite-rte-linear*", "lite-wnli-*", "lite-sst2-texts-inversion-s0*")
HOSTILE = "</script><script>window.broken = true</script><img src=http://x.invalid/a onerror=alert(1)>"
WITHOUT_TORCH = """
import importlib.abc, sys
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "mlflow"):
            raise ModuleNotFoundError(f"blocked: {name}")
sys.meta_path.insert(0, Blocked())
from benchmarks.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def shown() -> list[RunRecord]:
    """The records of the site."""
    names = [f"benchmarks/*/records/{name}.json" for name in SHOWN]
    paths = [path for name in names for path in ROOT.glob(name)]
    return [read_record(path) for path in sorted(paths)]


def hostile(record: RunRecord) -> RunRecord:
    """The same run with words that would leave the text they stand in."""
    data = {**record.inputs["data"], "notes": [HOSTILE], "origin": HOSTILE}
    environment = {**record.environment, "device": HOSTILE}
    return replace(record, inputs={**record.inputs, "data": data}, environment=environment, folder=None)


def without_torch(*words: str) -> subprocess.CompletedProcess[str]:
    """A command of a process in which torch cannot be imported."""
    return subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *words], cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    first, *rest = shown()
    for record in (hostile(first), *rest):
        write_record(folder / "records", record)
    made = without_torch("site", "--records", str(folder / "records"), "--out", str(folder / "site"))
    assert (made.returncode, made.stderr) == (0, "")
    assert "left out" not in made.stdout  # whatever pages ask of shapes is kept
    return folder / "site"
