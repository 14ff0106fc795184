"""Generators keyed by (seed, round, client, purpose): no result depends on order, workers or restarts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

SERVER = -1  # the "client" of what the server draws


def derive_seed(seed: int, round: int, client: int, purpose: str) -> int:
    """A 63-bit seed of its own for each (seed, round, client, purpose)."""
    key = f"{seed}/{round}/{client}/{purpose}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") >> 1


def numpy_generator(seed: int, round: int, client: int, purpose: str) -> np.random.Generator:
    """The numpy generator of that key."""
    return np.random.default_rng(derive_seed(seed, round, client, purpose))


@contextmanager
def torch_seeded(seed: int, round: int, client: int, purpose: str) -> Iterator[None]:
    """Seed torch's global generators (dropout and initialisation know no other) and restore them afterwards."""
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(derive_seed(seed, round, client, purpose))
        yield
