"""The comparisons that decide claims on scores and factors, fixed before their runs (docs/protocol.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from benchmarks.claims import Better, Decisive
from benchmarks.fedpeft.claims import CLAIMS

_SEEDS = {"sst2": range(5)}
_SKEWED = dict.fromkeys(("sst2-whole-central", "mrpc-central"), range(3))  # FedPETuning's clients
# Claim -> the campaign steps that run its comparisons.
_STEPS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("1a", "1c"), (12,)),
    **dict.fromkeys(("5", "8a", "8b"), (12, 25)),
    **dict.fromkeys(("3", "6a"), (12, 26)),
    "4": (12, 13, 26),
    "11a": (12, 13),
    "7b": (12, 32),
    "6b": (19, 33),
    "8c": (14,),
    "11b": (17,),
    **dict.fromkeys(("9", "10"), (21,)),
}


def _decisive(claim: str, steps: tuple[int, ...]) -> Decisive:
    seeds = _SKEWED if claim in ("9", "10") else _SEEDS
    (relations,) = (each.relations for each in CLAIMS if each.id == claim)
    fixed = (replace(one, tasks=tuple(seeds)) for one in relations if isinstance(one, Better))
    return Decisive((claim,), tuple(fixed), steps, seeds)


DECISIVE = tuple(_decisive(claim, steps) for claim, steps in _STEPS.items())
