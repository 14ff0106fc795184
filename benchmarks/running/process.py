"""A run's process: its machine, software and memory, and libraries' messages."""

from __future__ import annotations

import ctypes
import logging
import platform
import resource
import subprocess
import sys
import warnings
from contextlib import suppress
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import datasets
import torch
import transformers

from benchmarks.run_config import JSON
from fedsim.precision import Precision

PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "evaluate", "numpy", "safetensors")
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # mallopt's options in glibc's malloc.h


def describe_environment(precision: Precision, threads: int) -> dict[str, JSON]:
    """Versions, machine, precision and code revision: recorded with a result, but not part of its identity."""
    gpu = precision.device.type == "cuda"
    return {
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in PACKAGES},
        "platform": f"{platform.system()} {platform.machine()}",
        "device": torch.cuda.get_device_name(precision.device) if gpu else _field("/proc/cpuinfo", "model name", "CPU"),
        "precision": precision.name,
        "threads": threads,
        **code_revision(),
    }


@lru_cache
def code_revision() -> dict[str, JSON]:
    """The checkout's commit, and whether files were changed; None outside a checkout."""

    def git(*args: str) -> str | None:
        command = ["git", "-C", str(Path(__file__).parent), *args]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return None

    changed = git("status", "--porcelain", "--untracked-files=no")
    return {"revision": git("rev-parse", "HEAD"), "modified": None if changed is None else bool(changed)}


def _field(path: str, name: str, otherwise: str) -> str:
    """The value in the first line "name: value" of a /proc file."""
    with suppress(OSError), Path(path).open(encoding="utf-8") as file:
        for line in file:
            if line.startswith(name):
                return line.split(":", 1)[1].strip()
    return otherwise


def peak_memory_bytes() -> int:
    """This process's peak resident memory so far, plus torch's peak memory on a GPU."""
    gpu = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    resident = _field("/proc/self/status", "VmHWM", "")  # getrusage includes the parent process's peak
    if resident:
        return int(resident.split()[0]) * 1024 + gpu
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit + gpu


def hold_freed_memory() -> None:
    """Keep freed memory for the next step: vocabulary-sized tensors take a third longer on fresh pages."""
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL("libc.so.6")
        for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1)):
            libc.mallopt(option, value)


def quiet_libraries() -> None:
    """Turn off the progress bars and messages of transformers and datasets."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    logging.getLogger("datasets").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="transformers")
