"""Stand-ins for a federation that is only counted: tensors on the `meta` device have shapes and no values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.errors import DependsOnTextsError
from fedsim.data import Batch, ExampleSet, Part
from fedsim.feature_cache import FeatureCache
from fedsim.features import FeatureStore
from fedsim.models.resident import Resident
from fedsim.objectives import Regression
from fedsim.store import ClientStore
from fedsim.training import LocalTraining


def _ignore(*_: Any) -> None:
    """No one counts."""


@dataclass(frozen=True)
class Untrained(LocalTraining):
    """Local training that leaves everything as it is. on_run: told the examples and the parameters' names."""

    on_run: Callable[[Part, Sequence[str]], None] = _ignore

    def run(self, resident: Resident, part: Part, names: list[str], *_: Any, **__: Any) -> float:
        self.on_run(part, names)
        return 0.0


class Forgetful(ClientStore):
    """A store that keeps nothing: there are no values."""

    def put(self, *_: Any) -> None: ...


class Texts:
    """Examples of which nothing is known but how many a client has."""

    labels = lengths = np.zeros(1, dtype=np.int64)
    targets = None

    def collate(self, *_: Any, **__: Any) -> Batch:
        raise DependsOnTextsError(
            "bytes that depend on the texts themselves: they are known when a cell has run, in its record"
        )


class States:
    """Hidden states of examples, of the shapes that a head reads."""

    def __init__(self, model: Resident, examples: ExampleSet, counted: bool) -> None:
        self.model = model
        self.labels = examples.labels
        self.targets = None
        self.lengths = examples.lengths
        self.counted = counted

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        head = self.model.model.head
        if not self.counted:
            raise DependsOnTextsError(
                "bytes that depend on the number of examples: give each client's, or see a cell's record"
            )
        if head.tokens and width is None:
            return Texts().collate()
        shape = (len(indices), (width if head.tokens else None) or 1)
        labels = torch.float32 if isinstance(self.model.objective, Regression) else torch.int64
        with torch.device("meta"):
            return {
                "features": torch.empty(head.states, *shape, self.model.hidden),
                "attention_mask": torch.empty(shape, dtype=torch.int64),
                "labels": torch.empty(len(indices), dtype=labels),
            }


class Features(FeatureCache):
    """A cache that computes nothing. counted: whether the numbers of examples are the data's own.

    on_part: told every part of which features are asked for.
    """

    def __init__(self, counted: bool, on_part: Callable[[Part], None] = _ignore) -> None:
        super().__init__()
        self.counted = counted
        self.on_part = on_part

    def part(self, model: Resident, part: Part, *_: Any) -> Part:
        self.on_part(part)
        return Part(States(model, part.examples, self.counted), part.indices)

    def store(self, *_: Any) -> FeatureStore:
        return Received()


class Received(FeatureStore):
    """What a server keeps of that: how many there are."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, *received: Any) -> None:
        *_, labels = received
        self._count += len(labels)

    def examples(self) -> Any:
        return range(self._count)
