"""What a benchmark is: pure data, from which cells, tables and comparisons follow. Imports nothing heavy."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.costs import ClosedForm

JSON = Any
SCALES = ("demo", "lite", "paper")
# Raised whenever the engine's arithmetic changes meaning: records of other versions are other cells.
ENGINE_VERSION = 1
# The metadata of a field that cells got later: at its default it is left out of what identifies a cell, which is then
# still the cell that it was.
LATER = {"later": True}


def canonical_json(value: JSON) -> str:
    """One text for one value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: JSON, length: int = 16) -> str:
    """Hexadecimal SHA-256 of the canonical JSON, cut to `length` digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


@dataclass(frozen=True)
class Training:
    """How one cell trains: budget, optimiser and precision."""

    rounds: int
    learning_rate: float
    batch_size: int
    local_epochs: int = 1
    weight_decay: float = 0.01
    max_length: int = 128
    padding: str = "longest"  # "longest": batches by length; "fixed": the papers' literal padding to max_length
    precision: str = "auto"  # "auto" suits the device; "fp32", "bf16", "fp16"
    participation: float = 1.0  # share of the clients drawn for each round


@dataclass(frozen=True)
class Cell:
    """One run: everything that, with the data and the weights, decides a result."""

    scale: str
    task: str
    task_version: int
    source: str  # "generated", or the name of the real dataset's family, such as "glue"
    backbone: str
    clients: int
    partition: Mapping[str, JSON]  # as partitions.describe gives it
    algorithm: str
    options: Mapping[str, JSON]
    training: Training
    seed: int
    codec: str = "fp32"
    test_share: float = 0.2
    holdout: str = "test"  # what is scored: "test", or "validation", a share of the training part, for tuning
    engine_version: int = ENGINE_VERSION
    head: str = field(default="pooled", metadata=LATER)  # what stands on the encoder: a name of fedsim.models.heads

    def to_json(self) -> dict[str, JSON]:
        """The cell as plain JSON values, without LATER fields that have their default."""
        value = dataclasses.asdict(self)
        for later in dataclasses.fields(self):
            if later.metadata == LATER and value[later.name] == later.default:
                del value[later.name]
        return json.loads(canonical_json(value))

    @classmethod
    def from_json(cls, value: Mapping[str, JSON]) -> Cell:
        """The cell that `to_json` wrote; KeyError or TypeError where it is not one."""
        return cls(**{**value, "training": Training(**value["training"])})

    @property
    def spec_id(self) -> str:
        """Identity of the definition, without the inputs' digests: what a report joins on."""
        return digest(self.to_json())

    def cell_id(self, inputs: Mapping[str, str]) -> str:
        """Identity of the run: the definition with the digests of its inputs (data, backbone)."""
        return digest({"cell": self.to_json(), "inputs": dict(inputs)})

    @property
    def label(self) -> str:
        """Short readable name, for files and progress lines."""
        return f"{self.scale}-{self.task}-{self.algorithm}-s{self.seed}"


@dataclass(frozen=True)
class Row:
    """A line of a table: a method as the paper names it."""

    id: str
    name: str
    algorithm: str
    options: Mapping[str, JSON] = field(default_factory=dict)
    codec: str = "fp32"
    printed: bool = True  # False: a row that no paper prints
    note: str = ""
    head: str = "pooled"  # what stands on the encoder: a name of fedsim.models.heads


@dataclass(frozen=True)
class Column:
    """A column of a table: a task, with the scores printed in it and the one that enters the average.

    evaluations: evaluation -> what stands behind a metric's label where it was measured there; "" for nothing.
    """

    task: str
    name: str
    scores: tuple[str, ...]  # "<evaluation>/<metric>", such as "test/f1"
    averaged: str
    evaluations: Mapping[str, str] = field(default_factory=lambda: {"test": ""})

    @property
    def evaluation(self) -> str:
        """The evaluation that counts: that of the averaged score."""
        return self.averaged.partition("/")[0]


@dataclass(frozen=True)
class Scale:
    """A budget at which a benchmark runs, and the words that label its results."""

    id: str
    backbone: str
    depth: int  # encoder layers of the backbone
    source: str
    label: str
    changed: bool = False  # a user's other backbone or settings: no longer what the definition says


@dataclass(frozen=True)
class Deviation:
    """A difference from the paper, or a choice where the paper is silent; printed under the table."""

    id: str
    text: str
    scales: tuple[str, ...] = SCALES


@dataclass(frozen=True)
class Paper:
    """A paper: where it is published, and how its tables average and count bytes."""

    id: str
    name: str
    citation: str
    bytes_convention: str  # a sentence: what one "communication cost" number counts
    gigabyte: int = 10**9
    directions: tuple[str, ...] = ("up",)  # of the bytes in that number


@dataclass(frozen=True)
class Published:
    """One published number and its place: printed, or derived from what is printed."""

    table: str
    row: str
    column: str
    score: str  # "test/f1", …; "" for an average
    value: float
    derivation: str = ""  # how the value follows from printed ones, such as "{c-psum} / 1.129"; "" if it is printed


@dataclass(frozen=True)
class View:
    """How a table or figure shows its records: a module of reports.views, and what that module is told."""

    name: str = "scores"
    options: Mapping[str, JSON] = field(default_factory=dict)


CellFn = Callable[[Row, Column, Scale, int], Cell]


@dataclass(frozen=True)
class Benchmark:
    """A table or figure of a paper: its rows and columns, the cells behind them and what was printed."""

    id: str
    paper: Paper
    place: str  # "Table III"
    title: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    scales: tuple[Scale, ...]
    cell: CellFn
    published_csv: Path
    deviations: tuple[Deviation, ...] = ()
    tuned: Mapping[str, Mapping[str, tuple[JSON, ...]]] = field(default_factory=dict)  # row -> "--set" field -> grid
    view: View = View()
    closed_forms: Mapping[str, ClosedForm] = field(default_factory=dict)  # row -> the paper's equation of its cost
    average: str = "truncate"  # the paper's rule for its average column: "truncate" or "round" to two decimals
    version: int = 1

    def scale(self, scale_id: str) -> Scale:
        """The scale of that id; KeyError where the benchmark has none such."""
        return {scale.id: scale for scale in self.scales}[scale_id]

    def cells(
        self, scale: Scale, seeds: Sequence[int], rows: Sequence[Row] = (), columns: Sequence[Column] = ()
    ) -> list[tuple[Row, Column, Cell]]:
        """Every (row, column, cell) of the chosen part, column by column so that a task is loaded once."""
        return [
            (row, column, self.cell(row, column, scale, seed))
            for column in (columns or self.columns)
            for seed in seeds
            for row in (rows or self.rows)
        ]
