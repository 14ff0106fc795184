"""Any bytes in place of a file from outside give a value, or an error that the user can mend: tried with many bytes.

`python tools/fuzz.py --seconds 600` tries each reader for ten minutes, `python tools/fuzz.py csv record` those alone.
Inputs are changed at random; those that reach lines of this project which none had reached are changed further. What
ends a reader in any other way is written into the folder `--out`, and the status is 1.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import lzma
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, cast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.array_file import read_arrays
from benchmarks.cli.arguments import build_parser
from benchmarks.customise import with_settings
from benchmarks.errors import UserError
from benchmarks.fetched import FILE, contents
from benchmarks.predictions import read_predictions, write_predictions
from benchmarks.record import CHECKSUM, checksum, read_record
from benchmarks.registry import benchmark
from benchmarks.spaces import read_space
from benchmarks.studies import Studies
from benchmarks.tasks.abstracts import read_abstracts
from benchmarks.tasks.conll import read_columns
from benchmarks.tasks.csv_files import read_csv
from benchmarks.tasks.extracts import Notes
from benchmarks.tasks.passages import find_passages
from benchmarks.tasks.s2orc import papers
from benchmarks.tasks.tsv import read_tsv
from benchmarks.tuning import best_values, read_sweep
from fedsim.checkpoint import MANIFEST, Checkpoint
from fedsim.errors import FederationError
from fedsim.models.encoder import read_config
from reports import ReportError
from reports.evidence.published import HEADER, read_published

ROOT = Path(__file__).resolve().parent.parent
MENDABLE = (UserError, FederationError, ReportError)
TABLE = "fedsplitbert-table3"
MOST_BYTES = 100_000
CLI = ("--scale", "--tasks", "--methods", "--seeds", "--backbone", "--data-dir", "--results-dir", "--workers")
PIECES = (b"\0", b"\xff", b'"', b"\t", b"\n", b",", b"{", b"[", b"]", b"}", b"null", b"-1", b"1e999", b"NaN", b"0")
WORDS = (*PIECES, b"\xed\xa0\x80", b'"\\ud800"', b"9" * 400, b"[" * 2000, b"true", b"::", b"=", b"\r", b"\xe2\x80\xa8")


class Target(NamedTuple):
    """A reader: takes bytes and an empty folder. seeds: what it reads well, or nearly so."""

    read: Callable[[bytes, Path], object]
    seeds: tuple[bytes, ...]


def _file(name: str, read: Callable[[Path], object], *seeds: bytes) -> Target:
    def placed(content: bytes, folder: Path) -> object:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return read(path)

    return Target(placed, seeds)


def _fitted(content: bytes) -> bytes:
    """A record whose checksum is made to fit, where it is JSON."""
    try:
        value = json.loads(content)
        del value[CHECKSUM]
        return json.dumps({**value, CHECKSUM: checksum(value)}).encode()
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return content


def _record(content: bytes, folder: Path) -> object:
    (folder / "record.json").write_bytes(_fitted(content))
    return read_record(folder / "record.json").outcome


def _predictions(content: bytes, folder: Path) -> object:
    found = replace(read_record(_committed()), predictions={"sha256": hashlib.sha256(content).hexdigest()})
    write_predictions(folder, found, content)
    return read_predictions(folder, found)


def _compressed(content: bytes, folder: Path) -> object:
    """Predictions as the file has them; whatever they are when decompressed, the digest is theirs."""
    whole = b""
    with suppress(lzma.LZMAError):
        whole = lzma.decompress(content)
    found = replace(read_record(_committed()), predictions={"sha256": hashlib.sha256(whole).hexdigest()})
    (folder / found.predictions_name).write_bytes(content)
    return read_predictions(folder, found)


def _checkpoint(content: bytes, folder: Path) -> object:
    (folder / MANIFEST).write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    return Checkpoint(folder, "cell").restore(cast(Any, None))


def _words(content: bytes, folder: Path) -> object:
    """A value for each flag, and settings and spaces of it."""
    text = content.decode("utf-8", "surrogateescape").replace("\0", "")
    chosen = benchmark(TABLE)
    for attempt in (
        *(lambda flag=flag: build_parser().parse_args(["run", TABLE, f"{flag}={text}"]) for flag in CLI),
        lambda: with_settings(chosen, [text]),
        lambda: with_settings(chosen, [f"training.rounds={text}"]),
        lambda: read_space([text], []),
        lambda: read_space([], [f"training.learning_rate={text}"]),
    ):
        with suppress(*MENDABLE):
            attempt()
    return None


def _committed() -> Path:
    return min((ROOT / "benchmarks").glob("*/records/*.json"), key=lambda path: path.stat().st_size)


def _papers(path: Path) -> object:
    return list(papers([path], path.parent, "Biology", False, Notes()))


def targets() -> dict[str, Target]:
    """Every reader by name."""
    paper = b'{"title": "T", "abstract": "A", "mag_field_of_study": ["Biology"]}\n'
    header = json.dumps({"a": {"dtype": "I32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    arrays = len(header).to_bytes(8, "little") + header + bytes(8)
    tuned = {"task": "mrpc", "method": "fedavg", "scale": "lite", "score": "f1 (%)", "grid": {}}
    tuned["best"] = {"values": {"training.learning_rate": 0.1}, "mean": 0.5}
    journal = b'{"op_code": 0, "worker_id": "w", "study_name": "s", "directions": [2]}\n'
    manifest = b'{"version": 3, "identity": "cell", "round": 1, "server": ["a", "b"], "clients": {}, "best": null, '

    def corpus(path: Path) -> object:
        return list(find_passages(path, "a", False, True, True).passages)

    def earlier(path: Path) -> object:
        return Studies(path.parent.parent).earlier("s", {"training.rounds": (1, 2)})

    return {
        "tsv": _file(
            "a.tsv", lambda path: list(read_tsv(path, ("a", "b"), "label")), b"label\ta\tb\n1\tone\ttwo\n", b"a\tb\n"
        ),
        "csv": _file("a.csv", lambda path: list(read_csv(path, ("a",), "label")), b'a,label\n"one, ""two""",1\n'),
        "conll": _file(
            "a.txt", lambda path: list(read_columns(("O", "B-x", "I-x"), path)), b"-DOCSTART- O\n\na\tO\nb\tB-x\n\n"
        ),
        "abstracts": _file("a.txt", lambda path: list(read_abstracts(path)), b"###1\nMETHODS\tA sentence .\n\n"),
        "corpus": _file("a.txt", corpus, b" = T = \n\nA. B.\n"),
        "jsonl": _file("s2orc/a.jsonl", _papers, paper * 2),
        "jsonl.gz": _file("s2orc/a.jsonl.gz", _papers, gzip.compress(paper, mtime=0)),
        "record": Target(_record, (_committed().read_bytes(),)),
        "predictions": Target(_predictions, (arrays,)),
        "predictions.xz": Target(_compressed, (lzma.compress(arrays),)),
        "checkpoint": Target(_checkpoint, (manifest + b'"answers": {"1": ["c", "d"]}, "ledger": [], "results": []}',)),
        "arrays": _file("a.bin", lambda path: read_arrays(path, 0), arrays),
        "sweep": _file(
            "a.json",
            lambda path: best_values(read_sweep(path), {"mrpc": "lite"}),
            json.dumps({"tunings": [tuned]}).encode(),
        ),
        "journal": _file("sweeps/journal.log", earlier, journal),
        "published": _file("a.csv", read_published, f"{','.join(HEADER)}\nTable 1,a,b,f1,0.5\n".encode()),
        "config": _file(
            "config.json", lambda path: read_config(path.parent), b'{"model_type": "bert", "vocab_size": 9}'
        ),
        "fetched": _file(FILE, lambda path: contents(path.parent), b'{"tasks": ["a"], "encoders": []}'),
        "words": Target(_words, (b"1", b"training.rounds=2", b"training.learning_rate=1:2:log", b"a,b", b'{"a": [1]}')),
    }


