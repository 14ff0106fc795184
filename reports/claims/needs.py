"""Runs that claims need and that have no record yet: rows on tasks, by seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from benchmarks.claims import (
    MAJORITY,
    At,
    AtMost,
    AverageBetter,
    Better,
    Claim,
    CostBound,
    Reaches,
    Relation,
    Same,
    Sends,
    Target,
)
from benchmarks.run_config import RunConfig
from reports.claims.cells import Runs, Tables
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
    """A claim's needs. places: rows on tasks; closed: a column's name -> why no record can decide there."""

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
        is_cost = isinstance(relation, CostBound) and relation.target is None
        is_rounds = isinstance(relation, Better) and relation.measure == "rounds"
        is_counted = is_rounds or (isinstance(relation, CostBound) and not is_cost)
        for at, task in _rows_on_tasks(relation, runs):
            column = runs.tables.column(at, task)
            if column is None or runs.scale.id not in {*column.scales} & {*runs.tables.row(at).scales}:
                continue
            if not isinstance(relation, AtMost | Same) and not is_cost:  # scores are evidence only if a gate is open
                if (gate := runs.gate(at, task)).is_shut:
                    closed[column.name] = gate.why
                    continue
                judging = home(runs.tables.benchmark(at))
                rows = {row.id for row in judging.rows} if task in {each.task for each in judging.columns} else ()
                for name in (runs.tables.row(at).yardstick or judging.yardstick).rows:
                    if name in rows:
                        wanted.setdefault((At(judging.id, name), task), SEEDS)
            usual = COUNTED_SEEDS if is_counted and at.row != MAJORITY else SEEDS
            wanted[at, task] = max(usual, wanted.get((at, task), 0))
    entries = [_missing(runs, at, task, seeds or usual) for (at, task), usual in wanted.items()]
    return Needs(claim, len(wanted), tuple(entry for entry in entries if entry.cells), closed)


def _rows_on_tasks(relation: Relation, runs: Runs) -> Iterator[tuple[At, str]]:
    """The rows on tasks with deciding records, and the baselines of the target; () if shapes decide."""
    target: Target | None = getattr(relation, "target", None)
    if isinstance(relation, Reaches) and relation.target.only_published and runs.scale.id != PAPER:
        return
    places = _places(relation, runs.tables)
    yield from places
    baselines = target.baselines if target else ()
    if isinstance(relation, Better) and relation.measure == "rounds" and target is None:
        baselines = relation.than
    for task in dict.fromkeys(task for _, task in places) if baselines else ():
        yield from ((at, task) for at in baselines)
        if MAJORITY in {row.id for row in runs.tables.benchmark(baselines[0]).rows}:
            yield At(baselines[0].benchmark, MAJORITY), task


def _places(relation: Relation, tables: Tables) -> list[tuple[At, str]]:
    """The rows on tasks that a relation names; () if shapes decide it."""
    places: list[tuple[At, str]] = []
    match relation:
        case Sends() | CostBound(of="round" | "run" | "flops" | "time" | "form", target=None):
            pass
        case Reaches(rows=rows):
            places = list(product(rows, relation.target.percent))
        case AtMost(rows=rows, tasks=tasks):
            places = [(at, task) for at in rows for task in tables.tasks(at, tasks)]
        case Same(rows=rows, tasks=tasks):  # one task is enough: code makes two runs equal
            places = [(at, task) for task in tables.tasks(rows[0], tasks)[:1] for at in rows]
        case AverageBetter(rows=rows):
            pairs = [(row, chosen[row.benchmark]) for chosen in relation.choices() for row in tables.independent(rows)]
            places = [(at, task) for pair in pairs for task in tables.tasks(pair[0], relation.tasks) for at in pair]
        case Better() | CostBound():
            is_near = isinstance(relation, Better) and -math.inf < relation.by < 0  # needs rows without a treatment
            for pair in tables.pairs(relation.rows, relation.than, relation.tasks, getattr(relation, "scores", ())):
                idle = tables.idle(pair.other) if is_near else ()
                places += [(at, pair.task) for at in (pair.row, pair.other, *idle)]
    return places


def _missing(runs: Runs, at: At, task: str, seeds: int) -> Missing:
    table, row, column = runs.tables.benchmark(at), runs.tables.row(at), runs.tables.column(at, task)
    done = {record.cell.seed for record in runs.of(at, task)}
    scale = runs.scale_in(at)
    if column is None or scale is None:
        return Missing(at, task, (), seeds)
    cells = (table.cell(row, column, scale, seed) for seed in range(seeds) if seed not in done)
    return Missing(at, task, tuple(cells), seeds)
