"""FedSplitBERT's Table III against the paper, and the commands that show definitions without running anything."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.dry_run.rounds import wire_plan
from benchmarks.registry import benchmark

ROOT = Path(__file__).resolve().parents[2]
TABLE = benchmark("fedsplitbert-table3")
CELLS = {scale.id: TABLE.cells(scale, [0]) for scale in TABLE.scales}
HEAVY = {
    "torch", "transformers", "datasets", "evaluate", "mlflow", "optuna", "numpy", "pandas", "matplotlib", "scipy",
    "sklearn", "rich",
}  # fmt: skip


def test_definitions_and_claims_import_nothing_heavy():
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
def test_a_round_sends_the_papers_bytes():
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
