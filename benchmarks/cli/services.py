"""Commands around the runs: ui, doctor, bench."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterator

from benchmarks.cli.select import settings
from benchmarks.errors import UserError
from benchmarks.running.run_options import RunOptions, available_cores

# What can be fetched, and where the rest is to be had; files as they lie in DATA_DIR.
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


def ui_command(args: argparse.Namespace) -> int:
    """MLflow's own pages, for this machine alone unless another address is asked for."""
    from benchmarks.tracking import default_tracking_uri, serve

    made = RunOptions(results_dir=args.results_dir)
    return serve(default_tracking_uri(made.results_dir), made.results_dir, args.host, args.port)


def doctor_command(args: argparse.Namespace) -> int:
    """What this machine has; status 2 where something that every run needs is missing."""
    problems = 0
    for name, good, text in _findings(args):
        print(f"{'ok  ' if good else 'none'} {name}: {text}")
        problems += not good and name == "results"
    return 2 if problems else 0


def _findings(args: argparse.Namespace) -> Iterator[tuple[str, bool, str]]:
    import torch

    from benchmarks.encoders.backbones import KNOWN, locate
    from benchmarks.running.environment import describe_environment
    from benchmarks.tracking import default_tracking_uri
    from benchmarks.tracking.store import without_password
    from fedsim.precision import resolve_precision

    precision = resolve_precision()
    environment = describe_environment(precision, 1)
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    yield "python", True, f"{environment['python']}; {versions}"
    yield (
        "device",
        True,
        f"{environment['device']} ({precision.device.type}, {precision.name}), {available_cores()} cores",
    )
    if torch.cuda.is_available():
        yield "gpu memory", True, f"{torch.cuda.get_device_properties(0).total_memory / 2**30:.0f} GiB"
    try:
        settings(args)
        free = shutil.disk_usage(args.results_dir).free / 2**30
        yield "results", True, f"{args.results_dir} is writable, {free:.0f} GiB free"
    except UserError as error:
        yield "results", False, str(error)
    yield "tracking", True, without_password(default_tracking_uri(args.results_dir))
    for backbone, known in KNOWN.items():
        try:
            found = locate(backbone, True, args.data_dir, args.results_dir)
            made_by = known.made_by
            how = f"; trained by {made_by[0]}, which is run first" if made_by else ""
            yield f"encoder {backbone}", True, ", ".join(found.origin.values()) + how
        except ValueError:
            yield f"encoder {backbone}", False, "not on this machine; it would be fetched from the Hugging Face hub"
    if args.data_dir is None:
        yield "data", False, "DATA_DIR is not set: real tasks are read from the Hugging Face hub"
        return
    yield from ((f"task {name}", good, text) for name, good, text in _datasets(args))


def _datasets(args: argparse.Namespace) -> Iterator[tuple[str, bool, str]]:
    """Every task's data in the folder: how many examples, or what is missing."""
    from benchmarks.encoders.fetched import source_of
    from benchmarks.tasks import tasks

    for task in tasks():
        try:
            data = task.load(source_of(task.id, args.data_dir, extracts=args.results_dir / "corpora"))
            yield task.id, True, f"{len(data.pool)} examples ({data.origin})"
        except ValueError as error:
            yield task.id, False, str(error)


def data_command(args: argparse.Namespace) -> int:
    """Every dataset: what is fetched by itself, where the rest is had, and what a folder holds; status 2 if nothing."""
    settings(args)
    print(
        "Without DATA_DIR a run fetches what it needs from the Hugging Face hub, and keeps it in the hub's own cache."
    )
    for name, source in SOURCES.items():
        print(textwrap.fill(f"{name}: {source}", 110, initial_indent="  ", subsequent_indent="    "))
    if args.data_dir is None:
        print("DATA_DIR names a folder with files of yours, which are checked here: make data DATA_DIR=/data")
        print("For nodes without internet: python -m benchmarks fetch ID --to /data, then DATA_DIR=/data there")
        return 0
    found = list(_datasets(args))
    print(f"\nIn {args.data_dir}:")
    for name, good, text in found:
        print(f"{'ok  ' if good else 'none'} {name}: {text}")
    return 0 if any(good for _, good, _ in found) else 2


def bench_command(args: argparse.Namespace) -> int:
    """Measure speed and memory, section by section; status 1 if a bar is not met."""
    from benchmarks.performance.suite import run_suite

    args.threads = args.threads or available_cores()
    return run_suite(args.parts, settings(args), args.repeats)
