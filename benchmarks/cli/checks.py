"""The command `check`: test whether the methods in a user's file meet the requirements on every method."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.dry_run.rounds import wire_plan
from benchmarks.errors import UserError
from benchmarks.overrides import read_assignment, with_changes
from benchmarks.registry import benchmark
from benchmarks.run_config import JSON, RunConfig
from benchmarks.running.federation import Federation, build_clients, build_federation, load_inputs
from benchmarks.running.included import load_file, place_in
from benchmarks.running.process import quiet_libraries
from benchmarks.running.run_options import RunOptions
from benchmarks.running.scoring import scores
from fedsim.algorithms import build_algorithm
from fedsim.checkpoint import Checkpoint
from fedsim.data import Client
from fedsim.engine import Run, cohorts, part_name, run_federation
from fedsim.errors import plural
from fedsim.plan import PlanFn
from fedsim.training import LocalTraining
from fedsim.wire import Channel, Params

TABLE, ROW, ROUNDS = "fedpeft-scores", "fedit", 4
TOLERANCE = 1e-6  # for weights: averaging one client or multiplying factors may round them
PART = 0.67  # two of three clients


def check_command(args: argparse.Namespace) -> int:
    """Check every method in a file, with these options, and record nothing. UserError if a check fails."""
    failed, changes = 0, [read_assignment(text) for text in args.set]
    if others := [name for name, _ in changes if not name.startswith("options.")]:
        raise UserError(f"--set {others[0]}: expected an option of the methods, such as options.head")
    methods = load_file(args.file)
    torch.set_num_threads(1)  # more only wait for each other with such small products
    for method in methods:
        print(f"{method.__name__}: generated texts, a tiny encoder with LoRA, {ROUNDS} rounds", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            checks = Checks(args.file, method.__name__, changes, Path(folder))
            for name, check in checks.all.items():
                problem, is_error = "", False
                try:
                    problem = check()
                except Exception as error:  # noqa: BLE001 - a user's code may raise any
                    where = place_in(args.file.resolve().parent, error)
                    problem, is_error = f"{type(error).__name__}: {error}{where and f' ({where})'}", True
                failed += bool(problem)
                print(f"  {'FAILED' if problem else 'ok    '} {name}{problem and f': {problem}'}", flush=True)
                if is_error:  # other checks would meet it, too
                    print("         the other checks are left out", flush=True)
                    break
    if failed:
        raise UserError(
            f"{args.file}: expected methods that pass every check, found {plural(failed, 'failed check')}; see above"
        )
    return 0


@dataclass(frozen=True)
class _Noted(LocalTraining):
    """Local training that notes the names of the tensors it trains, by round and client."""

    trained: dict[tuple[int, int], set[str]] = field(default_factory=dict)

    def run(self, model: Any, subset: Any, names: list[str], round: int, client: int, *rest: Any, **more: Any) -> float:
        self.trained.setdefault((round, client), set()).update(names)
        return super().run(model, subset, names, round, client, *rest, **more)


class _Finished(NamedTuple):
    """A run, its method's plan, and the tensors that local training changed, by round and client."""

    run: Run
    plan: PlanFn | None
    trained: Mapping[tuple[int, int], set[str]]


