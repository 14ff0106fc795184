"""Clients with equal sizes and given or random label distributions. Name suffixes: K clients, L labels."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from partitions.checks import (
    PartitionError,
    in_json,
    plural,
    require_classes,
    require_clients,
    require_integer,
    require_number,
    require_share,
)
from partitions.drawing import deal_by_label, largest_remainder
from partitions.report import Partition, reported

_TOLERANCE = 0.02  # published tables are rounded to whole percents; a row in FedSplitBERT's Table II sums to 99
_MOST_DRAWS = 1000


@dataclass(frozen=True)
class LabelTable:
    """Give client k n examples, sampled without replacement, with a share shares[k][l] of label l.

    shares: [client][label], with labels 0 … L-1 as columns. Each row sums to 1 or to 100 (percent) within 2 % and is
    normalised; the report's notes name changed rows. size: n, the same for all clients. By default the largest feasible
    size: min(|D| / K, min over labels N_l / sum_k p_kl), lowered by one until no label is short after rounding. Each
    count is within one example of n * p_kl. Remaining examples stay unused.
    Source: FedSplitBERT §IV-A, Tables I and II.
    """

    shares: tuple[tuple[float, ...], ...]
    size: int | None = None
    scheme: ClassVar[str] = "label-table"

    def __post_init__(self) -> None:
        rows = self.shares
        if not isinstance(rows, tuple | list) or not all(isinstance(row, tuple | list) for row in rows):
            raise PartitionError(f"shares: expected a table [client][label], found {in_json(rows)}")
        if not rows:
            raise PartitionError("shares: expected a row for each client, found none")
        for client, row in enumerate(rows):
            if len(row) != len(rows[0]):
                raise PartitionError(
                    f"shares of client {client}: expected {len(rows[0])}, as many as client 0 has, found {len(row)}; "
                    "give each client a share of every label"
                )
        shares = tuple(
            tuple(require_number(share, f"shares[{client}][{label}]") for label, share in enumerate(row))
            for client, row in enumerate(rows)
        )
        object.__setattr__(self, "shares", shares)
        if self.size is not None:
            object.__setattr__(self, "size", require_integer(self.size, "size", minimum=1))
        self._normalised()

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        labels = require_classes(labels, self.scheme)
        if require_clients(n_clients, labels.size) != len(self.shares):
            raise PartitionError(
                f"shares: expected a row for each of {plural(n_clients, 'client')}, found {len(self.shares)}; "
                "give as many rows as clients"
            )
        shares_KL, notes = self._normalised()
        available_L = _available(labels, shares_KL)
        counts_KL = (
            _largest_feasible(shares_KL, available_L)
            if self.size is None
            else _of_size(self.size, shares_KL, available_L)
        )
        label_ids = np.arange(shares_KL.shape[1])
        parts = deal_by_label(labels, label_ids, counts_KL, rng)
        return reported(self.scheme, labels, parts, label_ids=label_ids, requested_shares=shares_KL, notes=notes)

    def _normalised(self) -> tuple[np.ndarray, list[str]]:
        """Shares with rows that sum to 1, and a note for each changed row."""
        rows, notes = [], []
        for client, row in enumerate(self.shares):
            total = math.fsum(row)
            whole = next((whole for whole in (1.0, 100.0) if abs(total - whole) <= _TOLERANCE * whole), None)
            if whole is None or min(row) < 0:
                raise PartitionError(
                    f"shares of client {client}: expected numbers of at least 0 that sum to 1 or 100 within "
                    f"{_TOLERANCE:.0%}, found {in_json(row)}, which sum to {total:g}"
                )
            rows.append([share / total for share in row])
            if abs(total - whole) > 1e-9 * whole:
                shown = ", ".join(f"{share:.4f}" for share in rows[-1])
                notes.append(f"client {client}: shares {list(row)} sum to {total:g}, normalised to {shown}")
        return np.array(rows), notes


@dataclass(frozen=True)
class DrawnShares:
    """Give every client n examples, with a label distribution from a Dirichlet distribution.

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
            raise PartitionError(f"concentration: expected a number above 0, found {self.concentration:g}")
        if not isinstance(self.of, tuple | list) or len(self.of) < 2:
            raise PartitionError(f"of: expected a list of at least two shares, one per label, found {in_json(self.of)}")
        of = tuple(require_number(share, f"of[{label}]") for label, share in enumerate(self.of))
        if min(of) <= 0 or abs(math.fsum(of) - 1) > 1e-6:
            raise PartitionError(
                f"of: expected shares above 0 that sum to 1, found {in_json(of)}, which sum to {sum(of):g}"
            )
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "balance", require_share(self.balance, "balance"))

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        labels = require_classes(labels, self.scheme)
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
            f"{self.scheme}: expected mean shares over clients within {self.balance:g} of {in_json(self.of)}, found "
            f"none in {_MOST_DRAWS} draws; raise balance or concentration, or use more clients"
        )


