"""Which layer a round of FedBFPT trains, and which layers stand above it in a client's model."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.algorithms.fedbfpt import layers_by_round

NUMBER = re.compile(r"\.layer\.(\d+)\.")
CLIENTS, ROUNDS = 3, 5


def layer_of(name: str) -> int | None:
    found = NUMBER.search(name)
    return int(found[1]) if found else None


def standing(plan) -> tuple[int, ...]:
    """The server's layers in a client's model, from the bottom."""
    pairs = {(layer_of(name), layer_of(target)) for name, target in plan.view.items()}
    return tuple(target for own, target in sorted(pair for pair in pairs if pair[0] is not None))


@pytest.fixture(scope="module")
def wide(small):
    """An encoder as deep as the paper's, of which only plans are asked."""
    return type(small)(depth=12)


# ---- which layer a round trains --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rounds", "permitted", "schedule", "expected"),
    [
        (5, 6, "progressive", (0, 0, 0, 1, 2)),  # the authors' five
        (10, 6, "progressive", (0, 0, 0, 0, 0, 1, 1, 1, 2, 3)),
        (10, 2, "progressive", (0, 0, 0, 0, 0, 1, 1, 1, 1, 1)),
        (4, 1, "progressive", (0, 0, 0, 0)),
        (1, 6, "progressive", (0,)),
        (5, 6, "first", (0, 0, 0, 0, 0)),
        (5, 6, "successive", (0, 1, 2, 3, 4)),
        (5, 3, "successive", (0, 1, 2, 2, 2)),
        (3, 6, "last", (5, 5, 5)),
    ],
)
def test_schedules_by_hand(rounds, permitted, schedule, expected):
    assert layers_by_round(rounds, permitted, schedule) == expected


@given(st.integers(1, 200), st.integers(1, 12), st.sampled_from(["progressive", "first", "successive"]))
def test_every_round_trains_a_permitted_layer_from_the_bottom_up(rounds, permitted, schedule):
    found = layers_by_round(rounds, permitted, schedule)
    assert len(found) == rounds
    assert found[0] == 0
    assert all(0 <= after - before <= 1 for before, after in pairwise(found))
    assert max(found) < permitted
    if schedule == "progressive":
        left = rounds
        for layer, count in sorted(Counter(found).items()):
            assert count == (left if layer == permitted - 1 else math.ceil(left / 2))
            left -= count


# ---- which layers stand above it -------------------------------------------------------------------------------


def drawn(algorithm, rounds=ROUNDS) -> dict[tuple[int, int], tuple[int, ...]]:
    return {
        (number, client): standing(algorithm.plan(number, client))
        for number in range(1, rounds + 1)
        for client in range(CLIENTS)
    }


@pytest.mark.parametrize("trained", ["layer", "all"])
def test_what_is_drawn_lies_above_the_layer_in_order(wide, trained):
    repeated = False
    for seed in range(5):
        setting = wide.setting(rounds=ROUNDS, seed=seed)
        algorithm = wide.algorithm("fedbfpt", setting, local_layers=6, trained=trained)
        for (number, _), layers in drawn(algorithm).items():
            layer = layers_by_round(ROUNDS, 6, "progressive")[number - 1]
            assert layers[: layer + 1] == tuple(range(layer + 1))
            assert len(layers) == 6
            assert list(layers) == sorted(layers)
            assert layer < min(layers[layer + 1 :]) <= max(layers) <= 11
            repeated |= len(set(layers)) < 6
    assert repeated == (trained == "layer")  # "[5, 5, 9]" in the paper's text; two copies could not both be written
