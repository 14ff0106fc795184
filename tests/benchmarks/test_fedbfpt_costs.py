"""FedBFPT's costs by shapes: saved and sent sizes, FLOPs by hand, the paper's formula, a client's memory."""

from functools import cache

import pytest

from benchmarks.costs import ClientCosts
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.dry_run.shapes import derive_client
from benchmarks.registry import benchmark
from benchmarks.run_config import RunConfig
from reports.evidence.published import read_published

TABLE2, PRETRAINING = benchmark("fedbfpt-table2"), benchmark("fedbfpt-pretraining")
MEBIBYTE = 2**20
DEPTH, S, H, INNER, V, ASKED = 12, 128, 768, 3072, 30522, 19  # tokens of a text, and of these masked: 15 % of 126
TOKENS = S * 2 * (4 * H**2 + 2 * H * INNER)  # a layer, forwards
ATTENTION = 2 * 2 * S**2 * H
QUERY_KEY_VALUE = S * 2 * 3 * H**2
TRANSFORM, DECODER = ASKED * 2 * H**2, ASKED * 2 * H * V


def cell_of(row: str) -> RunConfig:
    return PRETRAINING.cell(PRETRAINING.row(row), PRETRAINING.columns[0], PRETRAINING.scale("paper"), 0)


@cache
def costs(row: str) -> ClientCosts:
    client = derive_client(cell_of(row))
    assert client is not None
    return client


@pytest.mark.slow
def test_the_published_megabytes_are_those_of_a_saved_file():
    sizes = {entry.row: entry.value for entry in read_published(TABLE2.published_csv) if entry.column.endswith("_mb")}
    sizes["fedbfpt-all"] = 255.57  # Table 4
    for row in ("bert-fl", "fedbfpt", "tinybert-6", "tinybert-4", "fedbfpt-all", "distilbert"):
        assert abs(costs(row).saved_bytes / MEBIBYTE - sizes[row]) <= (0.02 if row == "distilbert" else 0.005)


@pytest.mark.slow
def test_a_layer_and_the_output_layer_go_up_and_what_was_merged_comes_down():
    client = costs("fedbfpt")
    layer = 4 * (H * H + H) + 2 * H * INNER + INNER + H + 2 * 2 * H
    output = H * H + H + 2 * H + V  # transform, norm, decoder bias; its weight is the frozen embeddings
    assert client.up_bytes == 4 * (layer + output)
    assert 0 < client.saved_bytes - client.up_bytes < 2**17  # names and alignment
    assert client.setup_bytes == costs("bert-fl").setup_bytes == costs("bert-fl").up_bytes
    plan = wire_plan(cell_of("fedbfpt"))
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
    assert costs("bert-fl").flops == whole
    progressive = [by_hand(6, layer) for layer in (0, 0, 0, 1, 2)]
    assert costs("fedbfpt").flops == sum(progressive) / 5
    assert costs("fedbfpt-no-pl").flops == by_hand(6, 0)
    assert costs("fedbfpt-no-sp").flops == sum(by_hand(6, layer) for layer in range(5)) / 5
    assert costs("fedbfpt-4").flops == sum(by_hand(4, layer) for layer in (0, 0, 0, 1, 2)) / 5
