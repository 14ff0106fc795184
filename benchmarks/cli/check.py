"""The command `check`: test whether the methods in a user's file meet the requirements on every method."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

from benchmarks.dry_run.rounds import wire_plan
from benchmarks.errors import UserError
from benchmarks.overrides import read_assignment, with_changes
from benchmarks.registry import benchmark
from benchmarks.run_config import JSON, RunConfig
from benchmarks.running.federation import build_clients, build_federation, load_inputs
from benchmarks.running.included import load_file
from benchmarks.running.process import quiet_libraries
from benchmarks.running.run_options import RunOptions
from fedsim.checkpoint import Checkpoint
from fedsim.engine import Run, run_federation
from fedsim.errors import plural
from fedsim.wire import Channel, Params

TABLE, ROW, ROUNDS = "fedpeft-scores", "fedit", 4
TOLERANCE = 1e-6  # for weights: averaging one client or multiplying factors may round them


def check_command(args: argparse.Namespace) -> int:
    """Check every method in a file, with these options, and record nothing. UserError if a check fails."""
    quiet_libraries()
    broken, changes = 0, [read_assignment(text) for text in args.set]
    if others := [name for name, _ in changes if not name.startswith("options.")]:
        raise UserError(f"--set {others[0]}: expected an option of the methods, such as options.head")
    for method in load_file(args.file):
        print(f"{method.__name__}: generated texts, a tiny encoder with LoRA, {ROUNDS} rounds")
        with tempfile.TemporaryDirectory() as folder:
            checks = _Checks(method, changes, Path(folder))
            for name, check in checks.all.items():
                problem = _problem(check)
                broken += bool(problem)
                print(f"  {'FAILED' if problem else 'ok    '} {name}{f': {problem}' if problem else ''}", flush=True)
    if broken:
        raise UserError(
            f"{args.file}: expected methods that pass every check, found {plural(broken, 'failed check')}; see above"
        )
    return 0


def _problem(check: Callable[[], str]) -> str:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - other checks still run
        return f"{type(error).__name__}: {error}"


class _Checks:
    """The checks of a method; each returns the problem, or ""."""

    def __init__(self, method: FunctionType, changes: Sequence[tuple[str, JSON]], folder: Path) -> None:
        table = benchmark(TABLE)
        scale = table.scale("demo")
        cell = table.cell(table.row(ROW), table.columns_at(scale)[0], scale, 0)
        training = replace(cell.training, rounds=ROUNDS, local_epochs=1)
        self.cell = with_changes(replace(cell, algorithm=method.__name__, options={}, training=training), changes)
        self.folder, self.options = folder, RunOptions(folder, device="cpu")
        self.inputs = load_inputs(self.cell, self.options)
        self.all: dict[str, Callable[[], str]] = {
            "plan without training: bytes planned are bytes sent": lambda: self.bytes_planned(1.0),
            "dropped clients: two of three in a round, bytes planned are bytes sent": lambda: self.bytes_planned(0.67),
            "resume after each round: the same bits": self.resumed,
            "one client: a round is central training": self.one_client,
        }

    def run(self, cell: RunConfig, clients: int = 3, **engine: Any) -> Run:
        """Run a configuration with its first clients."""
        federation = build_federation(cell, self.inputs, self.options)
        chosen = build_clients(cell, self.inputs, self.options)[0][:clients]
        limits = {"rounds": cell.training.rounds, "participation": cell.training.participation, **engine}
        channel = Channel(cell.codec, seed=cell.seed)
        return run_federation(federation.algorithm, chosen, channel, lambda *_: {}, seed=cell.seed, **limits)

    def bytes_planned(self, participation: float) -> str:
        """Compare the ledger with a dry run."""
        cell = replace(self.cell, training=replace(self.cell.training, participation=participation))
        run = self.run(cell)
        sizes = [len(client.train) for client in build_clients(cell, self.inputs, self.options)[0]]
        for number, planned in enumerate(wire_plan(cell, examples=sizes).rounds, start=1):
            sent: Counter[tuple[str, str]] = Counter()
            for row in run.channel.ledger.rows:
                if row.round == number:
                    sent[row.direction, row.kind] += row.bytes
            if sent != planned.kinds:
                return f"round {number}: expected {_sizes(planned.kinds)} bytes, found {_sizes(sent)}"
        return ""

    def resumed(self) -> str:
        """Compare a run with one that stops and resumes after each round."""
        cell = replace(self.cell, training=replace(self.cell.training, participation=0.67))
        whole = self.run(cell)
        for rounds in range(1, ROUNDS + 1):
            parts = self.run(cell, rounds=rounds, checkpoint=Checkpoint(self.folder / "checkpoint", "check"))
        different = _different(whole.state.shared, parts.state.shared, 0.0)
        for client in {*whole.state.clients, *parts.state.clients}:
            different += _different(whole.state.clients.get(client), parts.state.clients.get(client), 0.0)
        if whole.channel.ledger.rows != parts.channel.ledger.rows:
            return "expected the same bytes, found others"
        return f"expected the same bits, found others in {different[0]}" if different else ""

    def one_client(self) -> str:
        """Compare a one-client round with central training of the same parameters."""
        cell = replace(self.cell, clients=1, partition={"scheme": "equal"})
        (client,), _ = build_clients(cell, self.inputs, self.options)
        federation = build_federation(cell, self.inputs, self.options)
        plan, work = federation.algorithm.plan, federation.workload
        names = sorted(plan(1, client.id).train if plan else work.model.trainable)
        if not names:
            return "expected trained parameters, found none"
        work.model.hold(work.initial)
        work.training.run(work.model, client.train, names, 1, client.id)
        expected = work.model.snapshot(names)
        run = self.run(cell, 1, rounds=1)
        learned = work.initial | run.state.shared | run.state.clients.get(client.id)
        different = _different(expected, {name: learned[name] for name in names}, TOLERANCE)
        return f"expected central training's weights, found others in {different[0]}" if different else ""


def _sizes(kinds: Mapping[tuple[str, str], int]) -> str:
    """The bytes of each direction and kind, such as "down model 120, up model 120"."""
    return ", ".join(f"{' '.join(names)} {size}" for names, size in sorted(kinds.items())) or "no"


def _different(expected: Params, actual: Params, tolerance: float) -> list[str]:
    """The names of tensors that are missing on one side or differ by more than the tolerance."""
    odd = sorted(expected.keys() ^ actual.keys())
    both = sorted(expected.keys() & actual.keys())
    return odd + [name for name in both if not torch.allclose(expected[name], actual[name], rtol=0, atol=tolerance)]
