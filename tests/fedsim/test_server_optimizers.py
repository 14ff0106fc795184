"""Server optimisers against Algorithm 2 of Reddi et al. (2021), worked out with plain numbers."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim.errors import FederationError
from fedsim.server import ServerOptimizer

BETA1, BETA2, TAU, ETA = 0.9, 0.99, 1e-3, 0.1
VALUES = st.floats(-1e4, 1e4, width=32)


def second_moment(name: str, v: float, delta: float) -> float:
    """Lines 11 to 13 of Algorithm 2."""
    square = delta * delta
    if name == "adagrad":
        return v + square
    if name == "yogi":
        return v - (1 - BETA2) * square * math.copysign(1, v - square)
    return BETA2 * v + (1 - BETA2) * square


@pytest.mark.parametrize(("name", "beta1"), [("adam", 0.9), ("yogi", 0.9), ("adagrad", 0.0)])
@pytest.mark.parametrize("means", [(1.5, 1.2), (0.9, 1.3), (1.0004, 1.0003)])
def test_two_steps_by_hand(name, beta1, means):
    # The third pair moves less than tau at first, so that Yogi's sign is seen both ways.
    x, m, v = 1.0, 0.0, TAU**2
    optimizer = ServerOptimizer(name, learning_rate=ETA)
    current, moments = {"w": torch.tensor([x], dtype=torch.float64)}, {}
    for mean in means:
        delta = mean - x
        m = beta1 * m + (1 - beta1) * delta
        v = second_moment(name, v, delta)
        x = x + ETA * m / (math.sqrt(v) + TAU)
        current, moments = optimizer.step(current, {"w": torch.tensor([mean], dtype=torch.float64)}, moments)
        found = [tensor.item() for tensor in (current["w"], moments["m"]["w"], moments["v"]["w"])]
        assert found == pytest.approx([x, m, v], rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=5), st.floats(0.01, 0.99), st.booleans())
def test_momentum_is_that_of_pytorch(means, momentum, nesterov):
    """DiLoCo's outer optimiser is PyTorch's SGD on the pseudo-gradient, from the mean to the server."""
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    theirs = torch.optim.SGD([weight], lr=0.7, momentum=momentum, nesterov=nesterov)
    ours = ServerOptimizer("sgd", 0.7, momentum=momentum, nesterov=nesterov)
    current, moments = {"w": torch.ones(1, dtype=torch.float64)}, {}
    for mean in means:
        weight.grad = weight.detach() - mean
        theirs.step()
        current, moments = ours.step(current, {"w": torch.tensor([mean], dtype=torch.float64)}, moments)
        torch.testing.assert_close(current["w"], weight.detach(), rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "adamw"}, "name: expected 'sgd', 'adam', 'yogi' or 'adagrad', found 'adamw'"),
        ({"name": "adam", "learning_rate": 0.0}, "learning_rate: expected a number above 0, found 0.0"),
        ({"name": "adam", "learning_rate": float("nan")}, "learning_rate: .* found nan"),
        ({"name": "adam", "beta1": 1.0}, "beta1: expected a number below 1, found 1.0"),
        ({"name": "sgd", "momentum": 0.9, "nesterov": "yes"}, "nesterov: expected true or false, found 'yes'"),
        ({"learningrate": 1.0}, "learningrate: expected one of name, learning_rate.*, found an unknown field"),
        ({"name": "sgd", "nesterov": True}, "nesterov with momentum"),
        ({"name": "adam", "momentum": 0.9}, "expected momentum with sgd"),
    ],
)
def test_bad_constants_are_refused(small, arguments, message):
    with pytest.raises(FederationError, match=message):
        small.algorithm("fedavg", server=arguments)
