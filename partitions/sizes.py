"""Random parts of equal or of given sizes, and contiguous parts in order of a score."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from partitions.checks import (
    PartitionError,
    require_clients,
    require_integer,
    require_labels,
    require_number,
    require_share,
)
from partitions.drawing import deal, equal_sizes, largest_remainder, share_of
from partitions.report import LATER, Partition, reported


@dataclass(frozen=True)
class Equal:
    """Shuffle all examples and cut them into parts whose sizes differ by at most one (IID).

    share: of the dataset, in (0, 1], drawn at random; the rest stays unused.
    """

    share: float = field(default=1.0, metadata=LATER)
    scheme: ClassVar[str] = "equal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", require_share(self.share, "share"))

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        labels = require_labels(labels)
        n_drawn = share_of(labels.size, self.share)
        sizes = equal_sizes(n_drawn, require_clients(n_clients, n_drawn, of=labels.size))
        return reported(self.scheme, labels, deal(np.arange(labels.size), sizes, rng))


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


@dataclass(frozen=True)
class SortedByScore:
    """Sort by score, ties in data order, and cut into parts whose sizes differ by at most one.

    Client 0 gets the lowest scores. Source: FedSplitBERT §IV-A, Table I (STS-B).
    size: examples of each client, of a random part of the data; by default all are used, and nothing is drawn.
    """

    size: int | None = None
    scheme: ClassVar[str] = "sorted-by-score"

    def __post_init__(self) -> None:
        if self.size is not None:
            object.__setattr__(self, "size", require_integer(self.size, "size", minimum=1))

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        scores = require_labels(labels).astype(np.float64)
        n_clients = require_clients(n_clients, scores.size)
        order = np.argsort(scores, kind="stable")
        if self.size is not None:
            wanted = self.size * n_clients
            if wanted > scores.size:
                raise PartitionError(
                    f"size {self.size} for each of {n_clients} clients: expected at least {wanted} examples, found "
                    f"{scores.size}; use a size of at most {scores.size // n_clients}, or leave size out"
                )
            order = order[np.isin(order, rng.choice(scores.size, wanted, replace=False))]
        return reported(self.scheme, scores, np.array_split(order, n_clients))
