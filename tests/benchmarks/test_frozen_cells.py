"""Cells with a head and a frozen encoder: identity, the bytes that `plan` foretells, features kept between cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.dry_run.rounds import wire_plan
from benchmarks.errors import UserError
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell
from fedsim.errors import FederationError

CELL = RunConfig(
    scale="demo",
    task="arsarcasm",
    task_version=1,
    source="generated",
    backbone="tiny",
    clients=3,
    partition={"scheme": "dirichlet", "alpha": 1.0},
    algorithm="fedfreezebert",
    options={},
    training=TrainConfig(
        rounds=2, learning_rate=5e-4, batch_size=16, weight_decay=0.0, max_length=32, precision="fp32"
    ),
    seed=0,
    test_share=0.0,
    head="psum",
)
CENTRAL = replace(CELL, algorithm="fedfreezebert_central", training=replace(CELL.training, rounds=1, local_epochs=2))
PAPER = replace(CELL, scale="paper", source="arsarcasm", backbone="MARBERT", clients=5)
MEGABYTE = 10**6  # the paper's


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> RunOptions:
    return RunOptions(results_dir=tmp_path_factory.mktemp("frozen"), device="cpu")


def run(cell: RunConfig, settings: RunOptions) -> RunResult:
    return run_cell(cell, settings, lambda _: None)


# ---- identity --------------------------------------------------------------------------------------------------


def test_an_unknown_head_is_refused(settings: RunOptions) -> None:
    with pytest.raises(FederationError, match="unknown head 'sum': expected one of pooled, ordinary, average, psum"):
        run(replace(CELL, head="sum"), settings)


# ---- bytes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "options", "head", "megabytes"),
    [
        ("fedavg", {"embeddings": "global"}, "pooled", 651.37),  # SizeOf(BERT), with its pooler
        ("fedfreezebert", {}, "psum", 113.44),  # SizeOf(W_s): four layers and four classifiers
        ("fedfreezebert", {}, "hsum", 113.44),
        ("fedsplitbert", {"critical_layer": 8, "embeddings": "global"}, "ordinary", 8 * 28.351 + 308.785),
    ],
)
def test_the_papers_sizes(algorithm: str, options: dict[str, object], head: str, megabytes: float) -> None:
    plan = wire_plan(replace(PAPER, algorithm=algorithm, options=options, head=head))
    assert plan.up_bytes == plan.down_bytes
    assert plan.up_bytes / PAPER.clients / MEGABYTE == pytest.approx(megabytes, abs=0.005)


@pytest.mark.parametrize(("head", "states"), [("average", 1), ("psum", 4), ("hsum", 4)])
def test_the_papers_formula_counts_one_layer_of_features(head: str, states: int) -> None:
    """4 n_s n_t dim + n_c SizeOf(W_s), with n_s 12548, n_t 128, dim 768: the first term is that of one hidden state."""
    cell = replace(PAPER, algorithm="fedfreezebert_central", head=head, training=TrainConfig(1, 5e-4, 16, 5))
    sizes = [2510, 2510, 2510, 2509, 2509]
    plan = wire_plan(cell, examples=sizes)
    assert sum(sizes) == 12548
    assert plan.kinds["up", "features"] == states * 4 * 12548 * 128 * 768
    assert plan.kinds["up", "masks"] == 12548 * 128
    assert plan.kinds["up", "labels"] == 12548 * 8
    assert plan.down_bytes == wire_plan(replace(cell, algorithm="fedfreezebert", options={})).down_bytes
    fedavg = wire_plan(replace(PAPER, algorithm="fedavg", options={"embeddings": "global"}, head="pooled"))
    gain = 5 * (fedavg.up_bytes + fedavg.down_bytes) / (plan.up_bytes + plan.down_bytes)
    assert round(gain, 1) == {"average": 6.6, "psum": 1.6, "hsum": 1.6}[head]


def test_bytes_that_depend_on_the_data_are_not_guessed() -> None:
    with pytest.raises(UserError, match="depend on the number of examples"):
        wire_plan(CENTRAL)
    with pytest.raises(UserError, match="depend on the texts themselves"):
        wire_plan(replace(CENTRAL, options={"features": "trimmed"}), examples=[5, 5, 5])
    with pytest.raises(UserError, match="expected a number for each of 3 clients, found 2"):
        wire_plan(CENTRAL, examples=[5, 5])


def test_central_training_sends_nothing() -> None:
    plan = wire_plan(replace(CELL, algorithm="central", options={"train": "head"}))
    assert (plan.up_bytes, plan.down_bytes, plan.setup_bytes, plan.kinds) == (0, 0, 0, {})


# ---- features --------------------------------------------------------------------------------------------------


def test_features_are_kept_between_cells_and_change_nothing(settings: RunOptions, tmp_path: Path) -> None:
    folder = settings.results_dir / "features"
    run(CELL, settings)
    before = {path.name: path.stat().st_ino for path in folder.glob("*.features")}
    again = replace(CELL, seed=1)
    found = run(again, settings)
    run(replace(CELL, head="hsum"), settings)
    assert {path.name: path.stat().st_ino for path in folder.glob("*.features")} == before
    elsewhere = run(again, RunOptions(results_dir=tmp_path / "results", device="cpu"))
    assert elsewhere.outcome == found.outcome
