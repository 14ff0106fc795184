"""What a benchmark is: pure data, from which cells, tables and comparisons follow. Imports nothing heavy."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.changes import FIXED, LayerUnit, expanded, options_in, with_changes
from benchmarks.changes import ByScale as ByScale
from benchmarks.costs import ClosedForm, Traffic, counted_bytes
from benchmarks.errors import UserError
from benchmarks.plain import LATER as LATER
from benchmarks.plain import built, plain, without
from benchmarks.plain import canonical_json as canonical_json
from benchmarks.plain import digest as digest
from benchmarks.tuning import Grid, Search

JSON = Any
SCALES = ("demo", "lite", "literal", "paper")
# Raised whenever the engine's arithmetic changes meaning: records of other versions are other cells.
# 1: the transformers library's layers. 2: layers over packed tokens, dropout of their own, precision by measurement.
ENGINE_VERSION = 2
# What a scale, a task or an algorithm may be called: these enter file names, and records come from elsewhere, too.
NAME = re.compile(r"\w[\w.-]{0,63}", re.ASCII)


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
    schedule: str = field(default="constant", metadata=LATER)  # of the learning rate, over all rounds: or "linear"
    warmup: float = field(default=0.0, metadata=LATER)  # share of all steps in which the learning rate rises
    clip_norm: float | None = field(default=None, metadata=LATER)  # longer gradients are shortened to it
    decayed: str = field(default="all", metadata=LATER)  # or "matrices": no weight decay on biases and LayerNorm
    optimizer: str = field(default="fresh", metadata=LATER)  # in every round, or "kept" from round to round
    kernels: str = field(default="packed", metadata=LATER)  # texts without padding on CPUs, or "reference": padded


@dataclass(frozen=True)
class Cell:
    """One run: everything that, with the data and the weights, decides a result.

    UserError where a part of its label is no plain name, such as one with a slash in it: the label enters file names.
    """

    scale: str = field(metadata=FIXED)
    task: str = field(metadata=FIXED)
    task_version: int
    source: str = field(metadata=FIXED)  # "generated", or the name of the real dataset's family, such as "glue"
    backbone: str = field(metadata=FIXED)
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
    validation_share: float = field(default=0.0, metadata=LATER)  # of a client's training part, to choose a round by
    data_seed: int | None = field(default=None, metadata=LATER)  # who holds which examples; None: the cell's own seed
    grouped: bool = field(default=False, metadata=LATER)  # whether no first text is both trained on and held back
    initial: Cell | None = field(default=None, metadata=LATER)  # the cell from whose outcome the model begins

    def __post_init__(self) -> None:
        for part in ("scale", "task", "algorithm"):
            name = getattr(self, part)
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise UserError(
                    f"{part}: expected a name of at most 64 letters, digits, '_', '.' and '-', found {name!r}: "
                    "it enters file names"
                )
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise UserError(f"seed: expected a whole number from 0 on, found {self.seed!r}")

    def to_json(self) -> dict[str, JSON]:
        """The cell as plain JSON values, without LATER fields that have their default, in nested groups too."""
        value: dict[str, JSON] = json.loads(canonical_json(plain(self)))
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, JSON]) -> Cell:
        """The cell that `to_json` wrote; TypeError where it is not one."""
        return built(cls, value)

    @property
    def spec_id(self) -> str:
        """Identity of the definition, without the inputs' digests: what a report joins on."""
        return digest(self.to_json())

    @property
    def definition_id(self) -> str:
        """Identity of the definition, whatever the engine's version: by which a report finds older records, too."""
        return digest(without(self.to_json(), "engine_version"))

    def cell_id(self, inputs: Mapping[str, str]) -> str:
        """Identity of the run: the definition with the digests of its inputs (data, backbone)."""
        return digest({"cell": self.to_json(), "inputs": dict(inputs)})

    @property
    def label(self) -> str:
        """Short readable name, for files and progress lines."""
        return f"{self.scale}-{self.task}-{self.algorithm}-s{self.seed}"


@dataclass(frozen=True)
class Row:
    """A line of a table: a method as the paper names it, by what it changes in the table's base cell.

    changes: a cell's field -> its value, as --set has them: {"algorithm": "fedavg", "options.proximal": 0.01, "codec":
    "fp16", "head": "psum", "training.learning_rate": 3e-5}. A value may be a `ByScale`.
    fixed: fields among them that no --set changes, as they make the row what it is.
    begins: the id of another row of the same table, from the outcome of whose cell (of the same task, scale and seed,
    with the same --set) this one's begins; "" where it begins as the others do.
    """

    id: str
    name: str
    changes: Mapping[str, JSON]
    printed: bool = True  # False: a row that no paper prints
    note: str = ""
    tuned_as: str = ""  # the row whose tuned settings it takes over, where it has no tuning of its own
    fixed: tuple[str, ...] = ()
    begins: str = ""

    def changed(self, changes: Mapping[str, JSON], **fields: Any) -> Row:
        """A row with further changes, which replace those of the same fields, and with other fields of its own."""
        kept = {
            name: value
            for name, value in self.changes.items()
            if not any(f"{name}.".startswith(f"{changed}.") for changed in changes)
        }
        return dataclasses.replace(self, changes={**kept, **changes}, **fields)

    @property
    def algorithm(self) -> str:
        """The method."""
        return str(self.changes["algorithm"])

    @property
    def options(self) -> dict[str, JSON]:
        """The method's options, as they are written: a critical layer counts the paper's layers."""
        return options_in(self.changes)

    @property
    def codec(self) -> str:
        """The element type on the wire."""
        return str(self.changes.get("codec", "fp32"))

    @property
    def head(self) -> str:
        """What stands on the encoder."""
        return str(self.changes.get("head", "pooled"))


