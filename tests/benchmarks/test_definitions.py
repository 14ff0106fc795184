"""FedSplitBERT's Table III against the paper, and the commands that show definitions without running anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.dry_run.rounds import wire_plan
from benchmarks.fedsplitbert.paper import LABEL_SHARES_3, ROUNDS
from benchmarks.registry import benchmark
from benchmarks.tasks import task

ROOT = Path(__file__).resolve().parents[2]
TABLE = benchmark("fedsplitbert-table3")
CELLS = {scale.id: TABLE.cells(scale, [0]) for scale in TABLE.scales}
OF_ONE_ROUND = ("overall-majority", "local-majority", "linear", "fedavg-finetuned", "fedavg-prior")
HEAVY = {
    "torch", "transformers", "datasets", "evaluate", "mlflow", "optuna", "numpy", "pandas", "matplotlib", "scipy",
    "sklearn", "rich",
}  # fmt: skip


def test_label_shares_mean_the_datas_own_share_of_label_1() -> None:
    """The reading "label 1 / label 0" of Table I: means over clients are the data's, MRPC 65 %, CoLA 71 %, QQP 40 %."""
    assert set(LABEL_SHARES_3) == {column.task for column in TABLE.columns} - {"stsb"}
    for name, rows in LABEL_SHARES_3.items():
        assert np.sum(rows, axis=1) == pytest.approx([100, 100, 100])
        assert {len(row) for row in rows} == {len(task(name).labels or ())}
    means = {name: np.mean(rows, axis=0)[1] for name, rows in LABEL_SHARES_3.items()}
    assert means["mrpc"] == pytest.approx(65)
    assert means["cola"] == pytest.approx(71, abs=0.5)
    assert means["qqp"] == pytest.approx(40)
    assert [means[balanced] for balanced in ("sst2", "rte", "qnli", "wnli")] == pytest.approx([50] * 4)


def test_rounds_and_budget() -> None:
    # Table V's caption: MRPC 6, SST-2 9, QQP and QNLI 3.
    assert [ROUNDS[name] for name in ("mrpc", "sst2", "qqp", "qnli")] == [6, 9, 3, 3]
    for row, column, cell in CELLS["paper"]:
        assert cell.training.rounds == (1 if row.id in OF_ONE_ROUND else ROUNDS[column.task])
        assert cell.training.learning_rate in (2e-5, 3e-5, 4e-5, 5e-5)  # section IV-B
        assert cell.training.local_epochs == 1


def test_the_chosen_layers_are_the_papers() -> None:
    chosen = [cell.options["critical_layer"] for row, _, cell in CELLS["paper"] if row.id == "fedsplitbert-chosen"]
    assert chosen == [8, 6, 10, 6, 10, 8, 10, 10, 10]  # Table III's order, out of Table IV


def test_definitions_and_claims_import_nothing_heavy() -> None:
    code = (
        "import sys; from benchmarks.cli.main import main; from benchmarks.registry import claims_of\n"
        "status = main(['list']) or main(['list', '--ids']) or main(['show', 'fedsplitbert-table3'])\n"
        "assert all(map(claims_of, ('fedsplitbert', 'fedfreezebert', 'fedbert', 'fedbfpt')))\n"
        "print('IMPORTED', *{name.partition('.')[0] for name in sys.modules}); sys.exit(status)"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = set(ended.stdout.rpartition("IMPORTED")[2].split())
    assert "benchmarks" in imported
    assert not imported & HEAVY


@pytest.mark.usefixtures("untuned")
def test_a_round_sends_the_papers_bytes() -> None:
    # Table VI's sizes: 3 clients × (12 layers, pooler, classifier) × 4 bytes, 3 × 6 layers × 4 bytes, half of that.
    hidden, inner, outputs = 768, 3072, 2
    layer = 4 * (hidden**2 + hidden) + 2 * hidden * inner + inner + hidden + 4 * hidden
    head = hidden**2 + hidden + hidden * outputs + outputs
    plans = {row.id: wire_plan(cell) for row, column, cell in CELLS["paper"] if row.printed and column.task == "mrpc"}
    whole = 12 * (12 * layer + head)
    sizes = {"fedsplitbert": 12 * 6 * layer, "fedsplitbert-qat": 6 * 6 * layer}
    sizes |= dict.fromkeys(("fedavg", "fedprox", "fedadam"), whole)
    assert {row: plan.up_bytes for row, plan in plans.items()} == sizes
    assert [f"{size / 1e9:.2f}" for size in sizes.values()] == ["0.51", "0.26", "1.03", "1.03", "1.03"]
    embeddings = (30522 + 512 + 2 + 2) * hidden  # words, positions, types, LayerNorm
    assert plans["fedavg"].setup_bytes == 12 * embeddings + whole
