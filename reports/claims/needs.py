"""What claims still need before a verdict may hang on it: cells of rows and columns, a seed each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.claims import (
    MAJORITY,
    At,
    AtMost,
    AverageBetter,
    Better,
    Cheaper,
    Claim,
    CostShare,
    NotTold,
    Reaches,
    Sends,
    Similar,
)
from benchmarks.spec import Cell, Scale
from reports.claims.asked import counted
from reports.claims.cells import Pair, Runs, Tables
from reports.claims.decide import decide
from reports.evidence.gate import home
from reports.evidence.records import PAPER

SEEDS = 5
COUNTED_SEEDS = counted((), 0.25).needed  # of rounds, and bytes until a target, where seeds redraw an 80/20 split
Asking = tuple[At, str]  # a row and a task


@dataclass(frozen=True)
class _Questions:
    """A Source that knows nothing and notes what it is asked for; bytes that follow from shapes need no record.

    ordered: rows and tasks whose scores are compared; other: those whose records are looked at in another way.
    counted: of the first those that a sign test judges.
    """

    tables: Tables
    scale: Scale
    ordered: dict[Asking, None] = field(default_factory=dict)
    other: dict[Asking, None] = field(default_factory=dict)
    counted: set[Asking] = field(default_factory=set)

    def _order(self, rows: Iterable[At], task: str) -> None:
        self.ordered.update(dict.fromkeys((at, task) for at in rows if self._is_there(at, task)))

    def _is_there(self, at: At, task: str) -> bool:
        """Whether the scale has such a row and such a column."""
        column, scale = self.tables.column(at, task), self.scale.id
        return column is not None and scale in column.scales and scale in self.tables.row(at).scales

    def _with_majority(self, baselines: Sequence[At], task: str) -> None:
        table = self.tables.benchmark(baselines[0])
        rows = [At(table.id, MAJORITY)] if MAJORITY in {row.id for row in table.rows} else []
        self._order([*baselines, *rows], task)

    def difference(self, relation: Better | Similar, pair: Pair) -> None:
        self._order((pair.row, pair.other), pair.task)
        if isinstance(relation, Better) and relation.measure == "rounds":
            self._count(pair, relation.target.baselines if relation.target else relation.than)

    def leads(self, relation: Better | Similar, pair: Pair) -> Iterator[tuple[At, None]]:
        self._order(self.tables.idle(pair.other), pair.task)
        return iter(())

    def average_margin(self, relation: AverageBetter, rivals: Mapping[str, At]) -> None:
        for row in relation.rows:
            for task in self.tables.tasks(row):
                self._order((row, rivals[row.benchmark]), task)

    def above_target(self, relation: Reaches, row: At, task: str) -> None:
        if self.scale.id == PAPER or not relation.target.only_printed:
            self._order((row,), task)
            self._with_majority(relation.target.baselines, task)

    def ratio(self, relation: Cheaper, pair: Pair) -> None:
        if relation.target is not None:
            self._order((pair.row, pair.other), pair.task)
            self._count(pair, relation.target.baselines)

    def _count(self, pair: Pair, baselines: Sequence[At]) -> None:
        self._with_majority(baselines, pair.task)
        self.counted.update((at, pair.task) for at in (pair.row, pair.other, *baselines))

    def p_value(self, relation: NotTold, pair: Pair) -> None:
        self._order((pair.row, pair.other), pair.task)

    def share(self, relation: CostShare, pair: Pair) -> None:
        """Of bytes and FLOPs it follows from shapes; times are read off the cells themselves."""
        if relation.of == "seconds":
            self.other.update({(pair.row, pair.task): None, (pair.other, pair.task): None})

    def gigabytes(self, relation: Sends, row: At, task: str) -> None:
        """Follows from shapes."""

    def level(self, relation: AtMost, row: At, task: str) -> None:
        self.other[row, task] = None

    def gap(self, pair: Pair) -> None:
        """One task is enough: two runs are one by what their code is."""
        if not any(at == pair.row for at, _ in self.other):
            self.other.update({(pair.row, pair.task): None, (pair.other, pair.task): None})


@dataclass(frozen=True)
class Missing:
    """A row on a task whose seeds were not all run. cells: those that have no record. seeds: how many are asked for."""

    at: At
    task: str
    cells: tuple[Cell, ...]
    seeds: int = SEEDS


@dataclass(frozen=True)
class Needs:
    """What a claim needs. places: rows on tasks. closed: a column's name -> why no further record decides there."""

    claim: Claim
    places: int
    missing: tuple[Missing, ...]
    closed: Mapping[str, str]


def needs(claim: Claim, runs: Runs, seeds: int = 0) -> Needs:
    """The cells of a claim that have no record yet, with the rows that set its targets and judge its columns.

    seeds: how many of everything; 0: SEEDS, and COUNTED_SEEDS of what a sign test judges.
    """
    asked = _Questions(runs.tables, runs.scale)
    decide(claim.every_relation, asked)
    wanted, closed = dict(asked.other), {}
    for at, task in asked.ordered:
        if why := _shut(runs, at, task):
            closed[runs.tables.task(at, task)] = why
        else:
            wanted |= dict.fromkeys([(at, task), *_references(runs.tables, at, task)])
    usual = {place: COUNTED_SEEDS if place in asked.counted else SEEDS for place in wanted}
    found = (_missing(runs, at, task, seeds or usual[at, task]) for at, task in wanted)
    return Needs(claim, len(wanted), tuple(entry for entry in found if entry.cells), closed)


def _shut(runs: Runs, at: At, task: str) -> str:
    """Why nothing is judged of a row on a task, where that is settled."""
    gate = runs.gate(at, task)
    return gate.why if gate.is_shut else ""


def _references(tables: Tables, at: At, task: str) -> list[Asking]:
    """The rows that say whether a column is evidence, of those that there are."""
    judging = home(tables.benchmark(at))
    rows, tasks = {row.id for row in judging.rows}, {column.task for column in judging.columns}
    return [(At(judging.id, name), task) for name in judging.yardstick.rows if name in rows and task in tasks]


def _missing(runs: Runs, at: At, task: str, seeds: int) -> Missing:
    done = {record.cell.seed for record in runs.of(at, task)}
    table, row, column = runs.tables.benchmark(at), runs.tables.row(at), runs.tables.column(at, task)
    if column is None:
        return Missing(at, task, ())
    lacking = (seed for seed in range(seeds) if seed not in done)
    return Missing(at, task, tuple(table.cell(row, column, runs.scale, seed) for seed in lacking), seeds)
