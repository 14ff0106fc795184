"""Estimated FLOPs: against a count by hand, and how they scale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.cli.main import main
from benchmarks.effort import Effort, estimate_effort
from benchmarks.federation import build_clients, load_inputs
from benchmarks.registry import benchmark
from benchmarks.settings import Settings
from benchmarks.spec import Cell

TABLE = benchmark("fedsplitbert-table3")
HIDDEN, INNER, LAYERS = 64, 128, 4  # of the built-in tiny encoder


@pytest.fixture
def cell() -> Cell:
    return TABLE.cell(TABLE.row("fedavg"), TABLE.columns[0], TABLE.scale("demo"), 0)


def test_operations_are_those_counted_by_hand(cell: Cell) -> None:
    settings = Settings()
    weights = LAYERS * (4 * HIDDEN**2 + 2 * HIDDEN * INNER)
    clients, _ = build_clients(cell, load_inputs(cell, settings), settings)

    def forward(lengths: list[int]) -> int:
        return sum(2 * weights * n + 4 * LAYERS * HIDDEN * n * n for n in lengths)

    train = sum(forward(c.train.examples.lengths[c.train.indices].tolist()) for c in clients)
    test = sum(forward(c.evaluation["test"].examples.lengths[c.evaluation["test"].indices].tolist()) for c in clients)
    effort = estimate_effort(cell, settings)
    # The head, a pooler and two outputs, reads one token a text: a few thousandths of the whole.
    trained, scored = 3 * train * cell.training.rounds * cell.training.local_epochs, test * cell.training.rounds
    # Embeddings are frozen: what goes into the first layer's query, key and value gets no gradient.
    tokens = sum(int(c.train.examples.lengths[c.train.indices].sum()) for c in clients)
    trained -= 2 * 3 * HIDDEN**2 * tokens * cell.training.rounds * cell.training.local_epochs
    head = 2 * (HIDDEN**2 + 2 * HIDDEN)
    texts = sum(len(c.train) for c in clients), sum(len(c.evaluation["test"]) for c in clients)
    assert effort.training_flops == pytest.approx(
        trained + 3 * head * texts[0] * cell.training.rounds * cell.training.local_epochs
    )
    assert effort.scoring_flops == pytest.approx(scored + head * texts[1] * cell.training.rounds)
    batches = sum(-(-len(client.train) // cell.training.batch_size) for client in clients)
    assert effort.steps == batches * cell.training.rounds * cell.training.local_epochs
    assert effort.hours(effort.flops) == pytest.approx(1 / 3600)


def test_padding_and_rounds_count(cell: Cell) -> None:
    settings = Settings()
    plain = estimate_effort(cell, settings)
    padded = replace(cell, training=replace(cell.training, padding="fixed"))
    doubled = replace(cell, training=replace(cell.training, rounds=2 * cell.training.rounds))
    assert estimate_effort(padded, settings).flops > plain.flops
    assert estimate_effort(doubled, settings).flops == pytest.approx(2 * plain.flops)


def test_the_local_majority_trains_nothing() -> None:
    cell = TABLE.cell(TABLE.row("local-majority"), TABLE.columns[0], TABLE.scale("demo"), 0)
    assert estimate_effort(cell, Settings()).flops == 0


def test_a_frozen_encoder_sees_each_text_once_and_a_head_in_every_epoch() -> None:
    frozen = benchmark("fedfreezebert-table3")
    rows = {row.id: row for row in frozen.rows}
    settings = Settings()

    def effort(row: str, **changed: Any) -> Effort:
        cell = frozen.cell(rows[row], frozen.columns[0], frozen.scale("demo"), 0)
        return estimate_effort(replace(cell, **changed), settings)

    cell = frozen.cell(rows["d-fedavg-ordinary"], frozen.columns[0], frozen.scale("demo"), 0)
    clients, _ = build_clients(cell, load_inputs(cell, settings), settings)
    weights = LAYERS * (4 * HIDDEN**2 + 2 * HIDDEN * INNER)
    lengths = np.concatenate([c.train.examples.lengths[c.train.indices] for c in clients]).astype(float)
    once = float((lengths * (2 * weights + 4 * LAYERS * HIDDEN * lengths)).sum())
    product = 2 * 3 * HIDDEN * len(lengths) * cell.training.rounds  # of the head, which has three outputs
    head = 2 * product  # forwards, and the weights' gradient: what goes into it is frozen
    assert effort("d-fedavg-ordinary").training_flops == pytest.approx(once + head)
    assert effort("c-ordinary").training_flops == pytest.approx(once + head)
    anew = effort("d-fedavg-ordinary", options={"cached": False})
    assert anew.training_flops == pytest.approx(cell.training.rounds * once + head)
    assert effort("fedavg-ordinary").training_flops == pytest.approx(3 * cell.training.rounds * once + 3 * product)
    # P-SUM's layers meet every token by their keys and values alone, H-SUM's first three meet it whole.
    average, psum, hsum = (effort(f"d-fedavg-{head}").training_flops for head in ("average", "psum", "hsum"))
    assert 2 * average < psum
    assert 3 * psum < hsum
    # The official test set is common: a global model answers it once, five personal ones five times.
    assert effort("fedsplitbert-ordinary").scoring_flops == pytest.approx(5 * effort("fedavg-ordinary").scoring_flops)


def test_plan_says_hours_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "fedsplitbert-table3", "--tasks", "wnli", "--results-dir", str(tmp_path), "--tflops", "1"]
    assert main(words) == 0
    assert "sustained 1 TFLOP/s" in capsys.readouterr().out
