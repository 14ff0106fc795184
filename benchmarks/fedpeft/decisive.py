"""The comparisons that decide claims on scores and factors, fixed before their runs (docs/protocol.md)."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.claims import Better, Decisive
from benchmarks.fedpeft.claims import CLAIMS

_SEEDS = dict.fromkeys(("sst2", "qnli"), range(5))
# Claim -> the campaign steps that run its comparisons.
_STEPS = {
    **dict.fromkeys(("1a", "1c", "3", "5", "6a", "8a", "8b"), (12,)),
    **dict.fromkeys(("4", "7b", "11"), (12, 13)),
    "6b": (13, 19),
    "8c": (14,),
}
_RELATIONS = {
    claim.id: tuple(replace(one, tasks=tuple(_SEEDS)) for one in claim.relations if isinstance(one, Better))
    for claim in CLAIMS
}

DECISIVE = tuple(Decisive((id,), _RELATIONS[id], steps, _SEEDS) for id, steps in _STEPS.items())
