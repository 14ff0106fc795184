"""The software and machine that computed a result: recorded with it, never part of its identity."""

from __future__ import annotations

import platform
import subprocess
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.run_config import JSON

if TYPE_CHECKING:
    from fedsim.precision import Precision

PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "evaluate", "numpy", "safetensors")


def describe_environment(precision: Precision, threads: int) -> dict[str, JSON]:
    """Versions, machine, precision and the code's revision."""
    import torch  # `list` and reports run without it

    gpu = precision.device.type == "cuda"
    return {
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in PACKAGES},
        "platform": f"{platform.system()} {platform.machine()}",
        "device": torch.cuda.get_device_name(precision.device) if gpu else _cpu_name(),
        "precision": precision.name,
        "threads": threads,
        **code_revision(),
    }


@lru_cache
def code_revision() -> dict[str, JSON]:
    """The checkout's commit, and whether files differ from it; None outside a checkout."""

    def git(*args: str) -> str | None:
        command = ["git", "-C", str(Path(__file__).parent), *args]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return None

    changed = git("status", "--porcelain", "--untracked-files=no")
    return {"revision": git("rev-parse", "HEAD"), "modified": None if changed is None else bool(changed)}


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "CPU")
