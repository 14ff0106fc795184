"""What the site is made of: papers, their tables with the records behind them, and what is said about both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from benchmarks.experiment import Benchmark, Column, Row
from benchmarks.publication import Deviation, Paper
from benchmarks.results import Find, RunResult, among
from reports.evidence.records import Request
from reports.front.state import Headline, Standing, headlines


@dataclass(frozen=True)
class Summary:
    """A paper in the words of a reproducibility report, a paragraph each; empty if nobody has written them."""

    scope: tuple[str, ...] = ()
    methodology: tuple[str, ...] = ()
    easy: tuple[str, ...] = ()
    difficult: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dossier:
    """A paper. standings: scale -> how far it is reproduced there; requests: its tables, each at its scales."""

    paper: Paper
    summary: Summary
    standings: Mapping[str, Standing]
    requests: tuple[Request, ...]

    @property
    def tables(self) -> tuple[Benchmark, ...]:
        return tuple({request.benchmark.id: request.benchmark for request in self.requests}.values())

    @property
    def standing_scale(self) -> str:
        """The first scale: the one of the headlines."""
        return next(iter(self.standings))

    @property
    def standing(self) -> Standing:
        """How far the paper is reproduced at the first scale."""
        return self.standings[self.standing_scale]

    @property
    def deviations(self) -> Mapping[Deviation, list[str]]:
        """Every deviation once, with the places that have it."""
        places: dict[Deviation, dict[str, None]] = {}
        for table in self.tables:
            for deviation in table.deviations:
                places.setdefault(deviation, {})[table.place] = None
        return {deviation: list(found) for deviation, found in places.items()}

    @property
    def headlines(self) -> tuple[Headline, ...]:
        return tuple(headlines(self.standing))


@dataclass(frozen=True)
class Place:
    """Where a record stands in a table. records: of all seeds."""

    request: Request
    row: Row
    column: Column
    records: tuple[RunResult, ...]


@dataclass(frozen=True)
class Material:
    """Everything that the site shows.

    Args:
        scales: The first one comes first on every page.
        labels: Scale -> what it means, in words.
        sweeps: (a table's id, a scale's) -> the texts that its sweeps left, by file name.
    """

    dossiers: tuple[Dossier, ...]
    records: tuple[RunResult, ...]
    scales: tuple[str, ...]
    revision: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    sweeps: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(request for dossier in self.dossiers for request in dossier.requests)

    @cached_property
    def find(self) -> Find:
        """Finds the records of earlier runs."""
        return among(self.records)

    @cached_property
    def places(self) -> Mapping[str, tuple[Place, ...]]:
        """Cell id -> every place of the tables that shows it."""
        found: dict[str, tuple[Place, ...]] = {}
        for request in self.requests:
            for row, column in product(request.rows, request.columns):
                own = request.selections[row.id, column.task]
                every = tuple(sorted((*own.records, *own.diverged), key=lambda record: record.cell.seed))
                for record in every:
                    places = found.get(record.cell_id, ())
                    found[record.cell_id] = (*places, Place(request, row, column, every))
        return found
