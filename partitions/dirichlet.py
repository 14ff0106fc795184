"""Label skew drawn from a Dirichlet distribution."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from partitions.checks import PartitionError, require_classes, require_clients, require_integer, require_number
from partitions.drawing import deal_by_label, largest_remainder
from partitions.report import Partition, reported


@dataclass(frozen=True)
class Dirichlet:
    """Share each label's examples among the clients in proportions p_l ~ Dir(alpha, …, alpha).

    Every example is used. The smaller alpha, the fewer clients hold a label. A draw that leaves a client with
    fewer than `min_size` examples is repeated up to `max_redraws` times; the report's notes say how often.
    capped: labels are shared out one after the other, in the order of their ids, and a client that holds N / K of the N
    examples or more gets none of those that follow; their proportions are drawn among the K' others, from the Dirichlet
    distribution of K' alphas, which is that of K alphas without the full ones, scaled to sum to 1.
    Source: Yurochkin et al. 2019, "Bayesian nonparametric federated learning of neural networks"; capped, with a
    min_size of 10: FedNLP's library (Lin et al. 2022, "FedNLP: Benchmarking federated learning methods for natural
    language processing tasks", §3.2), which cuts at cumulated proportions rounded down, not by largest remainders.
    """

    alpha: float
    min_size: int = 1
    max_redraws: int = 100
    capped: bool = False
    scheme: ClassVar[str] = "dirichlet"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", require_number(self.alpha, "alpha"))
        if self.alpha <= 0:
            raise PartitionError(f"alpha must be > 0, found {self.alpha:g}")
        object.__setattr__(self, "min_size", require_integer(self.min_size, "min_size", minimum=1))
        object.__setattr__(self, "max_redraws", require_integer(self.max_redraws, "max_redraws", minimum=0))
        if not isinstance(self.capped, bool):
            raise PartitionError(f"capped must be true or false, found {self.capped!r}")

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        labels = require_classes(labels, "Dirichlet")
        n_clients = require_clients(n_clients, labels.size)
        if self.min_size * n_clients > labels.size:
            raise PartitionError(
                f"{n_clients} clients want at least {self.min_size} examples each, "
                f"{self.min_size * n_clients} in all; {labels.size} are available: "
                "lower min_size or use fewer clients"
            )
        if not math.isfinite(self.alpha * n_clients):  # the sampler would overflow: proportions that are all 0
            raise PartitionError(f"alpha {self.alpha:g} overflows with {n_clients} clients: use Equal instead")
        label_ids, pool_sizes = np.unique(labels, return_counts=True)
        counts_KL, redraws = self._draw(pool_sizes, n_clients, rng)
        notes = [f"redraws: {redraws}, a client had fewer than {self.min_size} examples"] if redraws else []
        parts = deal_by_label(labels, label_ids, counts_KL, rng)
        return reported(self.scheme, labels, parts, label_ids=label_ids, notes=notes)

    def _draw(self, pool_sizes: np.ndarray, n_clients: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        """Counts for each client and label, and how many draws were thrown away."""
        smallest = 0
        for redraws in range(self.max_redraws + 1):
            counts_KL = np.zeros((n_clients, pool_sizes.size), dtype=np.int64)
            for label, n in enumerate(pool_sizes.tolist()):
                takers = self._takers(counts_KL.sum(axis=1), int(pool_sizes.sum()))
                proportions = rng.dirichlet(np.full(takers.size, self.alpha))
                counts_KL[takers, label] = largest_remainder(n * proportions, n)
            smallest = max(smallest, int(counts_KL.sum(axis=1).min()))
            if smallest >= self.min_size:
                return counts_KL, redraws
        capped = ", capped" if self.capped else ""
        raise PartitionError(
            f"Dirichlet, alpha {self.alpha:g}{capped}, {n_clients} clients: in {self.max_redraws + 1} draws the "
            f"smallest client had at most {smallest} examples, at least {self.min_size} are wanted: "
            "raise alpha or max_redraws, lower min_size, or use fewer clients"
        )

    def _takers(self, held_K: np.ndarray, total: int) -> np.ndarray:
        """The clients among whom the next label is shared out: never none, as they hold less than all together."""
        is_open = held_K * held_K.size < total if self.capped else np.ones(held_K.size, dtype=bool)
        return np.flatnonzero(is_open)
