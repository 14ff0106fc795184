"""A table or figure as data: rows, columns, scales, and the configurations of its runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.costs import ClosedForm, Costing
from benchmarks.overrides import ByScale, LayerUnit, check_partition, expanded, is_within, options_in, with_changes
from benchmarks.publication import LEARNING, Deviation, Elsewhere, Paper, View, Yardstick, deviations
from benchmarks.run_config import JSON, SCALES, RunConfig, TrainConfig
from benchmarks.sweeps.tuning import Grid, Search


@dataclass(frozen=True)
class Row:
    """A line of a table: a method under the paper's name, defined by changes to the table's base configuration.

    Args:
        changes: Field -> value, as in --set, such as {"algorithm": "fedavg", "options.proximal": 0.01}; a value may be
            a `ByScale`, or a function of the task.
        begins: The row whose runs its runs continue, with the same task and seed.
        corrects: The row whose predictions it corrects without a run.
        correction: How it corrects them (`benchmarks.corrections`).
    """

    id: str
    name: str
    changes: Mapping[str, JSON]
    printed: bool = True  # whether the paper has the row
    note: str = ""
    tuned_as: str = ""  # the row whose tuned settings it takes; its own override them
    fixed: tuple[str, ...] = ()  # fields that define the row; --set cannot change them
    begins: str = ""
    backbone: str = ""  # the row's encoder, for `base`; "" for the scale's
    scales: tuple[str, ...] = SCALES  # at which the row exists
    corrects: str = ""
    correction: str = ""
    yardstick: Yardstick | None = None  # when its scores are evidence; None: the table's

    def changed(self, changes: Mapping[str, JSON], **fields: Any) -> Row:
        """The row with further changes, which replace earlier ones of the same fields, and other attributes."""
        kept = {
            name: value
            for name, value in self.changes.items()
            if not any(is_within(name, changed) for changed in changes)
        }
        return replace(self, changes={**kept, **changes}, **fields)

    @property
    def algorithm(self) -> str:
        return str(self.changes["algorithm"])

    @property
    def options(self) -> dict[str, JSON]:
        """The method's options as written; critical layers refer to the paper's encoder."""
        return options_in(self.changes)

    def is_fixed(self, name: str) -> bool:
        """Whether --set cannot change a field."""
        return any(is_within(name, fixed) for fixed in self.fixed)

    @property
    def head(self) -> str:
        return str(self.changes.get("head", "pooled"))


@dataclass(frozen=True)
class Scale:
    """A budget for a benchmark's runs, with the label of its results."""

    id: str
    backbone: str
    depth: int  # encoder layers of the backbone
    source: str
    material: str  # a phrase that describes data and encoder
    changes: tuple[str, ...] = ()  # phrases that describe a user's changes
    search: Search | None = None  # how settings are tuned; None: as in the paper
    elsewhere: Elsewhere | None = None

    @property
    def label(self) -> str:
        return "; ".join((self.material, *self.changes))

    @property
    def changed(self) -> bool:
        return bool(self.changes)


@dataclass(frozen=True)
class Column:
    """A column of a table: a task and its scores.

    Args:
        evaluations: Evaluation -> suffix for its metrics' labels.
        extra: Further scores to show, which no paper, claim or average uses.
        primary: The one score that decides claims on results; "" for the averaged one.
        leak: The content that test and training examples share under a random split, so that scores are not evidence.
        replacing: Scale id -> the column's encoder and data at that scale.
        instead_of: The task whose claims this column tests while that task has no results.
    """

    task: str
    name: str
    scores: tuple[str, ...]  # "<evaluation>/<metric>", such as "test/f1"
    averaged: str  # the score that enters the average
    evaluations: Mapping[str, str] = field(default_factory=lambda: {"test": ""})
    extra: tuple[str, ...] = ()
    primary: str = ""
    leak: str = ""
    scales: tuple[str, ...] = SCALES  # at which the column exists
    replacing: Mapping[str, Scale] = field(default_factory=dict)
    instead_of: str = ""

    def at(self, scale: Scale, table: Scale) -> Scale:
        """The scale of the column's runs: its own, or the table's, with the user's encoder."""
        other = self.replacing.get(scale.id)
        if other is None:
            return scale
        named = other if scale.backbone == table.backbone else scale
        return replace(
            other, backbone=named.backbone, depth=named.depth, material=named.material, changes=scale.changes
        )

    @property
    def evaluation(self) -> str:
        """The evaluation of the averaged score."""
        return self.averaged.partition("/")[0]


