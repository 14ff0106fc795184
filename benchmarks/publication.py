"""A publication as data: its numbers and conventions, and how its tables are shown and judged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.overrides import LayerUnit
from benchmarks.run_config import JSON, SCALES, RunConfig


@dataclass(frozen=True)
class Paper:
    """A paper: its citation, and how its tables average and count bytes."""

    id: str
    name: str
    citation: str
    bytes_convention: str  # a sentence: which bytes its "communication cost" counts
    gigabyte: int = 10**9
    per_client: bool = False  # whether that number is a mean over a round's clients, not a sum
    directions: tuple[str, ...] = ("up",)  # that this number counts
    units: Mapping[str, LayerUnit] = field(default_factory=dict)  # field of a run -> its unit in tables

    def counted_bytes(self, up: int, down: int, cell: RunConfig) -> float:
        """The bytes of a run, or of one of its rounds, that the paper counts as cost."""
        ways = {"up": up, "down": down}
        return sum(ways[way] for way in self.directions) / (cell.cohort_size if self.per_client else 1)


@dataclass(frozen=True)
class Published:
    """One published number and its place."""

    table: str
    row: str
    column: str
    score: str  # "test/f1", …; "" for an average
    value: float
    derivation: str = ""  # a formula over published values, such as "{c-psum} / 1.129"; "" for a published value


@dataclass(frozen=True)
class Deviation:
    """A difference from the paper, or a choice that the paper leaves open; shown under the table."""

    id: str
    text: str
    scales: tuple[str, ...] = SCALES


def deviations(text: str) -> tuple[Deviation, ...]:
    """Parse a list of deviations.

    Args:
        text: An entry is "- id: text" for every scale, or "- id (lite, paper): text" for these; it may have several
            lines.
    """
    entries = re.findall(r"^- ([\w-]+)(?: \(([\w, ]+)\))?: (.*?)(?=^- |\Z)", text, re.M | re.S)
    return tuple(
        Deviation(name, " ".join(body.split()), tuple(scales.split(", ")) if scales else SCALES)
        for name, scales, body in entries
    )


@dataclass(frozen=True)
class Elsewhere:
    """Scores that others report for an encoder like the scale's, with centralised training."""

    scores: Mapping[str, tuple[str, float]]  # task -> metric and score, in the metric's unit
    of: str  # the encoder, its data, and the source


@dataclass(frozen=True)
class View:
    """How to show a table or figure: a view in reports.views by name, or a class, and its options.

    A class is named by its full path, such as "benchmarks.fedbert.split_costs.SplitCosts", and loaded on use.
    """

    name: str = "scores"
    options: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class Yardstick:
    """A reference row that must beat its rivals before a column's scores are evidence for an ordering.

    Args:
        row: Must beat each rival by more than the error of the difference.
        rivals: Row -> its name in a reason.
        learns: The meaning of success.
        fails: The meaning of failure.
        evaluation: "pooled" for all clients' test examples; "" for the column's.
        least: The rival that predicts without learning; comparisons with a row that does not beat it are void.
    """

    row: str
    name: str
    rivals: Mapping[str, str]
    learns: str
    fails: str
    evaluation: str = ""
    least: str = ""
    of: str = ""  # which rows it applies to, if not to the whole table

    @property
    def rows(self) -> tuple[str, ...]:
        """The ids of the row and its rivals."""
        return (self.row, *self.rivals)

    @property
    def idle(self) -> tuple[str, ...]:
        """The ids of the rows that do not learn: the least, or all rivals."""
        return (self.least,) if self.least else tuple(self.rivals)


LEARNING = Yardstick(
    row="central",
    name="centralised training",
    rivals={"linear": "a linear model", "overall-majority": "the global majority class"},
    learns="the encoder learns the task",
    fails="the encoder is too weak here",
    evaluation="pooled",  # means over clients reward knowledge of a client's label distribution
    least="overall-majority",
)
