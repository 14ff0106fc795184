"""Numbers that follow from the papers by arithmetic: bytes, sizes, shares, operations."""

from dataclasses import replace
from functools import cache

import pytest

from benchmarks.costs import ClientCosts, SplitTerms, Work
from benchmarks.dry_run.client_costs import work
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.dry_run.shapes import derive_client
from benchmarks.encoders.files import architecture
from benchmarks.experiment import Benchmark
from benchmarks.registry import benchmark
from benchmarks.run_config import RunConfig
from reports.evidence.published_files import read_published

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


# ---- FedBFPT: sizes of saved files, bytes, and operations where the middle is frozen ---------------------------------

TABLE2, PRETRAINING = benchmark("fedbfpt-table2"), benchmark("fedbfpt-pretraining")
DEPTH, S, H, INNER, V, ASKED = 12, 128, 768, 3072, 30522, 19  # tokens of a text, and of these masked: 15 % of 126
TOKENS = S * 2 * (4 * H**2 + 2 * H * INNER)  # a layer, forwards
ATTENTION = 2 * 2 * S**2 * H
QUERY_KEY_VALUE = S * 2 * 3 * H**2
TRANSFORM, DECODER = ASKED * 2 * H**2, ASKED * 2 * H * V


def pretraining(row: str) -> RunConfig:
    return PRETRAINING.cell(PRETRAINING.row(row), PRETRAINING.columns[0], PRETRAINING.scale("paper"), 0)


@cache
def costs_of(row: str) -> ClientCosts:
    client = derive_client(pretraining(row))
    assert client is not None
    return client


@pytest.mark.slow
def test_the_published_megabytes_are_those_of_a_saved_file():
    sizes = {entry.row: entry.value for entry in read_published(TABLE2.published_csv) if entry.column.endswith("_mb")}
    sizes["fedbfpt-all"] = 255.57  # Table 4
    for row in ("bert-fl", "fedbfpt", "tinybert-6", "tinybert-4", "fedbfpt-all", "distilbert"):
        assert abs(costs_of(row).saved_bytes / 2**20 - sizes[row]) <= (0.02 if row == "distilbert" else 0.005)


@pytest.mark.slow
def test_a_layer_and_the_output_layer_go_up_and_what_was_merged_comes_down():
    client = costs_of("fedbfpt")
    layer = 4 * (H * H + H) + 2 * H * INNER + INNER + H + 2 * 2 * H
    output = H * H + H + 2 * H + V  # transform, norm, decoder bias; its weight is the frozen embeddings
    assert client.up_bytes == 4 * (layer + output)
    assert 0 < client.saved_bytes - client.up_bytes < 2**17  # names and alignment
    assert client.setup_bytes == costs_of("bert-fl").setup_bytes == costs_of("bert-fl").up_bytes
    plan = wire_plan(pretraining("fedbfpt"))
    assert [sent.down_bytes for sent in plan.rounds] == [0, *[6 * client.up_bytes] * 4]
    assert client.down_bytes == pytest.approx(4 / 5 * client.up_bytes)


def forward(layers: int) -> int:
    return layers * (TOKENS + ATTENTION) + TRANSFORM + DECODER


def by_hand(local: int, lowest: int) -> int:
    """All local layers and the output forwards; activations' gradients from the top to the trained layer, of which
    what stands below the queries, keys and values is not asked for; its weights' gradients, and the transform's."""
    backward = (local - lowest) * (TOKENS + 2 * ATTENTION) - QUERY_KEY_VALUE + TRANSFORM + DECODER
    return forward(local) + backward + TOKENS + TRANSFORM


@pytest.mark.slow
def test_a_frozen_middle_is_counted_as_it_runs():
    whole = 3 * (DEPTH * TOKENS + TRANSFORM + DECODER) + DEPTH * 3 * ATTENTION  # gradients of weights and activations
    assert costs_of("bert-fl").flops == whole
    progressive = [by_hand(6, layer) for layer in (0, 0, 0, 1, 2)]
    assert costs_of("fedbfpt").flops == sum(progressive) / 5
    assert costs_of("fedbfpt-no-pl").flops == by_hand(6, 0)
    assert costs_of("fedbfpt-no-sp").flops == sum(by_hand(6, layer) for layer in range(5)) / 5
    assert costs_of("fedbfpt-4").flops == sum(by_hand(4, layer) for layer in (0, 0, 0, 1, 2)) / 5
