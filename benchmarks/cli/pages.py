"""The commands `front`, which renders README.md, and `site`, which renders all pages."""

from __future__ import annotations

import argparse
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.campaign.protocol import SCALE, campaign, study_of
from benchmarks.campaign.studies import blocks_of
from benchmarks.dry_run.cache import keep_in
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark
from benchmarks.papers import cells_at, standings_at, tables_by_paper
from benchmarks.registry import columns_of, folder_of, is_included
from benchmarks.results import RunResult, read_folders
from benchmarks.run_config import SCALES
from benchmarks.running.process import code_revision
from benchmarks.running.run_options import require_writable
from fedsim.errors import plural
from fedsim.files import read_text, write_bytes
from reports.evidence.records import request_for
from reports.front.picture import front_picture
from reports.front.readme import update_readme
from reports.front.state import Standing, coverage, distinct, front_markdown
from reports.pages.plots import render
from reports.site.build import build, require_replaceable
from reports.site.site_data import Dossier, SiteData

PICTURED = "fedsplitbert-table3", "mrpc", "test/accuracy"  # table, task and score of README.md's figure
UNRUN = "lite"  # the scale to show without any record
Sweeps = Mapping[tuple[str, str], Mapping[str, str]]  # (table, scale) -> file name -> text

MEANING = {
    "demo": "generated data and tiny encoders: checks that everything runs; never compared with published values",
    "lite": "real data and small encoders: judged by orderings, ratios and communication costs, not by score levels",
    "literal": "real data and small encoders with the papers’ settings",
    "paper": "the papers’ encoders, data and budgets: comparable with published values",
}


def front_command(args: argparse.Namespace) -> int:
    """Write each paper's reproduction status and findings at a scale to a file, and the studies next to it."""
    records, by_paper = read_folders(args.records), tables_by_paper()
    standings = standings_at(args.scale, by_paper, records)
    if not standings:
        raise UserError(f"--scale: expected one that a table has, such as lite, found {args.scale!r}")
    picture = ""
    if args.picture:
        figure = _picture(by_paper, args.scale, records)
        write_bytes(args.picture, *render(figure, "png"))
        title = figure().get_suptitle().replace("\n", " ")
        picture = f"![{title}]({Path(os.path.relpath(args.picture, args.readme.parent)).as_posix()})"
    run = _coverage(standings, by_paper, records, args.scale)
    update_readme(args.readme, front_markdown(standings, run, args.scale, picture))
    print(f"updated {args.readme}")
    for study in filter(None, map(study_of, by_paper)):
        page = args.readme.parent / study.page
        if args.scale == SCALE and page.is_file():
            for name, text in blocks_of(study, records).items():
                update_readme(page, text, name)
            print(f"updated {page}")
    return 0


def _coverage(
    standings: Iterable[Standing],
    by_paper: Mapping[str, Sequence[Benchmark]],
    records: Sequence[RunResult],
    scale: str,
) -> str:
    """What has been run: at a scale, with the papers' encoders, and in the campaign without papers' tables."""
    papers = (cells_at(SCALES[-1], tables, records)[0] for tables in by_paper.values())
    at_paper = distinct(table for paper in papers for table in paper.values())
    return coverage(standings, at_paper, scale, campaign().counted if scale == SCALE else (0, 0))


def _picture(
    by_paper: Mapping[str, Sequence[Benchmark]], scale: str, records: Sequence[RunResult]
) -> Callable[[], Figure]:
    table_id, task, score = PICTURED
    table = next(table for tables in by_paper.values() for table in tables if table.id == table_id)
    (column,) = columns_of(table, [task])
    rows = [row for row in table.rows_at(table.scale(scale)) if row.id not in table.yardstick.rows]
    request = request_for(table, table.scale(scale), records, rows, [column])
    return partial(front_picture, request, column, score, baseline="fedavg", reference="local-majority")


def site_command(args: argparse.Namespace) -> int:
    """Write the site for the committed records and the results folder, or for the named folders."""
    if args.scale not in (None, *SCALES):
        raise UserError(f"--scale: expected one of {', '.join(SCALES)}, found {args.scale!r}")
    out = args.out or args.results_dir / "site"
    require_replaceable(out)
    require_writable(out.parent, "--out")
    keep_in(args.results_dir)
    by_paper = tables_by_paper()
    folders = [folder_of(paper) / "records" for paper in by_paper] + [args.results_dir / "records"]
    records = read_folders(args.records or [folder for folder in folders if folder.is_dir()])
    shown = [record for record in records if args.scale in (None, record.cell.scale)]
    sweeps: dict[tuple[str, str], dict[str, str]] = {}
    for tables in by_paper.values():
        for table in tables:
            for scale in table.scales:
                here = args.results_dir / "reports" / table.id / scale.id / "sweep"
                committed = folder_of(table.paper.id) / "sweeps" / table.id / scale.id
                for folder in (folder for folder in (committed, here) if (folder / "trials.csv").is_file()):
                    texts = sorted(path for path in folder.iterdir() if path.suffix in (".csv", ".svg"))
                    sweeps[table.id, scale.id] = {path.name: read_text(path) for path in texts}
    index, pages, size = build(site_data(shown, by_paper, args.scale, sweeps, args.include), out)
    print(f"{plural(pages, 'page')} of {plural(len(shown), 'record')}, {size / 1e6:.1f} MB: open {index}")
    return 0


def site_data(
    records: Sequence[RunResult],
    by_paper: Mapping[str, Sequence[Benchmark]],
    scale: str | None,
    sweeps: Sweeps,
    include: Iterable[Path] = (),
) -> SiteData:
    """All data of the site; the scale with the most records comes first. include: the folders of the user's tables."""
    counts = Counter(record.cell.scale for record in records)
    scales = tuple(sorted((name for name in SCALES if counts[name]), key=lambda name: -counts[name]))
    scales = scales or (scale or UNRUN,)
    by_scale = {name: {each.paper.id: each for each in standings_at(name, by_paper, records)} for name in scales}
    dossiers = []
    for paper, tables in by_paper.items():
        standings = {name: at[paper] for name, at in by_scale.items() if paper in at}
        if standings:
            dossiers.append(_dossier(tables, standings, records, sweeps))
    revision = str(code_revision()["revision"] or "")
    run = _coverage(by_scale[scales[0]].values(), by_paper, records, scales[0])
    folders = tuple(map(str, include))
    included = {table.id: folders for tables in by_paper.values() for table in tables if is_included(table.id)}
    return SiteData(tuple(dossiers), tuple(records), scales, run, revision, MEANING, sweeps, included)


def _dossier(
    tables: Sequence[Benchmark], standings: Mapping[str, Standing], records: Sequence[RunResult], sweeps: Sweeps
) -> Dossier:
    """A paper's tables, at its first scale and at other scales with records."""
    requests = []
    for table in sorted(tables, key=_order):
        for number, scale in enumerate(standings):
            if scale not in table.scales_by_id:
                continue
            request = request_for(table, table.scale(scale), records)
            is_run = any(selection.is_run for selection in request.selections.values())
            if number == 0 or is_run or (table.id, scale) in sweeps:
                requests.append(request)
    summary = folder_of(tables[0].paper.id) / "summary.toml"
    texts = tomllib.loads(read_text(summary)) if summary.is_file() else {}
    return Dossier(tables[0].paper, texts, standings, tuple(requests))


def _order(table: Benchmark) -> tuple[bool, bool, bool, str]:
    """Tables, then figures, then the appendix, then additional studies."""
    return not table.is_printed, table.place.startswith("Appendix"), table.place.startswith("Figure"), table.id
