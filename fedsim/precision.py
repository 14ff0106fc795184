"""Mixed precision, chosen for the device."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache

import torch

from fedsim.errors import FederationError

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Precision:
    """Device and element type for the arithmetic; parameters and optimiser states stay fp32."""

    device: torch.device
    name: str  # "fp32", "bf16" or "fp16", resolved

    def autocast(self) -> AbstractContextManager[object]:
        """The context for a forward pass."""
        return nullcontext() if self.name == "fp32" else torch.autocast(self.device.type, dtype=DTYPES[self.name])

    def scaler(self) -> torch.amp.GradScaler:
        """The loss scaler for a training run; inactive unless the precision is fp16."""
        return torch.amp.GradScaler(self.device.type, enabled=self.name == "fp16")


def resolve_precision(requested: str = "auto", device: str | None = None) -> Precision:
    """The precision for this machine: bf16 where it is faster, fp16 on older GPUs (V100), else fp32."""
    chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise FederationError(f"device {chosen}: expected a GPU, found none visible to this process")
    if requested == "fp16" and chosen.type != "cuda":
        raise FederationError("precision fp16 needs a GPU: on a CPU choose auto, fp32 or bf16")
    if requested == "auto" and chosen.type == "cuda":
        requested = "bf16" if torch.cuda.get_device_capability(chosen) >= (8, 0) else "fp16"
    elif requested == "auto":
        requested = "bf16" if bf16_gain() > 1 else "fp32"
    return Precision(chosen, requested)


def has_amx() -> bool:
    """Whether this CPU has bf16 matrix tiles (AMX)."""
    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


@cache
def bf16_gain() -> float:
    """This CPU's speed-up of bf16 matrix products over fp32; measured once per process, within milliseconds.

    It is measured because bf16 instructions can be slower than fp32. 0 for a CPU without them.
    """
    if not (has_amx() or torch.cpu.get_capabilities().get("avx512_bf16")):
        return 0.0
    return product_seconds(torch.float32, 512, 5) / product_seconds(torch.bfloat16, 512, 5)


def product_seconds(dtype: torch.dtype, side: int, repeats: int, device: str = "cpu") -> float:
    """The shortest time in seconds for the product of two square matrices, with all of PyTorch's threads."""
    one, other = (torch.ones(side, side, dtype=dtype, device=device) for _ in range(2))
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        _ = (one @ other)[0, 0].item()  # also waits for a GPU
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:])
