"""Commands on finished records: report, import."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.cli.select import Selection, selection, settings
from benchmarks.errors import UserError
from benchmarks.record import RunRecord, read_records, write_record
from benchmarks.registry import benchmark_ids
from benchmarks.settings import Settings, require_writable

if TYPE_CHECKING:
    from reports.comparison import Comparison


def report_command(words: argparse.Namespace) -> int:
    """Render what has been run; without an id every benchmark and scale that has records."""
    folder = words.records or words.results_dir / "records"
    if not folder.is_dir():
        raise UserError(f"no records in {folder}: run a benchmark first, or name their folder with --records")
    records = list(read_records(folder))
    made = Settings(results_dir=words.results_dir)
    require_writable(made.results_dir)
    chosen = _with_records(words, records)
    if not chosen:
        raise UserError(f"no record in {folder} belongs to what was asked for: run it first")
    comparisons = [show_report(part, records, made, words.score) for part in chosen]
    if words.readme:
        from reports.readme import render_state, update_readme

        update_readme(words.readme, render_state(comparisons))
        print(f"updated {words.readme}")
    return 0


def _with_records(words: argparse.Namespace, records: Sequence[RunRecord]) -> list[Selection]:
    found = []
    scales = [words.scale] if words.scale else sorted({record.cell.scale for record in records})
    for benchmark_id in [words.id] if words.id else benchmark_ids():
        for scale in scales:
            part = selection(argparse.Namespace(**{**vars(words), "scale": scale}), benchmark_id)
            seeds = sorted({record.cell.seed for record in records})
            specs = {cell.spec_id for _, _, cell in part.benchmark.cells(part.scale, seeds, part.rows, part.columns)}
            if any(record.cell.spec_id in specs for record in records):
                found.append(part)
    return found


def show_report(chosen: Selection, records: Sequence[RunRecord], made: Settings, score_at: str = "last") -> Comparison:
    """Print a comparison, write its files and return it."""
    from rich.console import Console

    from reports.comparison import compare
    from reports.render.terminal import print_comparison
    from reports.write import write_report

    comparison = compare(chosen.benchmark, chosen.scale, records, chosen.rows, chosen.columns, score_at)
    print_comparison(comparison, Console())
    folder = made.results_dir / "reports" / chosen.benchmark.id / chosen.scale.id
    write_report(comparison, folder)
    print(f"Written to {folder}: table.md, table.tex, table.csv, plot.png, plot.svg")
    return comparison


def import_command(words: argparse.Namespace) -> int:
    """Take in records from a folder, each checked, and bring MLflow up to date."""
    if not words.folder.is_dir():
        raise UserError(f"{words.folder}: expected a folder of records, found none")
    made = settings(words)
    records = list(read_records(words.folder))
    known = {path.name for path in made.records_dir.glob("*.json")}
    for record in records:
        write_record(made.records_dir, record)
    new = sum(record.file_name not in known for record in records)
    print(f"{new} records taken in, {len(records) - new} were there already")
    return 0
