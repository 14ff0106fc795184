"""The command line's words; every variable of make is one of these flags."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import NoReturn

from benchmarks.cli.values import filled, hours, names, place, positive, rungs, seed, seeds
from benchmarks.errors import UserError
from benchmarks.publication import SCALES


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one clear message."""

    def error(self, message: str) -> NoReturn:
        """Refuse the words."""
        raise UserError(f"{message}. `{self.prog} --help` lists what is understood.")


def build_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser(prog="python -m benchmarks", description="Re-run the tables and figures of federated-BERT papers.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=Parser)

    command = commands.add_parser("list", help="all benchmarks")
    command.add_argument("--ids", action="store_true", help="ids alone, one a line")
    command.add_argument(
        "--scale", choices=SCALES, default="lite", help="at which finished cells are counted (default: lite)"
    )
    _results_dir(command)

    _include(command)

    command = commands.add_parser("show", help="one benchmark: methods, tasks, scales, deviations")
    command.add_argument("id")
    _include(command)

    command = commands.add_parser("plan", help="cells, and bytes derived without training; what claims still need")
    _selection(command, required=True, what="a benchmark's id; with --claims a paper's")
    _from_sweep(command)
    command.add_argument(
        "--claims", action="store_true", help="what each claim of a paper still needs: cells, seeds (default: 5), hours"
    )
    command.add_argument(
        "--tflops",
        type=float,
        help="estimate hours from FLOPs, at so many sustained 10^12 operations a second; needs the data "
        "(default: by records of the same method and task)",
    )
    command.add_argument("--json", action="store_true", help="print the plan as JSON, bytes as whole numbers")

    command = commands.add_parser("run", help="compute the cells that are not finished, then say what came of them")
    _selection(command, required=True, what="a benchmark's id, or a paper's for all of its tables")
    _notes(command)
    _from_sweep(command)
    _machine(command)

    command = commands.add_parser("sweep", help="tune settings on validation data")
    _selection(command, required=True)
    _machine(command)
    _sweep(command)

    command = commands.add_parser("campaign", help="run the evidence campaign's steps in order (docs/protocol.md)")
    command.add_argument("--hours", type=hours, help="stop after so many hours (default: at the end)")
    command.add_argument("--status", action="store_true", help="only say what each step still needs")
    command.add_argument("--keep", action="store_true", help="copy finished records to the committed ones, too")
    command.add_argument("--workers", type=positive, help="cells side by side (default: cores)")
    command.add_argument("--device", type=filled, help="cpu, cuda or cuda:1 (default: a GPU if there is one)")
    _places(command)

    command = commands.add_parser("pretrain", help="train a backbone of this project, as whatever needs it does")
    command.add_argument("backbone_id", metavar="backbone", help="such as arabic-mini")
    _places(command)
    _machine(command)
    command.set_defaults(tasks=[], methods=[], seeds=range(1), backbone=None, set=[])

    command = commands.add_parser("report", help="render what has been run: terminal, Markdown, LaTeX, CSV, plots")
    _selection(command, required=False, what="ids of benchmarks, or of papers (default: all)", several=True)
    _notes(command)
    _from_sweep(command)
    command.add_argument(
        "--records",
        type=place,
        action="append",
        default=[],
        help="folder of records, once for each (default: the results directory's)",
    )
    command.add_argument("--readme", type=place, help="also update the state of reproduction in this file")
    command.add_argument("--pictures", type=place, help="also write the plots into this folder, for that file to show")
    command.add_argument(
        "--score",
        choices=("chosen", "last", "best"),
        default="chosen",
        help="score of the round best on validation data (the default), of the last one, or of the best one by itself",
    )

    command = commands.add_parser(
        "front", help="render the first page from records: every paper in a line, and findings"
    )
    command.add_argument("--records", type=place, action="append", default=[], help="folder of records, once for each")
    command.add_argument("--readme", type=place, required=True, help="the file with the markers")
    command.add_argument("--picture", type=place, help="also draw score against bytes into this file")
    command.add_argument("--scale", type=filled, default="lite")

    command = commands.add_parser(
        "site", help="pages of everything that has been run, in a folder that needs no server"
    )
    command.add_argument("--out", type=place, help="the folder (default: site in the results directory)")
    command.add_argument("--scale", type=filled, help=f"{', '.join(SCALES)} (default: all that have records)")
    command.add_argument(
        "--records",
        type=place,
        action="append",
        default=[],
        help="folder of records, once for each (default: the committed ones and the results directory's)",
    )
    _places(command)

    command = commands.add_parser("import", help="take in records computed elsewhere, and mirror all to MLflow")
    command.add_argument("folder", type=place, help="folder of records")
    _places(command)
    command.set_defaults(id=[], scale=None, tasks=[], methods=[], backbone=None, set=[])

    command = commands.add_parser("fetch", help="gather data and encoders in a folder, for nodes without internet")
    _selection(command, required=True, what="a benchmark's id, or a paper's for all of its tables")
    command.add_argument("--to", type=place, required=True, metavar="FOLDER", help="the folder: DATA_DIR there")
    _lenient(command)

    command = commands.add_parser("ui", help="look at the runs in MLflow")
    command.add_argument("--port", type=positive, default=5055)
    command.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine alone)")
    _places(command)

    command = commands.add_parser("doctor", help="what this machine has: device, data, encoders, tracking")
    _places(command)

    command = commands.add_parser("data", help="every dataset: found, or where it is to be had")
    _places(command)

    command = commands.add_parser("bench", help="speed and memory: against the machine, peers, and as clients grow")
    command.add_argument("parts", nargs="*", metavar="part", help="training, engine, peers, growth, … (default: all)")
    command.add_argument("--repeats", type=positive, default=5, help="of everything that is timed (default: 5)")
    command.add_argument("--threads", type=positive, help="threads of a cell alone (default: cores)")
    command.add_argument("--device", type=filled, help="cpu, cuda or cuda:1 (default: a GPU if there is one)")
    _places(command)
    return parser


