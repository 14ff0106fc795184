"""Clients with equal sizes and random label shares. Name suffixes: K clients, L labels."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from partitions.checks import PartitionError, require_classes, require_clients, require_number, require_share
from partitions.label_table import LabelTable
from partitions.report import Partition

_MOST_DRAWS = 1000


@dataclass(frozen=True)
class DrawnShares:
    """Give every client n examples, with label shares from a Dirichlet distribution.

    A client's shares follow Dir(concentration * of). The shares of all clients are drawn again while their mean differs
    from `of` by more than `balance` for some label.
    Source: Hsu et al. 2019, "Measuring the effects of non-identical data distribution for federated visual
    classification", §3: q ~ Dir(αp), where αp sums to `concentration`; the balance is ours.

    Args:
        concentration: > 0; a smaller one leaves a client with fewer labels.
        of: The labels' mean shares, with labels 0 … L-1; they sum to 1.
        balance: In (0, 1]; with 1 the first draw counts.
        size: n, as for `LabelTable`.
    """

    concentration: float
    of: tuple[float, ...]
    balance: float = 1.0
    size: int | None = None
    scheme: ClassVar[str] = "drawn-shares"

    def __post_init__(self) -> None:
        object.__setattr__(self, "concentration", require_number(self.concentration, "concentration"))
        if self.concentration <= 0:
            raise PartitionError(f"concentration must be > 0, found {self.concentration:g}")
        if not isinstance(self.of, tuple | list) or len(self.of) < 2:
            raise PartitionError(f"of must be a list with one share per label, found {self.of!r}")
        of = tuple(require_number(share, f"of[{label}]") for label, share in enumerate(self.of))
        if min(of) <= 0 or abs(math.fsum(of) - 1) > 1e-6:
            raise PartitionError(f"of must be shares > 0 that sum to 1, found {list(of)}, which sum to {sum(of):g}")
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "balance", require_share(self.balance, "balance"))

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        labels = require_classes(labels, "DrawnShares")
        shares_KL = self._draw(require_clients(n_clients, labels.size), rng)
        dealt = LabelTable(tuple(map(tuple, shares_KL.tolist())), self.size)(labels, n_clients, rng)
        return replace(dealt, report=replace(dealt.report, scheme=self.scheme))

    def _draw(self, n_clients: int, rng: np.random.Generator) -> np.ndarray:
        of_L = np.array(self.of)
        for _ in range(_MOST_DRAWS):
            shares_KL = rng.dirichlet(self.concentration * of_L, n_clients)
            if np.abs(shares_KL.mean(axis=0) - of_L).max() <= self.balance:
                return shares_KL
        raise PartitionError(
            f"in {_MOST_DRAWS} draws the shares of all clients together differed by more than {self.balance:g} from "
            f"{list(self.of)}: raise balance or concentration, or use more clients"
        )
