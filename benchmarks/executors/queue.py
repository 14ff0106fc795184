"""A queue on a disk that machines share: what is to be computed, and what each worker says, a line of JSON each."""

from __future__ import annotations

import json
import platform
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import UserError
from benchmarks.events import (
    CellFailed,
    CellFinished,
    CellPruned,
    CellStarted,
    CellWaits,
    Event,
    RoundFinished,
    Sink,
    Trained,
)
from benchmarks.executors.board import Board, Job, failed_before
from benchmarks.record import read_record, round_from_json, write_text
from benchmarks.settings import Settings
from benchmarks.spec import Cell
from benchmarks.stages import stopped_by
from fedsim.files import MissingFileError, read_json
from fedsim.leases import refresh

TRAINED_SECONDS = 1.0  # examples that were trained are told so often, all of them since together
JOBS, LOG = "jobs.json", ".jsonl"
Line = dict[str, Any]


@dataclass(frozen=True)
class Queue:
    """A folder with the jobs of one invocation; it goes when all of them are done."""

    folder: Path
    settings: Settings
    jobs: tuple[Job, ...]

    @classmethod
    def made(cls, board: Board, settings: Settings) -> Queue:
        """A new queue in the results folder, of what the board has open."""
        settings = settings.absolute()
        folder = settings.results_dir / "queues" / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
        jobs = tuple(board.open.values())
        paths = {"results_dir": str(settings.results_dir), "data_dir": settings.data_dir and str(settings.data_dir)}
        listed = [
            {"cell": job.cell.to_json(), "keeps_weights": job.keeps_weights, "needs_weights": job.needs_weights}
            for job in jobs
        ]
        write_text(folder / JOBS, json.dumps({"settings": asdict(settings) | paths, "jobs": listed}))
        return cls(folder, settings, jobs)

    @classmethod
    def opened(cls, folder: Path) -> Queue:
        """The queue that another process made; UserError where this machine does not see it."""
        try:
            value = read_json(folder / JOBS, "the jobs of a queue")
        except MissingFileError:
            raise UserError(
                f"{platform.node()}: expected the queue {folder}, found none. Workers on several machines share "
                "one results folder: set RESULTS_DIR to a folder that all of them see under the same name."
            ) from None
        given = value["settings"]
        given |= {"results_dir": Path(given["results_dir"]), "data_dir": given["data_dir"] and Path(given["data_dir"])}
        jobs = tuple(Job(**entry | {"cell": Cell.from_json(entry["cell"])}) for entry in value["jobs"])
        return cls(folder, Settings(**given | {"slurm": tuple(given["slurm"])}), jobs)

    def log(self, worker: str) -> Sink:
        """A sink that writes for the others; worker: a name that no other has."""
        return _Log(self.folder / f"{worker}{LOG}")

    def listener(self, board: Board, but: str = "") -> Callable[[], None]:
        """Notes on the board what is done since it was asked last; but: the worker whose own log is left out.

        Once the queue's folder is gone, everything is done.
        """
        lines = _Lines(self.folder, but)

        def hear() -> None:
            for line in lines.new():
                if line["kind"] in ("finished", "failed"):
                    board.close(line["spec_id"], line["stops"])
            if not self.folder.exists():
                board.open.clear()

        return hear

    def events(self) -> Callable[[], list[Event]]:
        """Gives the events of all workers since it was asked last."""
        lines = _Lines(self.folder)
        return lambda: [_event(line, self.settings) for line in lines.new()]

    def remove(self) -> None:
        """Remove the folder; what a network file system keeps of files that are still read goes later."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):
            self.folder.parent.rmdir()


class _Log:
    """Writes a worker's events."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trained: Counter[str] = Counter()  # by cell_id, not told yet
        self.told = time.monotonic()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Trained):
            self.trained[event.cell_id] += event.examples
            if time.monotonic() - self.told < TRAINED_SECONDS:
                return
        lines: list[Mapping[str, Any]] = [
            {"kind": "trained", "cell_id": cell_id, "examples": n} for cell_id, n in self.trained.items()
        ]
        self.trained.clear()
        self.told = time.monotonic()
        lines += [] if isinstance(event, Trained) else [_line(event)]
        with suppress(FileNotFoundError), self.path.open("ab") as file:  # closed, so that other machines see it
            file.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


class _Lines:
    """Reads what the workers of a queue have written since it was asked last."""

    def __init__(self, folder: Path, but: str = "") -> None:
        self.folder, self.but = folder, f"{but}{LOG}"
        self.read: Counter[Path] = Counter()  # bytes

    def new(self) -> Iterator[Line]:
        """The new lines, worker by worker; one that is half written comes the next time."""
        refresh(self.folder)
        for path in sorted(self.folder.glob(f"*{LOG}")):
            if path.name != self.but:
                with suppress(FileNotFoundError), path.open("rb") as file:
                    file.seek(self.read[path])
                    for line in file:
                        if line.endswith(b"\n"):
                            self.read[path] += len(line)
                            yield json.loads(line)


def _line(event: Event) -> Line:
    match event:
        case CellStarted(cell, cell_id, finished, examples, note):
            rounds = [asdict(entry) for entry in finished]
            return {
                "kind": "started",
                "cell": cell.to_json(),
                "cell_id": cell_id,
                "rounds": rounds,
                "examples": examples,
                "note": note,
            }
        case CellWaits(cell, holder):
            return {"kind": "waits", "cell": cell.to_json(), "holder": holder}
        case RoundFinished(cell_id, entry):
            return {"kind": "round", "cell_id": cell_id, "round": asdict(entry)}
        case CellFinished(record, reused):
            stops = stopped_by(record) if record.diverged else ""
            file, spec_id = record.file_name, record.cell.spec_id
            return {"kind": "finished", "spec_id": spec_id, "stops": stops, "file": file, "reused": reused}
        case CellFailed(cell, message):
            stops, told = failed_before(cell), {"cell": cell.to_json(), "message": message}
            return {"kind": "failed", "spec_id": cell.spec_id, "stops": stops, **told}
        case Trained() | CellPruned():
            raise AssertionError("these are counted, or a sweep's")


def _event(line: Line, settings: Settings) -> Event:
    match line["kind"]:
        case "started":
            rounds = tuple(round_from_json(entry) for entry in line["rounds"])
            cell, examples = Cell.from_json(line["cell"]), tuple(line["examples"])
            return CellStarted(cell, line["cell_id"], rounds, examples, line["note"])
        case "waits":
            return CellWaits(Cell.from_json(line["cell"]), line["holder"])
        case "trained":
            return Trained(line["cell_id"], line["examples"])
        case "round":
            return RoundFinished(line["cell_id"], round_from_json(line["round"]))
        case "finished":
            refresh(settings.records_dir)
            return CellFinished(read_record(settings.records_dir / line["file"]), line["reused"])
        case _:
            return CellFailed(Cell.from_json(line["cell"]), line["message"])
