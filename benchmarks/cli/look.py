"""Commands that only look: list, show, plan."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping, Sequence

from benchmarks.backbones import backbone_name
from benchmarks.changes import changeable, expanded
from benchmarks.cli.select import Selection, selection, settings
from benchmarks.costs import WirePlan
from benchmarks.errors import DependsOnTextsError, UserError
from benchmarks.record import read_records
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.settings import Settings
from benchmarks.spec import SCALES, Benchmark, Cell

_IN_PRINT = {True: "", False: " (not in print)"}


def list_command(words: argparse.Namespace) -> int:
    """All benchmarks, a line each."""
    if words.ids:
        print("\n".join(benchmark_ids()))
        return 0
    every = [benchmark(benchmark_id) for benchmark_id in benchmark_ids()]
    for found in every:
        scales = ", ".join(scale.id for scale in found.scales)
        print(f"{found.id:24} {found.paper.name}, {found.place}: {found.title} [{scales}]")
    printed = sum(found.is_printed for found in every)
    papers = len({found.paper.id for found in every})
    print(f"\n{printed} tables and figures of {papers} papers, and {len(every) - printed} studies beside them")
    return 0


def show_command(words: argparse.Namespace) -> int:
    """One benchmark, whole."""
    found = benchmark(words.id)
    print(f"{found.id}: {found.paper.name}, {found.place}\n{found.title}\n{found.paper.citation}\n")
    print("Methods")
    for row in found.rows:
        others = [found.shown(name, value) for name, value in expanded(row.changes.items()) if name != "algorithm"]
        others += [f"begins from {row.begins}"] if row.begins else []
        others += [f"on {row.backbone}"] if row.backbone else []
        line = f"  {row.id:18} {', '.join((f'{row.name}: {row.algorithm}', *others))}{_IN_PRINT[row.printed]}"
        print(f"{line}{_only_at(row.scales)}")
        if row.note:
            print(f"  {'':18} {row.note}")
    _show_equations(found)
    print("\nTasks")
    for column in found.columns:
        stands_in = f", in place of {column.instead_of}" if column.instead_of else ""
        print(f"  {column.task:18} {column.name}: {', '.join(column.scores)}{stands_in}{_only_at(column.scales)}")
    print("\nScales")
    for scale in found.scales:
        print(f"  {scale.id:18} {scale.label}")
        for stage in _stages(Selection(found, scale, found.rows_at(scale), found.columns_at(scale), [0])):
            print(f"  {'':18} first, once: {stage}")
    first = found.base(found.rows[0], found.columns[0], found.scales[0], 0)
    names = ", ".join(changeable(first))
    print("\nSettings, by --set name=value")
    print(textwrap.fill(names, 110, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
    print("\nDeviations and choices where the paper is silent")
    for deviation in found.deviations:
        text = f"{deviation.text} ({', '.join(deviation.scales)})"
        print(textwrap.fill(text, 110, initial_indent="  - ", subsequent_indent="    "))
    print(f"\nBytes: {found.paper.bytes_convention}. Published values: {found.published_csv.name}")
    return 0


def _only_at(scales: Sequence[str]) -> str:
    """The scales of what is not at all of them."""
    return "" if set(scales) == set(SCALES) else f" (at {', '.join(scales)})"


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


def plan_command(words: argparse.Namespace) -> int:
    """What would run, or what claims still need."""
    if words.claims:
        from benchmarks.cli.needs import show_needs

        return show_needs(words)
    return _show_plan(words)


def _show_plan(words: argparse.Namespace) -> int:
    """What would run, and what it would send: derived from the backbone's shapes, without training."""
    from rich.console import Console
    from rich.table import Table

    chosen = selection(words)
    cells = chosen.cells()
    records = words.results_dir / "records"
    finished = {record.cell.spec_id for record in read_records(records)} if records.is_dir() else set()
    done = sum(cell.spec_id in finished for _, _, cell in cells)
    paper = chosen.benchmark.paper
    table = Table(title=f"{chosen.title}: {len(cells)} cells, {done} finished ({chosen.scale.label})")
    for heading in (
        "Task",
        "Method",
        "Rounds",
        "GB a round *",
        "up + down, a round",
        "up + down, all rounds",
        "set-up, once",
    ):
        table.add_column(heading, justify="left" if heading in ("Task", "Method") else "right")
    by_examples: dict[str, list[str]] = {}  # which examples were counted -> for whom
    unknown: dict[str, list[str]] = {}  # why -> whose
    differing: dict[str, list[str]] = {}  # task -> whose rounds send more and less
    for row, column, cell in cells:
        if cell.seed != chosen.seeds[0]:
            continue
        try:
            wire, examples = _wire(cell, words)
        except UserError as error:  # what is sent depends on examples that are not at hand, or on their texts
            unknown.setdefault(str(error), []).append(row.name)
            table.add_row(column.name, row.name, str(cell.training.last_round), *["–"] * 4)
            continue
        if examples is not None:
            by_examples.setdefault(f"{column.name}'s {examples:,} training examples", []).append(row.name)
        if not wire.alike:
            differing.setdefault(column.name, []).append(row.name)
        whole = wire.total
        table.add_row(
            column.name,
            row.name,
            str(cell.training.last_round),
            f"{paper.counted_gigabytes(wire):.2f}",
            f"{(wire.up_bytes + wire.down_bytes) / paper.gigabyte:.3f} GB",
            f"{(whole.up_bytes + whole.down_bytes) / paper.gigabyte:.2f} GB",
            f"{wire.setup_bytes / paper.gigabyte:.2f} GB",
        )
    console = Console(width=max(Console().width, 118))
    console.print(table)
    if words.tflops:
        _say_hours(chosen, words)
    print(f"* {paper.bytes_convention}; derived for {chosen.scale.backbone} with {cells[0][2].clients} clients.")
    first = (
        f"First, once: {stage} ({_how_many(sum(spec_id in finished for spec_id in spec_ids), len(spec_ids))})."
        for stage, spec_ids in _stages(chosen).items()
    )
    for text in (*_units(chosen), *first):
        print(text)
    _say_of_whom({f"Counted on {examples_of}": names for examples_of, names in by_examples.items()})
    _say_of_whom({f"A round is the mean of rounds that differ, {task}": names for task, names in differing.items()})
    for reason, names in unknown.items():
        print(f"– {', '.join(dict.fromkeys(names))}: {reason}")
    print("Set-up is the whole pre-trained model, sent to every client once; the paper leaves it out.")
    return 0


