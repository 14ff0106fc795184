"""The result of every scheme: a partition, with a report on requested and obtained numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from partitions.splits import Overlap


@dataclass(frozen=True)
class ScoreSummary:
    """One client's scores, in the data's unit."""

    minimum: float
    mean: float
    maximum: float


@dataclass(frozen=True)
class PartitionReport:
    """Requested and obtained numbers per client.

    Classification fills `label_ids` and `obtained_counts` ([client][label], columns as in `label_ids`), and
    `requested_shares` (same shape, rows sum to 1) if the scheme has shares; regression fills `scores`. The other fields
    are None. Clients and labels are counted from 0.
    overlap: evaluation -> overlap of its examples with all clients' training examples; only if there is overlap. cut:
    "train" or evaluation -> number of texts per client that were cut to the maximum length; only if any were.
    """

    scheme: str
    n_examples: int
    sizes: tuple[int, ...]
    label_ids: tuple[int, ...] | None = None
    requested_shares: tuple[tuple[float, ...], ...] | None = None
    obtained_counts: tuple[tuple[int, ...], ...] | None = None
    scores: tuple[ScoreSummary, ...] | None = None
    notes: tuple[str, ...] = ()
    overlap: Mapping[str, Overlap] = field(default_factory=dict)
    cut: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def n_clients(self) -> int:
        """Number of clients."""
        return len(self.sizes)

    @property
    def unused(self) -> int:
        """Number of examples without a client."""
        return self.n_examples - sum(self.sizes)

    @property
    def unused_share(self) -> float:
        """Share of examples without a client, in [0, 1]."""
        return self.unused / self.n_examples

    def to_json(self) -> dict[str, Any]:
        """The report in plain JSON types, keys in a fixed order; "overlap" and "cut" only if not empty."""
        cut = {name: list(counts) for name, counts in self.cut.items()}
        overlap = {name: asdict(counts) for name, counts in self.overlap.items()}
        return {
            "scheme": self.scheme,
            "n_examples": self.n_examples,
            "n_clients": self.n_clients,
            "sizes": list(self.sizes),
            "unused": self.unused,
            "unused_share": self.unused_share,
            "label_ids": lists(self.label_ids),
            "requested_shares": lists(self.requested_shares),
            "obtained_counts": lists(self.obtained_counts),
            "scores": self.scores and [[s.minimum, s.mean, s.maximum] for s in self.scores],
            "notes": list(self.notes),
            **({"overlap": overlap} if overlap else {}),
            **({"cut": cut} if cut else {}),
        }


@dataclass(frozen=True, eq=False)
class Partition:
    """Each client's examples.

    indices: each client's positions in the dataset, int64, ascending, disjoint between clients.
    """

    indices: tuple[np.ndarray, ...]
    report: PartitionReport


class Partitioner(Protocol):
    """A frozen dataclass with plain JSON values that distributes examples over clients.

    As plain data, its description can be part of an experiment's identity (see `partitions.from_description`).
    """

    scheme: ClassVar[str]

    def __call__(self, labels: np.ndarray, n_clients: int, rng: np.random.Generator) -> Partition:
        """Distribute `labels.size` examples over `n_clients`; the result depends only on the arguments.

        labels: one label per example, shape (n,): integers are classes, floats are scores. Raises PartitionError if the
        request is ill-defined or the data cannot provide it.
        """
        ...


def reported(
    scheme: str,
    labels: np.ndarray,
    parts: Sequence[np.ndarray],
    *,
    label_ids: np.ndarray | None = None,
    requested_shares: np.ndarray | None = None,
    notes: Sequence[str] = (),
) -> Partition:
    """Sort each client's positions and report their content.

    labels: checked, int64 classes or float64 scores; label_ids: ascending, by default the distinct labels.
    """
    indices = tuple(np.sort(part).astype(np.int64) for part in parts)
    common: dict[str, Any] = {
        "scheme": scheme,
        "n_examples": int(labels.size),
        "sizes": tuple(int(part.size) for part in indices),
        "notes": tuple(notes),
    }
    if labels.dtype.kind == "f":
        held = [labels[part] for part in indices]
        scores = tuple(ScoreSummary(float(values.min()), float(values.mean()), float(values.max())) for values in held)
        return Partition(indices, PartitionReport(scores=scores, **common))
    ids = np.unique(labels) if label_ids is None else label_ids
    counts = [np.bincount(np.searchsorted(ids, labels[part]), minlength=ids.size) for part in indices]
    report = PartitionReport(
        label_ids=tuple(ids.tolist()),
        requested_shares=requested_shares if requested_shares is None else tuples(requested_shares.tolist()),
        obtained_counts=tuple(tuple(row.tolist()) for row in counts),
        **common,
    )
    return Partition(indices, report)


def lists(value: Any) -> Any:
    """Nested tuples as JSON lists."""
    return [lists(item) for item in value] if isinstance(value, list | tuple) else value


def tuples(value: Any) -> Any:
    """Nested lists as tuples."""
    return tuple(tuples(item) for item in value) if isinstance(value, list | tuple) else value
