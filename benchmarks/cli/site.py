"""The command that makes the site: pages of everything that has been run, in one folder."""

from __future__ import annotations

import argparse
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from benchmarks.cli.front import standings_at, tables_by_paper
from benchmarks.dry_run.shapes import derive_client, derive_for
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark
from benchmarks.publication import SCALES
from benchmarks.registry import folder_of
from benchmarks.results import RunResult, read_folders
from fedsim.files import read_text

if TYPE_CHECKING:
    from reports.evidence.records import Request
    from reports.site.material import Dossier, Material, Summary

Sweeps = Mapping[tuple[str, str], Mapping[str, str]]  # (table, scale) -> file name -> text
UNRUN = "lite"  # the scale that is shown where there is no record at all

MEANING = {
    "demo": "generated data and tiny encoders: shows the machinery, is never compared with print",
    "lite": "real data and small encoders: judged by orderings, ratios and bytes; levels differ from print",
    "literal": "real data and small encoders with the papers’ own settings",
    "paper": "the papers’ encoders, data and budgets: comparable with print",
}


def site_command(args: argparse.Namespace) -> int:
    """Write the site of the committed records and the results folder's, or of the folders that are named."""
    from reports.site.build import build

    by_paper = tables_by_paper()
    own = [folder_of(paper) / "records" for paper in by_paper] + [args.results_dir / "records"]
    records = read_folders(args.records or [folder for folder in own if folder.is_dir()])
    shown = tuple(record for record in records if args.scale in (None, record.cell.scale))
    out = args.out or args.results_dir / "site"
    made = build(material(shown, by_paper, args.scale, swept(by_paper, args.results_dir)), out)
    sizes = f"{made.other_bytes / 1e6:.1f} MB, and {made.data_bytes / 1e6:.1f} MB of records and data"
    print(f"{made.pages} pages of {len(shown)} records, {sizes}: open {made.index}")
    return 0


def swept(by_paper: Mapping[str, Sequence[Benchmark]], results_dir: Path) -> Sweeps:
    """What the sweeps of tables left, in words and pictures: in the results folder, else beside a paper's records."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for paper, tables in by_paper.items():
        for table, scale in ((known, scale) for known in tables for scale in known.scales):
            own = results_dir / "reports" / table.id / scale.id / "sweep"
            folders = (own, folder_of(paper) / "sweeps" / table.id / scale.id)
            folder = next((place for place in folders if (place / "trials.csv").is_file()), None)
            if folder is not None:
                files = sorted(path for path in folder.iterdir() if path.suffix in (".csv", ".svg"))
                found[table.id, scale.id] = {path.name: read_text(path) for path in files}
    return found


def material(
    records: Sequence[RunResult],
    by_paper: Mapping[str, Sequence[Benchmark]],
    scale: str | None = None,
    sweeps: Sweeps = MappingProxyType({}),
) -> Material:
    """Everything that the site shows; the scale that has most records comes first. UserError for an unknown scale."""
    from benchmarks.running.environment import code_revision
    from reports.site.material import Material

    if scale is not None and scale not in SCALES:
        raise UserError(f"--scale: expected one of {', '.join(SCALES)}, found {scale!r}")
    counts = Counter(record.cell.scale for record in records)
    scales = tuple(sorted((name for name in SCALES if counts[name]), key=lambda name: -counts[name]))
    scales = scales or (scale or UNRUN,)
    standings = {name: standings_at(name, by_paper, records) for name in scales}
    dossiers = []
    for paper, tables in by_paper.items():
        at = {name: own for name, found in standings.items() for own in found if own.paper.id == paper}
        if at:
            dossiers.append(_dossier(tables, at, records, sweeps))
    return Material(tuple(dossiers), tuple(records), scales, str(code_revision()["revision"] or ""), MEANING, sweeps)


def _dossier(
    tables: Sequence[Benchmark], standings: Mapping[str, object], records: Sequence[RunResult], sweeps: Sweeps
) -> Dossier:
    from reports.site.material import Dossier

    requests = []
    for table in sorted(tables, key=_order):
        for place, name in enumerate(standings):
            found = _request(table, name, records)
            if found is None:
                continue
            is_run = any(selection.is_run for selection in found.selections.values())
            if place == 0 or is_run or (table.id, name) in sweeps:
                requests.append(found)
    return Dossier(tables[0].paper, _summary(tables[0].paper.id), standings, tuple(requests))  # type: ignore[arg-type]


def _order(table: Benchmark) -> tuple[bool, bool, bool, str]:
    """Tables, then figures, then the appendix, then studies beside the paper."""
    return not table.is_printed, table.place.startswith("Appendix"), table.place.startswith("Figure"), table.id


def _request(table: Benchmark, scale: str, records: Sequence[RunResult]) -> Request | None:
    from reports.evidence.records import request_for

    known = {own.id: own for own in table.scales}
    if scale not in known:
        return None
    return request_for(table, known[scale], records, derive=derive_for(table), derive_client=derive_client)


def _summary(paper: str) -> Summary:
    """A paper's own words for its report; none where nobody has written them."""
    from reports.site.material import Summary

    path: Path = folder_of(paper) / "summary.toml"
    if not path.is_file():
        return Summary()
    try:
        found = tomllib.loads(read_text(path))
        return Summary(**{name: tuple(str(text) for text in texts) for name, texts in found.items()})
    except (ValueError, TypeError) as error:
        expected = "lists of paragraphs named scope, methodology, easy and difficult"
        raise UserError(f"{path}: expected {expected}, found something else ({error}); mend the file") from None