def _available(labels: np.ndarray, shares_KL: np.ndarray) -> np.ndarray:
    """The number of examples per label; PartitionError if table and data have different labels."""
    n_labels = shares_KL.shape[1]
    outside, counts = np.unique(labels[(labels < 0) | (labels >= n_labels)], return_counts=True)
    if outside.size:
        listed = ", ".join(f"{label} ({plural(n, 'example')})" for label, n in zip(outside, counts, strict=True))
        raise PartitionError(
            f"shares: expected a column for each label of the data, found {plural(n_labels, 'column')}, and none for "
            f"label {listed}; add columns or remove these examples"
        )
    available_L = np.bincount(labels, minlength=n_labels)
    absent = np.flatnonzero((available_L == 0) & (shares_KL.sum(axis=0) > 0))
    if absent.size:
        label = absent[0]
        client = int(np.flatnonzero(shares_KL[:, label])[0])
        raise PartitionError(
            f"label {label}: expected examples, as its share of client {client} is {shares_KL[client, label]:g}, "
            "found none; set its shares to 0 or add examples"
        )
    return available_L


def _largest_feasible(shares_KL: np.ndarray, available_L: np.ndarray) -> np.ndarray:
    """Counts per client and label at the largest common size."""
    n_clients = len(shares_KL)
    demand_L = shares_KL.sum(axis=0)
    wanted = demand_L > 0
    bound = min(available_L.sum() / n_clients, (available_L[wanted] / demand_L[wanted]).min())
    # Floating point can put an integer bound just below the integer (3 / (0.05 + 0.05 + 0.05) < 20).
    for size in range(max(1, math.floor(bound + 1e-9)), 0, -1):
        counts_KL = _counts(size, shares_KL)
        if not _shortages(counts_KL, available_L):
            return counts_KL
    raise PartitionError(
        f"{plural(n_clients, 'client')}: expected enough examples of each label for one per client, found "
        f"{_shortages(counts_KL, available_L)}; lower the shares of these labels, add examples or use fewer clients"
    )


def _of_size(size: int, shares_KL: np.ndarray, available_L: np.ndarray) -> np.ndarray:
    """Counts per client and label at a given size."""
    counts_KL = _counts(size, shares_KL)
    shortages = _shortages(counts_KL, available_L)
    if shortages:
        feasible = int(_largest_feasible(shares_KL, available_L)[0].sum())
        raise PartitionError(
            f"size {size} for each of {plural(len(shares_KL), 'client')}: expected enough examples of each label, "
            f"found {shortages}; use a size of at most {feasible}, or leave size out to get that"
        )
    return counts_KL


def _counts(size: int, shares_KL: np.ndarray) -> np.ndarray:
    return np.stack([largest_remainder(size * shares_L, size) for shares_L in shares_KL])


def _shortages(counts_KL: np.ndarray, available_L: np.ndarray) -> str:
    """The labels with fewer examples than the counts need; empty without any."""
    wanted_L = counts_KL.sum(axis=0)
    return ", ".join(
        f"{available_L[label]} of {wanted_L[label]} with label {label}"
        for label in np.flatnonzero(wanted_L > available_L)
    )
