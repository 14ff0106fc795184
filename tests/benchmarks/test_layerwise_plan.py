"""What FedBFPT sends and computes, foretold at the paper's own size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks import tasks
from benchmarks.effort import estimate_effort
from benchmarks.dry_run import wire_plan
from benchmarks.runner import run_cell
from benchmarks.settings import Settings
from benchmarks.spec import Cell, Training
from benchmarks.tasks import task

TRAINING = Training(rounds=5, learning_rate=5e-5, batch_size=16, max_length=32, precision="fp32")
CELL = Cell(
    scale="demo", task="masked", task_version=1, source="generated", backbone="bert-base-uncased", clients=6,
    partition={"scheme": "equal"}, algorithm="fedbfpt", options={"local_layers": 6}, training=TRAINING, seed=0,
    test_share=0.05, head="masked-lm",
)  # fmt: skip
H, VOCABULARY = 768, 30522
LAYER = 4 * (H * H + H) + 2 * H + (4 * H * H + 4 * H) + (4 * H * H + H) + 2 * H
OUTPUT = (H * H + H) + 2 * H + VOCABULARY  # transform, norm, the decoder's bias; its weight is the frozen embeddings


@pytest.fixture(autouse=True)
def masked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task of masked texts: those of MRPC."""
    texts = replace(task("mrpc"), id="masked", labels=None, objective="masked_lm", metrics=("perplexity",), version=1)
    monkeypatch.setitem(tasks._registry(), "masked", texts)


def test_a_client_uploads_a_layer_and_the_output_layer() -> None:
    """29.41 MiB raw; the printed 29.42 has the archive's overhead in it."""
    plan = wire_plan(CELL)
    assert LAYER + OUTPUT == 7_710_522
    assert [each.up_bytes for each in plan.rounds] == [6 * 4 * 7_710_522] * 5
    assert [each.down_bytes for each in plan.rounds] == [0] + [6 * 4 * 7_710_522] * 4
    assert f"{plan.rounds[0].up_bytes / 6 / 2**20:.2f}" == "29.41"
    assert f"{plan.setup_bytes / 6 / 2**20:.2f}" == "417.76"  # the parameter pool: the whole model


def test_all_of_six_layers_is_a_model_of_six_layers() -> None:
    """FEDBFPT-ALL; 255.54 MiB raw; the printed 255.57 has the archive's overhead in it."""
    plan = wire_plan(replace(CELL, options={"local_layers": 6, "trained": "all"}))
    assert {f"{each.up_bytes / 6 / 2**20:.2f}" for each in plan.rounds} == {"255.54"}
    assert plan.rounds[0].down_bytes == 0
    assert all(0 < each.down_bytes <= each.up_bytes for each in plan.rounds[1:])


def small(*, backbone: str = "tiny", **options: Any) -> Cell:
    return replace(CELL, backbone=backbone, clients=3, options=options, training=replace(TRAINING, rounds=4))


@pytest.mark.parametrize("participation", [1.0, 0.67])
@pytest.mark.parametrize("options", [{}, {"trained": "all"}, {"trained": "all", "local_layers": [2, 4, 3]}])
def test_what_is_foretold_is_what_the_ledger_counts(
    settings: Settings, options: dict[str, Any], participation: float
) -> None:
    cell = small(**{"local_layers": 2, **options})
    cell = replace(cell, training=replace(cell.training, participation=participation))
    record, plan = run_cell(cell, settings, lambda event: None), wire_plan(cell)
    assert [(entry.up_bytes, entry.down_bytes) for entry in record.rounds] == [
        (each.up_bytes, each.down_bytes) for each in plan.rounds
    ]


def test_effort_counts_the_layers_that_a_client_has() -> None:
    def flops(**options: Any) -> int:
        return estimate_effort(small(**options), Settings()).training_flops

    whole = estimate_effort(replace(small(), algorithm="fedavg", options={"embeddings": "global"}), Settings())
    assert flops(local_layers=4, trained="all") == whole.training_flops
    assert flops(local_layers=1) < flops(local_layers=2) < flops(local_layers=4) < whole.training_flops
