"""Bytes of rounds and costs of clients by shapes, each derived once and kept in a cache file of the results folder.

A key holds everything that decides an answer; a damaged file is ignored and derived again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from benchmarks.costs import ClientCosts, Fit, HeldBytes, Kinds, ModelSizes, WirePlan, Work
from benchmarks.errors import DependsOnTextsError, RoundRefusedError, UserError
from benchmarks.registry import included_code
from benchmarks.results import write_text
from benchmarks.run_config import ENGINE_VERSION, JSON, RunConfig, canonical_json, digest
from benchmarks.tasks import task
from fedsim.files import read_json
from fedsim.strict import to_plain

LIBRARIES = ("torch", "transformers")
Answer = TypeVar("Answer")
_file: Path | None = None  # of the cache, once a results folder is known
_answers: dict[str, JSON] = {}


def keep_in(results_dir: Path) -> None:
    """Keep derived answers in a results folder from now on, and use those it already has."""
    global _file, _answers
    _file = results_dir / "cache" / "shapes.json"
    _answers = _stored()


def _stored() -> dict[str, JSON]:
    """The answers of the file; empty where it is missing or damaged."""
    try:
        content = read_json(_file) if _file is not None and _file.is_file() else {}
    except (OSError, ValueError):
        return {}
    return dict(content) if isinstance(content, dict) else {}


def _keep(key: str, value: JSON) -> None:
    """Keep an answer next to those that other processes have written meanwhile; a full disk loses nothing else."""
    global _file
    _answers.update(_stored() | {key: value})
    if _file is not None:
        lines = (f"{json.dumps(name)}: {canonical_json(answer)}" for name, answer in sorted(_answers.items()))
        try:
            write_text(_file, "{\n" + ",\n".join(lines) + "\n}\n")
        except OSError:
            _file = None


def key_of(what: str, cell: RunConfig, examples: int | Sequence[int] | None = None) -> str:
    """The key of a run's answer, the same for runs of the same shapes.

    Args:
        what: The name of the answer, such as "plan".
        cell: The run.
        examples: Of all clients together, or of each, where they are known.
    """
    of, libraries = task(cell.task), _versions()
    training = {name: value for name, value in vars(cell.training).items() if name != "learning_rate"}
    decisive = cell.backbone, cell.algorithm, cell.options, cell.clients, cell.codec, cell.head, training, cell.seed
    of_task = of.objective, of.classes, of.objective_options, of.long_texts
    code = included_code(cell.algorithm)  # a user's, which may change
    parts = [ENGINE_VERSION, libraries, *decisive, *of_task, examples, *([code] if code else [])]
    parts += [to_plain(cell.adapter)] if cell.adapter else []
    return f"{what}-{digest(json.loads(canonical_json(parts)))}"


@cache
def _versions() -> list[str]:
    return [metadata.version(name) for name in LIBRARIES]


def kept(
    key: str, derive: Callable[[], Answer | None], to_json: Callable[[Answer], JSON], read: Callable[[JSON], Answer]
) -> Answer | None:
    """A derived answer, from the cache if it is there."""
    if key in _answers:
        try:
            stored = _answers[key]
            return None if stored is None else read(stored)
        except (TypeError, ValueError, KeyError, AttributeError):  # a damaged entry
            pass
    answer = derive()
    _keep(key, None if answer is None else json.loads(json.dumps(to_json(answer))))
    return answer


def _plan_to_json(plan: WirePlan) -> JSON:
    kinds = [[[*kind, size] for kind, size in each.kinds.items()] for each in plan.rounds[: 1 if plan.alike else None]]
    return {
        "rounds": len(plan.rounds),
        "kinds": kinds,
        "setup_bytes": plan.setup_bytes,
        "sizes": asdict(plan.sizes),
    }


def _plan_from_json(value: JSON) -> WirePlan:
    rounds: list[Kinds] = [{(way, kind): size for way, kind, size in kinds} for kinds in value["kinds"]]
    repeated = rounds * value["rounds"] if len(rounds) == 1 else rounds
    return WirePlan.of_rounds(repeated, value["setup_bytes"], ModelSizes(**value["sizes"]))


def plan_of(cell: RunConfig, examples: int | Sequence[int] | None = None) -> WirePlan | None:
    """The bytes of a run's rounds; None where the texts themselves decide.

    examples: of each client, or a number that is split evenly among them.
    """

    def derive() -> WirePlan | None:
        from benchmarks.dry_run.rounds import wire_plan  # loads torch

        sizes = None if isinstance(examples, int) else examples
        if isinstance(examples, int):
            sizes = [(examples + client) // cell.clients for client in range(cell.clients)]
        try:
            return wire_plan(cell, examples=sizes)
        except (DependsOnTextsError, RoundRefusedError):
            return None

    return kept(key_of("plan", cell, examples), derive, _plan_to_json, _plan_from_json)


def derive_client(cell: RunConfig) -> ClientCosts | None:
    """The cost of one client's training; None for a method with another training loop."""
    key = key_of("client", cell)
    return kept(key, lambda: _dry_run().client_costs(cell), asdict, lambda value: ClientCosts(**value))


def derive_fit(cell: RunConfig, memory: int, precision: str, checkpoints: bool = False) -> Fit | None:
    """The part of a run's batches that fits a GPU with so many bytes; see `memory.fit`.

    None for a method that does not train with steps, which needs no GPU. UserError where nothing fits.
    """

    def derive() -> Fit | UserError | None:
        from benchmarks.dry_run.memory import fit  # loads torch
        from fedsim.algorithms import trains

        try:
            return fit(cell, memory, precision, checkpoints) if trains(cell.algorithm) else None
        except DependsOnTextsError:  # counts of tokens
            return None
        except UserError as error:
            return error

    def to_json(answer: Fit | UserError) -> JSON:
        return str(answer) if isinstance(answer, UserError) else asdict(answer)

    def read(value: JSON) -> Fit | UserError:
        if isinstance(value, str):
            return UserError(value)
        return Fit(value["part"], value["scored"], HeldBytes(**value["held"]), HeldBytes(**value["whole"]))

    what = f"fit-{memory >> 30}-{precision}{'-checkpoints' * checkpoints}-scored"
    answer = kept(key_of(what, cell), derive, to_json, read)
    if isinstance(answer, UserError):
        raise answer
    return answer


def derive_cell_flops(cell: RunConfig, examples: Sequence[int], scored: int) -> int:
    """FLOPs of a run's training on clients with so many texts; see `client_costs.cell_flops`."""
    key = f"{key_of('cell-flops', cell)}-{digest([*examples, scored])}"
    return kept(key, lambda: _dry_run().cell_flops(cell, examples, scored), int, int) or 0


def derive_work(cell: RunConfig) -> Work | None:
    """Operations of training on a text, at the client and at the server; None where shapes do not give them."""
    one = replace(cell, seed=0)  # seeds draw cohorts, not shapes

    def derive() -> Work | None:
        try:
            work: Work | None = _dry_run().work(one)
        except DependsOnTextsError:  # counts of words, which have no shapes
            return None
        return work

    return kept(key_of("work", one), derive, asdict, lambda value: Work(**value))


def _dry_run() -> ModuleType:
    from benchmarks.dry_run import client_costs  # loads torch

    return client_costs
