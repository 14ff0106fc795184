"""Generators keyed by (seed, round, client, purpose): results do not depend on order, workers or restarts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

SERVER = -1  # the client in keys of the server's generators


def derive_seed(seed: int, round: int, client: int, purpose: str) -> int:
    """A 63-bit seed that differs for each (seed, round, client, purpose)."""
    key = f"{seed}/{round}/{client}/{purpose}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") >> 1


def numpy_generator(seed: int, round: int, client: int, purpose: str) -> np.random.Generator:
    """The numpy generator for this key."""
    return np.random.default_rng(derive_seed(seed, round, client, purpose))


@contextmanager
def torch_seeded(seed: int, round: int, client: int, purpose: str) -> Iterator[None]:
    """Seed torch's global generators (dropout and initialisation use no others) and restore them afterwards."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(derive_seed(seed, round, client, purpose))
        yield


class TorchStream:
    """A seeded stream of torch's random numbers that can be paused, so that several streams can alternate."""

    def __init__(self, seed: int, round: int, client: int, purpose: str) -> None:
        self._key = seed, round, client, purpose
        self._states: tuple[torch.Tensor, list[torch.Tensor]] | None = None  # the CPU's, and each GPU's

    @contextmanager
    def drawn(self) -> Iterator[None]:
        """Continue the stream for a `with` block; torch's global generators are restored afterwards."""
        with torch_seeded(*self._key):
            if self._states is not None:
                cpu, gpus = self._states
                torch.set_rng_state(cpu)
                torch.cuda.set_rng_state_all(gpus)
            yield
            self._states = torch.get_rng_state(), torch.cuda.get_rng_state_all()
