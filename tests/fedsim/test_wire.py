"""Codecs really round, and the ledger's bytes equal closed forms."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedsim.wire import Channel, LedgerRow

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
@given(ARRAYS, st.sampled_from(["fp16", "bf16"]), st.sampled_from(["to_client", "to_server"]))
def test_half_precision_is_rounded_on_the_way(array, codec, direction):
    sent = torch.from_numpy(array)
    received = getattr(Channel(codec), direction)(0, {"w": sent})["w"]
    half = sent.half() if codec == "fp16" else sent.bfloat16()
    assert received.dtype == torch.float32
    assert torch.equal(received, half.float())


@settings(deadline=None)
@given(ARRAYS)
def test_fp32_is_lossless(array):
    sent = torch.from_numpy(array)
    assert torch.equal(Channel("fp32").to_client(0, {"w": sent})["w"], sent)
    assert torch.equal(Channel("fp32").at_rest({"w": sent})["w"], sent)


@pytest.mark.parametrize("codec", WIDTHS)
def test_integers_pass_as_they_are(codec):
    channel = Channel(codec)
    labels, mask = torch.tensor([7, 2**40]), torch.tensor([True, False, True])
    received = channel.to_server(3, {"labels": labels, "mask": mask}, kind="labels")
    assert torch.equal(received["labels"], labels)
    assert torch.equal(received["mask"], mask)
    assert channel.ledger.rows == [LedgerRow(0, 3, "up", "labels", 5, 2 * 8 + 3 * 1)]


@pytest.mark.parametrize("server", [{}, {"name": "adam", "learning_rate": 0.01}])
def test_server_keeps_what_it_can_send(small, server):
    def shared(codec):
        run = small.run(small.algorithm("fedsplitbert", critical_layer=2, server=server), codec)
        return run.state.shared.values()

    assert all(torch.equal(tensor, tensor.half().float()) for tensor in shared("fp16"))
    assert all(torch.equal(tensor, tensor.bfloat16().float()) for tensor in shared("bf16"))
    assert not any(torch.equal(tensor, tensor.half().float()) for tensor in shared("fp32"))


@pytest.mark.parametrize("codec", WIDTHS)
@pytest.mark.parametrize("critical_layer", [0, 1, 2, 3])
def test_bytes_of_a_round_are_the_closed_form(small, critical_layer, codec):
    rounds, clients = 2, small.clients[:2]
    run = small.run(
        small.algorithm("fedsplitbert", critical_layer=critical_layer), codec, clients=clients, rounds=rounds
    )
    values = critical_layer * layer_values(small.config)
    if critical_layer == small.depth:
        values += head_values(small.config)
    one_way = len(clients) * values * WIDTHS[codec]
    ledger = run.channel.ledger
    for number in range(1, rounds + 1):
        assert ledger.total_bytes("up", number) == ledger.total_bytes("down", number) == one_way
        assert ledger.total_bytes(round=number) == 2 * one_way
    assert ledger.total_bytes() == 2 * rounds * one_way
    whole = embedding_values(small.config) + small.depth * layer_values(small.config) + head_values(small.config)
    assert ledger.setup_bytes == len(clients) * whole * 4  # the pre-trained model is fp32, whatever the codec


@pytest.mark.parametrize("embeddings", ["frozen", "global", "local"])
@pytest.mark.parametrize("critical_layer", [1, 2])
def test_local_names_never_cross(small, recording_channel, critical_layer, embeddings):
    channel, workload = recording_channel("fp16"), small.workload()
    algorithm = small.algorithm("fedsplitbert", workload, critical_layer=critical_layer, embeddings=embeddings)
    run = small.run(algorithm, channel=channel)
    model = workload.model.groups
    shared = model.up_to(critical_layer) | (model.embeddings if embeddings == "global" else frozenset())
    assert len(channel.received) == 2 * 3 * 2
    assert all(tensors.keys() == shared for tensors in channel.received.values())
    local = frozenset(run.state.clients.get(0))
    assert model.head < local
    assert not local & shared


def test_payloads_of_a_round_are_summed_by_client_direction_and_kind():
    channel, payload = Channel("fp16"), {"w": torch.zeros(3)}
    for channel.round in (1, 2):
        for number in range(10_000):
            channel.to_server(number % 2, payload, "activations")
        channel.to_client(0, payload, "gradients")
        list(channel.stream_to_server(0, ({"features": torch.zeros(5)} for _ in range(4))))
    assert channel.ledger.rows == [
        LedgerRow(number, client, direction, kind, values, 2 * values, messages)
        for number in (1, 2)
        for client, direction, kind, values, messages in (
            (0, "up", "activations", 15_000, 5000),
            (1, "up", "activations", 15_000, 5000),
            (0, "down", "gradients", 3, 1),
            (0, "up", "features", 20, 1),
        )
    ]
    assert channel.ledger.total_bytes("up", 1) == 2 * 30_020
