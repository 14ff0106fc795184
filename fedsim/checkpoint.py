"""A checkpoint after every round: tensor files, committed by one atomic rename."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import torch
from pydantic import TypeAdapter

from fedsim.engine import RoundResult, Run
from fedsim.errors import CheckpointError
from fedsim.files import parse_json, read_file, write_bytes
from fedsim.store import read_tensors, write_tensors, writing
from fedsim.wire import Ledger, Params

MANIFEST = "state.json"
VERSION = 3
RESULTS = TypeAdapter(list[RoundResult])


class Checkpoint:
    """One run's state in a folder; the last complete round survives a kill at any moment."""

    def __init__(self, folder: Path, identity: str, guard: Callable[[], None] = lambda: None) -> None:
        """guard: called before anything is written; raises if this process may not write."""
        self.folder = folder
        self.identity = identity
        self._guard = guard
        self._answers: dict[int, list[str]] = {}  # round -> (answers file, SHA-256)

    def save(self, run: Run) -> None:
        """Write the state after a round: renaming the manifest commits it, then older files are removed."""
        self._guard()
        state = run.state
        tensors = {f"shared/{name}": tensor for name, tensor in state.shared.items()}
        for moment, params in state.moments.items():
            tensors.update({f"{moment}/{name}": tensor for name, tensor in params.items()})
        server = f"server-round-{state.round}.safetensors"
        clients = state.clients.flush(state.round)
        held, dropped = run.channel.held.flush(state.round), run.channel.dropped.flush(state.round)
        self._write_answers(run)
        manifest = {
            "version": VERSION,
            "identity": self.identity,
            "round": state.round,
            "server": [server, write_tensors(self.folder / server, tensors)],
            "clients": clients,
            "held": held,
            "dropped": dropped,
            "best": run.best,
            "answers": self._answers,
            "ledger": run.channel.ledger.rows,
            "results": [asdict(result) for result in run.results],
        }
        content = json.dumps(manifest, allow_nan=False)
        digest = hashlib.sha256(content.encode()).hexdigest()
        with writing(self.folder / MANIFEST):
            write_bytes(self.folder / MANIFEST, f"{digest}\n{content}".encode())
        kept = {name for name, _ in (*clients.values(), *held.values(), *dropped.values(), *self._answers.values())}
        self._remove_others({server, *kept})

    def _write_answers(self, run: Run) -> None:
        """Write the answers of each kept round, once."""
        for number in run.answers.keys() - self._answers.keys():
            name = f"answers-round-{number}.safetensors"
            # Copied because clients may share one array, and safetensors rejects shared memory.
            tensors = {part: torch.tensor(values) for part, values in run.answers[number].items()}
            self._answers[number] = [name, write_tensors(self.folder / name, tensors)]
        self._answers = {number: self._answers[number] for number in sorted(run.answers)}

    def restore(self, run: Run) -> None:
        """Restore a newly initialised run to the last saved round; does nothing without a saved round.

        Raises CheckpointError if a file is damaged or belongs to another run.
        """
        path = self.folder / MANIFEST
        if not os.path.lexists(path):
            return
        try:
            self._restore(run, path)
        except CheckpointError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise CheckpointError(
                f"checkpoint {path} is damaged ({type(error).__name__}: {error}). Remove the folder {self.folder} to "
                f"start this cell from its first round; finished cells are not touched."
            ) from None

    def _restore(self, run: Run, path: Path) -> None:
        digest, _, content = read_file(path).partition(b"\n")
        if hashlib.sha256(content).hexdigest().encode() != digest:
            raise ValueError("its content does not match the SHA-256 in its first line")
        manifest = parse_json(content.decode(), path)
        if manifest["version"] != VERSION or manifest["identity"] != self.identity:
            raise ValueError("it belongs to another run or version")
        results, ledger = RESULTS.validate_python(manifest["results"]), Ledger(manifest["ledger"])
        groups: dict[str, Params] = {"shared": {}}
        file, file_digest = manifest["server"]
        for key, tensor in read_tensors(self.folder / file, file_digest).items():
            group, _, name = key.partition("/")
            groups.setdefault(group, {})[name] = tensor
        shared = groups.pop("shared")
        for name in shared.keys() & run.state.shared.keys():
            if shared[name].shape != run.state.shared[name].shape:
                raise ValueError(f"{name} does not have its shape in this run's model")
        run.state.clients.restore(manifest["clients"])
        run.channel.held.restore(manifest.get("held", {}))  # earlier versions had no codec with memory
        run.channel.dropped.restore(manifest.get("dropped", {}))
        self._answers = {int(number): entry for number, entry in manifest["answers"].items()}
        for number, (file, file_digest) in self._answers.items():
            answers = read_tensors(self.folder / file, file_digest)
            run.answers[number] = {part: tensor.numpy() for part, tensor in answers.items()}
        run.state = replace(run.state, round=int(manifest["round"]), shared=shared, moments=groups)
        run.best, run.channel.ledger, run.results = manifest["best"], ledger, results

    def remove(self) -> None:
        """Remove the checkpoint, once its run is recorded."""
        (self.folder / MANIFEST).unlink(missing_ok=True)  # first: the other files count only with it
        self._remove_others(set())
        if self.folder.exists() and not list(self.folder.glob(".nfs*")):  # files that a reader still has open
            self.folder.rmdir()

    def _remove_others(self, keep: set[str]) -> None:
        unfinished = self.folder.glob(f".{MANIFEST}.*")  # left by killed processes
        for path in (*self.folder.glob("*.safetensors"), *unfinished):
            if path.name not in keep:
                path.unlink()