@dataclass(frozen=True)
class Stage:
    """The earlier benchmark whose runs another one's runs start from, at the same row and scale.

    A row that the earlier benchmark lacks starts from the scale's backbone.
    """

    benchmark: Benchmark
    tasks: Mapping[str, str]  # task -> the earlier benchmark's task
    seed: int = 0  # the seed of all earlier runs

    def cell(self, row: Row, column: Column, scale: Scale) -> RunConfig | None:
        """The earlier run for a row and column; None if the earlier benchmark lacks the row."""
        earlier = self._row(row)
        if earlier is None:
            return None
        same_encoder = replace(self.benchmark.scale(scale.id), backbone=scale.backbone, depth=scale.depth)
        return self.benchmark.cell(earlier, self._column(column), same_encoder, self.seed)

    def is_untuned(self, row: Row, column: Column, scale: Scale) -> bool:
        """Whether the earlier run still lacks tuned settings."""
        return self._row(row) in self.benchmark.untuned(self._column(column), self.benchmark.scale(scale.id))

    def _row(self, row: Row) -> Row | None:
        return {each.id: each for each in self.benchmark.rows}.get(row.id)

    def _column(self, column: Column) -> Column:
        return {each.task: each for each in self.benchmark.columns}[self.tasks[column.task]]


BaseFn = Callable[[Row, Column, Scale, int], RunConfig]


