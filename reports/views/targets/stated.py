"""What the paper's text states of the bytes to a target."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.spec import Column, Row
from reports.comparison import DEMO
from reports.page import Request
from reports.published import lookup, read_published

_SIGNS = {"stated/megabytes_nearly": "≈", "stated/megabytes_at_least": "≥", "stated/megabytes_below": "<"}


@dataclass(frozen=True)
class Stated:
    """A method on a task: about, at least or less than so many megabytes."""

    row: Row
    column: Column
    sign: str
    megabytes: float

    @property
    def text(self) -> str:
        """As "≥ 5000 MB"."""
        return f"{self.sign} {self.megabytes:g} MB"


def is_comparable(request: Request) -> bool:
    """Whether our bytes may be held against what is stated: the paper's encoder and settings."""
    return request.scale.id == "paper" and not request.scale.changed


def stated_of(request: Request) -> tuple[Stated, ...]:
    """What is stated of the rows and columns shown: never at the demo scale."""
    if request.scale.id == DEMO:
        return ()
    values = lookup(read_published(request.benchmark.published_csv), request.benchmark.place)
    return tuple(
        Stated(row, column, sign, values[row.id, column.task, score])
        for column in request.columns
        for row in request.rows
        for score, sign in _SIGNS.items()
        if (row.id, column.task, score) in values
    )
