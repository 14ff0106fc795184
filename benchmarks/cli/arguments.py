"""The command line: every command, its options, and the values that they accept. It loads no heavy library."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.errors import UserError
from benchmarks.publication import SCALES
from benchmarks.running.run_options import MOST_SEEDS


class Parser(argparse.ArgumentParser):
    """An argument parser that reports a mistake in one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise UserError."""
        raise UserError(f"{message}. `{self.prog} --help` lists the options.")


@dataclass(frozen=True)
class Command:
    """A command: its help, its module, which has a function <command>_command, and its arguments by name.

    defaults: arguments that the command does not accept but its function reads.
    """

    help: str
    module: str
    arguments: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


# ---- values ------------------------------------------------------------------------------------------------------


def _between(text: str, number: Callable[[str], float], low: float, high: float, expected: str) -> Any:
    try:
        value = number(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
    return value


def positive(text: str) -> int:
    """A whole number above 0."""
    return int(_between(text, int, 1, math.inf, "a whole number above 0"))


def hours(text: str) -> float:
    """A positive number of hours."""
    return float(_between(text, float, 1e-9, 1e9, "a number of hours above 0, such as 2 or 0.5"))


def seed(text: str) -> int:
    """One seed."""
    return int(_between(text, int, 0, MOST_SEEDS, f"a whole number from 0 to {MOST_SEEDS:,}"))


def seeds(text: str) -> range:
    """A number of seeds, "3" for 0, 1 and 2, or the first and the last, "5-10"."""
    match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", text, re.ASCII)
    numbers = [int(number) for number in match.groups() if number is not None] if match else [0]
    first, last = numbers if len(numbers) == 2 else (0, numbers[0] - 1)
    if not first <= last <= MOST_SEEDS or last - first >= MOST_SEEDS:
        expected = f"a number of seeds from 1 to {MOST_SEEDS:,}, or the first and the last, such as 5-10"
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
    return range(first, last + 1)


def rungs(text: str) -> list[int]:
    """Increasing numbers of rounds, separated by commas; "none" for an empty list."""
    rounds = [] if text == "none" else [positive(part) for part in text.split(",")]
    if rounds != sorted(set(rounds)):
        raise argparse.ArgumentTypeError(f"expected increasing numbers of rounds, such as 1,2, found {text!r}")
    return rounds


def names(text: str) -> list[str]:
    """Names, separated by commas."""
    parts = [name.strip() for name in text.split(",") if name.strip()]
    if not parts:
        raise argparse.ArgumentTypeError(f"expected names separated by commas, found {text!r}; omit it for all")
    return parts


def filled(text: str) -> str:
    """A text that is not empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"expected a value, found {text!r}; omit it for the default")
    return text


def place(text: str) -> Path:
    """A path; an empty text would mean the current folder."""
    return Path(filled(text))


# ---- commands ----------------------------------------------------------------------------------------------------

PLACES = ("--data-dir", "--results-dir")
CHOICE = ("--scale", "--tasks", "--methods", "--seeds", "--seed", "--backbone", "--set", "--include", *PLACES)
MACHINE = (
    *("--workers", "--client-workers", "--executor", "--ray-address", "--slurm", "--threads", "--device"),
    *("--lenient", "--no-tracking"),
)
SWEEP = ("--grid", "--range", "--trials", "--rungs", "--pareto", "--adopt")
REPORT = ("--tables", "--notes", "--records", "--readme", "--pictures", "--score")
WHOLE: Mapping[str, Any] = {
    "tasks": [],
    "methods": [],
    "seeds": range(1),
    "backbone": None,
    "set": [],
    "scale": None,
    "notes": False,
}

