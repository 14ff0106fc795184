"""The schemes without a label table, and the look-up of every scheme by its description, which is plain data."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from partitions.checks import (
    PartitionError,
    in_json,
    plural,
    require_classes,
    require_clients,
    require_integer,
    require_labels,
    require_number,
    require_share,
)
from partitions.drawing import deal, deal_by_label, largest_remainder
from partitions.label_table import DrawnShares, LabelTable
from partitions.report import Partition, Partitioner, reported, tuples


@dataclass(frozen=True)
class Equal:
    """Shuffle all examples and cut them into parts whose sizes differ by at most one (IID).

    share: random share of the dataset in use, in (0, 1]; the rest stays unused.
    """

    share: float = 1.0
    scheme: ClassVar[str] = "equal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", require_share(self.share, "share"))

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        labels = require_labels(labels)
        n_drawn = round(labels.size * self.share)
        n_clients = require_clients(n_clients, n_drawn, of=labels.size)
        return reported(self.scheme, labels, np.array_split(rng.permutation(labels.size)[:n_drawn], n_clients))


@dataclass(frozen=True)
class Sizes:
    """Give client k sizes[k] random examples, sampled without replacement.

    sizes: numbers of examples (integers, all > 1), or shares of the dataset (> 0, summing to 1 within 1e-6),
    which are rounded by largest remainder and use every example.
    share: random share of the dataset that is distributed, in (0, 1]; the rest stays unused.
    """

    sizes: tuple[float, ...]
    share: float = 1.0
    scheme: ClassVar[str] = "sizes"

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", require_share(self.share, "share"))
        if not isinstance(self.sizes, tuple | list) or not self.sizes:
            raise PartitionError(f"sizes: expected a list with one number per client, found {in_json(self.sizes)}")
        numbers = [require_number(size, f"sizes[{client}]") for client, size in enumerate(self.sizes)]
        if all(isinstance(size, int | np.integer) and size > 1 for size in self.sizes):
            object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
            return
        total = math.fsum(numbers)
        if min(numbers) <= 0 or abs(total - 1) > 1e-6:
            raise PartitionError(
                "sizes: expected only integers above 1, or only shares above 0 that sum to 1, "
                f"found {in_json(self.sizes)}, which sum to {total:g}"
            )
        object.__setattr__(self, "sizes", tuple(numbers))

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        labels = require_labels(labels)
        n_drawn = round(labels.size * self.share)
        n_clients = require_clients(n_clients, n_drawn, of=labels.size)
        if n_clients != len(self.sizes):
            raise PartitionError(
                f"sizes: expected one for each of {plural(n_clients, 'client')}, found {len(self.sizes)}; "
                "give as many sizes as clients"
            )
        return reported(self.scheme, labels, deal(np.arange(labels.size), self._counts(n_drawn), rng))

    def _counts(self, n_examples: int) -> np.ndarray:
        if isinstance(self.sizes[0], int):
            if sum(self.sizes) > n_examples:
                raise PartitionError(
                    f"sizes: expected at most {plural(n_examples, 'example')} in all, found {in_json(self.sizes)}, "
                    f"which sum to {sum(self.sizes)}; lower the sizes or give shares that sum to 1"
                )
            return np.array(self.sizes)
        shares = np.array(self.sizes)
        counts = largest_remainder(n_examples * shares / shares.sum(), n_examples)
        if not counts.all():
            client = int(np.argmin(counts))
            raise PartitionError(
                f"sizes: expected at least one example for each client, found none for client {client} (share "
                f"{self.sizes[client]:g} of {plural(n_examples, 'example')}); raise that share or use fewer clients"
            )
        return counts


@dataclass(frozen=True)
class SortedByScore:
    """Sort by score, ties in data order, and cut into parts whose sizes differ by at most one.

    Client 0 gets the lowest scores. Source: FedSplitBERT §IV-A, Table I (STS-B).
    size: examples per client, from a random part of the data; by default all data are used, without randomness.
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
                    f"size {self.size} for each of {plural(n_clients, 'client')}: expected at least "
                    f"{plural(wanted, 'example')}, found {scores.size}; use a size of at most "
                    f"{scores.size // n_clients}, or leave size out"
                )
            order = order[np.isin(order, rng.choice(scores.size, wanted, replace=False))]
        return reported(self.scheme, scores, np.array_split(order, n_clients))


