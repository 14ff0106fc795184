"""The command `sweep`: tune settings on validation data. It reports missing inputs before it loads torch."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace

from benchmarks import api
from benchmarks.cli.arguments import machine, selection
from benchmarks.errors import UserError
from benchmarks.running.requirements import require_inputs
from benchmarks.sweeps.tuning import read_sweep


def sweep_command(args: argparse.Namespace) -> int:
    """Try settings on validation data, write the outcome, and print the command that uses the best values."""
    chosen = selection(args)
    search = chosen.benchmark.search(chosen.scale)
    if args.adopt and args.grid:
        raise UserError("--adopt: expected the definition's grid, found --grid; leave out one of the two")
    if args.adopt and search.chosen is None:
        at = f"{chosen.benchmark.id} at scale {chosen.scale.id}"
        raise UserError(
            f"--adopt: expected a definition with a file for choices, found none for {at}; leave out --adopt"
        )
    options = api.settings(**machine(args))
    rows = [row for row in chosen.rows if args.grid or row.id in search.grids]
    require_inputs(replace(chosen, rows=rows).runs() if rows else [], options, lambda cell, with_weights: False)
    read_sweep(options.results_dir / chosen.sweep_file)  # fail on a damaged file now, not after hours of training
    from benchmarks.cli.trials import tune  # loads torch, Optuna and MLflow

    tune(chosen, options, args, f"The table with the best values:\n  {_command(args)}")
    return 0


def _command(args: argparse.Namespace) -> str:
    """The command that runs the table with the best values."""
    seeds = f"{args.seeds[0]}-{args.seeds[-1]}" if args.seeds[0] else str(len(args.seeds))
    given = {
        "--scale": args.scale,
        "--tasks": ",".join(args.tasks),
        "--methods": ",".join(args.methods),
        "--seeds": seeds if args.seeds != range(1) else "",
        "--seed": "" if args.seed is None else str(args.seed),
        "--backbone": args.backbone,
        "--data-dir": args.data_dir,
        "--results-dir": "" if str(args.results_dir) == "results" else args.results_dir,
    }
    flags = [text for flag, value in given.items() if value for text in (flag, str(value))]
    changes = [text for change in args.set for text in ("--set", change)]
    changes += [text for folder in args.include for text in ("--include", str(folder))]
    return shlex.join(["python", "-m", "benchmarks", "run", args.id, *flags, "--from-sweep", *changes])