COMMANDS = {
    "list": Command("list all benchmarks", "look", ("--ids", "--scale", "--results-dir", "--include")),
    "show": Command("show one benchmark: methods, tasks, scales, deviations", "look", ("id", "--include")),
    "plan": Command(
        "show cells, bytes (derived without training) and hours; what claims still need",
        "plan",
        ("id", *CHOICE, "--from-sweep", "--claims", "--tflops", "--json"),
    ),
    "run": Command(
        "compute unfinished cells, then show the results",
        "run",
        ("id", *CHOICE, "--notes", "--from-sweep", *MACHINE),
    ),
    "sweep": Command("tune settings on validation data", "sweep", ("id", *CHOICE, *MACHINE, *SWEEP)),
    "campaign": Command(
        "run the steps of the evidence campaign in order (docs/protocol.md)",
        "campaign",
        ("--hours", "--status", "--keep", "--workers", "--device", *PLACES),
    ),
    "pretrain": Command("train one of this project's encoders", "run", ("backbone_id", *PLACES, *MACHINE), WHOLE),
    "report": Command(
        "show what has been run; write Markdown, LaTeX, CSV and plots",
        "report",
        ("id", *CHOICE, *REPORT, "--from-sweep"),
    ),
    "front": Command(
        "render the first page from records",
        "pages",
        ("--records", "--readme", "--picture", "--scale"),
    ),
    "site": Command(
        "write a website of everything that has been run", "pages", ("--out", "--scale", "--records", *PLACES)
    ),
    "import": Command(
        "add records that were computed elsewhere, also to MLflow", "report", ("folder", *PLACES), {"id": [], **WHOLE}
    ),
    "fetch": Command(
        "copy data and encoders to a folder, for nodes without internet", "fetch", ("id", *CHOICE, "--to", "--lenient")
    ),
    "ui": Command("open the runs in MLflow", "services", ("--port", "--host", *PLACES)),
    "doctor": Command("check this machine: device, data, encoders, tracking", "services", PLACES),
    "data": Command("list datasets: found in DATA_DIR, or where to download them", "services", PLACES),
    "bench": Command(
        "measure speed and memory",
        "services",
        ("parts", "--repeats", "--threads", "--device", "--page", *PLACES),
    ),
}


