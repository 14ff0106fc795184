"""What every way of sharing a dataset looks like."""

from typing import ClassVar, Protocol

import numpy as np

from partitions.report import Partition

# The metadata of a field that schemes got later: at its default it is left out of a description, which then stays what
# it was.
LATER = {"later": True}


class Partitioner(Protocol):
    """A frozen dataclass of plain JSON values that shares examples among clients.

    Being plain data it can be hashed into an experiment's identity (see `partitions.describe`).
    """

    scheme: ClassVar[str]

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        """Share `labels.size` examples among `n_clients`; the result depends on the arguments alone.

        labels: one label an example, shape (n,): integers are classes, floats are scores.
        Raises PartitionError where the request is ill-defined or the data cannot provide it.
        """
        ...
