"""Mixed precision that suits the device."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch

from fedsim.errors import FederationError

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Precision:
    """Where and in which element type the arithmetic runs; parameters and optimiser states stay fp32."""

    device: torch.device
    name: str  # "fp32", "bf16" or "fp16", resolved

    def autocast(self) -> AbstractContextManager[object]:
        """The context of a forward pass."""
        if self.name == "fp32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=DTYPES[self.name])

    def scaler(self) -> torch.amp.GradScaler:
        """The loss scaler of a training run; it does nothing unless gradients are fp16."""
        return torch.amp.GradScaler(self.device.type, enabled=self.name == "fp16")


def resolve_precision(requested: str = "auto", device: str | None = None) -> Precision:
    """The precision for this machine: bf16 where the hardware computes in it, fp16 on older GPUs (V100), else fp32."""
    if requested != "auto" and requested not in DTYPES:
        raise FederationError(f"unknown precision {requested!r}: expected auto, {', '.join(DTYPES)}")
    chosen = _device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if requested == "fp16" and chosen.type != "cuda":
        raise FederationError("precision fp16 needs a GPU: on a CPU choose auto, fp32 or bf16")
    if requested != "auto":
        return Precision(chosen, requested)
    if chosen.type == "cuda":
        return Precision(chosen, "bf16" if torch.cuda.get_device_capability(chosen) >= (8, 0) else "fp16")
    features = torch.cpu.get_capabilities() if chosen.type == "cpu" else {}
    return Precision(chosen, "bf16" if features.get("amx_bf16") or features.get("avx512_bf16") else "fp32")


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda"):
            raise RuntimeError(f"{device.type} computes nothing here")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        gpus = torch.cuda.device_count()
        raise FederationError(
            f"device {name!r}: expected cpu or one of this machine's {gpus} GPUs (cuda:0, …)"
        ) from None
    return device