def build_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser(prog="python -m benchmarks", description="Re-run the tables and figures of federated-BERT papers.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=Parser)
    known = _arguments()
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(name, help=command.help, description=command.help)
        which = subparser.add_mutually_exclusive_group()
        for argument in command.arguments:
            group = which if argument in ("--seeds", "--seed") else subparser
            group.add_argument(argument, **known.get(f"{name} {argument}", known.get(argument, {})))
        subparser.set_defaults(**command.defaults)
    return parser


def _arguments() -> dict[str, dict[str, Any]]:
    """Each argument's options of `add_argument`; "<command> <argument>" where a command has its own."""
    scales, is_flag = ", ".join(SCALES), {"action": "store_true"}
    folders: dict[str, Any] = {"type": place, "action": "append", "default": []}
    data_dir = os.environ.get("DATA_DIR")
    return {
        # what
        "id": {"help": "a benchmark's id, or a paper's for all of its tables"},
        "report id": {"nargs": "*", "help": "ids of benchmarks or papers (default: all)"},
        "backbone_id": {"metavar": "backbone", "help": "such as arabic-mini"},
        "folder": {"type": place, "help": "folder of records"},
        "parts": {"nargs": "*", "metavar": "part", "help": "training, engine, peers, growth, … (default: all)"},
        "--ids": is_flag | {"help": "print only ids, one a line"},
        "--scale": {"type": filled, "help": f"{scales} (default: demo)"},
        "list --scale": {"choices": SCALES, "default": "lite", "help": "count finished cells here (default: lite)"},
        "front --scale": {"type": filled, "default": "lite", "help": f"{scales} (default: lite)"},
        "site --scale": {"type": filled, "help": f"{scales} (default: all that have records)"},
        "report --scale": {"type": filled, "help": f"{scales} (default: all that have records)"},
        "--tasks": {"type": names, "default": [], "help": "such as mrpc,rte (default: all)"},
        "--methods": {"type": names, "default": [], "help": "such as fedavg,fedsplitbert (default: all)"},
        "--seeds": {"type": seeds, "default": range(1), "help": "a number, from seed 0, or 5-10 (default: 1)"},
        "--seed": {"type": seed, "help": "only this seed"},
        "--backbone": {
            "type": filled,
            "default": os.environ.get("BACKBONE") or None,
            "help": "another encoder: folder or hub name",
        },
        "--set": {
            "action": "append", "default": [], "metavar": "FIELD=VALUE",
            "help": "change a field of every cell; a critical layer counts the paper's layers",
        },
        "--include": folders | {"metavar": "FOLDER", "help": "also read the tables in this folder"},
        "--from-sweep": is_flag | {"help": "use the best settings of a sweep in the results folder"},
        # where
        "--data-dir": {"type": place, "default": Path(data_dir) if data_dir else None, "help": "your datasets"},
        "--results-dir": {"type": place, "default": Path(os.environ.get("RESULTS_DIR") or "results")},
        "--to": {"type": place, "required": True, "metavar": "FOLDER", "help": "the folder; use it as DATA_DIR"},
        "--out": {"type": place, "help": "the folder (default: site in the results folder)"},
        "--records": folders | {"help": "folder of records, repeatable (default: of the results folder)"},
        "site --records": folders | {"help": "folder of records, repeatable (default: committed ones and your own)"},
        # plan and report
        "--claims": is_flag | {"help": "what each claim of a paper still needs: cells, seeds (default: 5), hours"},
        "--tflops": {
            "type": float,
            "help": "estimate hours from FLOPs at this sustained rate (default: from records of similar cells)",
        },
        "--json": is_flag | {"help": "print the plan as JSON, with bytes as integers"},
        "--tables": is_flag | {"help": "also print tables, and every claim"},
        "--notes": is_flag | {"help": "also print the notes under the tables"},
        "--readme": {"type": place, "help": "also update the results in this file"},
        "front --readme": {"type": place, "required": True, "help": "the file with the markers"},
        "--pictures": {"type": place, "help": "also write the plots to this folder, for that file"},
        "--picture": {"type": place, "help": "also plot scores against bytes into this file"},
        "--score": {
            "choices": ("chosen", "last", "best"), "default": "chosen",
            "help": "the score at the round chosen on validation data (default), at the last, or at the best round",
        },
        # machine
        "--workers": {"type": positive, "help": "cells computed in parallel (default: cores, or as GPUs have memory)"},
        "--client-workers": {
            "type": positive, "default": 1, "metavar": "N",
            "help": "clients of a cell trained in parallel by Ray; results are the same bits (default: 1)",
        },
        "--executor": {
            "choices": ("serial", "processes", "slurm", "ray"),
            "help": "where cells run (default: processes on this machine)",
        },
        "--ray-address": {"type": filled, "help": "a running Ray cluster, such as head-node:6379 (default: a new one)"},
        "--slurm": {
            "action": "append", "default": [], "metavar": "NAME=VALUE",
            "help": "options of SLURM: partition=gpu, timeout_min=240, gpus_per_node=1, …; cluster=local: no SLURM",
        },
        "--threads": {"type": positive, "default": 1, "help": "threads per cell (default: 1, for the same bits)"},
        "bench --threads": {"type": positive, "help": "threads of a single cell (default: cores)"},
        "--device": {"type": filled, "help": "cpu, cuda or cuda:1 (default: a GPU if there is one)"},
        "--lenient": is_flag | {"help": "skip and count malformed rows, accept missing files"},
        "--no-tracking": is_flag | {"help": "keep records only, without MLflow"},
        "--hours": {"type": hours, "help": "stop after this many hours (default: run to the end)"},
        "--status": is_flag | {"help": "only show what each step still needs"},
        "--keep": is_flag | {"help": "also copy finished records to the committed ones"},
        "--port": {"type": positive, "default": 5055},
        "--host": {"default": "127.0.0.1", "help": "address to listen on (default: this machine only)"},
        "--repeats": {"type": positive, "default": 5, "help": "repetitions of each timing (default: 5)"},
        "--page": {"type": place, "help": "only print this folder's results as Markdown"},
        # sweep
        "--grid": {
            "action": "append", "default": [], "metavar": "FIELD=V1,V2,…",
            "help": "try these values of a field instead of the definition's grid; repeated: all combinations",
        },
        "--range": {
            "action": "append", "default": [], "metavar": "FIELD=LOW:HIGH[:log]",
            "help": "draw numbers with Optuna's TPE, as many as --trials",
        },
        "--trials": {"type": positive, "help": "at most this many trials per method and task (default: all)"},
        "--rungs": {
            "type": rungs,
            "help": "after these rounds, prune all but the best quarter, such as 1,2; none disables pruning",
        },
        "--pareto": is_flag | {"help": "two objectives: the score and the uplink bytes"},
        "--adopt": is_flag | {"help": "save the best values as the definition's defaults, where it has a file"},
    }
