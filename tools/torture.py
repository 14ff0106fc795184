"""One small table under faults: after each it is resumed, and its records equal those of an undisturbed run.

`python tools/torture.py --seconds 300`: every fault once, and for the rest of the time SIGKILL of the command or of a
worker at random moments; `kills --kills 100`: so many of them. The status is 1 where a record differed or lacked, a
round that was saved was computed again after a kill, a claim or checkpoint stayed, or a command ended with a traceback.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lose_workers import HEAVY, lose

from benchmarks.cli.main import main as benchmarks_main
from benchmarks.record import read_records
from fedsim.checkpoint import Checkpoint
from fedsim.engine import Run

TABLES = (
    ("fedsplitbert-table3", "mrpc", "fedsplitbert,fedavg-finetuned,fedavg-prior", "training.local_epochs=1"),
    (
        "fedfreezebert-table3",
        "arsarcasm",
        "d-fedavg-ordinary,d-fedavg-average",
        "training.rounds=2",
    ),  # features of a frozen encoder are kept
)
TRACES = "Traceback (most recent call last)"
ROUNDS = "rounds"  # of a results folder: the file of what was saved
DAMAGED = ("records", "checkpoints", "weights", "features", "tokens")
TWENTY_YEARS = 20 * 365 * 86400


@dataclass
class Campaign:
    """The table, what its records are when nothing is disturbed, and what went wrong."""

    folder: Path
    draw: random.Random
    deadline: float
    context: Any
    tables: Sequence[tuple[str, str, str, str]]
    kills: int = 1  # at least
    expected: Mapping[str, object] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0  # of the undisturbed run

    def start(self, results: Path, workers: int = 1, limit: int = 0, uri: str = "") -> Any:
        """The command that runs the tables, as a process. limit: bytes of a file; uri: of a tracking server."""
        process = self.context.Process(target=_command, args=(results, self.tables, workers, limit, uri))
        process.start()
        return process

    def resume(self, results: Path, what: str) -> None:
        """Run what is left; notes whether the records are those of the undisturbed run, and nothing else is left."""
        process = self.start(results)
        process.join()
        said = _said(results)
        if process.exitcode:
            self.problems.append(f"{what}: resumed, it ended with {process.exitcode}: {said[-500:]}")
        self.compare(results, what)

    def compare(self, results: Path, what: str) -> None:
        """Note what differs from the undisturbed run, or was left behind."""
        if TRACES in _said(results):
            self.problems.append(f"{what}: a traceback in {results / 'said'}: {_said(results)[-800:]}")
        found = {record.cell_id: record.outcome for record in read_records(results / "records")}
        if self.expected and found != self.expected:
            differ = [name for name in self.expected if found.get(name) != self.expected[name]]
            self.problems.append(f"{what}: {len(differ)} of {len(self.expected)} records differ or lack: {differ}")
        if left := [path for name in ("checkpoints", "locks") for path in (results / name).glob("*")]:
            self.problems.append(f"{what}: left behind: {', '.join(map(str, left))}")

    def compare_rounds(self, results: Path, what: str) -> None:
        """Note the rounds that were saved more than once: what is saved is never computed again."""
        saved = Counter((results / ROUNDS).read_text(encoding="utf-8").splitlines())
        if twice := [line for line, count in saved.items() if count > 1]:
            self.problems.append(f"{what}: saved more than once: {', '.join(twice)}")

    def new(self, name: str) -> Path:
        """A results folder of its own."""
        return self.folder / f"{name}-{len(list(self.folder.iterdir()))}"

    def interrupted(self, name: str) -> Path:
        """A results folder with what a command has left that was killed in the middle."""
        results = self.new(name)
        process = self.start(results)
        process.join(self.seconds * self.draw.uniform(0.3, 0.9))
        _kill(process)
        return results


def _command(results: Path, tables: Sequence[tuple[str, str, str, str]], workers: int, limit: int, uri: str) -> None:
    """What a process does: both streams into a file, and then as the command line would."""
    os.setsid()
    results.mkdir(parents=True, exist_ok=True)
    output = os.open(results / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if uri:
        os.environ["MLFLOW_TRACKING_URI"] = uri
    tracking = [] if uri else ["--no-tracking"]
    _note_rounds(results / ROUNDS)
    status = 0
    for table, task, methods, change in tables:
        words = ["run", table, "--tasks", task, "--methods", methods, "--set", change, "--device", "cpu", *tracking]
        status = max(status, benchmarks_main([*words, "--workers", str(workers), "--results-dir", str(results)]))
    sys.exit(status)


def _note_rounds(path: Path) -> None:
    """Have this process, and no worker of its own, write a line for every round that it has saved."""
    save = Checkpoint.save

    def noted(checkpoint: Checkpoint, run: Run) -> None:
        save(checkpoint, run)
        with path.open("a", encoding="utf-8") as lines:
            lines.write(f"{checkpoint.identity} round {run.state.round}\n")

    setattr(Checkpoint, "save", noted)  # noqa: B010 - a type checker takes it for another signature


def _said(results: Path) -> str:
    with suppress(FileNotFoundError):
        return (results / "said").read_text(encoding="utf-8", errors="replace")
    return ""


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return [int(child) for child in found]
    return []


def _kill(process: Any, draw: random.Random | None = None) -> None:
    """Kill a command; with `draw`, it or one of the processes that it started."""
    victims = [process.pid, *(_children(process.pid) if draw else [])]
    victim = draw.choice(victims) if draw else process.pid
    with suppress(ProcessLookupError):
        os.kill(victim, 9)
    if victim == process.pid:
        process.join()


# ---- faults ----------------------------------------------------------------------------------------------------


def full_disk(campaign: Campaign) -> str:
    """Files may not grow beyond a few kilobytes: writing fails in the middle, as on a disk that is full."""
    results = campaign.new("full")
    for limit in (campaign.draw.randrange(1, 2**12), campaign.draw.randrange(2**12, 2**20)):
        process = campaign.start(results, limit=limit)
        process.join()
        if process.exitcode not in (0, 2):
            campaign.problems.append(f"full disk at {limit} bytes: status {process.exitcode}: {_said(results)[-800:]}")
    campaign.resume(results, "full disk")
    return "2 limits"


def forbidden(campaign: Campaign) -> str:
    """Folders that cannot be written: a file stands where each would be, as modes do not bind the superuser."""
    results = campaign.interrupted("forbidden")
    for name in ("records", "checkpoints", "locks"):
        aside = results / f"{name}-aside"
        if (results / name).is_dir():
            (results / name).rename(aside)
        (results / name).touch()
        process = campaign.start(results)
        process.join()
        if process.exitcode != 2:
            campaign.problems.append(f"{name} cannot be written: expected status 2, found {process.exitcode}")
        (results / name).unlink()
        if aside.is_dir():
            aside.rename(results / name)
    campaign.resume(results, "folders that cannot be written")
    return "3 folders"


def torn(campaign: Campaign) -> str:
    """Files cut short, and with a flipped bit: refused by name, or computed anew; what is named is moved away."""
    count = 0
    for flip in (False, True):
        results = campaign.interrupted("torn")
        for name in DAMAGED:
            files = [path for path in (results / name).rglob("*") if path.is_file() and path.stat().st_size]
            for path in campaign.draw.sample(files, min(2, len(files))):
                content = bytearray(path.read_bytes())
                if flip:
                    content[campaign.draw.randrange(len(content))] ^= 1 << campaign.draw.randrange(8)
                else:
                    del content[campaign.draw.randrange(len(content)) :]
                path.write_bytes(content)
                count += 1
        for _ in range(2 * len(DAMAGED)):  # as often as there may be something to move away
            process = campaign.start(results)
            process.join()
            if not process.exitcode:
                break
            _follow_advice(results)
        campaign.resume(results, "a flipped bit" if flip else "a file cut short")
    return f"{count} files"


def _follow_advice(results: Path) -> None:
    """Remove what the last message names."""
    message = _said(results).rpartition("error: ")[2]
    for path in [*results.glob("records/*"), *results.glob("checkpoints/*"), *results.glob("*/*")]:
        if str(path) in message:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def clock(campaign: Campaign) -> str:
    """A clock set back, or forward: what was written is of another time."""
    for shift in (-TWENTY_YEARS, TWENTY_YEARS):
        results = campaign.interrupted("clock")
        for path in results.rglob("*"):
            os.utime(path, (time.time() + shift, time.time() + shift))
        campaign.resume(results, "a clock set back")
    return "2 clocks"


def tracking(campaign: Campaign) -> str:
    """A tracking server that is down, one that drips, and then a database, in the same results folder."""
    results = campaign.new("tracking")
    with _dripping() as slow, socket.create_server(("127.0.0.1", 0)) as closed:
        closed.close()
        for uri in (f"http://127.0.0.1:{slow - 1 if slow > 1024 else 9}", f"http://127.0.0.1:{slow}", ""):
            process = campaign.start(results, uri=uri or f"sqlite:///{results / 'mlflow.db'}")
            process.join()
            if process.exitcode:
                campaign.problems.append(f"tracking at {uri}: status {process.exitcode}: {_said(results)[-800:]}")
    campaign.compare(results, "tracking")
    return "down, slow, up"


@contextmanager
def _dripping() -> Iterator[int]:
    """A port behind which every answer comes a byte a second."""

    def answer(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(b" ")
                time.sleep(1)

    def accept(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        yield int(server.getsockname()[1])


def lost_nodes(campaign: Campaign) -> str:
    """Workers that drain one queue, of which some are lost."""
    found = lose(campaign.folder / "lost", cells=24, workers=2, kills=4, seconds=20, seed=campaign.draw.randrange(100))
    wrong = {name: found[name] for name in ("missing", "twice", "claims") if found[name]}
    if wrong or found["records"] != 24:
        campaign.problems.append(f"lost workers: {dict(found)}")
    return f"{found['kills']} of 2 workers' processes"


def kills(campaign: Campaign) -> str:
    """SIGKILL of the command or of a worker at random moments, as long as there is time; resumed in between."""
    count = 0
    while time.monotonic() < campaign.deadline or count < campaign.kills:
        results = campaign.new("killed")
        workers = campaign.draw.choice((1, 1, 2))
        for _ in range(campaign.draw.choice((1, 2, 4))):
            process = campaign.start(results, workers)
            process.join(campaign.seconds * campaign.draw.random())
            if process.exitcode is None:
                _kill(process, campaign.draw)
                count += 1
            process.join(campaign.seconds * campaign.draw.random())
            _kill(process)
        time.sleep(1)  # workers see that the command has gone
        campaign.resume(results, f"killed, {workers} workers")
        campaign.compare_rounds(results, f"killed, {workers} workers")
        shutil.rmtree(results)
    return f"{count} kills"


FAULTS: dict[str, Callable[[Campaign], str]] = {
    fault.__name__: fault for fault in (torn, full_disk, forbidden, clock, tracking, lost_nodes, kills)
}


def torture(folder: Path, seconds: float, faults: Sequence[str], seed: int = 0, kills: int = 1) -> list[str]:
    """Do it in a folder; what went wrong. After so many seconds no other fault is begun. kills: at least."""
    context = multiprocessing.get_context("forkserver")  # imports once, so that a command starts in a moment
    context.set_forkserver_preload([*HEAVY, "benchmarks.cli.run", "benchmarks.cli.report", "mlflow"])
    begun = time.monotonic()
    campaign = Campaign(folder, random.Random(seed), begun + seconds, context, TABLES, kills)
    for _ in range(2):  # the first one imports, too
        shutil.rmtree(folder / "undisturbed", ignore_errors=True)
        start = time.monotonic()
        campaign.resume(folder / "undisturbed", "undisturbed")
        campaign.seconds = time.monotonic() - start
    campaign.expected = {record.cell_id: record.outcome for record in read_records(folder / "undisturbed" / "records")}
    if campaign.problems:
        return campaign.problems  # which are the table's own
    print(f"undisturbed: {len(campaign.expected)} records in {campaign.seconds:.0f} s", flush=True)
    for name in faults:
        if time.monotonic() > campaign.deadline and name != faults[0]:
            print(f"left out, as the time is over: {name}", flush=True)
            continue
        before = len(campaign.problems)
        said = FAULTS[name](campaign)
        print(f"{'ok  ' if len(campaign.problems) == before else 'BAD '} {name}: {said}", flush=True)
    return campaign.problems


def main() -> int:
    """Print what came of each fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*", choices=[[], *FAULTS], metavar="fault", help=", ".join(FAULTS))
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--kills", type=int, default=1, help="at least, however long they take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a new folder in which all is left (default: a temporary one)")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = words.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        problems = torture(folder, words.seconds, words.faults or list(FAULTS), words.seed, words.kills)
    for problem in problems:
        print(f"- {problem}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
