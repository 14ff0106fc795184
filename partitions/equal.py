"""Equal random parts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from partitions.checks import require_clients, require_labels
from partitions.drawing import deal
from partitions.report import Partition, reported
from partitions.rounding import equal_sizes


@dataclass(frozen=True)
class Equal:
    """Shuffle all examples and cut them into parts whose sizes differ by at most one (IID)."""

    scheme: ClassVar[str] = "equal"

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        labels = require_labels(labels)
        sizes = equal_sizes(labels.size, require_clients(n_clients, labels.size))
        return reported(self.scheme, labels, deal(np.arange(labels.size), sizes, rng))
