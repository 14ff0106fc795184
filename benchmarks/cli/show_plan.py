"""The plan as a table in the terminal: tasks with equal numbers in one line, rows without traffic in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.cli.select import Selection, stages_of
from benchmarks.costs import WirePlan
from benchmarks.overrides import expanded
from reports.pages.text import human_bytes, human_seconds

if TYPE_CHECKING:
    from benchmarks.cli.plan import Plan, Planned

_BOTH = "uplink + downlink"
_HEADINGS = ("Task", "Method", "Rounds", "per round *", f"{_BOTH}, per round", f"{_BOTH}, all rounds", "one-time")
_FEW = 3  # tasks that are named in one line


def show(plan: Plan) -> None:
    """Print the table, hours, and notes."""
    chosen, paper, total = plan.chosen, plan.chosen.benchmark.paper, plan.total
    count, done = len(plan.entries) * len(chosen.seeds), plan.finished_cells
    unique = "" if len(plan.unique) == count else f", {len(plan.unique)} unique"
    label = chosen.benchmark.label(chosen.scale, chosen.columns)
    table = Table(title=f"{chosen.title}: {count} cells{unique}, {done} finished ({label})", show_footer=True)
    both = human_bytes(total["up_bytes"] + total["down_bytes"], paper.gigabyte)
    footers = [f"Sum, {len(plan.unique)} cells", *[""] * 4, both, human_bytes(total["setup_bytes"], paper.gigabyte)]
    for heading, footer in zip(_HEADINGS, footers, strict=True):
        table.add_column(heading, footer, justify="left" if heading in ("Task", "Method") else "right")
    lines: dict[tuple[str, ...], list[str]] = {}  # method, rounds and sizes -> tasks
    silent = [entry for entry in plan.entries if entry.wire and not _rounds_bytes(entry.wire)]
    order = [row.id for row in chosen.rows]
    for entry in sorted(plan.entries, key=lambda entry: order.index(entry.row.id)):
        if entry not in silent:
            key = entry.row.name, str(entry.cell.training.last_round), *_sizes(plan, entry)
            lines.setdefault(key, []).append(entry.column.name)
    for key, tasks in lines.items():
        all_of_many = len(tasks) == len(chosen.columns) > _FEW
        table.add_row(f"all {len(tasks)} tasks" if all_of_many else ", ".join(tasks), *key)
    Console(width=max(Console().width, 118)).print(table)
    for text in (*_hours(plan), *_notes(plan, silent)):
        print(text)


def _rounds_bytes(wire: WirePlan) -> int:
    return wire.total.up_bytes + wire.total.down_bytes


def _sizes(plan: Plan, entry: Planned) -> tuple[str, ...]:
    """The bytes of a row on a task as text."""
    wire, paper = entry.wire, plan.chosen.benchmark.paper
    if wire is None:
        return ("–",) * 4
    counted = paper.counted_bytes(wire, entry.cell)
    sizes = counted, wire.up_bytes + wire.down_bytes, _rounds_bytes(wire), wire.setup_bytes
    return tuple(human_bytes(size, paper.gigabyte) for size in sizes)


def _names(entries: Iterable[Planned]) -> str:
    return ", ".join(dict.fromkeys(entry.row.name for entry in entries))


def _notes(plan: Plan, silent: list[Planned]) -> Iterator[str]:
    """What the table leaves out or does not explain: units, earlier runs, examples, rounds that differ."""
    chosen, entries = plan.chosen, plan.entries
    gigabyte = chosen.benchmark.paper.gigabyte
    for once in dict.fromkeys(entry.wire.setup_bytes for entry in silent if entry.wire):
        but = f" but {human_bytes(once, gigabyte)} one-time" if once else ""
        own = (entry for entry in silent if entry.wire and entry.wire.setup_bytes == once)
        yield f"Nothing is sent{but}: {_names(own)}."
    encoders = " and ".join(dict.fromkeys(entry.cell.backbone for entry in entries))
    convention = chosen.benchmark.paper.bytes_convention
    yield f"* {convention}; derived for {encoders} with {entries[0].cell.clients} clients."
    yield from _units(chosen)
    for name, cells in stages_of(chosen).items():
        yield f"First, once: {name} ({plan.finished.said(cells)})."
    notes: dict[str, list[Planned]] = {}
    for entry in entries:
        if entry.examples is not None:
            text = f"Counted on {entry.column.name}'s {entry.examples:,} training examples"
            notes.setdefault(text, []).append(entry)
        if entry.wire and not entry.wire.alike:
            notes.setdefault(f"A round is the mean of rounds that differ, {entry.column.name}", []).append(entry)
    yield from (f"{note}: {_names(own)}." for note, own in notes.items())
    for reason in dict.fromkeys(entry.reason for entry in entries if entry.reason):
        yield f"– {_names(entry for entry in entries if entry.reason == reason)}: {reason}"
    yield "One-time: the pre-trained model, sent to every client before the first round; the paper leaves it out."


def _units(chosen: Selection) -> Iterator[str]:
    """Options with a unit of their own, in both units, a line for each distinct value."""
    found: dict[str, list[str]] = {}
    defined = chosen.benchmark.scale(chosen.scale.id)
    depths = dict.fromkeys(column.at(chosen.scale, defined).depth for column in chosen.columns)
    for row, (name, unit) in product(chosen.rows, chosen.benchmark.units.items()):
        value = dict(expanded((*row.changes.items(), *chosen.benchmark.overrides))).get(name)
        for depth in depths if value is not None else ():
            shown = chosen.benchmark.shown(name, value, replace(chosen.scale, depth=depth))
            found.setdefault(f"{unit.name[0].upper()}{unit.name[1:]} {shown}", []).append(row.name)
    yield from (f"{text}: {', '.join(names)}." for text, names in found.items())


def _hours(plan: Plan) -> Iterator[str]:
    """The time it takes: from FLOPs where a rate is given, else by the records of similar cells."""
    if plan.args.tflops:
        yield from (f"{name}: {hours:.2f} h" for name, hours in plan.flop_hours.items())
        length = " or ".join(dict.fromkeys(str(entry.cell.training.max_length) for entry in plan.entries))
        yield (
            f"Together {plan.hours:.2f} h, estimated from FLOPs at a sustained {plan.args.tflops:g} TFLOP/s, as if "
            f"every text had {length} tokens, at which texts are cut: an upper bound where texts are shorter. Loading, "
            "checkpoints and the optimiser come on top, and on a GPU small batches are bound by the number of steps."
        )
        return
    unknown, todo = plan.seconds.count(None), len(plan.seconds)
    if not todo:
        yield "Nothing is left to compute."
    if todo > unknown:
        taken = human_seconds(sum(known or 0.0 for known in plan.seconds))
        cells = f"{todo - unknown} cells that are not finished, by records of the same method and task"
        yield f"About {taken} of one process for {cells}."
    if unknown:
        advice = "--tflops N estimates from FLOPs, at N sustained 10^12 operations a second"
        yield f"Of {unknown} cells no record tells how long they take: {advice}."
