"""What a part of the suite measured, and the bars that it has to hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.run_config import JSON
from benchmarks.running.run_options import RunOptions

REPEATS = 5


@dataclass(frozen=True)
class Bench:
    """How a part is measured. repeats: of everything that is timed; what is compared is timed in turn."""

    settings: RunOptions
    repeats: int = REPEATS
    say: Callable[[str], None] = print


@dataclass(frozen=True)
class Bar:
    """A figure and where it should lie: at least, or at most, at the bound."""

    what: str
    value: float
    bound: float
    at_least: bool = True
    unit: str = "×"

    @property
    def met(self) -> bool:
        """Whether it holds here."""
        return self._holds(self.value)

    def __str__(self) -> str:
        # Three digits, or as many as show on which side of the bound it lies.
        texts = (f"{self.value:.{digits}g}" for digits in range(3, 18))
        shown = next(text for text in texts if self._holds(float(text)) == self.met)
        sign = "≥" if self.at_least else "≤"
        return f"{self.what}: {shown} {self.unit} (bar {sign} {self.bound:g}: {'met' if self.met else 'NOT met'})"

    def _holds(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound


@dataclass(frozen=True)
class Section:
    """Rows of a table, each with the same keys; the bars; and notes that a reader needs."""

    id: str
    title: str
    rows: Sequence[dict[str, JSON]]
    bars: Sequence[Bar] = ()
    notes: Sequence[str] = ()


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def in_turn(repeats: int, *works: Callable[[], object]) -> list[list[float]]:
    """Seconds of each work, once to warm up and then `repeats` times, all in turn: a list for each work.

    In turn, so that a machine that slows down slows all of them; compare them pair by pair.
    """
    for work in works:
        work()
    rounds = [[seconds(work) for work in works] for _ in range(repeats)]
    return [list(column) for column in zip(*rounds, strict=True)]


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """The median of the ratios, pair by pair."""
    return median(a / b for a, b in zip(one, other, strict=True))
