"""What a task is: its schema, its metrics, and examples as every source must give them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

Texts = Sequence[tuple[str, ...]]  # a tuple, or the passages of a file, which are read when they are asked for


@dataclass(frozen=True)
class Examples:
    """Texts with labels. texts[i] holds one or two strings; labels is int64 [n], or float64 [n] for a score.

    tags: of a task that tags tokens, an id for each word of each text; texts[i] then holds its words.
    """

    texts: Texts
    labels: np.ndarray
    tags: tuple[tuple[int, ...], ...] | None = None

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Skipped:
    """A row that leniency passed over, and why."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True)
class TaskData:
    """A loaded task: the pool that clients share out, and further test sets that nobody trains on.

    held_out: evaluation name -> examples, such as MNLI's mismatched development set; clients share them out too.
    central: evaluation name -> examples on which the whole federation is scored, such as an official test set. By one
        named VALIDATION, such as an official development set, a round is chosen.
    origin: where the examples came from, in words for the record (no absolute path).
    """

    pool: Examples
    origin: str
    held_out: Mapping[str, Examples] = field(default_factory=dict)
    central: Mapping[str, Examples] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()  # such as "partial: dev only"
    files: tuple[Path, ...] = ()  # of the data directory, that were read

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the examples themselves: the same from a folder and from the hub."""
        state = hashlib.sha256()
        central = [(f"central {name}", examples) for name, examples in sorted(self.central.items())]
        for name, examples in [("pool", self.pool), *sorted(self.held_out.items()), *central]:
            state.update(f"{name}:{len(examples)}\n".encode())
            for texts, label in zip(examples.texts, examples.labels, strict=True):
                state.update(repr((texts, label.item())).encode())
            for tags in examples.tags or ():
                state.update(repr(tags).encode())
        return state.hexdigest()


@dataclass(frozen=True)
class DataSource:
    """Where data come from: a folder in the downloads' layouts, else the hub.

    extracts: a folder for what is taken out of archives and streams once; None: a temporary one.
    """

    folder: Path | None = None
    lenient: bool = False
    extracts: Path | None = None


@dataclass(frozen=True)
class Task:
    """A task: one object that says all that the rest of the project needs to know of a dataset.

    labels: names in the order of the label ids, by which examples are shared out; None where texts have none.
    metrics: names of the local `evaluate` modules, computed for every evaluation; by the first one a round is chosen.
    objective: what a model is trained for, a name of fedsim.objectives; objective_options: its own options.
    tags: names in the order of the tag ids, where tokens are tagged; O, then B- and I- of each kind for entities, by
        which their metrics know the ids.
    long_texts: what becomes of a text longer than the model: "cut", or all of it in "blocks" of that length; or
        "packed": a client's texts, end to end, in blocks of exactly that length.
    evaluations: "test" is each client's own held-back share of the pool, unless the data hold a central set of that
        name; more names are held-out sets, or central ones.
    """

    id: str
    name: str
    family: str  # "glue"
    labels: tuple[str, ...] | None
    metrics: tuple[str, ...]
    load: Callable[[DataSource], TaskData]
    # Examples of the same schema with a learnable signal, from a seed; None: the task has no demo scale.
    generate: Callable[[int], TaskData] | None = None
    evaluations: tuple[str, ...] = ("test",)
    objective: str = "classification"
    objective_options: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    long_texts: Literal["cut", "blocks", "packed"] = "cut"
    version: int = 1

    @property
    def classes(self) -> int:
        """Tags, or labels; 1 where there are none."""
        return len(self.tags or self.labels or (0,))
