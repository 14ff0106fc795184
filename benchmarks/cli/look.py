"""Commands that only look: list, show."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence

from benchmarks.cli.finished import Finished, recorded_cells
from benchmarks.cli.select import Selection
from benchmarks.experiment import Benchmark
from benchmarks.overrides import changeable, expanded
from benchmarks.registry import benchmark, benchmark_ids, folder_of

_WIDTH = 80
_IN_PRINT = {True: "", False: " (not in print)"}


def list_command(args: argparse.Namespace) -> int:
    """All benchmarks, a line each."""
    if args.ids:
        print("\n".join(benchmark_ids()))
        return 0
    every = [benchmark(benchmark_id) for benchmark_id in benchmark_ids()]
    folders = [*(folder_of(found.paper.id) / "records" for found in every), args.results_dir / "records"]
    finished = Finished(recorded_cells(folders), args.scale)
    wide = max(len(found.id) for found in every)
    for found in every:
        at = [scale for scale in found.scales if scale.id == args.scale]
        run = "{}/{}".format(*finished.of(found, at[0])) if at else "–"
        print(f"{found.id:{wide}} {run:>7} {_title(found, _WIDTH - wide - 9)}")
    printed = sum(found.is_printed for found in every)
    papers = len({found.paper.id for found in every})
    print(f"\n{printed} tables and figures of {papers} papers, and {len(every) - printed} studies beside them")
    print(f"Numbers: cells with a record, of all at scale {args.scale}; --scale names another one")
    print("Whole titles, methods and tasks: `show ID`")
    return 0


def _title(found: Benchmark, width: int) -> str:
    """Place and title in so many characters."""
    text = f"{found.place}: {found.title}"
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def show_command(args: argparse.Namespace) -> int:
    """One benchmark, whole."""
    from benchmarks.cli.select import stages_of

    found = benchmark(args.id)
    print(f"{found.id}: {found.paper.name}, {found.place}\n{found.title}\n{found.paper.citation}\n")
    print("Methods")
    for row in found.rows:
        others = [found.shown(name, value) for name, value in expanded(row.changes.items()) if name != "algorithm"]
        others += [f"begins from {row.begins}"] if row.begins else []
        others += [f"on {row.backbone}"] if row.backbone else []
        line = f"  {row.id:18} {', '.join((f'{row.name}: {row.algorithm}', *others))}{_IN_PRINT[row.printed]}"
        print(f"{line}{_only_at(found, row.scales)}")
        if row.note:
            print(f"  {'':18} {row.note}")
    _show_equations(found)
    print("\nTasks")
    for column in found.columns:
        about = f", in place of {column.instead_of}" if column.instead_of else ""
        about += _only_at(found, column.scales)
        print(f"  {column.task:18} {column.name}: {', '.join(column.scores)}{about}")
    print("\nScales")
    for scale in found.scales:
        print(f"  {scale.id:18} {scale.label}")
        for stage in stages_of(Selection(found, scale, found.rows_at(scale), found.columns_at(scale), [0])):
            print(f"  {'':18} first, once: {stage}")
    first = found.base(found.rows[0], found.columns[0], found.scales[0], 0)
    names = ", ".join(changeable(first))
    print("\nSettings, by --set name=value")
    print(textwrap.fill(names, 110, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
    print("\nDeviations and choices where the paper is silent")
    for deviation in found.deviations:
        if scales := _of_its_own(found, deviation.scales):
            text = f"{deviation.text} ({', '.join(scales)})"
            print(textwrap.fill(text, 110, initial_indent="  - ", subsequent_indent="    "))
    print(f"\nBytes: {found.paper.bytes_convention}. Reported values: {found.published_csv.name}")
    return 0


def _of_its_own(found: Benchmark, scales: Sequence[str]) -> list[str]:
    """Those scales that the benchmark has."""
    return [scale.id for scale in found.scales if scale.id in scales]


def _only_at(found: Benchmark, scales: Sequence[str]) -> str:
    """The scales of what is not at all of the benchmark's."""
    own = _of_its_own(found, scales)
    return "" if len(own) == len(found.scales) else f" (at {', '.join(own)})"


def _show_equations(found: Benchmark) -> None:
    """A paper's equations of bytes, and its formulas of a client's computation, where the benchmark has any."""
    if found.closed_forms:
        print("\nEquations of cost")
        for row_id, form in found.closed_forms.items():
            print(f"  {row_id:22} equation {form.equation}: {form.text}")
    if found.costing:
        print(f"\nFormulas of a client's computation, over {found.costing.baseline}'s")
        for name, work in found.costing.forms.items():
            print(textwrap.fill(f"{name:22} {work.text}", 110, initial_indent="  ", subsequent_indent=" " * 25))
