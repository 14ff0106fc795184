"""What a paper publishes, and how its tables are shown and judged. Pure data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.costs import Traffic, counted_bytes
from benchmarks.overrides import LayerUnit
from benchmarks.run_config import JSON, RunConfig

SCALES = ("demo", "lite", "literal", "paper")


@dataclass(frozen=True)
class Paper:
    """A paper: where it is published, and how its tables average and count bytes."""

    id: str
    name: str
    citation: str
    bytes_convention: str  # a sentence: what one "communication cost" number counts
    gigabyte: int = 10**9
    per_client: bool = False  # whether that number is the mean of the clients of a round, or their sum
    directions: tuple[str, ...] = ("up",)  # of the bytes in that number
    units: Mapping[str, LayerUnit] = field(default_factory=dict)  # field of a run -> the unit in which it is written

    def counted_over(self, cell: RunConfig) -> int:
        """The number of a run's clients over which that number is a mean; 1 where it is their sum."""
        return cell.cohort_size if self.per_client else 1

    def counted_bytes(self, traffic: Traffic, cell: RunConfig) -> float:
        """The bytes of a round, or of a run, that enter that number."""
        return counted_bytes(traffic, self.directions) / self.counted_over(cell)


@dataclass(frozen=True)
class Published:
    """One published number and its place."""

    table: str
    row: str
    column: str
    score: str  # "test/f1", …; "" for an average
    value: float
    derivation: str = ""  # how the value follows from printed ones, such as "{c-psum} / 1.129"; "" if it is printed


@dataclass(frozen=True)
class Deviation:
    """A difference from the paper, or a choice where the paper is silent; printed under the table."""

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
    """Levels that others report of an encoder like a scale's, trained centrally."""

    scores: Mapping[str, tuple[str, float]]  # task -> metric and level, in the metric's unit
    of: str  # the encoder, its data, and who reports it


@dataclass(frozen=True)
class View:
    """How a table or figure shows its results: a module of reports.views, and its options."""

    name: str = "scores"
    options: Mapping[str, JSON] = field(default_factory=dict)


PLAIN_SCORES = View()


@dataclass(frozen=True)
class Yardstick:
    """A row that has to beat others before a column's scores are evidence of an ordering.

    evaluation: where it is measured, "pooled" being all clients' test examples together; "" for the column's own.
    """

    row: str  # it has to beat each rival by more than the error of the difference
    name: str
    rivals: Mapping[str, str]  # row -> its name in a reason
    learns: str  # the meaning of a success
    fails: str  # the meaning of a failure
    evaluation: str = ""
    least: str = ""  # the rival that answers without having learned: beating a row that does not beat it proves nothing

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
