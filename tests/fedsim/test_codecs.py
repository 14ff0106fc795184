"""Codecs: casts round; changes have bounds and no bias; bytes are closed forms; dropped values are sent later."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedsim.codecs import Int8, Qsgd, TopK, build_codec, pack, unpack
from fedsim.errors import FederationError
from fedsim.precision import DTYPES
from fedsim.wire import ENCODED, Channel

CODECS = ["int8", "qsgd:1", "qsgd:7", "qsgd:127:5", "qsgd:5:64", "topk:0.01", "topk:0.3", "topk:1"]
ARRAYS = hnp.arrays(
    np.float32,
    hnp.array_shapes(max_dims=3, max_side=9),
    elements=st.floats(-60000, 60000, width=32, allow_subnormal=False),
)


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def through(codec, tensor, seed=0):
    return codec.decode(codec.encode(tensor, draws(seed)), tensor.shape)


def sent_bytes(encoded):
    return sum(part.numel() * part.element_size() for part in encoded)


@settings(deadline=None)
@given(ARRAYS)
def test_int8_is_within_half_a_step(array):
    tensor = torch.from_numpy(array)
    error = (through(Int8(), tensor) - tensor).abs().max().item()
    assert error <= tensor.abs().max().item() / 254 * (1 + 1e-5)


@settings(deadline=None, max_examples=40)
@given(ARRAYS, st.integers(1, 127), st.sampled_from([None, 1, 4, 512]), st.integers(0, 9))
def test_qsgd_answers_one_of_the_two_neighbouring_levels(array, levels, bucket, seed):
    tensor, codec = torch.from_numpy(array), Qsgd(levels, bucket)
    arrived = through(codec, tensor, seed)
    width = bucket or tensor.numel()
    for piece, other in zip(tensor.flatten().split(width), arrived.flatten().split(width), strict=True):
        step = piece.norm().item() / levels
        assert (piece - other).abs().max().item() <= step * (1 + 1e-4) + 1e-18  # whose square is 0 in fp32
        assert not (piece * other < 0).any()
        assert (other[piece == 0] == 0).all()


@pytest.mark.parametrize("levels", [1, 3, 7, 127])
def test_qsgd_is_unbiased_with_the_variance_of_the_paper(levels):
    tensor, times, width = torch.randn(48, generator=draws(1)), 8000, 16
    arrived = through(Qsgd(levels, width), tensor.repeat(times, 1))
    deviation = arrived.std(0).clamp(min=1e-6) / math.sqrt(times)
    assert ((arrived.mean(0) - tensor).abs() < 5 * deviation).all()
    omega = min(width / levels**2, math.sqrt(width) / levels)
    assert 0 < (arrived - tensor).square().sum(1).mean() <= omega * tensor.square().sum()
    damped = through(Qsgd(levels, width, damped=True), tensor.repeat(times, 1))
    assert (damped - tensor).square().sum(1).mean() <= omega / (1 + omega) * tensor.square().sum()


@settings(deadline=None)
@given(ARRAYS, st.floats(0.01, 1))
def test_topk_keeps_the_largest_and_its_error_is_the_rest(array, share):
    tensor, codec = torch.from_numpy(array), TopK(share)
    arrived = through(codec, tensor).flatten()
    kept, flat = max(1, round(share * tensor.numel())), tensor.flatten()
    assert ((arrived == flat) | (arrived == 0)).all()
    magnitudes = flat.abs().sort(descending=True).values
    assert torch.equal((flat - arrived).abs().sort(descending=True).values[: len(flat) - kept], magnitudes[kept:])


@settings(deadline=None)
@given(hnp.arrays(np.uint8, st.integers(1, 70)), st.integers(1, 8))
def test_packed_codes_take_their_bits_and_come_back(array, bits):
    codes = torch.from_numpy(array) & (2**bits - 1)
    packed = pack(codes, bits)
    assert packed.dtype == torch.uint8
    assert len(packed) == math.ceil(bits * len(codes) / 8)
    assert torch.equal(unpack(packed, bits, len(codes)), codes)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 3000), st.integers(1, 127), st.sampled_from([None, 3, 512]), st.floats(0.001, 1))
def test_bytes_are_the_closed_form_with_and_without_values(count, levels, bucket, share):
    kept = max(1, round(share * count))
    expected = {
        Int8(): count + 4,
        Qsgd(levels, bucket): math.ceil((1 + math.ceil(math.log2(levels + 1))) * count / 8)
        + 4 * math.ceil(count / (bucket or count)),
        TopK(share): 4 * kept + min(4 * kept, math.ceil(count / 8)),
    }
    for codec, size in expected.items():
        for device in ("cpu", "meta"):
            encoded = codec.encode(torch.ones(count, device=device), draws())
            assert sent_bytes(encoded) == size
            assert codec.decode(encoded, torch.Size([count])).shape == (count,)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", ["activations", "gradients", "features", "moments", "norms", "stacks", "counts"])
def test_what_is_not_a_parameter_is_encoded_as_it_is_or_crosses_whole(codec, kind):
    """Also a parameter that the codec would lengthen."""
    tensor, channel = torch.randn(4, 50, generator=draws(3)), Channel(codec)
    received = channel.to_server(0, {"x": tensor}, kind)["x"]
    encoded = build_codec(codec).encode(tensor, draws())
    shortened = kind in ENCODED and sent_bytes(encoded) < 4 * tensor.numel()
    assert torch.equal(received, tensor) == (not shortened)
    assert torch.equal(channel.to_client(0, {"x": tensor[0, :1]})["x"], tensor[0, :1])
    assert [row.bytes for row in channel.ledger.rows] == [sent_bytes(encoded) if shortened else 800, 4]


@settings(deadline=None)
@given(st.lists(hnp.arrays(np.float32, 12, elements=st.floats(-8, 8, width=16)), min_size=1, max_size=6), st.booleans())
def test_uploads_with_error_feedback_add_up_to_all_changes(changes, downloads):
    """After every round, received and still unsent changes add up to all changes."""
    channel, server = Channel("topk:0.25"), torch.zeros(12)
    channel.setup(0, {"w": server})
    total = torch.zeros(12)
    for channel.round, change in enumerate(map(torch.from_numpy, changes), start=1):
        base = channel.to_client(0, {"w": server})["w"] if downloads else torch.zeros(12)
        received = channel.to_server(0, {"w": base + change}, onto={"w": server})["w"]
        total += change
        server = received
        assert torch.allclose(server + channel.dropped.get(0)["w"], total, atol=1e-3)
    assert torch.count_nonzero(received) <= 3 * len(changes)


@pytest.mark.parametrize("codec", CODECS)
def test_a_download_still_owes_what_the_ones_before_it_dropped(codec):
    """If the server stops changing, the client converges to it, even if a message's noise exceeds the message."""
    channel = Channel(codec)
    for channel.round in range(1, 6):
        server = torch.randn(40, generator=draws(channel.round))
        received = channel.to_client(0, {"w": server})["w"]
    due = (server - received).norm()
    for channel.round in range(6, 120):
        received = channel.to_client(0, {"w": server})["w"]
    assert (server - received).norm() <= 1e-3 * due + 1e-6
    assert torch.equal(channel.at_client(0, {"w": server})["w"], received)


def test_draws_depend_on_seed_round_client_and_message():
    tensor = {"x": torch.randn(64, generator=draws(6))}

    def received(seed=0, round=1, client=0, earlier=0):
        channel = Channel("qsgd:1", seed=seed)
        channel.round = round
        for _ in range(earlier):
            channel.apart().to_server(client, tensor, "activations")
        return channel.apart().to_server(client, tensor, "activations")["x"]

    assert torch.equal(received(), received())
    others = [received(seed=1), received(round=2), received(client=1), received(earlier=1)]
    assert not any(torch.equal(received(), other) for other in others)


@pytest.mark.parametrize(
    "text",
    ["int4", "fp32:1", "int8:1", "qsgd:0", "qsgd:128", "qsgd:7:0", "qsgd:7:8:9", "topk:0", "topk:1.5", "topk:x", ""],
)
def test_an_unknown_codec_is_refused_with_the_known_ones(text):
    with pytest.raises(FederationError, match=r"unknown codec .*qsgd:LEVELS:BUCKET.*topk:SHARE"):
        Channel(text)


# ---- casts, and bytes of rounds ------------------------------------------------------------------------------------

WIDTHS = {"fp32": 4, "fp16": 2, "bf16": 2}  # bytes of a value


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
