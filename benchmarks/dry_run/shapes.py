"""Bytes of rounds and clients' costs from shapes, each derived once and cached in the results folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from types import ModuleType

from benchmarks.costs import ClientCosts, Fit, HeldBytes, ModelSizes, Traffic, WirePlan, Work
from benchmarks.dry_run.cache import kept, key_of
from benchmarks.errors import DependsOnTextsError, RoundRefusedError, UserError
from benchmarks.run_config import JSON, RunConfig, digest
from fedsim.errors import FederationError

_REFUSALS: dict[str, type[UserError]] = {kind.__name__: kind for kind in (DependsOnTextsError, RoundRefusedError)}


def _plan_to_json(plan: WirePlan) -> JSON:
    kinds = [[[*kind, size] for kind, size in each.kinds.items()] for each in plan.rounds[: 1 if plan.alike else None]]
    return {
        "rounds": len(plan.rounds),
        "kinds": kinds,
        "setup_bytes": plan.setup_bytes,
        "sizes": asdict(plan.sizes),
    }


def _plan_from_json(value: JSON) -> WirePlan:
    rounds = tuple(Traffic({(way, kind): size for way, kind, size in kinds}) for kinds in value["kinds"])
    repeated = rounds * value["rounds"] if len(rounds) == 1 else rounds
    return WirePlan(repeated, value["setup_bytes"], ModelSizes(**value["sizes"]))


def plan_of(cell: RunConfig, examples: int | Sequence[int] | None = None) -> WirePlan | None:
    """The bytes of a run's rounds; None if they depend on the texts themselves.

    examples: each client's number, or a number that is split evenly among clients.
    """
    try:
        return derive_plan(cell, examples)
    except (DependsOnTextsError, RoundRefusedError):
        return None


def derive_plan(cell: RunConfig, examples: int | Sequence[int] | None = None) -> WirePlan:
    """As `plan_of`, but raises DependsOnTextsError, or RoundRefusedError if the method has fewer rounds."""

    def derive() -> WirePlan | UserError:
        sizes = None if isinstance(examples, int) else examples
        if isinstance(examples, int):
            sizes = [(examples + client) // cell.clients for client in range(cell.clients)]
        try:
            from benchmarks.dry_run.rounds import wire_plan  # loads torch

            return wire_plan(cell, sizes)
        except (DependsOnTextsError, RoundRefusedError) as error:
            return error

    def to_json(answer: WirePlan | UserError) -> JSON:
        return [type(answer).__name__, str(answer)] if isinstance(answer, UserError) else _plan_to_json(answer)

    def read(value: JSON) -> WirePlan | UserError:
        return _REFUSALS[value[0]](value[1]) if isinstance(value, list) else _plan_from_json(value)

    answer = kept(key_of("rounds", cell, examples), derive, to_json, read)
    assert answer is not None
    if isinstance(answer, UserError):
        raise answer
    return answer


def derive_client(cell: RunConfig) -> ClientCosts | None:
    """The cost of one client's training; None for a method with another training loop."""
    key = key_of("client", cell)
    return kept(key, lambda: _dry_run().client_costs(cell), asdict, lambda value: ClientCosts(**value))


def derive_fit(cell: RunConfig, memory: int, precision: str, checkpoints: bool = False) -> Fit | None:
    """The part of a run's batches that fits a GPU with `memory` bytes; see `memory.fit`.

    None for a method without training steps, which needs no GPU. UserError if nothing fits.
    """

    def derive() -> Fit | UserError | None:
        from benchmarks.dry_run.memory import fit  # loads torch
        from fedsim.algorithms import trains

        try:
            return fit(cell, memory, precision, checkpoints) if trains(cell.algorithm) else None
        except DependsOnTextsError:  # a model of token counts
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
    """FLOPs of a run's training for the clients' numbers of texts; see `client_costs.cell_flops`."""
    key = f"{key_of('cell-flops', cell)}-{digest([*examples, scored])}"
    return kept(key, lambda: _dry_run().cell_flops(cell, examples, scored), int, int) or 0


def derive_work(cell: RunConfig) -> Work | None:
    """Operations for training on a text, at the client and at the server; None if shapes do not determine them."""
    one = replace(cell, seed=0)  # seeds change cohorts, not shapes

    def derive() -> Work | None:
        try:
            work: Work | None = _dry_run().work(one)
        except DependsOnTextsError:  # word counts have no shapes
            return None
        except (FederationError, ValueError):  # an attack trains no model with a run's shapes
            return None
        return work

    return kept(key_of("work", one), derive, asdict, lambda value: Work(**value))


def _dry_run() -> ModuleType:
    from benchmarks.dry_run import client_costs  # loads torch

    return client_costs
