"""Contiguous parts of the examples in order of their score."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from partitions.checks import require_clients, require_labels
from partitions.report import Partition, reported


@dataclass(frozen=True)
class SortedByScore:
    """Sort by score, ties in data order, and cut into parts whose sizes differ by at most one.

    Client 0 gets the lowest scores. Draws nothing at random. Source: FedSplitBERT §IV-A, Table I (STS-B).
    """

    scheme: ClassVar[str] = "sorted-by-score"

    def __call__(
        self,
        labels: np.ndarray,
        n_clients: int,
        rng: np.random.Generator,
    ) -> Partition:
        scores = require_labels(labels).astype(np.float64)
        n_clients = require_clients(n_clients, scores.size)
        return reported(self.scheme, scores, np.array_split(np.argsort(scores, kind="stable"), n_clients))
