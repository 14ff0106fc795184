"""Equal random parts."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from partitions.base import LATER
from partitions.checks import require_clients, require_labels, require_share
from partitions.drawing import deal
from partitions.report import Partition, reported
from partitions.rounding import equal_sizes, share_of


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
