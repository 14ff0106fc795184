"""A paper's publication as data: its numbers, its conventions, and how its tables are shown and judged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.costs import Traffic, WirePlan
from benchmarks.overrides import LayerUnit
from benchmarks.run_config import JSON, RunConfig

SCALES = ("demo", "lite", "literal", "paper")


@dataclass(frozen=True)
class Paper:
    """A paper: where it is published, and how its tables average and count bytes."""

    id: str
    name: str
    citation: str
    bytes_convention: str  # a sentence: the bytes that one "communication cost" counts
    gigabyte: int = 10**9
    per_client: bool = False  # whether that number is a mean over the clients of a round, not a sum
    directions: tuple[str, ...] = ("up",)  # of the bytes in that number
    units: Mapping[str, LayerUnit] = field(default_factory=dict)  # field of a run -> the unit in which it is written

    def counted_over(self, cell: RunConfig) -> int:
        """The number of clients over which a cost is a mean; 1 for a sum."""
        return cell.cohort_size if self.per_client else 1

    def counted_bytes(self, traffic: Traffic | WirePlan, cell: RunConfig) -> float:
        """The bytes of a run, or of a plan's round, that the paper counts as its cost."""
        ways = {"up": traffic.up_bytes, "down": traffic.down_bytes}
        return sum(ways[way] for way in self.directions) / self.counted_over(cell)


@dataclass(frozen=True)
class Published:
    """One published number and its place."""

    table: str
    row: str
    column: str
    score: str  # "test/f1", …; "" for an average
    value: float
    derivation: str = ""  # a formula of published values, such as "{c-psum} / 1.129"; "" for a published value


@dataclass(frozen=True)
class Deviation:
    """A difference from the paper, or a choice that the paper leaves open; shown under the table."""

    id: str
    text: str
    scales: tuple[str, ...] = SCALES


def deviations(text: str) -> tuple[Deviation, ...]:
    """Deviations that are written as a list.

    Args:
        text: an entry is "- id: its text" at every scale, or "- id (lite, paper): its text" at some; a text may have
            several lines.
    """
    entries = re.findall(r"^- ([\w-]+)(?: \(([\w, ]+)\))?: (.*?)(?=^- |\Z)", text, re.M | re.S)
    return tuple(
        Deviation(name, " ".join(words.split()), tuple(scales.split(", ")) if scales else SCALES)
        for name, scales, words in entries
    )


@dataclass(frozen=True)
class Elsewhere:
    """Scores that others report for an encoder like the scale's, trained centrally."""

    scores: Mapping[str, tuple[str, float]]  # task -> metric and score, in the metric's unit
    of: str  # the encoder, its data, and the source


@dataclass(frozen=True)
class View:
    """How a table or figure is shown: one of reports.views by its name, or a class of its own, and options.

    Such a class is named by its full path, such as "benchmarks.fedbert.split_costs.SplitCosts", and loaded when the
    table is shown.
    """

    name: str = "scores"
    options: Mapping[str, JSON] = field(default_factory=dict)


PLAIN_SCORES = View()


@dataclass(frozen=True)
class Yardstick:
    """A reference row that must beat others before a column's scores are evidence of an ordering.

    row: beats each rival by more than the error of the difference. rivals: row -> its name in a reason. learns, fails:
    the meaning of success and failure. evaluation: "pooled" for all clients' test examples together; "" for the
    column's own. least: the rival that answers without learning; a comparison with a row that does not beat it is void.
    """

    row: str
    name: str
    rivals: Mapping[str, str]
    learns: str
    fails: str
    evaluation: str = ""
    least: str = ""
    of: str = ""  # of which rows, where it is not the table's

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
    rivals={"linear": "a linear model", "overall-majority": "the majority-class baseline"},
    learns="the encoder learns the task",
    fails="the encoder is too weak here",
    evaluation="pooled",  # as means over clients reward knowing a client's label shares
    least="overall-majority",
)
