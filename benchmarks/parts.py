"""What a benchmark is made of: rows, columns, scales, and what is said of them. Pure data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.cell import Cell
from benchmarks.changes import LayerUnit, options_in
from benchmarks.costs import Traffic, counted_bytes
from benchmarks.plain import JSON
from benchmarks.tuning import Search

SCALES = ("demo", "lite", "literal", "paper")


@dataclass(frozen=True)
class Row:
    """A line of a table: a method as the paper names it, by what it changes in the table's base cell.

    changes: a cell's field -> its value, as --set has them: {"algorithm": "fedavg", "options.proximal": 0.01, "codec":
    "fp16", "head": "psum", "training.learning_rate": 3e-5}. A value may be a `ByScale` or a `ByTask`.
    fixed: fields among them that no --set changes, nor what is in them, as they make the row what it is.
    begins: the id of another row of the same table, from the outcome of whose cell (of the same task, scale and seed,
    with the same --set) this one's begins; "" where it begins as the others do.
    backbone: an encoder of its own, which `base` reads; "" for the scale's. scales: those at which there is such a row.
    """

    id: str
    name: str
    changes: Mapping[str, JSON]
    printed: bool = True  # False: a row that no paper prints
    note: str = ""
    tuned_as: str = ""  # the row whose tuned settings it takes over, where it has no tuning of its own
    fixed: tuple[str, ...] = ()
    begins: str = ""
    backbone: str = ""
    scales: tuple[str, ...] = SCALES

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

    def is_fixed(self, name: str) -> bool:
        """Whether no --set changes a cell's field."""
        return any(f"{name}.".startswith(f"{fixed}.") for fixed in self.fixed)

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
    scales: those at which there is such a column. own: scale id -> the encoder and data that its cells have there in
    place of the table's. instead_of: the task for which this one stands in where that has no records: a column of its
    own in tables, and what claims about the other are judged on; "" for none.
    """

    task: str
    name: str
    scores: tuple[str, ...]  # "<evaluation>/<metric>", such as "test/f1"
    averaged: str
    evaluations: Mapping[str, str] = field(default_factory=lambda: {"test": ""})
    beside: tuple[str, ...] = ()
    leak: str = ""
    scales: tuple[str, ...] = SCALES
    own: Mapping[str, Scale] = field(default_factory=dict)
    instead_of: str = ""

    def at(self, scale: Scale, table: Scale) -> Scale:
        """The scale as its cells have it: the column's own, but with the encoder that a user named instead.

        table: the scale of that id as the benchmark defines it.
        """
        own = self.own.get(scale.id)
        if own is None:
            return scale
        named = own if scale.backbone == table.backbone else scale
        return dataclasses.replace(own, backbone=named.backbone, depth=named.depth, changes=scale.changes)

    @property
    def evaluation(self) -> str:
        """The evaluation that counts: that of the averaged score."""
        return self.averaged.partition("/")[0]


@dataclass(frozen=True)
class Elsewhere:
    """What others report that an encoder of a scale's kind reaches, trained centrally: levels that ours stand beside.

    scores: task -> metric and level, in the metric's unit. of: which encoder, on which data, and who reports it.
    """

    scores: Mapping[str, tuple[str, float]]
    of: str


@dataclass(frozen=True)
class Scale:
    """A budget at which a benchmark runs, and the words that label its results."""

    id: str
    backbone: str
    depth: int  # encoder layers of the backbone
    source: str
    material: str  # data and encoder, in words
    changes: tuple[str, ...] = ()  # a user's other backbone or settings: no longer what the definition says
    search: Search | None = None  # how its settings are chosen; None: as the paper tuned
    elsewhere: Elsewhere | None = None

    @property
    def label(self) -> str:
        """What stands beside every result."""
        return "; ".join((self.material, *self.changes))

    @property
    def changed(self) -> bool:
        """Whether a user changed it."""
        return bool(self.changes)


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
    per_client: bool = False  # whether that number is the mean of the clients that take part in a round, or their sum
    directions: tuple[str, ...] = ("up",)  # of the bytes in that number
    units: Mapping[str, LayerUnit] = field(default_factory=dict)  # a cell's field -> the unit in which it is written

    def counted_over(self, cell: Cell) -> int:
        """Over how many clients of a cell that number is a mean; 1 where it is their sum."""
        return cell.cohort_size if self.per_client else 1

    def counted_bytes(self, traffic: Traffic, cell: Cell) -> float:
        """The bytes of a cell's round, or of its run, that enter that number."""
        return counted_bytes(traffic, self.directions) / self.counted_over(cell)


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


PLAIN_SCORES = View()


@dataclass(frozen=True)
class Yardstick:
    """What says whether a column's scores are evidence of an ordering: a row that has to beat others there.

    row: it has to beat each rival by more than the error of the difference. rivals: row -> its name in a reason.
    evaluation: where it does, "pooled" being all clients' test examples together; "" for the column's own.
    learns, fails: what it means that it does, and that it does not.
    least: the rival that answers without having learned: to beat a row that does not beat it proves nothing.
    """

    row: str
    name: str
    rivals: Mapping[str, str]
    learns: str
    fails: str
    evaluation: str = ""
    least: str = ""

    @property
    def rows(self) -> tuple[str, ...]:
        """The ids of all rows that it needs."""
        return (self.row, *self.rivals)

    @property
    def idle(self) -> tuple[str, ...]:
        """The ids of the rows that do nothing of what is compared: the least, or all rivals."""
        return (self.least,) if self.least else tuple(self.rivals)


LEARNING = Yardstick(
    row="central",
    name="centralised training",
    rivals={"linear": "a linear model", "overall-majority": "the majority-class baseline"},
    learns="the encoder learns the task",
    fails="the encoder is too weak here",
    evaluation="pooled",  # as means over clients reward knowing a client's label shares
    least="overall-majority",
)
