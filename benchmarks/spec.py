"""What a benchmark is: pure data, from which cells, tables and comparisons follow. Imports nothing heavy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.cell import ENGINE_VERSION as ENGINE_VERSION
from benchmarks.cell import NAME as NAME
from benchmarks.cell import Cell as Cell
from benchmarks.cell import Training as Training
from benchmarks.changes import ByScale as ByScale
from benchmarks.changes import ByTask as ByTask
from benchmarks.changes import LayerUnit, expanded, with_changes
from benchmarks.costs import ClosedForm, Costing
from benchmarks.parts import LEARNING as LEARNING
from benchmarks.parts import PLAIN_SCORES
from benchmarks.parts import SCALES as SCALES
from benchmarks.parts import Column as Column
from benchmarks.parts import Deviation as Deviation
from benchmarks.parts import Elsewhere as Elsewhere
from benchmarks.parts import Paper as Paper
from benchmarks.parts import Published as Published
from benchmarks.parts import Row as Row
from benchmarks.parts import Scale as Scale
from benchmarks.parts import View as View
from benchmarks.parts import Yardstick as Yardstick
from benchmarks.plain import JSON as JSON
from benchmarks.plain import canonical_json as canonical_json
from benchmarks.plain import digest as digest
from benchmarks.tuning import Grid, Search


@dataclass(frozen=True)
class Stage:
    """The benchmark from whose cells those of another begin: the cell of the row of the same id, at the same scale.

    A row that has none there begins as the scale's backbone does. tasks: task -> that of the stage. seed: of all of
    the stage's cells, whatever the seed of what begins from them.
    """

    benchmark: Benchmark
    tasks: Mapping[str, str]
    seed: int = 0

    def cell(self, row: Row, column: Column, scale: Scale) -> Cell | None:
        """The cell from which that of a row and column begins; None where the stage has no such row."""
        found = self._row(row)
        if found is None:
            return None
        own = dataclasses.replace(self.benchmark.scale(scale.id), backbone=scale.backbone, depth=scale.depth)
        return self.benchmark.cell(found, self._column(column), own, self.seed)

    def is_untuned(self, row: Row, column: Column, scale: Scale) -> bool:
        """Whether settings of that cell have still to be chosen."""
        open_rows = self.benchmark.untuned(self._column(column), self.benchmark.scale(scale.id))
        return self._row(row) in open_rows

    def _row(self, row: Row) -> Row | None:
        return {own.id: own for own in self.benchmark.rows}.get(row.id)

    def _column(self, column: Column) -> Column:
        return {own.task: own for own in self.benchmark.columns}[self.tasks[column.task]]


BaseFn = Callable[[Row, Column, Scale, int], Cell]


@dataclass(frozen=True)
class Benchmark:
    """A table or figure of a paper: its rows and columns, the cells behind them and what was printed."""

    id: str
    paper: Paper
    place: str  # "Table III"
    title: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    scales: tuple[Scale, ...]
    base: BaseFn  # the cell of a row, column, scale and seed before the row's changes
    published_csv: Path
    deviations: tuple[Deviation, ...] = ()
    tuned: Mapping[str, Grid] = field(default_factory=dict)  # row -> what the paper tunes of it
    view: View = PLAIN_SCORES
    closed_forms: Mapping[str, ClosedForm] = field(default_factory=dict)  # row -> the paper's equation of its cost
    costing: Costing | None = None  # how it shows what one client's training costs; None: not at all
    keeps_weights: bool = False  # whether its cells keep their weights, as other cells begin from them
    average: str = "truncate"  # the paper's rule for its average column: "truncate" or "round" to two decimals, or ""
    gate: Benchmark | None = None  # whose reference rows say which columns are evidence; None: its own, if any
    yardstick: Yardstick = LEARNING  # which rows these are
    stage: Stage | None = None  # from whose cells its own begin
    version: int = 1
    overrides: tuple[tuple[str, JSON], ...] = ()  # a user's changes to every cell

    @property
    def is_printed(self) -> bool:
        """Whether it is a table or figure of the paper, or a study beside them."""
        return self.place.removeprefix("Appendix ").startswith(("Table ", "Figure "))

    @property
    def units(self) -> Mapping[str, LayerUnit]:
        """A cell's field -> the unit in which rows, sweeps and users write it."""
        return self.paper.units

    def search(self, scale: Scale) -> Search:
        """How settings are chosen at a scale: as it says, or as the paper did."""
        return scale.search or Search(self.tuned)

    def untuned(self, column: Column, scale: Scale) -> tuple[Row, ...]:
        """The rows for which a scale's search has still to choose settings on a task."""
        search = self.search(scale)
        return tuple(
            row
            for row in self.rows_at(scale)
            if search.is_open(column.task, row.tuned_as or row.id)
            or (self.stage is not None and self.stage.is_untuned(row, column, scale))
        )

    def rows_at(self, scale: Scale) -> tuple[Row, ...]:
        """The rows that there are at a scale."""
        return tuple(row for row in self.rows if scale.id in row.scales)

    def columns_at(self, scale: Scale) -> tuple[Column, ...]:
        """The columns that there are at a scale."""
        return tuple(column for column in self.columns if scale.id in column.scales)

    def changes(self, row: Row, column: Column, scale: Scale) -> tuple[tuple[str, JSON], ...]:
        """What makes a row's cell of the base cell: its own changes and what was chosen for it, then the user's.

        Settings that were tuned for another row give way to a row's own changes; what a user swept of the row does not.
        """
        search = self.search(scale)
        chosen = search.settings(column.task, row.tuned_as or row.id).items()
        tuned = (*chosen, *row.changes.items()) if row.tuned_as else (*row.changes.items(), *chosen)
        if row.tuned_as:
            tuned = (*tuned, *search.swept.get((column.task, row.id), {}).items())
        return (*tuned, *((name, value) for name, value in self.overrides if not row.is_fixed(name)))

    def lineage(self, row: Row) -> tuple[Row, ...]:
        """A row, and before it those of this table from whose outcomes its cells begin, the first one first."""
        return (*(self.lineage(self.row(row.begins)) if row.begins else ()), row)

    def cell(self, row: Row, column: Column, scale: Scale, seed: int) -> Cell:
        """The cell of a row, column, scale and seed: the base cell with all changes.

        KeyError where the row begins from one that the benchmark does not have.
        """
        changes, own = expanded(self.changes(row, column, scale)), column.at(scale, self.scale(scale.id))
        in_cell = ((name, self._in_cell(name, value, column, own)) for name, value in changes)
        base = self.base(row, column, own, seed)
        if self.stage is not None:
            base = dataclasses.replace(base, initial=self.stage.cell(row, column, own))
        found = with_changes(base, in_cell)
        if not row.begins:
            return found
        # What a user swept of a row reaches the cell from which it begins, as --set does.
        swept = self.search(scale).swept.get((column.task, row.id), {}).items()
        before = dataclasses.replace(self, overrides=(*swept, *self.overrides))
        return dataclasses.replace(found, initial=before.cell(self.row(row.begins), column, scale, seed))

    def label(self, scale: Scale, columns: Iterable[Column]) -> str:
        """A scale in words for these columns: where they stand on other data or encoders, by column."""
        found: dict[str, list[str]] = {}
        for column in columns:
            found.setdefault(column.at(scale, self.scale(scale.id)).label, []).append(column.name)
        if len(found) < 2:
            return next(iter(found), scale.label)
        return "; ".join(f"{', '.join(names)}: {label}" for label, names in found.items())

    def narrowed(self, scale: Scale) -> Benchmark:
        """With the columns alone that there are at a scale."""
        return dataclasses.replace(self, columns=self.columns_at(scale))

    def costed(self, row: Row, column: Column, scale: Scale) -> Cell | None:
        """The cell whose training `costing` is about: that of the stage, where a row begins from one, or its own."""
        return self.stage.cell(row, column, scale) if self.stage else self.cell(row, column, scale, 0)

    @property
    def costed_rows(self) -> tuple[Row, ...]:
        """The rows among which that of `costing.baseline` is: the stage's, or its own."""
        return self.stage.benchmark.rows if self.stage else self.rows

    def row(self, row_id: str) -> Row:
        """The row of that id; KeyError where the benchmark has none such."""
        return {row.id: row for row in self.rows}[row_id]

    def _in_cell(self, name: str, value: JSON, column: Column, scale: Scale) -> JSON:
        """What a change makes of a cell's field: the one place where units are converted."""
        if isinstance(value, ByScale):
            value = value.of(scale.id)
        if isinstance(value, ByTask):
            value = value.of(column.task)
        unit = self.units.get(name)
        return unit.in_cell(value, column.task, scale.depth) if unit else value

    def shown(self, name: str, value: JSON, scale: Scale | None = None) -> str:
        """A change in words, in the unit in which it is written, and at a scale in the encoder's own too."""
        value = value.of(scale.id) if isinstance(value, ByScale) and scale else value
        unit = None if isinstance(value, ByScale) else self.units.get(name)
        if unit:
            return unit.shown(value, scale.depth if scale else None)
        own = name.removeprefix("initial.")
        short = own.removeprefix("options.").removeprefix("training.")
        return f"{'initial ' if own != name else ''}{short}={value.label if isinstance(value, Cell) else value}"

    def scale(self, scale_id: str) -> Scale:
        """The scale of that id; KeyError where the benchmark has none such."""
        return {scale.id: scale for scale in self.scales}[scale_id]

    def cells(
        self, scale: Scale, seeds: Sequence[int], rows: Sequence[Row] = (), columns: Sequence[Column] = ()
    ) -> list[tuple[Row, Column, Cell]]:
        """Every (row, column, cell) of the chosen part, column by column so that a task is loaded once."""
        return [
            (row, column, self.cell(row, column, scale, seed))
            for column in (columns or self.columns_at(scale))
            for seed in seeds
            for row in (rows or self.rows_at(scale))
        ]
