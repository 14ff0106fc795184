"""What the site is made of: papers, their tables with the records behind them, and what is said of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from benchmarks.experiment import Benchmark, Column, Row
from benchmarks.publication import Deviation, Paper
from benchmarks.results import RunResult
from reports.evidence.records import Request
from reports.front.state import Headline, Standing, headlines


@dataclass(frozen=True)
class Summary:
    """A paper in the words of a reproducibility report, a paragraph each; empty where nobody has written them."""

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
        """The first of the scales, whose headlines are told."""
        return next(iter(self.standings))

    @property
    def standing(self) -> Standing:
        """How far it is reproduced at the first of the scales."""
        return self.standings[self.standing_scale]

    @property
    def deviations(self) -> tuple[tuple[Deviation, tuple[str, ...]], ...]:
        """Every deviation once, with the places that have it: all of them in words where all have it."""
        places: dict[Deviation, list[str]] = {}
        for table in self.tables:
            for deviation in table.deviations:
                places.setdefault(deviation, []).append(table.place)
        return tuple((deviation, tuple(dict.fromkeys(found))) for deviation, found in places.items())

    @property
    def headlines(self) -> tuple[Headline, ...]:
        return tuple(headlines(self.standing))


@dataclass(frozen=True)
class Place:
    """Where a record stands in a table."""

    request: Request
    row: Row
    column: Column
    records: tuple[RunResult, ...]  # of all seeds


@dataclass(frozen=True)
class Material:
    """Everything that is shown. scales: those that are shown, the first one first on every page.

    sweeps: (a table's id, a scale's) -> the texts that its sweeps left, by file name.
    """

    dossiers: tuple[Dossier, ...]
    records: tuple[RunResult, ...]
    scales: tuple[str, ...]
    revision: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)  # scale -> what it means, in words
    sweeps: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(request for dossier in self.dossiers for request in dossier.requests)

    @cached_property
    def places(self) -> Mapping[str, tuple[Place, ...]]:
        """Cell id -> every place of the tables that shows it."""
        found: dict[str, list[Place]] = {}
        for request in self.requests:
            for row, column in product(request.rows, request.columns):
                selection = request.selections[row.id, column.task]
                every = tuple(sorted((*selection.records, *selection.diverged), key=lambda record: record.cell.seed))
                for record in every:
                    found.setdefault(record.cell_id, []).append(Place(request, row, column, every))
        return {cell: tuple(places) for cell, places in found.items()}


def standing_at(dossiers: Sequence[Dossier], scale: str) -> list[Standing]:
    """The standings of a scale, of those papers that have it."""
    return [dossier.standings[scale] for dossier in dossiers if scale in dossier.standings]
