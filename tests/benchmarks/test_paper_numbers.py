"""Numbers in definitions that follow from the papers by arithmetic: bytes, sizes, shares, warm-ups, updates."""

from dataclasses import replace

import pytest

from benchmarks.costs import SplitTerms, Work
from benchmarks.dry_run.client_costs import work
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.encoders.files import architecture
from benchmarks.experiment import Benchmark
from benchmarks.registry import benchmark
from benchmarks.run_config import RunConfig

MEGABYTE = 10**6


def cells(table: Benchmark, task: str) -> dict[str, RunConfig]:
    """Row id -> cell of seed 0 at the paper's scale."""
    entries = table.cells(table.scale("paper"), [0])
    return {row.id: cell for row, column, cell in entries if column.task == task}


@pytest.mark.usefixtures("untuned")
def test_a_round_sends_the_papers_bytes():
    # Table VI's sizes: 3 clients × (12 layers, pooler, classifier) × 4 bytes, 3 × 6 layers × 4 bytes, half of that.
    hidden, inner, outputs = 768, 3072, 2
    layer = 4 * (hidden**2 + hidden) + 2 * hidden * inner + inner + hidden + 4 * hidden
    head = hidden**2 + hidden + hidden * outputs + outputs
    table = benchmark("fedsplitbert-table3")
    printed = {row.id for row in table.rows if row.printed}
    plans = {row: wire_plan(cell) for row, cell in cells(table, "mrpc").items() if row in printed}
    whole = 12 * (12 * layer + head)
    sizes = {"fedsplitbert": 12 * 6 * layer, "fedsplitbert-qat": 6 * 6 * layer}
    sizes |= dict.fromkeys(("fedavg", "fedprox", "fedadam"), whole)
    assert {row: plan.up_bytes for row, plan in plans.items()} == sizes
    assert [f"{size / 1e9:.2f}" for size in sizes.values()] == ["0.51", "0.26", "1.03", "1.03", "1.03"]
    embeddings = (30522 + 512 + 2 + 2) * hidden  # words, positions, types, LayerNorm
    assert plans["fedavg"].setup_bytes == 12 * embeddings + whole


def test_bytes_of_the_paper_scale_are_those_of_its_equations():
    by_row = cells(benchmark("fedfreezebert-table3"), "arsarcasm")

    def both(row: str) -> float:
        plan = wire_plan(by_row[row])
        return (plan.up_bytes + plan.down_bytes) / MEGABYTE / (2 * 5)  # a client, one direction

    assert round(both("d-fedavg-psum"), 2) == round(both("d-fedavg-hsum"), 2) == 113.44  # W_s
    layer, embedded = 28.35, 308.81
    assert both("fedsplitbert-ordinary") == pytest.approx(8 * layer + embedded, abs=0.05)  # equation 5
    assert both("fedavg-ordinary") == pytest.approx(12 * layer + embedded, abs=0.1)  # 651.37 less the pooler


# Two clients, four epochs in two rounds, 100 bytes across a cut an epoch; a model of 50, embeddings 20, head 5.
TERMS = SplitTerms(rounds=2, N=2, T=4, pL=100, W=50, E=20, H=5)
CROSSING = 4 * 2 * 4 * 100
FORMS = benchmark("fedbert-table2").closed_forms


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (FORMS["fedavg"], 2 * 2 * 2 * 50),
        (FORMS["share"], CROSSING + 2 * 25 + 25),  # up after each turn, down to the second client
        (FORMS["emdavg"], CROSSING + 2 * 2 * 2 * 20),
        (FORMS["heavg"], CROSSING + 2 * 2 * 2 * 25),
    ],
)
def test_bytes_of_a_run_by_fedberts_equations(form, expected):
    assert form.cost_bytes(TERMS) == expected
    parts = form.parts(TERMS)
    assert parts.get("activations") == parts.get("gradients") == (None if form is FORMS["fedavg"] else CROSSING / 2)


# Backbone, table, tokens that are predicted in a block of 512, layers of the head before its decoder, client's share.
SPLIT = [
    ("roberta-small-fresh", "pretraining", 76, 1, 13),
    ("roberta-base-fresh", "pretraining", 76, 1, 6),
    ("gpt2-fresh", "table8", 511, 0, 29),
]


@pytest.mark.parametrize(("backbone", "name", "predicted", "maps", "percent"), SPLIT)
def test_flops_of_a_split_client_are_those_of_embeddings_and_head(backbone, name, predicted, maps, percent):
    """A layer has 12 H² weights and two products of S × S; the forward pass is a third of the work."""
    table, config = benchmark(f"fedbert-{name}"), architecture(backbone)
    scales = tuple(replace(scale, backbone=backbone) if scale.id == "paper" else scale for scale in table.scales)
    (column,) = table.columns
    by_row = cells(replace(table, scales=scales), column.task)
    whole, split = by_row["fedavg"], by_row["emdavg"]
    vocabulary, width = config["vocab_size"], config.get("hidden_size", config.get("n_embd"))
    layers = config.get("num_hidden_layers", config.get("n_layer"))
    at_client = 3 * predicted * (2 * width * vocabulary + maps * 2 * width**2)
    at_server = 3 * layers * (512 * 24 * width**2 + 2 * 2 * 512**2 * width)
    assert work(split) == Work(at_client, at_server)
    assert work(whole) == Work(at_client + at_server)
    assert round(100 * at_client / (at_client + at_server)) == percent
