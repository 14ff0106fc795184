"""What crosses in each round is foretold: drawn cohorts, and plans that change with the round and the client."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import fedsim.algorithms
from benchmarks.cli.main import main
from benchmarks.costs import ModelSizes, Sent, WirePlan
from benchmarks.errors import RoundRefusedError
from benchmarks.events import CellStarted, Trained
from benchmarks.federation import build_clients, load_inputs
from benchmarks.dry_run import wire_plan
from benchmarks.registry import benchmark
from benchmarks.dry_run import cohorts
from benchmarks.runner import run_cell
from benchmarks.settings import Settings
from benchmarks.spec import Cell, Paper
from fedsim.algorithms import Setting
from fedsim.algorithms.averaging import averaging
from fedsim.engine import FederatedAlgorithm, drawn_places
from fedsim.plan import ExchangePlan
from reports.pages.text import human_bytes

CellsOf = Callable[..., list[Cell]]
SHORT = ("training.rounds=3", "training.local_epochs=1")
LAYER = 4 * (4 * (64 * 64 + 64) + 2 * 64 + (64 * 128 + 128) + (128 * 64 + 64) + 2 * 64)  # of the demo's encoder
HEAD = 4 * ((64 * 64 + 64) + (64 * 2 + 2))


def moving(setting: Setting) -> FederatedAlgorithm:
    """Layer by layer as FedBFPT: what the last round merged goes down, the layer of this round and the head go up.

    Client 2 trains the head alone.
    """
    parts = setting.model.groups

    def trained(round: int, client: int) -> frozenset[str]:
        return parts.head if client == 2 else parts.layers[0 if round <= 2 else 1] | parts.head

    def plan(round: int, client: int) -> ExchangePlan:
        up = trained(round, client)
        down = trained(round - 1, 0) if round > 1 else frozenset()
        return ExchangePlan({name: name for name in parts.names}, down, up, up, frozenset())

    return averaging(setting, plan, personal=False)


@pytest.fixture
def cell_moving(cells_of: CellsOf, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Cell]:
    monkeypatch.setattr(fedsim.algorithms, "algorithm_function", lambda name: moving)

    def build(*changes: str) -> Cell:
        (cell,) = cells_of(["fedavg"], "training.rounds=4", "training.local_epochs=1", *changes)
        return replace(cell, algorithm="moving", options={})

    return build


def test_plans_that_change_with_the_round_and_the_client(cell_moving: Callable[..., Cell]) -> None:
    plan = wire_plan(cell_moving())
    up, down = 2 * (LAYER + HEAD) + HEAD, 3 * (LAYER + HEAD)
    assert [(each.up_bytes, each.down_bytes) for each in plan.rounds] == [(up, 0), (up, down), (up, down), (up, down)]
    assert (plan.total.up_bytes, plan.total.down_bytes) == (4 * up, 3 * down)
    assert plan.total.kinds == {("up", "parameters"): 4 * up, ("down", "parameters"): 3 * down}
    assert not plan.alike
    assert (plan.up_bytes, plan.down_bytes) == (up, round(3 * down / 4))  # the mean of the rounds
    assert plan.kinds == {("up", "parameters"): up, ("down", "parameters"): round(3 * down / 4)}


@pytest.mark.parametrize("participation", [1.0, 0.67, 0.3])
def test_what_is_foretold_is_what_the_ledger_counts(
    cell_moving: Callable[..., Cell], settings: Settings, participation: float
) -> None:
    cell = cell_moving(f"training.participation={participation}")
    record, plan = run_cell(cell, settings, lambda event: None), wire_plan(cell)
    assert [(entry.up_bytes, entry.down_bytes) for entry in record.rounds] == [
        (each.up_bytes, each.down_bytes) for each in plan.rounds
    ]
    counted = sum(row.bytes for row in record.ledger if row.round)
    assert counted == plan.total.up_bytes + plan.total.down_bytes


def test_participation_below_one_sends_less(cells_of: CellsOf) -> None:
    whole, third = (wire_plan(*cells_of(["fedavg"], f"training.participation={share}")) for share in (1.0, 0.34))
    assert third.alike
    assert (3 * third.up_bytes, 3 * third.down_bytes) == (whole.up_bytes, whole.down_bytes)
    assert third.total.up_bytes == len(third.rounds) * third.up_bytes
    assert third.setup_bytes == whole.setup_bytes  # every client is given the model


def test_features_are_those_of_the_clients_that_are_drawn() -> None:
    table = benchmark("fedfreezebert-table3")
    (cell,) = (cell for row, _, cell in table.cells(table.scale("demo"), [0]) if row.id == "c-ordinary")
    cell = replace(cell, training=replace(cell.training, participation=0.4))
    examples = [10, 20, 40, 80, 160]
    plan = wire_plan(cell, examples=examples)
    (cohort,) = cohorts(cell, build_clients(cell, load_inputs(cell, Settings()), Settings())[0])
    assert len(cohort) == 2
    assert plan.kinds["up", "features"] == 4 * 64 * sum(examples[client.id] for client in cohort)


def test_many_rounds_take_seconds(cells_of: CellsOf, cell_moving: Callable[..., Cell]) -> None:
    cell = replace(cell_moving("training.rounds=500", "training.participation=0.5"), clients=10)
    wire_plan(cell)  # imports
    start = time.process_time()
    assert len(wire_plan(cell).rounds) == 500
    assert time.process_time() - start < 10


def test_rounds_that_a_method_does_not_have() -> None:
    table = benchmark("fedfreezebert-table3")
    (cell,) = (cell for row, _, cell in table.cells(table.scale("demo"), [0]) if row.id == "c-ordinary")
    with pytest.raises(RoundRefusedError, match="expected 1 round"):
        wire_plan(replace(cell, training=replace(cell.training, rounds=2)), examples=[5] * 5)


def test_plan_shows_means_and_totals(
    cell_moving: Callable[..., Cell], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", "fedsplitbert-table3", "--tasks", "mrpc", "--methods", "local-majority"]
    assert main([*words, "--results-dir", str(tmp_path), "--set", "training.rounds=4"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    up, down = 2 * (LAYER + HEAD) + HEAD, 3 * (LAYER + HEAD)
    assert " │ ".join(["4", *map(human_bytes, (up, up + 3 * down / 4, 4 * up + 3 * down))]) in out
    assert "A round is the mean of rounds that differ, MRPC: Majority-class baseline, by client." in out


@pytest.mark.parametrize("participation", [1.0, 0.67, 0.3])
def test_the_bar_ends_where_training_ends(
    cells_of: CellsOf, settings: Settings, events: Any, participation: float
) -> None:
    changes = ("training.rounds=3", "training.local_epochs=2", f"training.participation={participation}")
    (cell,) = cells_of(["fedavg"], *changes)
    record = run_cell(cell, settings, events)
    (started,) = events.of(CellStarted)
    trained = [client["train"] for client in record.clients]
    assert started.train_examples == tuple(2 * sum(trained[id] for id in entry.cohort) for entry in record.rounds)
    assert sum(started.train_examples) == sum(event.examples for event in events.of(Trained))


def test_cohorts_are_the_engines(cells_of: CellsOf, settings: Settings) -> None:
    (cell,) = cells_of(["fedavg"], *SHORT, "training.participation=0.34")
    record = run_cell(cell, settings, lambda event: None)
    clients, _ = build_clients(cell, load_inputs(cell, settings), settings)
    drawn = [tuple(client.id for client in cohort) for cohort in cohorts(cell, clients)]
    assert drawn == [entry.cohort for entry in record.rounds]
    for clients, share in product(range(1, 13), (1.0, 0.5, 0.34, 0.25, 0.01)):
        other = replace(cell, clients=clients, training=replace(cell.training, participation=share))
        assert other.cohort_size == len(drawn_places(clients, share, 0, 1))


@pytest.mark.parametrize(("directions", "counted"), [(("up",), 3), (("down",), 5), (("up", "down"), 8)])
def test_a_papers_convention_counts_a_round_and_a_run(directions: tuple[str, ...], counted: int) -> None:
    paper = Paper("p", "P", "", "", directions=directions)
    sizes = ModelSizes(0, 0, 0, 0, 1, 1, all_tokens=False)
    kinds = {("up", "features"): 1, ("up", "labels"): 2, ("down", "parameters"): 5}
    plan = WirePlan.of_rounds([kinds, kinds], 0, sizes)
    table = benchmark("fedsplitbert-table3")
    cell = replace(table.cells(table.scale("demo"), [0])[0][2], clients=4)
    half = replace(cell, training=replace(cell.training, participation=0.5))
    assert [paper.counted_bytes(sent, cell) for sent in (plan, plan.total)] == [counted, 2 * counted]
    of_one = replace(paper, per_client=True)
    assert [of_one.counted_bytes(plan, each) for each in (cell, half)] == [counted / 4, counted / 2]
    assert plan.alike
    assert WirePlan(3, 5, 0, kinds, sizes).total == Sent(3, 5, kinds)  # by hand, of one round
