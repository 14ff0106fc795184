"""A checkpoint after every round: tensors as files, committed by one atomic rename."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from fedsim.engine import RoundMetrics, RoundResult, Run
from fedsim.errors import CheckpointError
from fedsim.files import parse_json, read_file
from fedsim.store import read_tensors, write_tensors, write_through
from fedsim.wire import Ledger, Params

MANIFEST = "state.json"
VERSION = 3


class Checkpoint:
    """The state of one run in a folder of its own; whatever the moment of a kill, the last whole round is there."""

    def __init__(self, folder: Path, identity: str, guard: Callable[[], None] = lambda: None) -> None:
        """guard: called before anything is written; raises where this process may not."""
        self.folder = folder
        self.identity = identity
        self._guard = guard
        self._answers: dict[int, list[str]] = {}  # round -> the file of its answers and that file's SHA-256

    def save(self, run: Run) -> None:
        """Write the state after a round; the manifest's rename commits it, then older files are removed."""
        self._guard()
        state = run.state
        tensors = {f"shared/{name}": tensor for name, tensor in state.shared.items()}
        for moment, params in state.moments.items():
            tensors.update({f"{moment}/{name}": tensor for name, tensor in params.items()})
        server = f"server-round-{state.round}.safetensors"
        clients = state.clients.flush(state.round)
        self._write_answers(run)
        manifest = {
            "version": VERSION,
            "identity": self.identity,
            "round": state.round,
            "server": [server, write_tensors(self.folder / server, tensors)],
            "clients": clients,
            "best": run.best,
            "answers": self._answers,
            "ledger": run.channel.ledger.rows,
            "results": [asdict(result) for result in run.results],
        }
        content = json.dumps(manifest, allow_nan=False)
        digest = hashlib.sha256(content.encode()).hexdigest()
        temporary = self.folder / f".{MANIFEST}"
        write_through(temporary, f"{digest}\n{content}".encode())
        temporary.replace(self.folder / MANIFEST)
        kept = {name for name, _ in (*clients.values(), *self._answers.values())}
        self._remove_others({server, *kept})

    def _write_answers(self, run: Run) -> None:
        """Write the answers of each kept round, once."""
        for number in run.answers.keys() - self._answers.keys():
            name = f"answers-round-{number}.safetensors"
            # Copied: the answers that clients share are one array, and the format refuses shared memory.
            tensors = {part: torch.tensor(own) for part, own in run.answers[number].items()}
            self._answers[number] = [name, write_tensors(self.folder / name, tensors)]
        self._answers = {number: self._answers[number] for number in sorted(run.answers)}

    def restore(self, run: Run) -> None:
        """Bring a freshly initialised run to the last saved round; does nothing where none was saved."""
        path = self.folder / MANIFEST
        if not os.path.lexists(path):
            return
        try:
            self._take_up(run, path)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise CheckpointError(
                f"checkpoint {path} is damaged ({type(error).__name__}: {error}). Remove the folder {self.folder} to "
                f"start this cell from its first round; finished cells are not touched."
            ) from None

    def _take_up(self, run: Run, path: Path) -> None:
        digest, _, content = read_file(path).partition(b"\n")
        if hashlib.sha256(content).hexdigest().encode() != digest:
            raise ValueError("its content does not have the SHA-256 in its first line")
        manifest = parse_json(content.decode(), path)
        if manifest["version"] != VERSION or manifest["identity"] != self.identity:
            raise ValueError("it belongs to another run or version")
        results = [_result(entry) for entry in manifest["results"]]
        ledger = Ledger(manifest["ledger"])
        server, clients, finished = manifest["server"], manifest["clients"], int(manifest["round"])
        best, answers = manifest["best"], {int(number): kept for number, kept in manifest["answers"].items()}
        groups: dict[str, Params] = {}
        for name, tensor in read_tensors(self.folder / server[0], server[1]).items():
            group, _, rest = name.partition("/")
            groups.setdefault(group, {})[rest] = tensor
        run.state.clients.restore(clients)
        shared = groups.pop("shared", {})
        for name in shared.keys() & run.state.shared.keys():
            if shared[name].shape != run.state.shared[name].shape:
                raise ValueError(f"{name} has another shape than this run's model has")
        run.state = replace(run.state, round=finished, shared=shared, moments=groups)
        for number, (name, file_digest) in answers.items():
            kept = read_tensors(self.folder / name, file_digest)
            run.answers[number] = {part: own.numpy() for part, own in kept.items()}
        self._answers = answers
        run.best = None if best is None else int(best)
        run.channel.ledger = ledger
        run.results = results

    def remove(self) -> None:
        """Remove the checkpoint, once its run is recorded."""
        (self.folder / MANIFEST).unlink(missing_ok=True)  # first: without it the rest is no checkpoint
        (self.folder / f".{MANIFEST}").unlink(missing_ok=True)
        self._remove_others(set())
        if self.folder.exists() and not list(self.folder.glob(".nfs*")):  # left of what someone still reads
            self.folder.rmdir()

    def _remove_others(self, keep: set[str]) -> None:
        for path in self.folder.glob("*.safetensors"):
            if path.name not in keep:
                path.unlink()


def _result(entry: Mapping[str, Any]) -> RoundResult:
    metrics = entry["metrics"]
    return RoundResult(
        round=entry["round"],
        cohort=tuple(entry["cohort"]),
        metrics=RoundMetrics(tuple(metrics["client_losses"]), metrics["train_loss"]),
        client_scores=tuple(entry["client_scores"]),
        pooled_scores=entry["pooled_scores"],
    )
