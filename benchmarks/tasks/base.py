"""A task's definition: its schema, metrics and examples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.errors import UserError
from benchmarks.measures import metric

Texts = Sequence[tuple[str, ...]]  # a tuple, or a file's passages, read on demand


@dataclass(frozen=True)
class TextExamples:
    """Texts with labels. texts[i] has one or two strings; labels is int64 [n], or float64 [n] for scores.

    tags: for tagged tokens, an id per word of each text; texts[i] then has the words.
    """

    texts: Texts
    labels: np.ndarray
    tags: tuple[tuple[int, ...], ...] | None = None

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Skipped:
    """A malformed row that a lenient reader skipped, and why."""

    file: str
    line: int
    reason: str
    lines: int = 1


@dataclass(frozen=True)
class TaskData:
    """A loaded task.

    Args:
        pool: The examples to divide among clients.
        origin: The examples' source, for records; without an absolute path.
        held_out: Evaluation -> examples to divide among clients, too, such as MNLI's mismatched development set.
        central: Evaluation -> examples that score the whole federation, such as an official test set. The set named
            VALIDATION, such as an official development set, chooses a round.
        skipped: The malformed rows that a lenient reader skipped.
        notes: Remarks for records, such as "partial: dev.tsv not found".
        files: The files that were read from the data directory.
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
        """SHA-256 over the examples; equal for a folder and the hub."""
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
    """Recognise data by the digest of their examples, which is independent of line endings."""
    return lambda data: data.digest in digests


@dataclass(frozen=True)
class BySizes:
    """Recognises data by published numbers of examples per set (pool, held out, central): any one of `sizes`.

    tolerance: the relative difference that is allowed.
    """

    sizes: tuple[Mapping[str, int], ...]
    tolerance: float = 0.0

    def __call__(self, data: TaskData) -> bool:
        counts = {name: len(part) for name, part in {"pool": data.pool, **data.held_out, **data.central}.items()}
        alike = [each for each in self.sizes if each.keys() == counts.keys()]
        return any(
            all(abs(counts[name] - size) <= self.tolerance * size for name, size in each.items()) for each in alike
        )


@dataclass(frozen=True)
class DataSource:
    """A source of data.

    Args:
        folder: A data directory in the downloads' layouts; None for the hub.
        lenient: Whether malformed rows are skipped.
        extracts: A folder for large texts' passages; None for a temporary folder.
    """

    folder: Path | None = None
    lenient: bool = False
    extracts: Path | None = None


@dataclass(frozen=True)
class Task:
    """A dataset with its schema, metrics and objective.

    Args:
        id: The name in run configurations.
        name: The name in tables.
        family: Tasks from the same publication share a family.
        labels: Names by label id, for partitions; None for texts without labels.
        metrics: Names in `benchmarks/metrics.py`, computed for every evaluation; the first one chooses a round.
        load: Loads the examples.
        find: Finds the files in a data directory without reading them; raises like `load` if files are missing.
            None: no check before a run.
        generate: Generates examples in the same schema with a learnable signal, from a seed; None: no demo scale.
        evaluations: "test" is each client's held-out share of the pool, unless the data have a central set of that
            name; the others are held-out or central sets.
        objective: The training objective, a name in fedsim.objectives.
        objective_options: The objective's options.
        tags: Names by tag id, for tagged tokens: O, then B- and I- of each type.
        long_texts: Texts that exceed the model's length are "cut", or split into "blocks" of that length; "packed"
            concatenates a client's texts into blocks of exactly that length.
        version: The definition's version; part of a run's configuration.
        genuine: Whether data are the published ones; None: unknown.
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

    def __post_init__(self) -> None:
        for name in self.metrics:
            labels, of_labels = len(self.labels or ()), metric(name).of_labels
            if of_labels and labels != of_labels:
                raise UserError(
                    f"task {self.id}: expected metrics for {labels} labels, found {name}, which is for {of_labels}; "
                    "choose accuracy or macro_f1, for any number of labels"
                )

    def stand_in(self, data: TaskData) -> str:
        """A description of data that replace the published data; "" for the published data."""
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
