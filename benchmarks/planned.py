"""Stand-ins for a federation that is only counted: tensors on the `meta` device have shapes and no values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.errors import DependsOnTextsError
from fedsim.data import Batch, ExampleSet, Subset, asked
from fedsim.feature_cache import FeatureCache
from fedsim.features import FeatureStore
from fedsim.models.model import Model
from fedsim.objectives import Regression
from fedsim.store import ClientStore


def _ignore(*_: Any) -> None:
    """No one counts."""


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
    """Hidden states of examples, of the shapes that a head reads. examples: the same by their texts."""

    def __init__(self, model: Model, examples: ExampleSet, counted: bool) -> None:
        self.model = model
        self.examples = examples
        self.labels = examples.labels
        self.targets = examples.targets
        self.lengths = examples.lengths
        self.counted = counted

    def __len__(self) -> int:
        return len(self.lengths)

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        head = self.model.network.head
        if not self.counted:
            raise DependsOnTextsError(
                "bytes that depend on the number of examples: give each client's, or see a cell's record"
            )
        if isinstance(self.examples, Texts):
            return self._of_unknown(len(indices), width)
        kept = self.lengths[indices] if head.tokens else np.ones(len(indices), dtype=np.int64)
        padded = (width if head.tokens else None) or int(kept.max())
        return {
            "features": torch.empty(head.states, len(indices), padded, self.model.hidden, device="meta"),
            "attention_mask": torch.from_numpy((np.arange(padded) < kept[:, None]).astype(np.int64)),
            "labels": torch.from_numpy(asked(self, indices, padded)),
        }

    def _of_unknown(self, count: int, width: int | None) -> Batch:
        """The batch of texts of which nothing but their number is known."""
        head = self.model.network.head
        if head.tokens and width is None:
            return Texts().collate()
        shape = (count, (width if head.tokens else None) or 1)
        labels = torch.float32 if isinstance(self.model.objective, Regression) else torch.int64
        with torch.device("meta"):
            return {
                "features": torch.empty(head.states, *shape, self.model.hidden),
                "attention_mask": torch.empty(shape, dtype=torch.int64),
                "labels": torch.empty(count, dtype=labels),
            }


class Features(FeatureCache):
    """A cache that computes nothing. counted: whether the numbers of examples are the data's own.

    on_part: told the model and the subset whenever features are asked for.
    """

    def __init__(self, counted: bool, on_part: Callable[[Model, Subset], None] = _ignore) -> None:
        super().__init__()
        self.counted = counted
        self.on_part = on_part

    def subset(self, model: Model, subset: Subset, *_: Any) -> Subset:
        self.on_part(model, subset)
        return Subset(States(model, subset.examples, self.counted), subset.indices)

    def store(self, model: Model) -> FeatureStore:
        return Received(model)


class Received(FeatureStore):
    """What a server keeps of that: how many there are, and as many tokens of each as its mask says."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._lengths: list[np.ndarray] = []

    def add(self, features: Tensor, masks: Tensor | None, labels: Tensor) -> None:
        lengths = torch.ones(len(labels), dtype=torch.int64)
        if masks is not None and not masks.is_meta:
            lengths = masks.sum(1) if masks.ndim == 2 else masks
        self._lengths.append(lengths.numpy().astype(np.int64))

    def examples(self) -> Any:
        return States(self._model, Unread(np.concatenate(self._lengths)), counted=True)


class Unread:
    """Texts of these lengths, which are not read. lengths: int64 [n]."""

    targets = None

    def __init__(self, lengths: np.ndarray) -> None:
        self.lengths = lengths
        self.labels = np.zeros(len(lengths), dtype=np.int64)

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        return Texts().collate()