def _selection(
    command: argparse.ArgumentParser, required: bool, what: str = "a benchmark's id", several: bool = False
) -> None:
    command.add_argument("id", nargs="*" if several else None if required else "?", help=what)
    command.add_argument("--scale", type=filled, help=f"{', '.join(SCALES)} (default: demo)")
    command.add_argument("--tasks", type=names, default=[], help="such as mrpc,rte (default: all)")
    command.add_argument("--methods", type=names, default=[], help="such as fedavg,fedsplitbert (default: all)")
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--seeds", type=seeds, default=range(1), help="how many, from seed 0, or a range such as 5-10 (default: 1)"
    )
    which.add_argument("--seed", type=seed, help="this seed alone, by its number")
    command.add_argument(
        "--backbone",
        type=filled,
        default=os.environ.get("BACKBONE") or None,
        help="another encoder: folder or hub name",
    )
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="change a field of every cell (a critical layer counts the paper's layers)",
    )
    _include(command)
    _places(command)


def _include(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--include",
        type=place,
        action="append",
        default=[],
        metavar="FOLDER",
        help="also know the tables of this folder",
    )


def _notes(command: argparse.ArgumentParser) -> None:
    command.add_argument("--notes", action="store_true", help="also print the notes that stand under the tables")


def _sweep(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="FIELD=V1,V2,…",
        help="values of a field, as --set has them, in place of the definition's grid; several: all combinations",
    )
    command.add_argument(
        "--range",
        action="append",
        default=[],
        metavar="FIELD=LOW:HIGH[:log]",
        help="numbers that Optuna's TPE draws, --trials of them",
    )
    command.add_argument("--trials", type=positive, help="at most so many trials a method and task (default: all)")
    command.add_argument(
        "--rungs", type=rungs, help="prune all but the best quarter after these rounds, such as 1,2; none: no pruning"
    )
    command.add_argument("--pareto", action="store_true", help="two objectives: the score, and the uplink bytes")
    command.add_argument(
        "--adopt",
        action="store_true",
        help="make the best values the definition's own, where it has a file",
    )


def _from_sweep(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--from-sweep", action="store_true", help="take the settings that a sweep in the results folder found best"
    )


def _places(command: argparse.ArgumentParser) -> None:
    data_dir = os.environ.get("DATA_DIR")
    command.add_argument("--data-dir", type=place, default=Path(data_dir) if data_dir else None, help="your datasets")
    _results_dir(command)


def _results_dir(command: argparse.ArgumentParser) -> None:
    command.add_argument("--results-dir", type=place, default=Path(os.environ.get("RESULTS_DIR") or "results"))


def _machine(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--workers", type=positive, help="cells side by side (default: cores, or what GPUs have room for)"
    )
    command.add_argument(
        "--client-workers",
        type=positive,
        default=1,
        metavar="N",
        help="clients of one cell that train at once, as tasks of Ray, where a method's clients train apart "
        "(default: 1; results are the same bits)",
    )
    command.add_argument(
        "--executor",
        choices=("serial", "processes", "slurm", "ray"),
        help="where cells run (default: processes of this machine)",
    )
    command.add_argument(
        "--ray-address",
        type=filled,
        help="of a Ray cluster that runs, such as head-node:6379 (default: one is started here)",
    )
    command.add_argument(
        "--slurm",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what SLURM is asked for: partition=gpu, timeout_min=240, gpus_per_node=1, …; cluster=local: no SLURM",
    )
    _process(command)
    command.add_argument("--no-tracking", action="store_true", help="keep records only, without MLflow")


def _process(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--threads", type=positive, default=1, help="threads a cell (default: 1, so that results are the same bits)"
    )
    command.add_argument("--device", type=filled, help="cpu, cuda or cuda:1 (default: a GPU if there is one)")
    _lenient(command)


def _lenient(command: argparse.ArgumentParser) -> None:
    command.add_argument("--lenient", action="store_true", help="skip and count malformed rows, accept missing files")