@dataclass(frozen=True)
class InOrder:
    """Cut the examples, in data order, into parts whose sizes differ by at most one: one source per client."""

    scheme: ClassVar[str] = "in-order"

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        labels = require_labels(labels)
        n_clients = require_clients(n_clients, labels.size)
        return reported(self.scheme, labels, np.array_split(np.arange(labels.size), n_clients))


@dataclass(frozen=True)
class Dirichlet:
    """Distribute each label's examples over clients in proportions p_l ~ Dir(alpha, …, alpha).

    Every example is used. A smaller alpha leaves a label with fewer clients. A sample in which a client has fewer than
    `min_size` examples is repeated up to `max_redraws` times; the report's notes give the number. capped: labels are
    distributed one after the other, by id, and a client with at least N / K of the N examples gets no further ones.
    Proportions for the K' others follow a Dirichlet distribution with K' alphas: the one with K alphas, restricted to
    these clients and rescaled to sum to 1.
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
            raise PartitionError(f"alpha: expected a number above 0, found {self.alpha:g}")
        object.__setattr__(self, "min_size", require_integer(self.min_size, "min_size", minimum=1))
        object.__setattr__(self, "max_redraws", require_integer(self.max_redraws, "max_redraws", minimum=0))
        if not isinstance(self.capped, bool):
            raise PartitionError(f"capped: expected true or false, found {in_json(self.capped)}")

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        labels = require_classes(labels, self.scheme)
        n_clients = require_clients(n_clients, labels.size)
        if self.min_size * n_clients > labels.size:
            raise PartitionError(
                f"min_size {self.min_size} for each of {plural(n_clients, 'client')}: expected at least "
                f"{plural(self.min_size * n_clients, 'example')}, found {labels.size}; "
                "lower min_size or use fewer clients"
            )
        if not math.isfinite(self.alpha * n_clients):  # the sampler would overflow and return only zeros
            raise PartitionError(
                f"alpha: expected a finite sum over {plural(n_clients, 'client')}, found {self.alpha:g} for each; "
                "use the scheme equal instead"
            )
        label_ids, pool_sizes = np.unique(labels, return_counts=True)
        counts_KL, redraws = self._draw(pool_sizes, n_clients, rng)
        notes = [f"redraws: {redraws}, a client had fewer than {self.min_size} examples"] if redraws else []
        parts = deal_by_label(labels, label_ids, counts_KL, rng)
        return reported(self.scheme, labels, parts, label_ids=label_ids, notes=notes)

    def _draw(self, pool_sizes: np.ndarray, n_clients: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        """Counts per client and label, and the number of rejected samples."""
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
            f"{self.scheme}, alpha {self.alpha:g}{capped}, {plural(n_clients, 'client')}: expected at least "
            f"{plural(self.min_size, 'example')} for the smallest client, found at most {smallest} in "
            f"{plural(self.max_redraws + 1, 'draw')}; raise alpha or max_redraws, lower min_size, or use fewer clients"
        )

    def _takers(self, held_K: np.ndarray, total: int) -> np.ndarray:
        """The clients that receive the next label; at least one, as together they hold less than all examples."""
        is_open = held_K * held_K.size < total if self.capped else np.ones(held_K.size, dtype=bool)
        return np.flatnonzero(is_open)


SCHEMES: dict[str, type[Partitioner]] = {
    cls.scheme: cls for cls in (Dirichlet, DrawnShares, Equal, InOrder, LabelTable, Sizes, SortedByScore)
}


def from_description(description: Mapping[str, Any]) -> Partitioner:
    """The partitioner for a description, such as {"scheme": "dirichlet", "alpha": 1.0}.

    Fields with a default may be left out.
    """
    given = dict(description)
    scheme = given.pop("scheme", None)
    if not isinstance(scheme, str) or scheme not in SCHEMES:
        raise PartitionError(f"unknown partition scheme {scheme!r}: expected one of {', '.join(sorted(SCHEMES))}")
    options = {field.name: field for field in fields(SCHEMES[scheme])}  # type: ignore[arg-type]
    unknown = sorted(given.keys() - options.keys())
    if unknown:
        expected = f"fields among {', '.join(options)}" if options else "no fields"
        raise PartitionError(f"partition scheme {scheme!r}: expected {expected}, found {', '.join(unknown)}")
    missing = [name for name, field in options.items() if field.default is MISSING and name not in given]
    if missing:
        raise PartitionError(f"partition scheme {scheme!r}: expected a value for {' and '.join(missing)}, found none")
    return SCHEMES[scheme](**{name: tuples(value) for name, value in given.items()})
