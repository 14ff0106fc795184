"""Codecs really round, and the ledger's bytes equal closed forms."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedsim.precision import DTYPES
from fedsim.wire import Channel

WIDTHS = {"fp32": 4, "fp16": 2, "bf16": 2}  # bytes of a value
ARRAYS = hnp.arrays(np.float32, hnp.array_shapes(max_dims=3, max_side=5), elements=st.floats(-60000, 60000, width=32))


def layer_values(config) -> int:
    """Query, key, value and output; two feed-forward matrices; two normalisations; biases."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    return 4 * (hidden * hidden + hidden) + (hidden * inner + inner) + (inner * hidden + hidden) + 2 * 2 * hidden


def embedding_values(config) -> int:
    """Words, positions, two types, a normalisation."""
    hidden = config["hidden_size"]
    return (config["vocab_size"] + config["max_position_embeddings"] + 2 + 2) * hidden


def head_values(config, outputs: int = 2) -> int:
    """Pooler and classifier."""
    hidden = config["hidden_size"]
    return hidden * hidden + hidden + hidden * outputs + outputs


@settings(deadline=None)
@given(ARRAYS, st.sampled_from(["fp32", "fp16", "bf16"]))
def test_a_cast_is_rounded_on_the_way_and_at_rest(array, codec):
    sent, channel = {"w": torch.from_numpy(array)}, Channel(codec)
    for received in (channel.to_client(0, sent), channel.to_server(0, sent), channel.at_rest(sent)):
        assert received["w"].dtype == torch.float32
        assert torch.equal(received["w"], sent["w"].to(DTYPES[codec]).float())


@pytest.mark.parametrize("server", [{}, {"name": "adam", "learning_rate": 0.01}])
def test_server_keeps_what_it_can_send(small, server):
    def shared(codec):
        run = small.run(small.algorithm("fedsplitbert", critical_layer=2, server=server), codec)
        return run.state.shared.values()

    assert all(torch.equal(tensor, tensor.half().float()) for tensor in shared("fp16"))
    assert all(torch.equal(tensor, tensor.bfloat16().float()) for tensor in shared("bf16"))
    assert not any(torch.equal(tensor, tensor.half().float()) for tensor in shared("fp32"))


@pytest.mark.parametrize("codec", WIDTHS)
@pytest.mark.parametrize("embeddings", ["frozen", "global", "local"])
@pytest.mark.parametrize("critical_layer", [0, 1, 2, 3])
def test_bytes_of_a_round_are_the_closed_form(small, critical_layer, embeddings, codec):
    """So nothing else crosses: neither what stays local nor what is frozen."""
    rounds, clients, whole = 2, small.clients[:2], small.depth == critical_layer
    algorithm = small.algorithm("fedsplitbert", critical_layer=critical_layer, embeddings=embeddings)
    ledger = small.run(algorithm, codec, clients=clients, rounds=rounds).channel.ledger
    values = critical_layer * layer_values(small.config) + whole * head_values(small.config)
    values += (embeddings == "global" and critical_layer > 0) * embedding_values(small.config)
    one_way = len(clients) * values * WIDTHS[codec]
    for number in range(1, rounds + 1):
        assert ledger.total_bytes("up", number) == ledger.total_bytes("down", number) == one_way
        assert ledger.total_bytes(round=number) == 2 * one_way
    assert ledger.total_bytes() == 2 * rounds * one_way
    everything = embedding_values(small.config) + small.depth * layer_values(small.config) + head_values(small.config)
    assert ledger.setup_bytes == len(clients) * everything * 4  # the pre-trained model is fp32, whatever the codec
