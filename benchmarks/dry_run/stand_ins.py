"""Placeholders for data in dry runs: texts without content, and features without values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.errors import DependsOnTextsError
from fedsim.data import IGNORED, Batch, ExampleSet, Subset, targets_of
from fedsim.features import FeatureCache, FeatureStore
from fedsim.models.model import Model
from fedsim.objectives import Objective, Regression
from fedsim.store import ClientStore

META = torch.device("meta")


class Texts:
    """Texts with unknown content. lengths: tokens per text, int64 [n], if known."""

    targets = None

    def __init__(self, lengths: np.ndarray | None = None) -> None:
        self.lengths = np.zeros(1, dtype=np.int64) if lengths is None else lengths
        self.labels = np.zeros(len(self.lengths), dtype=np.int64)

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        raise DependsOnTextsError("the bytes depend on the texts themselves; a finished run's record has them")


class OneText:
    """A text with `tokens` tokens; a batch may contain it several times."""

    def __init__(self, tokens: int, objective: Objective) -> None:
        self.labels = np.zeros(1, dtype=np.float32 if isinstance(objective, Regression) else np.int64)
        self.lengths = np.array([tokens])
        targets = np.where(np.arange(tokens) < objective.targets_in(tokens), 0, IGNORED)
        self.targets = targets if objective.of_tokens else None

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        ids = torch.zeros(len(indices), int(self.lengths[0]), dtype=torch.int64)
        ids[:, 0] = ids[:, -1] = 1  # special tokens: no objective masks them
        labels = torch.from_numpy(targets_of(self, indices, ids.shape[1]))
        mask, types = torch.ones_like(ids), torch.zeros_like(ids)
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types, "labels": labels}


class States:
    """Texts' hidden states in the shape that the head reads. is_counted: whether the number of texts is known."""

    def __init__(self, model: Model, examples: ExampleSet, is_counted: bool) -> None:
        self.model, self.is_counted = model, is_counted
        self.labels, self.targets, self.lengths = examples.labels, examples.targets, examples.lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        head = self.model.network.head
        if not self.is_counted:
            raise DependsOnTextsError(
                "the bytes depend on the number of examples; give each client's, or read a finished run's record"
            )
        lengths = self.lengths[indices] if head.tokens else np.ones(len(indices), dtype=np.int64)
        padded = (width if head.tokens else None) or int(lengths.max())
        if not padded:
            return Texts().collate(indices)
        return {
            "features": torch.empty(head.states, len(indices), padded, self.model.hidden, device=META),
            "attention_mask": torch.from_numpy((np.arange(padded) < lengths[:, None]).astype(np.int64)),
            "labels": torch.from_numpy(targets_of(self, indices, padded)),
        }


def text_like(examples: ExampleSet, tokens: int, objective: Objective) -> ExampleSet:
    """A text with `tokens` tokens in the form of the examples: hidden states, or tokens."""
    text = OneText(tokens, objective)
    return States(examples.model, text, is_counted=True) if isinstance(examples, States) else text


class Features(FeatureCache):
    """A cache that computes nothing. on_part: called with the model and each subset when its features are read."""

    def __init__(self, is_counted: bool, on_part: Callable[[Model, Subset], None] = lambda model, subset: None) -> None:
        super().__init__()
        self.is_counted, self.on_part = is_counted, on_part

    def subset(self, model: Model, subset: Subset, *_: Any) -> Subset:
        self.on_part(model, subset)
        return Subset(States(model, subset.examples, self.is_counted), subset.indices)

    def store(self, model: Model) -> FeatureStore:
        return _Received(model)


class _Received(FeatureStore):
    """Features on a server, known by their number and each one's tokens."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._lengths: list[np.ndarray] = []

    def add(self, features: Tensor, masks: Tensor | None, labels: Tensor) -> None:
        lengths = torch.ones(len(labels), dtype=torch.int64)
        if masks is not None:
            lengths = masks.sum(1) if masks.ndim == 2 else masks
        self._lengths.append(lengths.numpy().astype(np.int64))

    def examples(self) -> Any:
        return States(self._model, Texts(np.concatenate(self._lengths)), is_counted=True)


class NoStore(ClientStore):
    """A store that keeps nothing, as there are no values."""

    def put(self, *_: Any) -> None: ...


class KeptSizes(NoStore):
    """A store that keeps only tensors' sizes in bytes, by client and name; stores `with_prefix` it share them."""

    def __init__(self, sizes: dict[tuple[str, int, str], int] | None = None, prefix: str = "client") -> None:
        super().__init__(prefix=prefix)
        self.sizes = {} if sizes is None else sizes

    def with_prefix(self, prefix: str) -> KeptSizes:
        return KeptSizes(self.sizes, prefix)

    def put(self, client: int, round: int, tensors: Mapping[str, Tensor]) -> None:
        for name, tensor in tensors.items():
            self.sizes[self._prefix, client, name] = tensor.nbytes
