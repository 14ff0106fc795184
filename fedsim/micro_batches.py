"""Micro-batches: a batch's gradients, accumulated over parts that fit into device memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from fedsim.data import IGNORED, Batch
from fedsim.errors import FederationError, plural

Result = TypeVar("Result")


def targets_in(batch: Batch) -> int:
    """The number of targets that a batch's mean loss averages over: its texts, or its tokens with a target."""
    labels = batch["labels"]
    return len(labels) if labels.ndim == 1 else int((labels != IGNORED).sum())


@dataclass(eq=False)
class MicroBatches:
    """How a run splits batches into parts for the model.

    Args:
        size: Texts per part; None: the whole batch.
        automatic: Whether to halve the parts once after an out-of-memory error.
        trains: Whether the batches are trained on, not scored.
    """

    size: int | None = None
    automatic: bool = True
    trains: bool = True

    def accumulate(self, batch: Batch, add: Callable[[Batch, float], Tensor], clear: Callable[[], None]) -> Tensor:
        """Accumulate a batch's gradients part by part.

        Args:
            batch: The batch, with the objective's targets.
            add: Multiplies a part's mean loss by its share of the batch's targets, backpropagates the product and
                returns it.
            clear: Removes gradients left by `add`; called before the first part.

        Returns:
            The mean loss over the batch's targets.

        Raises:
            FederationError: The device's memory is too small.
        """

        def loss() -> Tensor:
            clear()
            return torch.stack([add(part, share).detach() for part, share in self._parts(batch)]).sum()

        return self._tried(batch, loss)

    def answers(self, batch: Batch, answer: Callable[[Batch], np.ndarray]) -> np.ndarray:
        """The answers for a batch, part by part; FederationError where the device's memory is too small."""
        return self._tried(batch, lambda: np.concatenate([answer(part) for part, _ in self._parts(batch)]))

    def _tried(self, batch: Batch, compute: Callable[[], Result]) -> Result:
        while True:
            try:
                return compute()
            except torch.OutOfMemoryError:
                self._halve(min(self.size or len(batch["labels"]), len(batch["labels"])))

    def _parts(self, batch: Batch) -> Iterator[tuple[Batch, float]]:
        """Yield the parts, padded to the batch's width, each with its share of the targets."""
        texts = len(batch["labels"])
        if self.size is None or self.size >= texts:
            yield batch, 1.0
            return
        targets = max(1, targets_in(batch))
        for start in range(0, texts, self.size):
            rows = slice(start, start + self.size)
            # Features [K, B, S, D] index texts in their second dimension.
            part = {name: value[:, rows] if name == "features" else value[rows] for name, value in batch.items()}
            yield part, targets_in(part) / targets

    def _halve(self, texts: int) -> None:
        """Halve the number of texts per part; FederationError if that is not possible."""
        if not self.automatic or texts == 1:
            smaller = f"set --micro-batch below {texts}, " if texts > 1 else ""
            less = f"{smaller}add --checkpoint-activations, or " if self.trains else ""
            task = "train on" if self.trains else "score"
            raise FederationError(
                f"out of memory: the device cannot {task} {plural(texts, 'text')} at once; {less}share each GPU among "
                "fewer runs (--workers)"
            ) from None
        self.size, self.automatic = texts // 2, False
