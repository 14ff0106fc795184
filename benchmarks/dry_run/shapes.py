"""What shapes give of a benchmark's cells: bytes of rounds and costs of clients, derived once and kept in a cache file.

The cache is a convenience: a key holds everything that decides an answer, and a damaged file is derived anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from benchmarks.costs import ClientCosts, Kinds, ModelSizes, WirePlan
from benchmarks.errors import DependsOnTextsError, RoundRefusedError
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.results import write_text
from benchmarks.run_config import ENGINE_VERSION, JSON, RunConfig, canonical_json, digest
from benchmarks.tasks import task
from fedsim.files import read_json

if TYPE_CHECKING:
    from reports.evidence.records import Derive

UNUSED = ("learning_rate",)  # of training: no shape depends on it, and searches change it
LIBRARIES = ("torch", "transformers")
Answer = TypeVar("Answer", WirePlan, ClientCosts)


class _Answers:
    """Answers by key, in memory and, once a folder is known, in its file."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self.known: dict[str, JSON] = {}

    def read(self) -> dict[str, JSON]:
        """The answers of the file; empty where it is missing or damaged."""
        try:
            found = read_json(self.path) if self.path is not None and self.path.is_file() else {}
        except (OSError, ValueError):
            return {}
        return dict(found) if isinstance(found, dict) else {}

    def add(self, key: str, value: JSON) -> None:
        """Keep an answer, with those that other processes have written meanwhile; a full disk loses nothing else."""
        self.known[key] = value
        if self.path is None:
            return
        self.known = self.read() | self.known
        lines = (f"{json.dumps(own)}: {canonical_json(answer)}" for own, answer in sorted(self.known.items()))
        try:
            write_text(self.path, "{\n" + ",\n".join(lines) + "\n}\n")
        except OSError:
            self.path = None


_ANSWERS = _Answers()


def keep_in(results_dir: Path) -> None:
    """Keep what is derived from now on in a results folder, and take what it has."""
    _ANSWERS.path = results_dir / "cache" / "shapes.json"
    _ANSWERS.known = _ANSWERS.read()


def key_of(what: str, cell: RunConfig, examples: int | None = None) -> str:
    """The key of a cell's answer: the same for cells of the same shapes, whatever their data.

    what: "plan" or "client". examples: of all clients together, where they were given.
    """
    of, libraries = task(cell.task), [metadata.version(name) for name in LIBRARIES]
    training = {name: value for name, value in vars(cell.training).items() if name not in UNUSED}
    decisive = cell.backbone, cell.algorithm, cell.options, cell.clients, cell.codec, cell.head, training, cell.seed
    of_task = of.objective, of.classes, of.objective_options, of.long_texts
    return f"{what}-{digest(json.loads(canonical_json([ENGINE_VERSION, libraries, *decisive, *of_task, examples])))}"


def _answer(key: str, read: Callable[[JSON], Answer], derive: Callable[[], Answer | None]) -> Answer | None:
    if key in _ANSWERS.known:
        try:
            kept = _ANSWERS.known[key]
            return None if kept is None else read(kept)
        except (TypeError, ValueError, KeyError, AttributeError):  # a damaged entry
            pass
    answer = derive()
    _ANSWERS.add(key, None if answer is None else json.loads(json.dumps(_as_json(answer))))
    return answer


def _as_json(answer: WirePlan | ClientCosts) -> JSON:
    if isinstance(answer, ClientCosts):
        return asdict(answer)
    rounds = answer.rounds[:1] if answer.alike else answer.rounds
    kinds = [[[way, kind, size] for (way, kind), size in each.kinds.items()] for each in rounds]
    return {
        "rounds": len(answer.rounds),
        "kinds": kinds,
        "setup_bytes": answer.setup_bytes,
        "sizes": asdict(answer.sizes),
    }


def _plan_from(value: JSON) -> WirePlan:
    rounds: list[Kinds] = [{(way, kind): size for way, kind, size in kinds} for kinds in value["kinds"]]
    whole = rounds * value["rounds"] if len(rounds) == 1 else rounds
    return WirePlan.of_rounds(whole, value["setup_bytes"], ModelSizes(**value["sizes"]))


def _client_from(value: JSON) -> ClientCosts:
    return ClientCosts(**value)


def derive_for(benchmark: Benchmark) -> Derive:
    """A function from a row, a column, a scale and a number of examples to the plan of a cell; None where unknown.

    Examples are shared out evenly, as their sum alone is known.
    """

    def derive(row: Row, column: Column, scale: Scale, examples: int | None = None) -> WirePlan | None:
        return plan_of(benchmark.cell(row, column, scale, 0), examples)

    return derive


def plan_of(cell: RunConfig, examples: int | None = None) -> WirePlan | None:
    """The bytes of a cell's rounds with so many examples, kept; None where they depend on what is not known."""

    def derive() -> WirePlan | None:
        from benchmarks.dry_run.rounds import wire_plan

        shared = None if examples is None else [(examples + client) // cell.clients for client in range(cell.clients)]
        try:
            return wire_plan(cell, examples=shared)
        except (DependsOnTextsError, RoundRefusedError):
            return None

    return _answer(key_of("plan", cell, examples), _plan_from, derive)


def derive_client(cell: RunConfig) -> ClientCosts | None:
    """The cost of one client's training, kept; None where a method trains by its own means."""

    def derive() -> ClientCosts | None:
        from benchmarks.dry_run.client_costs import client_costs

        return client_costs(cell)

    return _answer(key_of("client", cell), _client_from, derive)
