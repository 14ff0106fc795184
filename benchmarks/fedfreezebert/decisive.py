"""The comparisons that decide FedFreezeBERT's claims on tweets, fixed before their runs (docs/protocol.md)."""

from __future__ import annotations

from benchmarks.claims import Better, Decisive
from benchmarks.fedfreezebert.claims import CLAIMS

_FROZEN = {"3c": 5, "4c": 5, "6c": 24}  # claim -> step; they compare only rows with a frozen encoder
_TRAINED = ("3a", "3b", "4a", "5a", "5b", "5c", "5d", "5e", "12", "13")
_BOTH = ("1a", "1b", "1d", "1e", "14")  # a trained encoder against frozen rows with BERT layers in their heads
_RELATIONS = {claim.id: tuple(one for one in claim.relations if isinstance(one, Better)) for claim in CLAIMS}

DECISIVE = (
    *(Decisive((id,), _RELATIONS[id], (step,), {"arsarcasm": range(5, 10)}) for id, step in _FROZEN.items()),
    *(Decisive((id,), _RELATIONS[id], steps=(5, 11), seeds={"arsarcasm": range(5, 8)}) for id in _TRAINED),
    *(Decisive((id,), _RELATIONS[id], steps=(5, 11, 24), seeds={"arsarcasm": range(5, 8)}) for id in _BOTH),
)
