"""What an audit reads and what it finds. Plain data, exact decimals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from benchmarks.spec import Published
from reports.errors import ReportError
from reports.published import read_published


@dataclass(frozen=True)
class Finding:
    """One statement of a paper beside what the paper's own numbers give.

    agrees: None where nothing that is given decides it, such as a size that no reading of the method yields.
    """

    id: str
    subject: str  # the part of the audit that it belongs to
    statement: str
    printed: str
    recomputed: str
    agrees: bool | None
    explanation: str = ""  # the rule applied, and what else a reader should know

    @property
    def verdict(self) -> str:
        """The judgement in words."""
        return {True: "agrees", False: "does not agree", None: "not derivable"}[self.agrees]


Place = tuple[str, str, str, str]  # table, row, column, score


@dataclass(frozen=True)
class Numbers:
    """A paper's published numbers by place, as the decimals that were printed.

    derived: the places of those that are not printed but follow from what the text states.
    """

    values: Mapping[Place, Decimal]
    derived: frozenset[Place] = frozenset()

    @classmethod
    def of(cls, entries: Iterable[Published]) -> Numbers:
        """From published values, whose floats spell the printed digits."""
        places = {(e.table, e.row, e.column, e.score): e for e in entries}
        derived = frozenset(place for place, entry in places.items() if entry.derivation)
        return cls({place: Decimal(str(entry.value)) for place, entry in places.items()}, derived)

    @property
    def printed(self) -> Numbers:
        """Those that are printed as they are."""
        return Numbers({place: value for place, value in self.values.items() if place not in self.derived})

    def at(self, table: str, row: str, column: str, score: str = "") -> Decimal:
        """The number at a place; ReportError where none is."""
        place = (table, row, column, score)
        if place not in self.values:
            raise ReportError(
                f"audit: expected a published value at {','.join(place)}, found none. Restore the published CSV files."
            )
        return self.values[place]

    def scores(self, table: str, row: str, column: str) -> dict[str, Decimal]:
        """Score -> number of one cell, in the order in which they are printed; ReportError where there are none."""
        found = {place[3]: value for place, value in self.values.items() if place[:3] == (table, row, column)}
        return found or {"": self.at(table, row, column)}


Check = Callable[[Numbers], Iterable[Finding]]


def read_folder(folder: Path) -> tuple[Published, ...]:
    """Every published value of a paper: all CSV files of its folder, by name; ReportError where there are none."""
    paths = sorted(folder.glob("*.csv"))
    if not paths:
        raise ReportError(f"{folder}: expected CSV files of published values, found none. Restore them.")
    return tuple(entry for path in paths for entry in read_published(path))


def audit(numbers: Numbers, checks: Iterable[Check]) -> tuple[Finding, ...]:
    """The findings of a list of checks, in its order."""
    return tuple(finding for check in checks for finding in check(numbers))
