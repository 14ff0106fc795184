"""Whatever lies in place of a file from outside: refused by its name, or computed anew with a word; nothing is waited
for, and nothing else is touched."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
import torch

from benchmarks.backbones import build_encoder, build_tokenizer, load_tokenizer, locate
from benchmarks.cli.finished import recorded_cells
from benchmarks.errors import UserError
from benchmarks.executors.queue import JOBS, Queue
from benchmarks.found import finished_record
from benchmarks.predictions import read_predictions
from benchmarks.record import read_record
from benchmarks.settings import Settings
from benchmarks.stages import find_outcome, keep_outcome
from benchmarks.studies import Studies
from benchmarks.tasks import DataSource, task
from benchmarks.tasks.base import Examples
from benchmarks.tasks.hub import load_parquet
from benchmarks.token_cache import TokenCache
from benchmarks.tuning import read_sweep
from fedsim import feature_cache
from fedsim.checkpoint import Checkpoint
from fedsim.errors import FederationError
from fedsim.features import CHECKSUM, Layout
from fedsim.store import read_tensors, write_tensors
from reports import ReportError
from reports.evidence.published import HEADER, read_published
from reports.pages.files import update_readme

TEXTS = ("The dog barks .", "It rains and he sleeps .")


class Placed(NamedTuple):
    """A file and what reads it: gives a value, raises what the user can mend, or says that it computes anew."""

    path: Path
    read: Callable[[], Any]


# ---- what lies there -------------------------------------------------------------------------------------------


def replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def place(path: Path) -> None:
        path.unlink()
        make(path)

    return place


def truncated(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "folder": replaced(Path.mkdir),
    "symlink loop": replaced(lambda path: path.symlink_to(path.name)),
    "link to nothing": replaced(lambda path: path.symlink_to("nowhere")),
    "named pipe": replaced(os.mkfifo),
    "endless device": replaced(lambda path: path.symlink_to("/dev/zero")),
    "unreadable": replaced(lambda path: path.symlink_to("/proc/self/mem")),  # opened, and each read is an error
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 16),
    "empty": lambda path: path.write_bytes(b""),
    "nested": lambda path: path.write_bytes(b'{"a":' * 200_000),
    "not a number": lambda path: path.write_bytes(b'{"tunings": [NaN]}'),
    "other encoding": lambda path: path.write_bytes(path.read_bytes().decode("latin-1").encode("utf-16")),
    "truncated": truncated,
}
NEEDED = {"unreadable": Path("/proc/self/mem"), "endless device": Path("/dev/zero")}

# ---- what reads it ---------------------------------------------------------------------------------------------


def record(folder: Path, finished: Path) -> Placed:
    (source,) = (finished / "records").glob("*.json")
    cell = read_record(source)
    shutil.copytree(finished / "records", folder / "records")
    path = folder / "records" / source.name

    def read() -> Any:
        recorded_cells([path.parent])  # leaves what is no record to others, and waits for nothing
        found = finished_record(cell.cell, cell.cell_id, path.parent)
        assert found is not None, "a record that is there, whatever it is, is not computed beside it"
        return found

    return Placed(path, read)


def predictions(folder: Path, finished: Path) -> Placed:
    placed = record(folder, finished)
    found = read_record(placed.path)
    path = placed.path.with_name(found.predictions_name)
    return Placed(path, lambda: read_predictions(path.parent, found))


def manifest(folder: Path, _: Path) -> Placed:
    path = folder / "state.json"
    path.write_bytes(b'0123\n{"version": 3}')
    return Placed(path, lambda: Checkpoint(folder, "cell").restore(cast(Any, None)))


def tensors(folder: Path, _: Path) -> Placed:
    path = folder / "server.safetensors"
    sha256 = write_tensors(path, {"a": torch.ones(100)})
    return Placed(path, lambda: read_tensors(path, sha256))


def _outcome(folder: Path, finished: Path) -> tuple[Path, Callable[[], Any]]:
    (source,) = (finished / "records").glob("*.json")
    cell, settings = read_record(source).cell, Settings(results_dir=folder)
    kept = keep_outcome(settings, cell, "c" * 32, {"a": torch.ones(100)})

    def read() -> Any:
        found = find_outcome(settings, cell, "c" * 32)
        if found is None:
            logging.getLogger(__name__).warning("computed anew")
            return keep_outcome(settings, cell, "c" * 32, {"a": torch.ones(100)})
        return found.tensors()

    return kept.path, read


def weights(folder: Path, finished: Path) -> Placed:
    return Placed(*_outcome(folder, finished))


def note(folder: Path, finished: Path) -> Placed:
    path, read = _outcome(folder, finished)
    return Placed(path.with_suffix(".json"), read)


def features(folder: Path, _: Path) -> Placed:
    path, layout, lengths = folder / "features.bin", Layout(4, 1, 8, np.dtype(np.float32)), np.array([2, 2])
    header = b"{}".ljust(feature_cache.HEADER_BYTES)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(layout.file_bytes)
        file.seek(layout.end)
        file.write(np.zeros(2, CHECKSUM).tobytes())
    return Placed(path, lambda: feature_cache._open_whole(path, header, layout, lengths))


def tokens(folder: Path, _: Path) -> Placed:
    cache, tokenizer = TokenCache(folder / "tokens"), build_tokenizer(locate("tiny"))
    examples = Examples(tuple((text,) for text in TEXTS), np.zeros(len(TEXTS), dtype=np.int64))
    cache.encode(examples, tokenizer, 16)
    (path,) = (path for path in (folder / "tokens").iterdir() if ".lock" not in path.name)
    return Placed(path, lambda: cache.encode(examples, tokenizer, 16))


def published(folder: Path, _: Path) -> Placed:
    path = folder / "published.csv"
    path.write_text(",".join(HEADER) + "\nTable 1,a,b,f1,0.5\n")
    return Placed(path, lambda: read_published(path))


def readme(folder: Path, _: Path) -> Placed:
    path = folder / "README.md"
    path.write_text("# Mine\n")
    return Placed(path, lambda: update_readme(path, "text"))


def sweep(folder: Path, _: Path) -> Placed:
    path = folder / "sweep.json"
    path.write_text('{"tunings": [{"task": "mrpc", "method": "fedavg"}]}')
    return Placed(path, lambda: read_sweep(path))


def journal(folder: Path, _: Path) -> Placed:
    studies = Studies(folder)
    studies.ask("study", {"training.rounds": (1, 2)}, 2)
    return Placed(studies.path, lambda: studies.ask("study", {"training.rounds": (1, 2)}, 2))


def jobs(folder: Path, _: Path) -> Placed:
    path = folder / JOBS
    path.write_text('{"settings": 1, "jobs": []}')
    return Placed(path, lambda: Queue.opened(folder))


def _data(folder: Path, task_id: str, names: tuple[str, ...], content: str) -> Placed:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return Placed(folder / names[0], lambda: list(task(task_id).load(DataSource(folder)).pool.texts))


def tsv(folder: Path, _: Path) -> Placed:
    rows = "".join(f"{label}\t1\t2\tThe dog barks .\tA dog barks é .\n" for label in (0, 1, 1, 0))
    return _data(
        folder, "mrpc", ("MRPC/train.tsv", "MRPC/dev.tsv"), "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n" + rows
    )


def csv(folder: Path, _: Path) -> Placed:
    names = ("ArSarcasm-v2/training_data.csv", "ArSarcasm-v2/testing_data.csv")
    rows = "".join(f'"a tweet, é {number}",NEG\n' for number in range(4))
    return _data(folder, "arsarcasm", names, "tweet,sentiment\n" + rows)


def conll(folder: Path, _: Path) -> Placed:
    names = tuple(f"SciERC/{name}.txt" for name in ("train", "dev", "test"))
    return _data(folder, "scierc", names, "é\tO\nword\tB-Task\n\nanother\tO\n" * 3)


def corpus(folder: Path, _: Path) -> Placed:
    return _data(folder, "corpus-biology", ("corpora/biology.txt",), "A passage é of biology .\n" * 4)


def jsonl(folder: Path, _: Path) -> Placed:
    line = '{"title": "é", "abstract": "An abstract.", "mag_field_of_study": ["Biology"]}\n'
    return _data(folder, "corpus-biology", ("s2orc/metadata_0.jsonl",), line * 4)


def parquet(folder: Path, _: Path) -> Placed:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet as files  # type: ignore[import-untyped]

    path = folder / "train.parquet"
    files.write_table(pa.table({"text": ["a", "b"]}), path)
    return Placed(path, lambda: load_parquet(path))


FILES: list[Callable[[Path, Path], Placed]] = [
    *(record, predictions, manifest, tensors, weights, note, features, tokens, published, readme, sweep, journal, jobs),
    *(tsv, csv, conll, corpus, jsonl, parquet),
]
UNSOUND = (manifest, jobs, readme)  # as they are made here
COMPUTED_ANEW = (note, features, tokens)
MENDABLE = (UserError, FederationError, ReportError)


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """What waits for a pipe, or reads a device to its end, is ended."""

    def late(*_: object) -> None:
        raise AssertionError("it waits, or reads without an end")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("of", FILES, ids=lambda of: of.__name__)
def test_a_file_from_outside(
    of: Callable[[Path, Path], Placed],
    damage: str,
    tmp_path: Path,
    finished_results: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if damage in NEEDED and not NEEDED[damage].exists():
        pytest.skip(f"needs {NEEDED[damage]}")
    placed = of(tmp_path, finished_results)
    if of not in UNSOUND:
        placed.read()
    DAMAGES[damage](placed.path)
    others = _others(tmp_path, placed.path)
    caplog.clear()
    refused = ""
    try:
        placed.read()
    except MENDABLE as error:
        refused = str(error)
    except OSError as error:  # which `main` says, with the file's name
        refused = f"{error.filename} {error.filename2}"
    if refused:
        assert placed.path.name in refused or placed.path.stem in refused or placed.path.parent.name in refused
    elif of in COMPUTED_ANEW:
        assert caplog.records or damage == "link to nothing"
    else:
        assert damage in ("truncated", "binary", "empty", "nested", "not a number", "other encoding", "link to nothing")
    after = _others(tmp_path, placed.path)
    assert {path: after.get(path) for path in others} == others


def _others(folder: Path, placed: Path) -> dict[Path, bytes]:
    """What every other file of a folder holds, apart from locks and copies that are made of texts."""
    found = (path for path in sorted(folder.rglob("*")) if path != placed and path.is_file())
    return {path: path.read_bytes() for path in found if not {"locks", "tokens"} & {*path.parts}}


# ---- encoders --------------------------------------------------------------------------------------------------

ENCODER_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ENCODER_FILES)
def test_a_file_of_an_encoder(name: str, damage: str, tiny_encoder: Path, tmp_path: Path) -> None:
    if damage in NEEDED and not NEEDED[damage].exists():
        pytest.skip(f"needs {NEEDED[damage]}")
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    DAMAGES[damage](folder / name)
    refused = ""
    try:
        found = locate(str(folder))
        build_encoder(found)
        build_tokenizer(found)
    except MENDABLE as error:
        refused = str(error)
    if refused:
        assert str(folder) in refused
    else:  # a tokenizer's own settings say nothing that its file does not; a link to nothing is as no file
        assert name == "tokenizer_config.json" or damage in ("link to nothing", "not a number")


def test_numbers_of_a_configuration_are_checked(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    text = (folder / "config.json").read_text()
    for wrong in ('"64"', "-1", "0", "1e3", "100000000000000"):
        (folder / "config.json").write_text(text.rstrip()[:-1] + f', "hidden_size": {wrong}}}')
        with pytest.raises(FederationError, match=r"config\.json: hidden_size: expected a whole number from 1 to"):
            locate(str(folder))
    with pytest.raises(UserError, match="expected a tokenizer"):
        load_tokenizer(tmp_path)