@dataclass(frozen=True)
class Column:
    """A column of a table: a task, with the scores printed in it and the one that enters the average.

    evaluations: evaluation -> what stands behind a metric's label where it was measured there; "" for nothing.
    beside: scores that are shown where records hold them, but that no paper prints and no claim or average takes.
    leak: what a random split lets test examples share with training examples, so that its scores are no evidence;
    "" for nothing. Splitting by group mends it.
    """

    task: str
    name: str
    scores: tuple[str, ...]  # "<evaluation>/<metric>", such as "test/f1"
    averaged: str
    evaluations: Mapping[str, str] = field(default_factory=lambda: {"test": ""})
    beside: tuple[str, ...] = ()
    leak: str = ""

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
    search: Search | None = None  # how its settings are chosen; None: as the paper tuned


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
    units: Mapping[str, LayerUnit] = field(default_factory=dict)  # a cell's field -> the unit in which it is written

    def counted_bytes(self, traffic: Traffic) -> float:
        """The bytes of a round, or of a run, that enter that number."""
        return counted_bytes(traffic, self.directions)

    def counted_gigabytes(self, traffic: Traffic) -> float:
        """The same in the paper's GB."""
        return self.counted_bytes(traffic) / self.gigabyte


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


BaseFn = Callable[[Row, Column, Scale, int], Cell]


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
    base: BaseFn  # the cell of a row, column, scale and seed before the row's changes
    published_csv: Path
    deviations: tuple[Deviation, ...] = ()
    tuned: Mapping[str, Grid] = field(default_factory=dict)  # row -> what the paper tunes of it
    view: View = View()
    closed_forms: Mapping[str, ClosedForm] = field(default_factory=dict)  # row -> the paper's equation of its cost
    keeps_weights: bool = False  # whether its cells keep their weights, as other cells begin from them
    average: str = "truncate"  # the paper's rule for its average column: "truncate" or "round" to two decimals
    gate: Benchmark | None = None  # whose reference rows say which columns are evidence; None: its own, if any
    version: int = 1
    overrides: tuple[tuple[str, JSON], ...] = ()  # a user's changes to every cell

    @property
    def units(self) -> Mapping[str, LayerUnit]:
        """A cell's field -> the unit in which rows, sweeps and users write it."""
        return self.paper.units

    def search(self, scale: Scale) -> Search:
        """How settings are chosen at a scale: as it says, or as the paper did."""
        return scale.search or Search(self.tuned)

    def changes(self, row: Row, column: Column, scale: Scale) -> tuple[tuple[str, JSON], ...]:
        """What makes a row's cell of the base cell: its own changes and what was chosen for it, then the user's.

        Settings that were tuned for another row give way to a row's own changes.
        """
        chosen = self.search(scale).settings(column.task, row.tuned_as or row.id).items()
        tuned = (*chosen, *row.changes.items()) if row.tuned_as else (*row.changes.items(), *chosen)
        return (*tuned, *((name, value) for name, value in self.overrides if name not in row.fixed))

    def cell(self, row: Row, column: Column, scale: Scale, seed: int) -> Cell:
        """The cell of a row, column, scale and seed: the base cell with all changes.

        KeyError where the row begins from one that the benchmark does not have.
        """
        changes = expanded(self.changes(row, column, scale))
        in_cell = ((name, self._in_cell(name, value, column, scale)) for name, value in changes)
        found = with_changes(self.base(row, column, scale, seed), in_cell)
        if not row.begins:
            return found
        return dataclasses.replace(found, initial=self.cell(self.row(row.begins), column, scale, seed))

    def row(self, row_id: str) -> Row:
        """The row of that id; KeyError where the benchmark has none such."""
        return {row.id: row for row in self.rows}[row_id]

    def _in_cell(self, name: str, value: JSON, column: Column, scale: Scale) -> JSON:
        """What a change makes of a cell's field: the one place where units are converted."""
        if isinstance(value, ByScale):
            value = value.of(scale.id)
        unit = self.units.get(name)
        return unit.in_cell(value, column.task, scale.depth) if unit else value

    def shown(self, name: str, value: JSON, scale: Scale | None = None) -> str:
        """A change in words, in the unit in which it is written, and at a scale in the encoder's own too."""
        short = name.removeprefix("options.").removeprefix("training.")
        value = value.of(scale.id) if isinstance(value, ByScale) and scale else value
        unit = None if isinstance(value, ByScale) else self.units.get(name)
        return unit.shown(value, scale.depth if scale else None) if unit else f"{short}={value}"

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
