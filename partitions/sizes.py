"""Random parts of given sizes."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from partitions.base import LATER
from partitions.checks import require_clients, require_labels, require_number, require_share
from partitions.drawing import deal
from partitions.errors import PartitionError
from partitions.report import Partition, reported
from partitions.rounding import largest_remainder, share_of


@dataclass(frozen=True)
class Sizes:
    """Give client k sizes[k] random examples, drawn without replacement.

    sizes: numbers of examples (integers, all > 1), or shares of the dataset (> 0, summing to 1 within 1e-6),
    which are rounded by largest remainder and use every example.
    share: of the dataset, in (0, 1], drawn at random before it is shared out; the rest stays unused.
    """

    sizes: tuple[float, ...]
    share: float = field(default=1.0, metadata=LATER)
    scheme: ClassVar[str] = "sizes"

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", require_share(self.share, "share"))
        if not isinstance(self.sizes, tuple | list) or not self.sizes:
            raise PartitionError(f"sizes must be a list with one number a client, found {self.sizes!r}")
        numbers = [require_number(size, f"sizes[{client}]") for client, size in enumerate(self.sizes)]
        if all(isinstance(size, int | np.integer) and size > 1 for size in self.sizes):
            object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
            return
        total = math.fsum(numbers)
        if min(numbers) <= 0 or abs(total - 1) > 1e-6:
            raise PartitionError(
                "sizes must all be integers > 1, or all be shares > 0 that sum to 1; "
                f"found {list(self.sizes)}, which sum to {total:g}"
            )
        object.__setattr__(self, "sizes", tuple(numbers))

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        labels = require_labels(labels)
        n_drawn = share_of(labels.size, self.share)
        n_clients = require_clients(n_clients, n_drawn, of=labels.size)
        if n_clients != len(self.sizes):
            raise PartitionError(f"sizes are given for {len(self.sizes)} clients, but {n_clients} are wanted")
        return reported(self.scheme, labels, deal(np.arange(labels.size), self._counts(n_drawn), rng))

    def _counts(self, n_examples: int) -> np.ndarray:
        if isinstance(self.sizes[0], int):
            if sum(self.sizes) > n_examples:
                raise PartitionError(
                    f"sizes {list(self.sizes)} want {sum(self.sizes)} examples, {n_examples} are available: "
                    "lower the sizes or give shares that sum to 1"
                )
            return np.array(self.sizes)
        shares = np.array(self.sizes)
        counts = largest_remainder(n_examples * shares / shares.sum(), n_examples)
        if not counts.all():
            client = int(np.argmin(counts))
            raise PartitionError(
                f"share {self.sizes[client]:g} of {n_examples} examples leaves client {client} without any: "
                "raise that share or use fewer clients"
            )
        return counts
