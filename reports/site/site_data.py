"""The content of the site: papers, their tables with records, and texts about both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from benchmarks.experiment import Benchmark, Column, Row
from benchmarks.publication import Deviation, Paper
from benchmarks.results import Find, RunResult, among
from reports.evidence.records import Request
from reports.front.state import Headline, Standing, deviations_of, headlines


@dataclass(frozen=True)
class Dossier:
    """A paper.

    summary: "scope", "methodology", "easy" and "difficult" -> the paragraphs of its reproducibility report, if it has
    any. standings: scale -> the state of its reproduction; requests: its tables, each at its scales.
    """

    paper: Paper
    summary: Mapping[str, Sequence[str]]
    standings: Mapping[str, Standing]
    requests: tuple[Request, ...]

    @property
    def tables(self) -> tuple[Benchmark, ...]:
        return tuple({request.benchmark.id: request.benchmark for request in self.requests}.values())

    @property
    def standing_scale(self) -> str:
        """The first scale, which has the headlines."""
        return next(iter(self.standings))

    @property
    def standing(self) -> Standing:
        """The state of the paper's reproduction at the first scale."""
        return self.standings[self.standing_scale]

    @property
    def deviations(self) -> Mapping[Deviation, list[str]]:
        """All deviations, each once, with its places."""
        return deviations_of(self.tables)

    @property
    def headlines(self) -> tuple[Headline, ...]:
        return tuple(headlines(self.standing))


@dataclass(frozen=True)
class CellInTable:
    """A cell of a table that shows a record. records: of all seeds."""

    request: Request
    row: Row
    column: Column
    records: tuple[RunResult, ...]


@dataclass(frozen=True)
class SiteData:
    """Everything that the site shows.

    Args:
        scales: The first one comes first on every page.
        coverage: The finished runs, as a sentence.
        labels: Scale -> its description.
        sweeps: (table's id, scale's id) -> the texts of its sweeps, by file name.
        included: Id of a user's table -> the folders that its runs include.
    """

    dossiers: tuple[Dossier, ...]
    records: tuple[RunResult, ...]
    scales: tuple[str, ...]
    coverage: str = ""
    revision: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    sweeps: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    included: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(request for dossier in self.dossiers for request in dossier.requests)

    @cached_property
    def find(self) -> Find:
        """Finds the records of parent runs."""
        return among(self.records)

    @cached_property
    def places(self) -> Mapping[str, tuple[CellInTable, ...]]:
        """Cell id -> every place of the tables that shows it."""
        places: dict[str, tuple[CellInTable, ...]] = {}
        for request in self.requests:
            run_rows = (row for row in request.rows if not row.corrects)
            for row, column in product(run_rows, request.columns):
                cell = request.selections[row.id, column.task]
                records = tuple(sorted((*cell.records, *cell.diverged), key=lambda record: record.cell.seed))
                for record in records:
                    place = CellInTable(request, row, column, records)
                    places[record.cell_id] = (*places.get(record.cell_id, ()), place)
        return places
