"""Runs that claims need and that have no record yet: rows on tasks, a seed each."""

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
    Target,
)
from benchmarks.run_config import RunConfig
from reports.claims.cells import Runs
from reports.claims.criterion import seeds_for_sign_test
from reports.evidence.gate import home
from reports.evidence.records import PAPER

SEEDS = 5
COUNTED_SEEDS = seeds_for_sign_test(0.25)  # for rounds and bytes until a target, if seeds redraw an 80/20 split


@dataclass(frozen=True)
class Missing:
    """A row on a task without records of some seeds. cells: without a record; seeds: how many the claim needs."""

    at: At
    task: str
    cells: tuple[RunConfig, ...]
    seeds: int = SEEDS


@dataclass(frozen=True)
class Needs:
    """The needs of a claim. places: rows on tasks; closed: a column's name -> why no record can decide there."""

    claim: Claim
    places: int
    missing: tuple[Missing, ...]
    closed: Mapping[str, str]


def needs(claim: Claim, runs: Runs, seeds: int = 0) -> Needs:
    """The runs of a claim that have no record yet, with the rows that set its targets and judge its columns.

    seeds: of everything; 0 for SEEDS, and COUNTED_SEEDS where a sign test judges.
    """
    wanted: dict[tuple[At, str], int] = {}
    closed: dict[str, str] = {}
    for relation in claim.every_relation:
        is_counted = isinstance(relation, Cheaper) or (isinstance(relation, Better) and relation.measure == "rounds")
        for at, task in _rows_on_tasks(relation, runs):
            column = runs.tables.column(at, task)
            if column is None or runs.scale.id not in {*column.scales} & {*runs.tables.row(at).scales}:
                continue
            if not isinstance(relation, AtMost | Same | CostShare):  # scores are evidence only if a gate is open
                if (gate := runs.gate(at, task)).is_shut:
                    closed[column.name] = gate.why
                    continue
                judging = home(runs.tables.benchmark(at))
                rows = {row.id for row in judging.rows} if task in {each.task for each in judging.columns} else ()
                for name in judging.yardstick.rows:
                    if name in rows:
                        wanted.setdefault((At(judging.id, name), task), SEEDS)
            usual = COUNTED_SEEDS if is_counted and at.row != MAJORITY else SEEDS
            wanted[at, task] = max(usual, wanted.get((at, task), 0))
    entries = [_missing(runs, at, task, seeds or usual) for (at, task), usual in wanted.items()]
    return Needs(claim, len(wanted), tuple(entry for entry in entries if entry.cells), closed)


def _rows_on_tasks(relation: Relation, runs: Runs) -> Iterator[tuple[At, str]]:
    """The rows on tasks whose records decide a relation, with the baselines of its target; none if shapes decide."""
    places = list(_named(relation, runs))
    yield from places
    baselines: tuple[At, ...] = ()
    if isinstance(relation, Better) and relation.measure == "rounds":
        baselines = relation.target.baselines if relation.target else relation.than
    elif isinstance(relation, Reaches | Cheaper) and relation.target:
        baselines = relation.target.baselines
    for task in dict.fromkeys(task for _, task in places) if baselines else ():
        yield from ((at, task) for at in baselines)
        if MAJORITY in {row.id for row in runs.tables.benchmark(baselines[0]).rows}:
            yield At(baselines[0].benchmark, MAJORITY), task


def _named(relation: Relation, runs: Runs) -> Iterator[tuple[At, str]]:
    """The rows on tasks that a relation names."""
    tables = runs.tables
    match relation:
        case Sends() | CostShare(of="bytes" | "flops") | Cheaper(target=None):
            return
        case Reaches(target=Target(only_printed=True)) if runs.scale.id != PAPER:
            return
        case Reaches(rows=rows, target=target):
            yield from ((at, task) for at in rows for task in target.percent)
        case AtMost(rows=rows, tasks=tasks):
            yield from ((at, task) for at in rows for task in tables.tasks(at, tasks))
        case Same(row=row, other=other, tasks=tasks):  # one task is enough: code makes two runs equal
            yield from ((at, task) for task in tables.tasks(row, tasks)[:1] for at in (row, other))
        case AverageBetter(rows=rows):
            pairs = [(row, chosen[row.benchmark]) for chosen in relation.choices() for row in rows]
            yield from ((at, task) for pair in pairs for task in tables.tasks(pair[0]) for at in pair)
        case Similar(row=row, other=other) | NotTold(row=row, other=other):
            idle = tables.idle(other) if isinstance(relation, Similar) else ()
            places = tables.pairs((row,), (other,), relation.tasks, relation.scores)
            yield from ((at, pair.task) for pair in places for at in (row, other, *idle))
        case Better() | Cheaper() | CostShare():
            places = tables.pairs(relation.rows, relation.than, relation.tasks, getattr(relation, "scores", ()))
            yield from ((at, pair.task) for pair in places for at in pair.rows)


def _missing(runs: Runs, at: At, task: str, seeds: int) -> Missing:
    table, row, column = runs.tables.benchmark(at), runs.tables.row(at), runs.tables.column(at, task)
    done = {record.cell.seed for record in runs.of(at, task)}
    missing = [seed for seed in range(seeds) if seed not in done] if column is not None else []
    cells = (table.cell(row, column, runs.scale, seed) for seed in missing if column is not None)
    return Missing(at, task, tuple(cells), seeds)
