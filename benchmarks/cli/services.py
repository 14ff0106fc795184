"""Commands around the runs: `ui`, `doctor`, `data` and `bench`."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterable, Iterator

import torch

from benchmarks.cli.select import settings
from benchmarks.encoders.backbones import KNOWN
from benchmarks.encoders.fetched import source_of
from benchmarks.encoders.loading import locate
from benchmarks.errors import UserError
from benchmarks.running.environment import describe_environment
from benchmarks.running.run_options import available_cores
from benchmarks.tasks import tasks
from benchmarks.tracking import default_tracking_uri, serve
from benchmarks.tracking.store import without_password
from fedsim.precision import resolve_precision

# Where to download datasets; files as they lie in DATA_DIR.
SOURCES = {
    "GLUE": "nyu-mll/glue on the hub, or the GLUE download: MRPC/train.tsv, also under glue_data/",
    "ArSarcasm-v2": "arbml/ArSarcasm_v2 on the hub, or github.com/iabufarha/ArSarcasm-v2: ArSarcasm-v2/*.csv",
    "PubMed 20k RCT": "armanc/pubmed-rct20k on the hub, or PubMed_20k_RCT/{train,dev,test}.txt",
    "JNLPBA": "tner/bionlp2004 on the hub, or github.com/allenai/scibert (data/ner): JNLPBA/{train,dev,test}.txt",
    "SciERC": "not on the hub: github.com/Hanzhouu/FedBFPT (data/ner): SciERC/{train,dev,test}.txt",
    "NICTA-PIBOSO": "not on the hub: github.com/jind11/HSLN-Joint-Sentence-Classification: nicta_piboso/*.txt",
    "S2ORC": "claran/modular-s2orc-parquet on the hub, or the release's metadata in s2orc/, or corpora/<domain>.txt",
    "Wikipedia": "Salesforce/wikitext on the hub, wikitext-103/wiki.*.tokens, or corpora/wikipedia.{train,valid}.txt",
}
Finding = tuple[str, bool, str]  # what was checked, whether it is there, and a description


def ui_command(args: argparse.Namespace) -> int:
    """Serve MLflow's pages, only to this machine unless another address is given."""
    return serve(default_tracking_uri(args.results_dir), args.results_dir, args.host, args.port)


def doctor_command(args: argparse.Namespace) -> int:
    """Print what this machine has; status 2 if the results folder, which every run needs, cannot be used."""
    findings = list(_findings(args))
    _print(findings)
    return 0 if all(good for name, good, _ in findings if name == "results") else 2


def _print(findings: Iterable[Finding]) -> None:
    for name, good, text in findings:
        print(f"{'ok  ' if good else 'none'} {name}: {text}")


def _findings(args: argparse.Namespace) -> Iterator[Finding]:
    precision = resolve_precision()
    environment = describe_environment(precision, 1)
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    yield "python", True, f"{environment['python']}; {versions}"
    device = f"{environment['device']} ({precision.device.type}, {precision.name}), {available_cores()} cores"
    yield "device", True, device
    if torch.cuda.is_available():
        yield "gpu memory", True, f"{torch.cuda.get_device_properties(0).total_memory / 2**30:.0f} GiB"
    try:
        settings(args)
        free = shutil.disk_usage(args.results_dir).free / 2**30
        yield "results", True, f"{args.results_dir} is writable, {free:.0f} GiB free"
    except UserError as error:
        yield "results", False, str(error)
    yield "tracking", True, without_password(default_tracking_uri(args.results_dir))
    missing = []
    for backbone, known in KNOWN.items():
        try:
            origin = locate(backbone, True, args.data_dir, args.results_dir).origin
            how = f"; trained by {known.made_by[0]}, which is run first" if known.made_by else ""
            yield f"encoder {backbone}", True, ", ".join(origin.values()) + how
        except ValueError:
            missing.append(backbone)
    if missing:
        yield "encoders", False, f"runs fetch these from the Hugging Face hub: {', '.join(missing)}"
    if args.data_dir is None:
        yield "data", False, "DATA_DIR is not set: real tasks are read from the Hugging Face hub"
    else:
        yield from ((f"task {name}", good, text) for name, good, text in _datasets(args))


def _datasets(args: argparse.Namespace) -> Iterator[Finding]:
    """Every task's data in the folder: how many examples, or what is missing."""
    for task in tasks():
        try:
            data = task.load(source_of(task.id, args.data_dir, extracts=args.results_dir / "corpora"))
            yield task.id, True, f"{len(data.pool)} examples ({data.origin})"
        except ValueError as error:
            yield task.id, False, str(error)


def data_command(args: argparse.Namespace) -> int:
    """Print where each dataset comes from, and which of them a folder holds; status 2 if it holds none."""
    settings(args)
    print(
        "Without DATA_DIR a run fetches what it needs from the Hugging Face hub, and keeps it in the hub's own cache."
    )
    for name, source in SOURCES.items():
        print(textwrap.fill(f"{name}: {source}", 110, initial_indent="  ", subsequent_indent="    "))
    if args.data_dir is None:
        print("DATA_DIR names a folder with your files, which are checked here: make data DATA_DIR=/data")
        print("For nodes without internet: python -m benchmarks fetch ID --to /data, then DATA_DIR=/data there")
        return 0
    findings = list(_datasets(args))
    print(f"\nIn {args.data_dir}:")
    _print(findings)
    return 0 if any(good for _, good, _ in findings) else 2


def bench_command(args: argparse.Namespace) -> int:
    """Measure speed and memory, section by section; status 1 if a bar is missed."""
    from benchmarks.performance.suite import run_suite  # loads transformers

    args.threads = args.threads or available_cores()
    return run_suite(args.parts, settings(args), args.repeats)
