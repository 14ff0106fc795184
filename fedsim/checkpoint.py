"""A checkpoint after every round: tensors as files, committed by one atomic rename."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fedsim.engine import RoundMetrics, RoundResult, Run
from fedsim.errors import CheckpointError
from fedsim.store import read_tensors, write_tensors, write_through
from fedsim.wire import Ledger, Params

MANIFEST = "state.json"
VERSION = 1


class Checkpoint:
    """The state of one run in a folder of its own; whatever the moment of a kill, the last whole round is there."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder = folder
        self.identity = identity

    def save(self, run: Run) -> None:
        """Write the state after a round; the manifest's rename commits it, then older files are removed."""
        state = run.state
        tensors = {f"shared/{name}": tensor for name, tensor in state.shared.items()}
        for moment, params in state.moments.items():
            tensors.update({f"{moment}/{name}": tensor for name, tensor in params.items()})
        server = f"server-round-{state.round}.safetensors"
        clients = state.clients.flush(state.round)
        manifest = {
            "version": VERSION,
            "identity": self.identity,
            "round": state.round,
            "server": [server, write_tensors(self.folder / server, tensors)],
            "clients": clients,
            "ledger": run.channel.ledger.rows,
            "results": [asdict(result) for result in run.results],
        }
        content = json.dumps(manifest, allow_nan=False)
        digest = hashlib.sha256(content.encode()).hexdigest()
        temporary = self.folder / f".{MANIFEST}"
        write_through(temporary, f"{digest}\n{content}".encode())
        temporary.replace(self.folder / MANIFEST)
        self._remove_others({server, *(name for name, _ in clients.values())})

    def restore(self, run: Run) -> None:
        """Bring a freshly initialised run to the last saved round; does nothing where none was saved."""
        path = self.folder / MANIFEST
        if not path.exists():
            return
        try:
            digest, _, content = path.read_bytes().partition(b"\n")
            if hashlib.sha256(content).hexdigest().encode() != digest:
                raise ValueError("its content does not have the SHA-256 in its first line")
            manifest = json.loads(content)
            if manifest["version"] != VERSION or manifest["identity"] != self.identity:
                raise ValueError("it belongs to another run or version")
            results = [_result(entry) for entry in manifest["results"]]
            ledger = Ledger(manifest["ledger"])
            server, clients, finished = manifest["server"], manifest["clients"], int(manifest["round"])
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"checkpoint {path} is damaged ({type(error).__name__}: {error}). Remove the folder {self.folder} to "
                f"start this cell from its first round; finished cells are not touched."
            ) from None
        groups: dict[str, Params] = {}
        for name, tensor in read_tensors(self.folder / server[0], server[1]).items():
            group, _, rest = name.partition("/")
            groups.setdefault(group, {})[rest] = tensor
        run.state.clients.restore(clients)
        run.state = replace(run.state, round=finished, shared=groups.pop("shared", {}), moments=groups)
        run.channel.ledger = ledger
        run.results = results

    def remove(self) -> None:
        """Remove the checkpoint, once its run is recorded."""
        (self.folder / MANIFEST).unlink(missing_ok=True)  # first: without it the rest is no checkpoint
        (self.folder / f".{MANIFEST}").unlink(missing_ok=True)
        self._remove_others(set())
        if self.folder.exists():
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
    )
