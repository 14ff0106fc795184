"""Micro-batches: a batch's gradients, accumulated over parts that fit into device memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from fedsim.data import IGNORED, Batch
from fedsim.errors import FederationError


def targets_in(batch: Batch) -> int:
    """The number of targets that a batch's mean loss averages over: its texts, or its tokens with a target."""
    labels = batch["labels"]
    return len(labels) if labels.ndim == 1 else int((labels != IGNORED).sum())


@dataclass(eq=False)
class MicroBatches:
    """How a run splits batches into parts for the model.

    size: texts per part; None: the whole batch. automatic: halve the parts once after an out-of-memory error.
    """

    size: int | None = None
    automatic: bool = True

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
        while True:
            clear()
            try:
                return torch.stack([add(part, share).detach() for part, share in self._parts(batch)]).sum()
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
            raise FederationError(
                f"out of memory: the device cannot train on {texts} texts at once; {smaller}add "
                "--checkpoint-activations, or share each GPU among fewer runs (--workers)"
            ) from None
        self.size, self.automatic = texts // 2, False