@dataclass(frozen=True)
class Benchmark:
    """A table or figure of a paper: its rows and columns, the runs behind them and the published numbers."""

    id: str
    paper: Paper
    place: str  # such as "Table III"
    title: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    scales: tuple[Scale, ...]
    base: BaseFn  # row, column, scale and seed -> the configuration before the row's changes
    published_csv: Path
    deviations: tuple[Deviation, ...] = ()
    tuned: Mapping[str, Grid] = field(default_factory=dict)  # row -> the paper's grid
    view: View = field(default_factory=View)
    closed_forms: Mapping[str, ClosedForm] = field(default_factory=dict)  # row -> the paper's cost equation
    costing: Costing | None = None  # how to show the cost of one client's training
    keeps_weights: bool = False  # so that other runs can start from them
    average: str = "truncate"  # how the paper's average column cuts to two decimals: "truncate", "round" or ""
    gate: Benchmark | None = None  # its reference rows decide which columns are evidence; None: this table's, if any
    yardstick: Yardstick = LEARNING  # the reference rows
    stage: Stage | None = None  # the earlier runs
    overrides: tuple[tuple[str, JSON], ...] = ()  # a user's changes to every run
    swept_as: str = ""  # the table whose sweeps choose its settings, if it has no sweep
    without_training: tuple[Row, ...] = ()  # rows that need no run, as they correct other rows' predictions

    @property
    def is_printed(self) -> bool:
        """Whether it is a table or figure of the paper, not our study."""
        return self.place.removeprefix("Appendix ").startswith(("Table ", "Figure "))

    @property
    def needs_no_run(self) -> bool:
        """Whether its numbers follow from closed forms and shapes."""
        return "forms" in self.view.options

    def counts(self, column: Column) -> bool:
        """Whether coverage counts a column: the paper's columns, or all columns of our study."""
        return not self.is_printed or SCALES[-1] in column.scales

    @property
    def units(self) -> Mapping[str, LayerUnit]:
        """Field -> its unit in rows, sweeps and --set."""
        return self.paper.units

    def row(self, row_id: str) -> Row:
        """The row with that id; KeyError if there is none."""
        return {row.id: row for row in (*self.rows, *self.without_training)}[row_id]

    @property
    def scales_by_id(self) -> dict[str, Scale]:
        return {scale.id: scale for scale in self.scales}

    def scale(self, scale_id: str) -> Scale:
        """The scale with that id; KeyError if there is none."""
        return self.scales_by_id[scale_id]

    def rows_at(self, scale: Scale) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if scale.id in row.scales)

    def columns_at(self, scale: Scale) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if scale.id in column.scales)

    def search(self, scale: Scale) -> Search:
        """How settings are tuned at a scale: the scale's search, or the paper's."""
        return scale.search or Search(self.tuned)

    def untuned(self, column: Column, scale: Scale) -> tuple[Row, ...]:
        """The rows that the scale's search has not tuned on a task yet."""
        search = self.search(scale)
        return tuple(
            row
            for row in self.rows_at(scale)
            if search.is_open(column.task, row.tuned_as or row.id)
            or (self.stage is not None and self.stage.is_untuned(row, column, scale))
        )

    def changes(self, row: Row, column: Column, scale: Scale) -> tuple[tuple[str, JSON], ...]:
        """A row's changes to the base configuration: the row's, its tuned settings, then the user's; later ones win.

        Settings tuned for another row come before the row's changes.
        """
        search = self.search(scale)
        borrowed = search.settings(column.task, row.tuned_as) if row.tuned_as else {}
        tuned = (*borrowed.items(), *row.changes.items(), *search.settings(column.task, row.id).items())
        return (*tuned, *((name, value) for name, value in self.overrides if not row.is_fixed(name)))

    def cell(self, row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
        """The configuration for a row, column, scale and seed; KeyError if the row starts from a missing row."""
        row = self.row(row.corrects) if row.corrects else row
        changes, at = expanded(self.changes(row, column, scale)), column.at(scale, self.scale(scale.id))
        in_cell = ((name, self._in_cell(name, value, column, at)) for name, value in changes)
        base = self.base(row, column, at, seed)
        if self.stage is not None:
            base = replace(base, initial=self.stage.cell(row, column, at))
        config = with_changes(base, in_cell)
        check_partition(config, (name for name, _ in self.overrides if not row.is_fixed(name)))
        if not row.begins:
            return config
        # A user's sweep of a row changes its earlier run too, as --set does.
        swept = self.search(scale).swept.get((column.task, row.id), {}).items()
        earlier = replace(self, overrides=(*swept, *self.overrides))
        return replace(config, initial=earlier.cell(self.row(row.begins), column, scale, seed))

    def _in_cell(self, name: str, value: JSON, column: Column, scale: Scale) -> JSON:
        """The value of a change in a run's unit."""
        if isinstance(value, ByScale):
            value = value.of(scale.id)
        if callable(value):
            value = value(column.task)
        unit = self.units.get(name)
        return unit.in_cell(value, column.task, scale.depth) if unit else value

    def cells(
        self, scale: Scale, seeds: Sequence[int], rows: Sequence[Row] = (), columns: Sequence[Column] = ()
    ) -> list[tuple[Row, Column, RunConfig]]:
        """Every (row, column, run) of the selected part, by column, so that each task is loaded once."""
        return [
            (row, column, self.cell(row, column, scale, seed))
            for column in (columns or self.columns_at(scale))
            for seed in seeds
            for row in (rows or self.rows_at(scale))
        ]

    def label(self, scale: Scale, columns: Iterable[Column]) -> str:
        """A scale's label for these columns; one label per column if data or encoders differ."""
        names: dict[str, list[str]] = {}
        for column in columns:
            names.setdefault(column.at(scale, self.scale(scale.id)).label, []).append(column.name)
        if len(names) < 2:
            return next(iter(names), scale.label)
        return "; ".join(f"{', '.join(columns)}: {label}" for label, columns in names.items())

    def shown(self, name: str, value: JSON, scale: Scale | None = None) -> str:
        """A change as text in its written unit; with a scale, also in the encoder's unit."""
        value = value.of(scale.id) if isinstance(value, ByScale) and scale else value
        value = "by task" if callable(value) else value
        unit = None if isinstance(value, ByScale) else self.units.get(name)
        if unit:
            return unit.shown(value, scale.depth if scale else None)
        inner = name.removeprefix("initial.")
        short = inner.removeprefix("options.").removeprefix("training.")
        text = value.label if isinstance(value, RunConfig) else value
        text = json.dumps(text) if isinstance(text, Mapping | tuple) else text  # as --set reads it
        return f"{'initial ' if inner != name else ''}{short}={text}"


def run_of(row: Row, column: Column, scale: Scale, seed: int, training: TrainConfig, **fields: Any) -> RunConfig:
    """A run before its row's changes. fields: further fields; by default one client trains on all examples."""
    defaults = {"clients": 1, "partition": {"scheme": "equal"}, "options": {}, "test_share": 0.0}
    return RunConfig(
        scale=scale.id,
        task=column.task,
        task_version=1,
        source=scale.source,
        backbone=row.backbone or scale.backbone,
        algorithm=row.algorithm,
        training=training,
        seed=seed,
        **{**defaults, **fields},
    )


def another(table: Benchmark, name: str, place: str, title: str, also: str = "", **fields: Any) -> Benchmark:
    """Another table of the same paper, with these fields; published/<name>.csv has its published numbers.

    also: further deviations, as a list (see `deviations`). Rows without training come only from `fields`.
    """
    file = table.published_csv.with_name(f"{name}.csv")
    listed = (*fields.get("deviations", table.deviations), *deviations(also))
    fields = {"without_training": (), **fields, "deviations": listed}
    return replace(table, id=f"{table.paper.id}-{name}", place=place, title=title, published_csv=file, **fields)


def with_lite(scales: Iterable[Scale], ids: Iterable[str] = SCALES, **fields: Any) -> tuple[Scale, ...]:
    """The scales with these ids; the lite scale gets the given fields."""
    return tuple(replace(scale, **fields) if scale.id == "lite" else scale for scale in scales if scale.id in ids)
