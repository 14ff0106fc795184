"""Contiguous parts of the examples in order of their score."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from partitions.checks import require_clients, require_integer, require_labels
from partitions.errors import PartitionError
from partitions.report import Partition, reported


@dataclass(frozen=True)
class SortedByScore:
    """Sort by score, ties in data order, and cut into parts whose sizes differ by at most one.

    Client 0 gets the lowest scores. Source: FedSplitBERT §IV-A, Table I (STS-B).

    size: examples of each client, of a random part of the data; by default all of them, and nothing is drawn at random.
    PartitionError where there are fewer.
    """

    scheme: ClassVar[str] = "sorted-by-score"

    size: int | None = None

    def __post_init__(self) -> None:
        if self.size is not None:
            object.__setattr__(self, "size", require_integer(self.size, "size", minimum=1))

    def __call__(
        self,
        labels: np.ndarray,
        n_clients: int,
        rng: np.random.Generator,
    ) -> Partition:
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
