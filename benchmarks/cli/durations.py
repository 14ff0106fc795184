"""The command `time`: estimate the time of recorded runs on a given network and device."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from benchmarks.cli.arguments import seeds_of, selection
from benchmarks.costs.networks import DEVICES, NETWORKS, Deployment, preset, wire_of
from benchmarks.dry_run.cache import keep_in
from benchmarks.dry_run.shapes import derive_work
from benchmarks.errors import UserError
from benchmarks.results import RunResult, all_stages
from benchmarks.selection import Selection, all_records, of_seeds
from reports.evidence.records import request_for
from reports.evidence.traffic import turns_of
from reports.pages.text import human_seconds

_HEADINGS = ("Task", "Method", "Seeds", "Rounds", "Time", "Per round", "Network's share")
NAMED = 6  # most cells in a note
_ENDLESS = 1e30  # operations per second of an infinitely fast device


def time_command(args: argparse.Namespace) -> int:
    """Print the estimated time of each recorded run."""
    keep_in(args.results_dir)
    chosen, at = selection(args), deployment_of(args)
    records, wanted = all_records(args.results_dir, [chosen.benchmark]), seeds_of(args)
    request = request_for(chosen.benchmark, chosen.scale, of_seeds(records, wanted) if wanted else records)
    table = Table(title=f"{chosen.title}: {at.label}, computed")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in _HEADINGS[:2] else "right")
    left_out = list[str]()
    for column in chosen.columns:
        for row in chosen.rows:
            stages = (all_stages(record, request.find) for record in request.records_of(row, column))
            runs = [each for each in stages if each]  # without runs whose parent runs have no record
            line = _line(runs, args) if runs else None
            if line is None:
                left_out.append(f"{row.name} on {column.name}")
            else:
                table.add_row(column.name, row.name, *line)
    if not table.rows:
        raise UserError(
            f"{chosen.benchmark.id} at scale {chosen.scale.id}: expected records of runs that train by batches, found "
            f"none in {args.results_dir} or among the committed ones. Run `python -m benchmarks run "
            f"{chosen.benchmark.id} --scale {chosen.scale.id}` first, or choose another --scale."
        )
    Console(width=max(Console().width, 110)).print(table)
    print(*_notes(at, left_out, chosen), sep="\n")
    return 0


def deployment_of(args: argparse.Namespace, codec: str = "fp32") -> Deployment:
    """The deployment that the arguments describe, for a run with a codec; UserError for an unknown preset."""
    return Deployment(
        preset("network", NETWORKS, args.network),
        preset("device", DEVICES, args.device),
        preset("server", DEVICES, args.server),
        parallel=not args.in_turn,
        stragglers=args.stragglers,
        slowdown=args.slowdown,
        wire=wire_of(args.wire, codec),
    )


def _line(runs: Sequence[Sequence[RunResult]], args: argparse.Namespace) -> tuple[str, ...] | None:
    """The mean over seeds as strings; None if a method's operations are unknown. runs: each after its parent runs."""
    seconds, transfer, rounds = list[float](), list[float](), list[int]()
    for stage in (stage for stages in runs for stage in stages):
        work, at = derive_work(stage.cell), deployment_of(args, stage.cell.codec)
        if work is None:
            return None
        turns, endless = turns_of(stage, work), replace(at.device, peak=_ENDLESS)
        seconds.append(at.run_seconds(turns))
        transfer.append(replace(at, device=endless, server=endless).run_seconds(turns))
        rounds.append(len(turns))
    mean, each = sum(seconds) / len(runs), sum(seconds) / sum(rounds)
    share = f"{sum(transfer) / sum(seconds):.0%}"
    return str(len(runs)), f"{sum(rounds) / len(runs):g}", human_seconds(mean), human_seconds(each), share


def _notes(at: Deployment, left_out: Sequence[str], chosen: Selection) -> Iterator[str]:
    """What the times include, and which cells are left out."""
    clients = "at the same time" if at.parallel else "one after the other"
    late = f"; {at.stragglers:.0%} of clients take {at.slowdown:g} times as long" if at.stragglers else ""
    yield f"Clients {clients}{late}; {at.wire.name}. Network: {at.network.source}. Device: {at.device.source}."
    yield (
        f"Mean over seeds of whole runs with their parent runs, without the one-time model; full-length texts, "
        f"{at.utilisation:.0%} of the device's peak, server {at.server.name}; each message waits half a round "
        "trip."
    )
    if left_out:
        named = "; ".join(left_out[:NAMED]) + (f" and {len(left_out) - NAMED} more" if len(left_out) > NAMED else "")
        yield f"No record at scale {chosen.scale.id}, or no training by batches: {named}."