def _units(chosen: Selection) -> list[str]:
    """What methods have of options with a unit of their own, in both units, a line a distinct value."""
    found: dict[str, list[str]] = {}
    for row in chosen.rows:
        for name, unit in chosen.benchmark.units.items():
            value = dict(expanded((*row.changes.items(), *chosen.benchmark.overrides))).get(name)
            if value is not None:
                text = f"{unit.name[0].upper()}{unit.name[1:]} {chosen.benchmark.shown(name, value, chosen.scale)}"
                found.setdefault(text, []).append(row.name)
    return [f"{text}: {', '.join(names)}." for text, names in found.items()]


def _stages(chosen: Selection) -> dict[str, list[str]]:
    """What is run before and is no chosen cell itself: in words -> the spec_id of each seed's."""
    from benchmarks.stages import earlier_stages

    cells = [cell for _, _, cell in chosen.cells()]
    known = {cell.spec_id for cell in cells}
    found: dict[str, list[str]] = {}
    for stage in (stage for cell in cells for stage in earlier_stages(cell)):
        if stage.spec_id not in known:
            known.add(stage.spec_id)
            text = f"{stage.task} by {stage.algorithm} on {stage.backbone}, {stage.training.rounds} rounds"
            found.setdefault(text, []).append(stage.spec_id)
    return found


def _how_many(finished: int, of: int) -> str:
    if finished in (0, of):
        return "finished" if finished else "not run yet"
    return f"{finished} of {of} finished"


def _say_of_whom(notes: Mapping[str, Sequence[str]]) -> None:
    for note, names in notes.items():
        print(f"{note}: {', '.join(dict.fromkeys(names))}.")


def _wire(cell: Cell, words: argparse.Namespace) -> tuple[WirePlan, int | None]:
    """What the rounds send, and on how many examples that was counted; None where it depends on none.

    UserError where it depends on examples and no data are at hand, or on the texts themselves.
    """
    from benchmarks.federation import training_examples
    from benchmarks.planning import wire_plan

    # A row may stand on an encoder of its own, whatever BACKBONE says.
    backbone = words.backbone if words.backbone and backbone_name(words.backbone) == cell.backbone else None
    try:
        return wire_plan(cell, backbone), None
    except DependsOnTextsError:
        if cell.source != "generated" and words.data_dir is None:
            raise UserError(
                "bytes that depend on the number of examples: name the folder of the data with --data-dir (or "
                "DATA_DIR), and they are counted"
            ) from None
        examples = training_examples(cell, Settings(words.results_dir, words.data_dir))
        return wire_plan(cell, backbone, examples), sum(examples)


def _say_hours(chosen: Selection, words: argparse.Namespace) -> None:
    """The training time of all cells together, task by task, at a rate that the user knows of the machine."""
    from benchmarks.effort import estimate_effort

    made = settings(words)
    rate = words.tflops * 1e12
    total = 0.0
    for column in chosen.columns:
        efforts = [estimate_effort(cell, made) for _, other, cell in chosen.cells() if other == column]
        hours = sum(effort.hours(rate) for effort in efforts)
        total += hours
        print(f"{column.name}: {hours:.2f} h, {sum(effort.steps for effort in efforts):,} steps")
    print(
        f"Together {total:.2f} h, estimated from FLOPs (tokens of the data at hand, no padding) at a sustained "
        f"{words.tflops:g} TFLOP/s; loading, checkpoints and the optimiser come on top, and on a GPU small batches are "
        "bound by the number of steps."
    )