def attempt(target: Target, content: bytes) -> BaseException | None:
    """What a reader raises of some bytes that a user cannot mend; None where all is well."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            target.read(content, Path(folder))
        except MENDABLE:
            return None
        except Exception as error:  # noqa: BLE001 - which is what is looked for
            return error
    return None


def changed(content: bytes, others: list[bytes], draw: random.Random) -> bytes:
    """The bytes with a few changes: some flipped, cut out, doubled, taken from another input, or put in."""
    found = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 4, 8))):
        begin = draw.randrange(len(found) + 1)
        end = min(len(found), begin + draw.choice((1, 2, 8, 64)))
        other = draw.choice(others)
        start = draw.randrange(len(other) + 1)
        choices = (draw.choice(WORDS), b"", bytes(found[begin:end]) * 2, other[start : start + end - begin])
        found[begin : draw.choice((begin, end))] = draw.choice(choices)
        if found and draw.random() < 0.3:
            found[draw.randrange(len(found))] ^= 1 << draw.randrange(8)
    return bytes(found[:MOST_BYTES])


class Lines:
    """Lines of this project that were reached."""

    def __init__(self) -> None:
        self.reached: set[tuple[str, int]] = set()

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        """As sys.settrace asks for it."""
        if not frame.f_code.co_filename.startswith(str(ROOT)) or "/.venv/" in frame.f_code.co_filename:
            return None
        if event == "line":
            self.reached.add((frame.f_code.co_filename, frame.f_lineno))
        return self.trace


def campaign(
    target: Target, seconds: float, seed: int = 0, tried: Callable[[], object] = lambda: None
) -> Iterator[tuple[bytes, BaseException]]:
    """Try a reader for so long; yields each new kind of crash, by where it arose, with the input."""
    draw, lines, kept, known = random.Random(seed), Lines(), list(target.seeds), set()
    end = time.monotonic() + seconds
    waiting = [*target.seeds, b""]
    while time.monotonic() < end:
        content = waiting.pop() if waiting else changed(draw.choice(kept), kept, draw)
        before = len(lines.reached)
        tried()
        sys.settrace(lines.trace)
        try:
            error = attempt(target, content)
        finally:
            sys.settrace(None)
        if error is not None:
            last = traceback.extract_tb(error.__traceback__)[-1]
            if (place := (type(error), last.filename, last.lineno)) not in known:
                known.add(place)
                yield content, error
        elif len(lines.reached) > before:
            kept.append(content)


def main() -> int:
    """Try the readers; status 1 where one ended as it must not."""
    known = targets()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", metavar="reader", help=", ".join(known))
    parser.add_argument("--seconds", type=float, default=20, help="for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/fuzz"), help="folder for inputs that end a reader")
    words = parser.parse_args()
    if unknown := set(words.readers) - known.keys():
        parser.error(f"expected readers among {', '.join(known)}, found {', '.join(sorted(unknown))}")
    crashes = 0
    for name in words.readers or known:
        found, tries = 0, count()
        for content, error in campaign(known[name], words.seconds, words.seed, tries.__next__):
            found += 1
            words.out.mkdir(parents=True, exist_ok=True)
            path = words.out / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
            path.write_bytes(content)
            print(f"{name}: {type(error).__name__}: {str(error)[:200]} ({path})", flush=True)
            traceback.print_exception(error, limit=-3)
        print(f"{name}: {found} crashes of {next(tries):,} inputs in {words.seconds:g} seconds", flush=True)
        crashes += found
    return int(crashes > 0)


if __name__ == "__main__":
    sys.exit(main())
