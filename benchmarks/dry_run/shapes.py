"""Bytes of rounds and clients' costs from shapes, each derived once and cached in the results folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from benchmarks.costs import ClientCosts, Fit, ModelSizes, Traffic, WirePlan, Work
from benchmarks.dry_run.cache import kept, key_of
from benchmarks.errors import DependsOnTextsError, RoundRefusedError, UserError
from benchmarks.run_config import RunConfig, digest

_REFUSALS: dict[str, type[UserError]] = {kind.__name__: kind for kind in (DependsOnTextsError, RoundRefusedError)}


@dataclass(frozen=True)
class _StoredPlan:
    """A plan in the cache: direction, kind and bytes by round; equal rounds are stored once."""

    rounds: int
    kinds: list[list[tuple[str, str, int]]]
    setup_bytes: int
    sizes: ModelSizes

    @property
    def plan(self) -> WirePlan:
        rounds = tuple(Traffic({(way, kind): size for way, kind, size in kinds}) for kinds in self.kinds)
        return WirePlan(rounds * self.rounds if len(rounds) == 1 else rounds, self.setup_bytes, self.sizes)


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

    def derive() -> _StoredPlan | tuple[str, str]:
        sizes = None if isinstance(examples, int) else examples
        if isinstance(examples, int):
            sizes = [(examples + client) // cell.clients for client in range(cell.clients)]
        try:
            from benchmarks.dry_run.rounds import wire_plan  # loads torch

            plan = wire_plan(cell, sizes)
        except (DependsOnTextsError, RoundRefusedError) as error:
            return type(error).__name__, str(error)
        distinct = plan.rounds[: 1 if plan.alike else None]
        kinds = [[(*kind, size) for kind, size in each.kinds.items()] for each in distinct]
        return _StoredPlan(len(plan.rounds), kinds, plan.setup_bytes, plan.sizes)

    answer = kept(key_of("rounds", cell, examples), derive, _StoredPlan | tuple[str, str])
    if isinstance(answer, tuple):
        raise _REFUSALS[answer[0]](answer[1])
    return answer.plan


def derive_client(cell: RunConfig) -> ClientCosts | None:
    """The cost of one client's training; None for a method with another training loop."""
    return kept(key_of("client", cell), lambda: _dry_run().client_costs(cell), ClientCosts | None)


def derive_fit(cell: RunConfig, memory: int, precision: str, checkpoints: bool = False) -> Fit | None:
    """The part of a run's batches that fits a GPU with `memory` bytes; see `memory.fit`.

    None for a method without training steps, which needs no GPU. UserError if nothing fits.
    """

    def derive() -> Fit | str | None:
        from benchmarks.dry_run.memory import fit  # loads torch
        from fedsim.algorithms import trains

        try:
            return fit(cell, memory, precision, checkpoints) if trains(cell.algorithm) else None
        except DependsOnTextsError:  # a model of token counts
            return None
        except UserError as error:
            return str(error)

    what = f"fit-{memory >> 30}-{precision}{'-checkpoints' * checkpoints}-scored"
    answer = kept(key_of(what, cell), derive, Fit | str | None)
    if isinstance(answer, str):
        raise UserError(answer)
    return answer


def derive_cell_flops(cell: RunConfig, examples: Sequence[int], scored: int) -> int:
    """FLOPs of a run's training for the clients' numbers of texts; see `client_costs.cell_flops`."""
    key = f"{key_of('cell-flops', cell)}-{digest([*examples, scored])}"
    return kept(key, lambda: _dry_run().cell_flops(cell, examples, scored), int)


def derive_work(cell: RunConfig) -> Work | None:
    """Operations for training on a text, at the client and at the server; None if shapes do not determine them."""
    one = replace(cell, seed=0)  # seeds change cohorts, not shapes

    def derive() -> Work | None:
        try:
            return _dry_run().work(one)
        except ValueError:  # word counts have no shapes, and an attack trains no model with a run's shapes
            return None

    return kept(key_of("work", one), derive, Work | None)


def _dry_run() -> ModuleType:
    from benchmarks.dry_run import client_costs  # loads torch

    return client_costs
