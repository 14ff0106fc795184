"""The process of a run: its memory, and what libraries may print."""

from __future__ import annotations

import ctypes
import logging
import platform
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import datasets
import torch
import transformers

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # as glibc's malloc.h numbers mallopt's options


def peak_memory_bytes() -> int:
    """The largest resident memory of this process so far, plus the largest that torch held on a GPU."""
    gpu = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    return _peak_resident_bytes() + gpu


def _peak_resident_bytes() -> int:
    """From /proc where it exists: on Linux getrusage includes the peak of the process that started this one."""
    with suppress(OSError), Path("/proc/self/status").open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def hold_freed_memory() -> None:
    """Keep freed memory for the next step: tensors as large as a vocabulary take a third longer on fresh pages."""
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
