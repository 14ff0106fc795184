"""The definition of a task: its schema, its metrics, and its examples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

Texts = Sequence[tuple[str, ...]]  # a tuple, or the passages of a file, which are read on demand


@dataclass(frozen=True)
class TextExamples:
    """Texts with labels. texts[i] holds one or two strings; labels is int64 [n], or float64 [n] for a score.

    tags: for tagged tokens, an id for each word of each text; texts[i] then holds the words.
    """

    texts: Texts
    labels: np.ndarray
    tags: tuple[tuple[int, ...], ...] | None = None

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Skipped:
    """A malformed row that leniency skipped, and why."""

    file: str
    line: int
    reason: str
    lines: int = 1


@dataclass(frozen=True)
class TaskData:
    """A loaded task.

    Attributes:
        pool: The examples that are divided among clients.
        origin: Where the examples come from, for records; without an absolute path.
        held_out: Evaluation -> examples that are divided among clients too, such as MNLI's mismatched development set.
        central: Evaluation -> examples on which the whole federation is scored, such as an official test set. The set
            named VALIDATION, such as an official development set, chooses a round.
        skipped: The malformed rows that leniency skipped.
        notes: Remarks for records, such as "partial: dev.tsv not found".
        files: The files of the data directory that were read.
    """

    pool: TextExamples
    origin: str
    held_out: Mapping[str, TextExamples] = field(default_factory=dict)
    central: Mapping[str, TextExamples] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the examples: the same from a folder and from the hub."""
        state = hashlib.sha256()
        central = [(f"central {name}", examples) for name, examples in sorted(self.central.items())]
        for name, examples in [("pool", self.pool), *sorted(self.held_out.items()), *central]:
            state.update(f"{name}:{len(examples)}\n".encode())
            for texts, label in zip(examples.texts, examples.labels, strict=True):
                state.update(repr((texts, label.item())).encode())
            for tags in examples.tags or ():
                state.update(repr(tags).encode())
        return state.hexdigest()


def by_digest(*digests: str) -> Callable[[TaskData], bool]:
    """Recognises data by the digest of their examples, which line endings do not change."""
    return lambda data: data.digest in digests


@dataclass(frozen=True)
class BySizes:
    """Recognises data by the published numbers of examples of the pool and the other sets; any of some `sizes`."""

    sizes: tuple[Mapping[str, int], ...]
    tolerance: float = 0.0

    def __call__(self, data: TaskData) -> bool:
        found = {name: len(part) for name, part in {"pool": data.pool, **data.held_out, **data.central}.items()}
        alike = [each for each in self.sizes if each.keys() == found.keys()]
        return any(
            all(abs(found[name] - size) <= self.tolerance * size for name, size in each.items()) for each in alike
        )


def by_sizes(*sizes: Mapping[str, int], tolerance: float = 0.0) -> BySizes:
    """Recognises data by these numbers of examples."""
    return BySizes(sizes, tolerance)


@dataclass(frozen=True)
class DataSource:
    """Where data come from.

    folder: a data directory in the downloads' layouts; None for the hub. lenient: skip malformed rows. extracts: a
    folder for the passages of large texts; None for a temporary one.
    """

    folder: Path | None = None
    lenient: bool = False
    extracts: Path | None = None


@dataclass(frozen=True)
class Task:
    """A dataset with its schema, metrics and objective.

    Attributes:
        id: The name in configurations of runs.
        name: The name in tables.
        family: Tasks of a family come from the same publication.
        labels: Names in the order of the label ids, which partitions use; None for texts without labels.
        metrics: Names in `benchmarks/metrics.py`, computed for every evaluation; the first one chooses a round.
        load: Loads the examples.
        find: Looks for the files in a data directory without reading them; raises as `load` does if some are missing.
            None: not checked before a run.
        generate: Generates examples of the same schema with a learnable signal, from a seed; None: no demo scale.
        evaluations: "test" is each client's own held-back share of the pool, unless the data hold a central set of that
            name; the others are held-out or central sets.
        objective: The training objective, a name of fedsim.objectives.
        objective_options: The objective's options.
        tags: Names in the order of the tag ids, for tagged tokens: O, then B- and I- of each kind.
        long_texts: A text that is longer than the model is "cut", or kept in "blocks" of that length; or a client's
            texts are "packed", end to end, in blocks of exactly that length.
        version: Of the definition; part of a run's configuration.
        genuine: Whether data are the published ones; None: nothing is known of these.
    """

    id: str
    name: str
    family: str
    labels: tuple[str, ...] | None
    metrics: tuple[str, ...]
    load: Callable[[DataSource], TaskData]
    find: Callable[[DataSource], object] | None = None
    generate: Callable[[int], TaskData] | None = None
    evaluations: tuple[str, ...] = ("test",)
    objective: str = "classification"
    objective_options: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    long_texts: Literal["cut", "blocks", "packed"] = "cut"
    version: int = 1
    genuine: Callable[[TaskData], bool] | None = None

    def stand_in(self, data: TaskData) -> str:
        """What data are that take the place of the published ones; "" for the published ones."""
        if self.genuine is None or self.genuine(data):
            return ""
        return f"{data.origin.removeprefix('folder: ')}: {len(data.pool):,} examples"

    @property
    def sizes(self) -> tuple[Mapping[str, int], ...]:
        """The published numbers of examples, where data are recognised by them."""
        return self.genuine.sizes if isinstance(self.genuine, BySizes) else ()

    @property
    def classes(self) -> int:
        """The number of tags, or of labels; 1 without either."""
        return len(self.tags or self.labels or (0,))
