"""The comparisons that decide sentences on federated PEFT, fixed before their runs (docs/protocol.md)."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.claims import Better, Decisive
from benchmarks.fedpeft.claims import CLAIMS

_SEEDS = {"sst2": range(5), "qnli": range(5)}
_STEPS = {
    **dict.fromkeys(("1a", "1c", "3", "5", "6a", "8a"), (12,)),
    "6b": (13, 19),
    "8b": (14,),
}
DECISIVE = tuple(
    Decisive(
        (claim.id,),
        tuple(replace(one, tasks=tuple(_SEEDS)) for one in claim.relations if isinstance(one, Better)),
        steps=_STEPS[claim.id],
        seeds=_SEEDS,
    )
    for claim in CLAIMS
    if claim.id in _STEPS
)
