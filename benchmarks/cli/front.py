"""The command that renders the first page from committed records."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.cli.finished import Finished
from benchmarks.cli.paper import audited, judged
from benchmarks.dry_run.shapes import derive_for
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark
from benchmarks.registry import benchmark, benchmark_ids, columns_of
from benchmarks.results import RunResult, read_folders, write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reports.front.state import Headline, Standing

PICTURED = "fedsplitbert-table3", "mrpc", "test/accuracy"


def front_command(args: argparse.Namespace) -> int:
    """Say in a file how far every paper is reproduced at a scale, and what was found."""
    from reports.front.state import front_markdown
    from reports.pages.files import update_readme
    from reports.pages.plots import render

    records = read_folders(args.records)
    by_paper = tables_by_paper()
    standings = standings_at(args.scale, by_paper, records)
    if not standings:
        raise UserError(f"--scale: expected one that a table has, such as lite, found {args.scale!r}")
    if args.picture:
        write_bytes(args.picture, *render(_picture(by_paper, args.scale, records), "png"))
    update_readme(args.readme, front_markdown(standings, args.scale))
    print(f"updated {args.readme}")
    return 0


def tables_by_paper() -> dict[str, list[Benchmark]]:
    """A paper's id -> its tables and figures."""
    found: dict[str, list[Benchmark]] = {}
    for table in map(benchmark, benchmark_ids()):
        found.setdefault(table.paper.id, []).append(table)
    return found


def standings_at(
    scale: str, by_paper: Mapping[str, Sequence[Benchmark]], records: Sequence[RunResult]
) -> list[Standing]:
    """How far every paper is reproduced at a scale, of those that have it."""
    from reports.front.state import Standing

    standings, finished = [], Finished([record.cell for record in records], scale)
    for paper, tables in by_paper.items():
        at = {table.id: own for table in tables for own in table.scales if own.id == scale}
        if not at:
            continue
        cells = {table.place: finished.of(table, at[table.id]) for table in tables if table.id in at}
        judgements = judged(paper, next(iter(at.values())), records)
        page, studies = f"benchmarks/{paper}/README.md", list(_studies(tables, scale, records))
        standings.append(Standing(tables[0].paper, page, cells, judgements, audited(paper, records), studies))
    return standings


def _studies(tables: Sequence[Benchmark], scale: str, records: Sequence[RunResult]) -> Iterator[Headline]:
    """What tables whose view has something for the first page found."""
    from reports.evidence.records import request_for
    from reports.front.state import MEASURED, Headline
    from reports.views import has_finding, page

    for table in tables:
        if has_finding(table) and scale in {own.id for own in table.scales}:
            said, numbers = page(request_for(table, table.scale(scale), records)).finding or ("", "")
            if said:
                yield Headline(said, MEASURED, numbers, note=f"{table.place}, 95 % CIs (n)", study=table.id)


def _picture(
    by_paper: Mapping[str, Sequence[Benchmark]], scale: str, records: Sequence[RunResult]
) -> Callable[[], Figure]:
    """The picture of the table, task and score that PICTURED names."""
    from reports.evidence.records import request_for
    from reports.front.picture import front_picture

    table_id, task, score = PICTURED
    table = next(table for tables in by_paper.values() for table in tables if table.id == table_id)
    (column,) = columns_of(table, [task])
    rows = [row for row in table.rows_at(table.scale(scale)) if row.id not in table.yardstick.rows]
    request = request_for(table, table.scale(scale), records, rows, [column], derive=derive_for(table))
    return partial(front_picture, request, column, score, baseline="fedavg", reference="local-majority")