class Checks:
    """The checks of a method; each returns the problem, or ""."""

    def __init__(
        self, file: Path, method: str, changes: Sequence[tuple[str, JSON]], folder: Path, rounds: int = ROUNDS
    ) -> None:
        """folder: for temporary files."""
        quiet_libraries()
        table = benchmark(TABLE)
        scale = table.scale("demo")
        cell = table.cell(table.row(ROW), table.columns_at(scale)[0], scale, 0)
        training = replace(cell.training, rounds=rounds, local_epochs=1)
        self.cell = with_changes(replace(cell, algorithm=method, options={}, training=training), changes)
        self.part = replace(self.cell, training=replace(training, participation=PART))
        self.file, self.folder, self.options = file, folder, RunOptions(folder, device="cpu")
        self.inputs = load_inputs(self.cell, self.options)
        self.clients = build_clients(self.cell, self.inputs, self.options)[0]
        self.all: dict[str, Callable[[], str]] = {
            "the method is built with these options": self.built,
            "plan: a client downloads what other clients changed": self.downloads,
            "plan without training: bytes planned are bytes sent": lambda: self.bytes_sent(
                self.cell, self.run(self.cell)
            ),
            "dropped clients: two of three in a round, bytes planned are bytes sent": lambda: self.bytes_sent(
                self.part, self.whole
            ),
            "predictions: the scorer reads them": self.answers,
            "resume after each round: the same bits": self.resumed,
            "one client: a round is central training": self.one_client,
        }

    def federation(self, cell: RunConfig) -> Federation:
        """The method on these texts, from a file that is imported again, so that nothing is left in its globals."""
        load_file(self.file)
        return build_federation(cell, self.inputs, self.options)

    def run(self, cell: RunConfig, clients: Sequence[Client] | None = None, **engine: Any) -> _Finished:
        """Run a configuration."""
        work, channel = self.federation(cell).workload, Channel(cell.codec, seed=cell.seed)
        training = _Noted(**vars(work.training))
        method = build_algorithm(cell.algorithm, replace(work, training=training), cell.options)
        limits = {"rounds": cell.training.rounds, "participation": cell.training.participation, **engine}
        chosen = self.clients if clients is None else clients
        run = run_federation(method, chosen, channel, lambda *_: {}, seed=cell.seed, **limits)
        return _Finished(run, method.plan, training.trained)

    @cached_property
    def whole(self) -> _Finished:
        """A run with two of three clients in a round."""
        return self.run(self.part)

    def built(self) -> str:
        """Build the method: a mistake in it is one message, not one per check."""
        self.federation(self.cell)
        return ""

    def downloads(self) -> str:
        """Follow the plans: a client that uses a tensor has to have the last change that another client made."""
        plan = self.federation(self.part).algorithm.plan
        changed: dict[str, dict[int, int]] = {}  # the server's tensor -> client -> round of its last upload
        seen: dict[tuple[int, str], int] = {}  # client and tensor -> the round whose value the client received
        drawn = cohorts(self.clients, self.part.training, self.part.seed)
        for number, cohort in enumerate(drawn if plan else (), start=1):
            plans = {client.id: plan(number, client.id) for client in cohort} if plan else {}
            for client, each in plans.items():
                seen |= {(client, each.view[name]): number - 1 for name in each.download}
                for name in sorted(each.view.keys() - each.local):
                    others = (last for other, last in changed.get(each.view[name], {}).items() if other != client)
                    if (last := max(others, default=0)) > seen.get((client, each.view[name]), 0):
                        expected = f"expected client {client} to download {name}, which others changed in round {last}"
                        return f"round {number}: {expected}, found it neither downloaded nor local; download it"
            for client, each in plans.items():
                for name in each.upload:
                    changed.setdefault(each.view[name], {})[client] = number
        return ""

    def bytes_sent(self, cell: RunConfig, finished: _Finished) -> str:
        """Compare the ledger with a dry run and with the method's plan."""
        ledger, federation = finished.run.channel.ledger, self.federation(cell)
        sizes = [len(client.train) for client in self.clients]
        for number, planned in enumerate(wire_plan(cell, examples=sizes).rounds, start=1):
            sent: Counter[tuple[str, str]] = Counter()
            for row in ledger.rows:
                if row.round == number:
                    sent[row.direction, row.kind] += row.bytes
            if sent != planned.kinds:
                return f"round {number}: expected {_sizes(planned.kinds)} bytes, found {_sizes(sent)}"
        return self._as_planned(federation, finished)

    def _as_planned(self, federation: Federation, finished: _Finished) -> str:
        """Compare each client's parameters on the wire with its plan; without a plan, something has to go up."""
        rows = [row for row in finished.run.channel.ledger.rows if row.values]
        if finished.plan is None:
            sent = {(row.round, row.client) for row in rows if row.direction == "up"}
            for number, client in sorted(finished.trained.keys() - sent):
                if client in federation.workload.members:
                    expected = f"round {number}: expected client {client}, which trains, to upload something"
                    return f"{expected}, found nothing; use channel.to_server, or return a plan without upload"
            return ""
        values = {row[:4]: row.values for row in rows}  # by round, client, direction and kind
        for number, client in [(each.round, client) for each in finished.run.results for client in each.cohort]:
            plan = finished.plan(number, client)
            for direction, names in ("down", plan.download), ("up", plan.upload):
                planned = sum(federation.workload.initial[plan.view[name]].numel() for name in names)
                if planned != (found := values.get((number, client, direction, "parameters"), 0)):
                    expected = f"expected the plan's {planned} parameters {direction}, found {found}"
                    return f"round {number}, client {client}: {expected}; send what the plan names"
        return ""

    def answers(self) -> str:
        """Score the last round's predictions."""
        objective = self.federation(self.part).workload.objective
        last = self.whole.run.answers[self.part.training.rounds]
        for client in self.clients:
            for name, subset in client.evaluation.items():
                try:
                    scores(self.inputs.task.metrics, objective, last[part_name(client, name)], subset)
                except ValueError as error:
                    return f"client {client.id}, {name}: {error}; correct `predict`"
        return ""

    def resumed(self) -> str:
        """Compare a run with one that stops and resumes after each round."""
        whole = self.whole.run
        for rounds in range(1, self.part.training.rounds + 1):
            parts = self.run(self.part, rounds=rounds, checkpoint=Checkpoint(self.folder / "checkpoint", "check")).run
        different = _different(whole.state.shared, parts.state.shared, 0.0)
        for client in {*whole.state.clients, *parts.state.clients}:
            different += _different(whole.state.clients.get(client), parts.state.clients.get(client), 0.0)
        if whole.channel.ledger.rows != parts.channel.ledger.rows:
            return "expected the same bytes, found others"
        if different:
            found = f"expected the same bits, found others in {different[0]}"
            return f"{found}; keep what later rounds need in the state, and draw with a seed"
        for number, answers in whole.answers.items():
            for part, values in answers.items():
                if not np.array_equal(values, parts.answers[number][part], equal_nan=True):
                    return f"expected the same predictions, found others in round {number} for {part}; see `predict`"
        return ""

    def one_client(self) -> str:
        """Compare a one-client round with central training of the same parameters."""
        cell = replace(self.cell, clients=1, partition={"scheme": "equal"})
        (client,), _ = build_clients(cell, self.inputs, self.options)
        run, plan, trained = self.run(cell, [client], rounds=1)
        work = self.federation(cell).workload
        of_training = trained.get((1, client.id), work.model.trainable) & work.initial.keys()
        names = sorted(plan(1, client.id).train if plan else of_training)
        if not names:
            return "expected trained parameters, found none"
        work.model.hold(work.initial)
        work.training.run(work.model, client.train, names, 1, client.id)
        expected = work.model.snapshot(names)
        learned = work.initial | run.state.clients.get(client.id) | run.state.shared  # kept ones may share names
        different = _different(expected, {name: learned[name] for name in names}, TOLERANCE)
        by_design = "right only for a method whose server step changes the upload of a single client"
        return f"expected central training's weights, found others in {different[0]}; {by_design}" if different else ""


def _sizes(kinds: Mapping[tuple[str, str], int]) -> str:
    """The bytes of each direction and kind, such as "down model 120, up model 120"."""
    return ", ".join(f"{' '.join(names)} {size}" for names, size in sorted(kinds.items())) or "no"


def _different(expected: Params, actual: Params, tolerance: float) -> list[str]:
    """The names of tensors that are missing on one side or differ by more than the tolerance."""
    odd = sorted(expected.keys() ^ actual.keys())
    both = sorted(expected.keys() & actual.keys())
    return odd + [name for name in both if not torch.allclose(expected[name], actual[name], rtol=0, atol=tolerance)]
