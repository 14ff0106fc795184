"""The parts of local training: schedules, clipping, decay, and an optimiser whose state is kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedsim.data import Client, Subset
from fedsim.precision import resolve_precision
from fedsim.train_config import TrainConfig
from fedsim.training import ADAM_STATE, Optimizer, learning_rate_share

FP32 = resolve_precision("fp32", "cpu")


def training_of(**changes) -> TrainConfig:
    return TrainConfig(**{"rounds": 1, "learning_rate": 0.5, "batch_size": 4, "weight_decay": 0.0, **changes})


def optimizer_of(parameters, first=0, total=8, **changes) -> Optimizer:
    return Optimizer(parameters, training_of(**changes), FP32, first, total)


@pytest.mark.parametrize(
    ("name", "steps", "warmup", "shares"),
    [
        ("constant", 4, 0, [1, 1, 1, 1]),
        ("constant", 4, 2, [1 / 2, 1, 1, 1]),
        ("linear", 4, 0, [1, 3 / 4, 2 / 4, 1 / 4]),
        ("linear", 6, 2, [1 / 2, 1, 1, 3 / 4, 2 / 4, 1 / 4]),
        ("linear", 3, 3, [1 / 3, 2 / 3, 1]),
    ],
)
def test_schedules_by_hand(name, steps, warmup, shares):
    assert [learning_rate_share(name, step, steps, warmup) for step in range(steps)] == pytest.approx(shares)


@pytest.fixture
def rates(monkeypatch) -> list[float]:
    """The learning rate of every step that is done."""
    seen: list[float] = []
    step = torch.optim.AdamW.step

    def watched(self, *words, **options):
        seen.append(self.param_groups[0]["lr"])
        return step(self, *words, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", watched)
    return seen


@pytest.mark.parametrize("method", ["fedavg", "central"])
def test_a_schedule_runs_over_all_rounds(small, rates, method):
    """14 examples in batches of 4 are 4 steps a round, 8 in all, half of which warm up."""
    changes = {"schedule": "linear", "warmup": 0.5, "rounds": 2, "batch_size": 4, "learning_rate": 1e-2}
    small.run(small.algorithm(method, small.workload(**changes)), clients=small.clients[:1], rounds=2)
    assert rates == pytest.approx([1e-2 * share for share in (1 / 4, 2 / 4, 3 / 4, 1, 1, 3 / 4, 2 / 4, 1 / 4)])


@pytest.mark.parametrize(("longest", "expected"), [(None, [3, 4]), (10.0, [3, 4]), (1.0, [0.6, 0.8])])
def test_longer_gradients_are_shortened(longest, expected):
    parameter = nn.Parameter(torch.zeros(2))
    optimizer = optimizer_of({"w": parameter}, clip_norm=longest)
    optimizer.backward((parameter * torch.tensor([3.0, 4.0])).sum())
    optimizer.step()
    # AdamW's first moment after one step is a tenth of the gradient.
    torch.testing.assert_close(optimizer.moments["exp_avg"]["w"], torch.tensor(expected) / 10)


@pytest.mark.parametrize("decayed", ["all", "matrices"])
def test_biases_and_layer_norm_decay_only_if_all_does(small, decayed):
    model = small.load()
    before = model.snapshot(model.parameters)
    with torch.no_grad():
        for parameter in model.parameters.values():
            parameter.fill_(2.0)
    optimizer = optimizer_of(model.parameters, weight_decay=0.1, decayed=decayed)
    optimizer.backward(sum(parameter.sum() for parameter in model.parameters.values()) * 0.0)
    optimizer.step()
    for name, parameter in model.parameters.items():
        kept = decayed == "matrices" and before[name].ndim == 1
        expected = 2.0 if kept else 2.0 * (1 - 0.5 * 0.1)  # without a gradient nothing moves but by decay
        assert torch.allclose(parameter, torch.full_like(parameter, expected)), name
    vectors = {name for name, value in before.items() if value.ndim == 1}
    assert vectors == {name for name in before if name.endswith("bias") or "LayerNorm" in name}


def descend(parameters, optimizer, steps):
    for _ in range(steps):
        optimizer.backward(sum((value - 1).square().sum() for value in parameters.values()))
        optimizer.step()


def test_kept_moments_go_on_where_they_were():
    through, paused = ({"w": nn.Parameter(torch.tensor([3.0, -2.0]))} for _ in range(2))
    descend(through, optimizer_of(through), 5)
    first = optimizer_of(paused)
    descend(paused, first, 2)
    second = optimizer_of(paused, first=2)
    second.load({kind: {name: value.clone() for name, value in own.items()} for kind, own in first.moments.items()})
    descend(paused, second, 3)
    assert torch.equal(paused["w"], through["w"])
    assert second.moments.keys() == set(ADAM_STATE)
    assert second.moments["step"]["w"].item() == 5


@pytest.fixture
def undisturbed(small):
    """A workload without dropout, and a client with one example: nothing depends on what a round draws."""

    def load():
        model = small.load()
        for module in model.network.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        return model

    client = Client(0, Subset(small.examples, np.array([3])), small.clients[0].evaluation)
    return lambda **training: small.workload(load, **training), client


@pytest.mark.parametrize("method", ["fedavg", "central"])
def test_two_rounds_that_keep_their_optimiser_are_one_of_two_epochs(small, assert_same_tensors, undisturbed, method):
    workload_of, client = undisturbed

    def run(rounds, **training):
        workload = workload_of(rounds=rounds, schedule="linear", **training)
        return small.run(small.algorithm(method, workload), clients=[client], rounds=rounds).state.shared

    once = run(1, epochs=2)
    assert_same_tensors(run(2, optimizer="kept"), once)
    fresh = run(2)
    assert any(not torch.equal(fresh[name], once[name]) for name in once)
