"""The commands `list` and `show`, which load no heavy library."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.encoders.backbones import BACKBONES, note_of
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Scale
from benchmarks.overrides import changeable, expanded, field_value
from benchmarks.registry import benchmark, benchmark_ids, folder_of, with_backbone
from benchmarks.run_config import RunConfig, canonical_json
from benchmarks.selection import FinishedCells, Selection, recorded_cells

_WIDTH, _WIDE, _NARROW = 80, 110, 20


def list_command(args: argparse.Namespace) -> int:
    """Print a line per benchmark, with its number of finished cells."""
    if args.results_dir.is_file():
        raise UserError(f"--results-dir {args.results_dir}: expected a folder, found a file; name your runs' folder")
    tables = [benchmark(benchmark_id) for benchmark_id in benchmark_ids()]
    papers = {table.paper.id for table in tables}
    folders = [*(folder_of(paper) / "records" for paper in papers), args.results_dir / "records"]
    finished = FinishedCells(recorded_cells(folders), args.scale)
    wide, across = max(len(table.id) for table in tables), shutil.get_terminal_size((_WIDTH, 24)).columns
    here = f"and {args.results_dir}" if folders[-1].is_dir() else f"({args.results_dir} has none)"
    print(f"Cells with results / all cells at scale {args.scale}, from the committed records {here}")
    print("A cell is a method on a task, with one or more seeds; –: no such scale\n")
    for table in tables:
        at = table.scales_by_id.get(args.scale)
        count = "{}/{}".format(*finished.of(table, at)) if at else "–"
        title = textwrap.shorten(f"{table.place}: {table.title}", max(_NARROW, across - wide - 9), placeholder="…")
        print(f"{table.id:{wide}} {count:>7} {title}")
    published = [table for table in tables if table.is_printed]
    studies, with_tables = len(tables) - len(published), len({table.paper.id for table in published})
    print(f"\n{len(published)} tables and figures of {with_tables} papers, and {studies} additional studies")
    print("A cell that several tables share counts in each.")
    print("Methods, tasks, settings: `python -m benchmarks show ID`; other scales: --scale")
    return 0


def show_command(args: argparse.Namespace) -> int:
    """Print everything about one benchmark."""
    table = benchmark(args.id)
    print(f"{table.id}: {table.paper.name}, {table.place}\n{table.title}\n{table.paper.citation}\n\nMethods")
    printed = any(row.printed for row in table.rows)
    for row in (*table.rows, *table.without_training):
        facts = [table.shown(name, value) for name, value in expanded(row.changes.items()) if name != "algorithm"]
        facts += [f"begins from {row.begins}"] if row.begins else []
        facts += [f"needs only the runs of {row.corrects}"] if row.corrects else []
        facts += [f"on {row.backbone}"] if row.backbone else []
        text = ", ".join((f"{row.name}: {row.algorithm}", *facts))
        about = "" if row.printed or not printed else " (not in the paper)"
        print(f"  {row.id:18} {text}{about}{_only_at(table, row.scales)}")
        if row.note:
            print(f"  {'':18} {row.note}")
    if table.closed_forms:
        print("\nCost equations")
        for row_id, form in table.closed_forms.items():
            print(f"  {row_id:22} equation {form.equation}: {form.text}")
    if table.costing:
        print(f"\nFormulas for a client's computation, relative to {table.costing.baseline}")
        _print_wrapped((f"{name:22} {work.text}" for name, work in table.costing.forms.items()), "  ", 25)
    print("\nTasks")
    for column in table.columns:
        about = f", in place of {column.instead_of}" if column.instead_of else ""
        print(f"  {column.task:18} {column.name}: {', '.join(column.scores)}{about}{_only_at(table, column.scales)}")
    print("\nScales")
    scales = [with_backbone(scale, args.backbone) for scale in table.scales]
    for scale in scales:
        print(f"  {scale.id:18} {scale.label}")
        for line in _before_training(table, scale, args.backbone):
            print(f"  {'':18} {line}")
    encoders = dict.fromkeys(cell.backbone for scale in scales for _, _, cell in table.cells(scale, [0]))
    print(f"\nEncoders\n  {', '.join(encoders)}")
    _print_wrapped(dict.fromkeys(filter(None, map(note_of, encoders))), "  ", 2)
    scale, column = scales[0], table.columns_at(scales[0])[0]
    cells = {row.name: table.cell(row, column, scale, 0) for row in table.rows_at(scale) if row.printed or not printed}
    name, cell = max(cells.items(), key=lambda entry: entry[1].training.rounds)
    print(f"\nSettings of {name} on {column.name} at scale {scale.id} (change them with --set name=value)")
    _print_wrapped([", ".join(f"{name}={_value(cell, name)}" for name in changeable(cell))], "  ", 2)
    deviations = [(deviation.text, _scales(table, deviation.scales)) for deviation in table.deviations]
    if any(scales for _, scales in deviations):
        print("\nDeviations and choices where the paper is silent")
        _print_wrapped((f"{text} ({', '.join(scales)})" for text, scales in deviations if scales), "  - ", 4)
    print(f"\nBytes: {table.paper.bytes_convention}.")
    return 0


def _value(cell: RunConfig, name: str) -> str:
    """A field's value as `--set` takes it."""
    try:
        value = field_value(cell, name)
    except KeyError:  # options.<name>
        return "…"
    return value if isinstance(value, str) else canonical_json(value)


def _before_training(table: Benchmark, scale: Scale, requested: str | None) -> Iterator[str]:
    """What a scale's runs start from, besides the encoder's files."""
    head = table.base(table.rows[0], table.columns[0], scale, 0).head
    drawn = BACKBONES[scale.backbone].drawn(head) if scale.backbone in BACKBONES else ""
    if requested and scale.backbone not in BACKBONES:
        from benchmarks.encoders.loading import drawn_parts, locate  # loads torch

        drawn = ", ".join(drawn_parts(locate(requested), head))
    if drawn:
        yield f"randomly initialised: {drawn}"
    for stage in Selection(table, scale, table.rows_at(scale), table.columns_at(scale), [0]).stages():
        yield f"first, once: {stage}"


def _print_wrapped(texts: Iterable[str], first: str, indent: int) -> None:
    for text in texts:
        print(textwrap.fill(text, _WIDE, initial_indent=first, subsequent_indent=" " * indent, break_on_hyphens=False))


def _scales(table: Benchmark, scales: Sequence[str]) -> list[str]:
    return [scale.id for scale in table.scales if scale.id in scales]


def _only_at(table: Benchmark, scales: Sequence[str]) -> str:
    """The scales of a row or task, if it lacks some of the benchmark's scales."""
    at = _scales(table, scales)
    return "" if len(at) == len(table.scales) else f" (at {', '.join(at)})"
