"""Cells that claims need and that have no record yet: rows on tasks, a seed each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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
    Relation,
    Same,
    Sends,
    Similar,
)
from benchmarks.run_config import RunConfig
from reports.claims.asked import counted
from reports.claims.cells import Runs
from reports.evidence.gate import home
from reports.evidence.records import PAPER

SEEDS = 5
COUNTED_SEEDS = counted((), 0.25).needed  # of rounds, and bytes until a target, where seeds redraw an 80/20 split
Place = tuple[At, str]  # a row and a task


@dataclass(frozen=True)
class Missing:
    """A row on a task without records of some seeds. cells: without a record. seeds: how many the claim needs."""

    at: At
    task: str
    cells: tuple[RunConfig, ...]
    seeds: int = SEEDS


@dataclass(frozen=True)
class Needs:
    """The needs of a claim. places: rows on tasks. closed: a column's name -> why no record can decide there."""

    claim: Claim
    places: int
    missing: tuple[Missing, ...]
    closed: Mapping[str, str]


def needs(claim: Claim, runs: Runs, seeds: int = 0) -> Needs:
    """The cells of a claim that have no record yet, with the rows that set its targets and judge its columns.

    seeds: of everything; 0: SEEDS, and COUNTED_SEEDS where a sign test judges.
    """
    wanted: dict[Place, int] = {}
    closed: dict[str, str] = {}
    for relation in claim.every_relation:
        for at, task, usual in _compared(relation, runs):
            column = runs.tables.column(at, task)
            if column is None or runs.scale.id not in {*column.scales} & {*runs.tables.row(at).scales}:
                continue
            if not isinstance(relation, AtMost | Same | CostShare):  # scores: evidence where a gate is open
                if (gate := runs.gate(at, task)).is_shut:
                    closed[column.name] = gate.why
                    continue
                judge = home(runs.tables.benchmark(at))
                own = {row.id for row in judge.rows} if task in {each.task for each in judge.columns} else ()
                for name in judge.yardstick.rows:
                    if name in own:
                        wanted.setdefault((At(judge.id, name), task), SEEDS)
            wanted[at, task] = max(usual, wanted.get((at, task), 0))
    entries = [_missing(runs, at, task, seeds or usual) for (at, task), usual in wanted.items()]
    return Needs(claim, len(wanted), tuple(entry for entry in entries if entry.cells), closed)


def _compared(relation: Relation, runs: Runs) -> Iterator[tuple[At, str, int]]:
    """The rows on tasks whose records decide a relation, each with its number of seeds; none where shapes decide."""
    is_counted = isinstance(relation, Cheaper) or (isinstance(relation, Better) and relation.measure == "rounds")
    seeds, places, baselines = COUNTED_SEEDS if is_counted else SEEDS, _places(relation, runs), _baselines(relation)
    yield from ((at, task, seeds) for at, task in places)
    for task in dict.fromkeys(task for _, task in places) if baselines else ():
        yield from ((at, task, seeds) for at in baselines)
        if MAJORITY in {row.id for row in runs.tables.benchmark(baselines[0]).rows}:
            yield At(baselines[0].benchmark, MAJORITY), task, SEEDS


def _baselines(relation: Relation) -> tuple[At, ...]:
    """The rows that set a relation's target."""
    if isinstance(relation, Better) and relation.measure == "rounds":
        return relation.target.baselines if relation.target else relation.than
    return relation.target.baselines if isinstance(relation, Reaches | Cheaper) and relation.target else ()


def _places(relation: Relation, runs: Runs) -> list[Place]:
    """The rows and tasks that a relation names."""
    tables = runs.tables
    match relation:
        case Sends() | CostShare(of="bytes" | "flops") | Cheaper(target=None):
            return []
        case Reaches(rows=rows, target=target):
            is_vacuous = target.only_printed and runs.scale.id != PAPER
            return [] if is_vacuous else [(at, task) for at in rows for task in target.percent]
        case AtMost(rows=rows, tasks=tasks):
            return [(at, task) for at in rows for task in tables.tasks(at, tasks)]
        case Same(row=row, other=other, tasks=tasks):  # one task is enough: code makes two runs one
            return [(at, task) for task in tables.tasks(row, tasks)[:1] for at in (row, other)]
        case AverageBetter(rows=rows):
            rivals = [(row, chosen[row.benchmark]) for chosen in relation.choices() for row in rows]
            return [(at, task) for pair in rivals for task in tables.tasks(pair[0]) for at in pair]
        case Similar(row=row, other=other) | NotTold(row=row, other=other):
            pairs = list(tables.pairs((row,), (other,), relation.tasks, relation.scores))
            idle = tables.idle(other) if isinstance(relation, Similar) else ()
            return [(at, pair.task) for pair in pairs for at in (row, other, *idle)]
        case Better() | Cheaper() | CostShare():
            pairs = list(tables.pairs(relation.rows, relation.than, relation.tasks, getattr(relation, "scores", ())))
            return [(at, pair.task) for pair in pairs for at in (pair.row, pair.other)]


def _missing(runs: Runs, at: At, task: str, seeds: int) -> Missing:
    table, row, column = runs.tables.benchmark(at), runs.tables.row(at), runs.tables.column(at, task)
    done = {record.cell.seed for record in runs.of(at, task)}
    lacking = [seed for seed in range(seeds) if seed not in done] if column is not None else []
    cells = (table.cell(row, column, runs.scale, seed) for seed in lacking if column is not None)
    return Missing(at, task, tuple(cells), seeds)
