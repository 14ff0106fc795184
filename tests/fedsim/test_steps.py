"""The parts of local training: schedules, clipping, decay, and an optimiser whose state is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fedsim.checkpoint import Checkpoint
from fedsim.data import Client, Subset
from fedsim.errors import FederationError
from fedsim.precision import resolve_precision
from fedsim.store import ClientStore
from fedsim.train_config import Training
from fedsim.training import ADAM_STATE, SCHEDULES, Optimizer

FP32 = resolve_precision("fp32", "cpu")


def training_of(**changes) -> Training:
    return Training(**{"rounds": 1, "learning_rate": 0.5, "batch_size": 4, "weight_decay": 0.0, **changes})


def optimizer_of(parameters, first=0, total=8, **changes) -> Optimizer:
    return Optimizer(parameters, training_of(**changes), FP32, first, total)


# ---- schedules -------------------------------------------------------------------------------------------------


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
    assert [SCHEDULES[name](step, steps, warmup) for step in range(steps)] == pytest.approx(shares)


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
    small.run(small.algorithm(method, small.setting(**changes)), clients=small.clients[:1], rounds=2)
    assert rates == pytest.approx([1e-2 * share for share in (1 / 4, 2 / 4, 3 / 4, 1, 1, 3 / 4, 2 / 4, 1 / 4)])


def test_without_a_schedule_every_step_has_the_rate_itself(small, rates):
    small.run(small.algorithm("fedavg", small.setting(batch_size=4)), rounds=1)
    assert set(rates) == {5e-3}


@pytest.mark.parametrize("method", ["fedavg", "central"])
def test_a_rate_decays_after_each_round(small, rates, method):
    """FedBFPT's fine-tuning: × 0.7 after each epoch. 14 examples in batches of 4 are 4 steps a round."""
    changes = {"decay": 0.7, "rounds": 3, "batch_size": 4, "learning_rate": 1e-2, "optimizer": "kept"}
    small.run(small.algorithm(method, small.setting(**changes)), clients=small.clients[:1], rounds=3)
    assert rates == pytest.approx([1e-2 * share for share in (1, 0.7, 0.49) for _ in range(4)])


def test_decay_and_a_schedule_are_multiplied(small, rates):
    changes = {"decay": 0.5, "schedule": "linear", "rounds": 2, "batch_size": 7, "learning_rate": 1e-2}
    small.run(small.algorithm("fedavg", small.setting(**changes)), clients=small.clients[:1], rounds=2)
    assert rates == pytest.approx([1e-2 * share for share in (1, 3 / 4, 2 / 4 / 2, 1 / 4 / 2)])


def test_decay_is_of_the_round_whoever_trains(small, rates):
    """Clients of 14, 10 and 6 examples have rounds of 4, 3 and 2 steps."""
    small.run(small.algorithm("fedavg", small.setting(decay=0.7, rounds=2, batch_size=4)), rounds=2)
    assert rates == pytest.approx([5e-3] * 9 + [5e-3 * 0.7] * 9)


@pytest.mark.parametrize("decay", [0.0, -0.7, float("inf"), float("nan")])
def test_a_decay_that_is_no_factor_is_refused(decay):
    with pytest.raises(FederationError, match=r"decay: expected a .*number.*, found"):
        training_of(decay=decay)


def test_adams_constants_are_those_of_the_training():
    """By hand, after gradients 1 and 3: Adam with beta2 0.5 (Kingma and Ba 2015, Algorithm 1)."""
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = optimizer_of({"w": parameter}, learning_rate=1.0, weight_decay=0.0, beta2=0.5, epsilon=1.0)
    for gradient in (1.0, 3.0):
        optimizer.backward(parameter * gradient)
        optimizer.step()
    first, second = 0.9 * 0.1 + 0.1 * 3, 0.5 * 0.5 + 0.5 * 9
    assert float(optimizer.moments["exp_avg"]["w"]) == pytest.approx(first)
    assert float(optimizer.moments["exp_avg_sq"]["w"]) == pytest.approx(second)
    steps = 1 / (1 + 1), first / (1 - 0.9**2) / ((second / (1 - 0.5**2)) ** 0.5 + 1)  # bias-corrected
    assert parameter.item() == pytest.approx(-sum(steps))


@pytest.mark.parametrize(("name", "value"), [("beta2", 1.0), ("beta2", -0.1), ("epsilon", 0.0), ("epsilon", -1e-8)])
def test_constants_that_are_none_are_refused(name, value):
    with pytest.raises(FederationError, match=f"{name}: expected a number"):
        training_of(**{name: value})


# ---- clipping and decay ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("longest", "expected"), [(None, [3, 4]), (10.0, [3, 4]), (1.0, [0.6, 0.8])])
def test_longer_gradients_are_shortened(longest, expected):
    parameter = nn.Parameter(torch.zeros(2))
    optimizer = optimizer_of({"w": parameter}, clip_norm=longest)
    optimizer.backward((parameter * torch.tensor([3.0, 4.0])).sum())
    optimizer.step()
    # AdamW's first moment after one step is a tenth of the gradient.
    torch.testing.assert_close(optimizer.moments["exp_avg"]["w"], torch.tensor(expected) / 10)


def test_a_gradient_is_adjusted_before_it_is_shortened():
    parameter = nn.Parameter(torch.zeros(2))
    optimizer = optimizer_of({"w": parameter}, clip_norm=1.0)
    optimizer.backward(parameter[0] * 3)
    optimizer.step(lambda: parameter.grad.add_(torch.tensor([0.0, 4.0])))
    torch.testing.assert_close(optimizer.moments["exp_avg"]["w"], torch.tensor([0.06, 0.08]))
    assert parameter.grad is None  # cleared


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


# ---- an optimiser that is kept ---------------------------------------------------------------------------------


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


def test_loaded_moments_are_copies():
    parameters = {"w": nn.Parameter(torch.ones(2))}
    kept = {kind: {"w": torch.ones(()) if kind == "step" else torch.ones(2)} for kind in ADAM_STATE}
    optimizer = optimizer_of(parameters)
    optimizer.load(kept)
    descend(parameters, optimizer, 1)
    assert all((value["w"] == 1).all() for value in kept.values())


@pytest.fixture
def undisturbed(small):
    """A setting without dropout, and a client with one example: nothing depends on what a round draws."""

    def load():
        model = small.load()
        for module in model.network.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        return model

    client = Client(0, Subset(small.examples, np.array([3])), small.clients[0].evaluation)
    return lambda **training: small.setting(load, **training), client


@pytest.mark.parametrize("method", ["fedavg", "central"])
def test_two_rounds_that_keep_their_optimiser_are_one_of_two_epochs(small, assert_same_tensors, undisturbed, method):
    setting_of, client = undisturbed

    def run(rounds, **training):
        setting = setting_of(rounds=rounds, schedule="linear", **training)
        return small.run(small.algorithm(method, setting), clients=[client], rounds=rounds).state.shared

    once = run(1, epochs=2)
    assert_same_tensors(run(2, optimizer="kept"), once)
    fresh = run(2)
    assert any(not torch.equal(fresh[name], once[name]) for name in once)


def test_a_client_keeps_moments_of_all_that_it_trains(small):
    setting = small.setting(optimizer="kept", batch_size=4)
    run = small.run(small.algorithm("fedsplitbert", setting, critical_layer=1), rounds=2)
    groups = setting.model.groups
    trained, local = groups.names - groups.embeddings, groups.names - groups.embeddings - groups.layers[0]
    for client, steps in ((0, 8), (1, 6), (2, 4)):  # 14, 10 and 6 examples, two rounds
        kept = run.state.clients.get(client)
        moments = {f"optimizer/{kind}/{name}" for kind in ADAM_STATE for name in trained}
        assert kept.keys() == local | moments
        assert {kept[name].item() for name in moments if "/step/" in name} == {steps}
    assert set(run.state.shared) == groups.layers[0]  # moments are never sent
    assert {row.kind for row in run.channel.ledger.rows} == {"parameters"}


@pytest.mark.parametrize("participation", [1.0, 0.67])
@pytest.mark.parametrize(
    ("method", "options"), [("fedavg", {}), ("fedsplitbert", {"critical_layer": 1}), ("central", {})]
)
def test_kept_moments_survive_a_checkpoint(small, assert_same_run, tmp_path, method, options, participation):
    def run(rounds, **engine):
        setting = small.setting(optimizer="kept", batch_size=4)
        engine |= {"rounds": rounds, "participation": participation}
        return small.run(small.algorithm(method, setting, **options), **engine)

    def kept():
        return {"checkpoint": Checkpoint(tmp_path, method), "store": ClientStore(tmp_path)}

    uninterrupted = run(3)
    run(1, **kept())
    assert_same_run(run(3, **kept()), uninterrupted)
    moments = uninterrupted.state.moments if method == "central" else uninterrupted.state.clients.get(0)
    assert moments


def test_kept_or_clipped_all_rows_of_the_embeddings_are_trained(small):
    """Rows of absent words would be missing from the moments, and from the gradient's length is none the less told."""
    setting = small.setting(optimizer="kept", weight_decay=0.0)
    run = small.run(small.algorithm("fedavg", setting, embeddings="global"), rounds=2)
    words = "optimizer/exp_avg/encoder.embeddings.word_embeddings.weight"
    assert run.state.clients.get(0)[words].shape == (60, 16)


def test_a_fresh_optimiser_leaves_nothing_with_clients(small):
    run = small.run(small.algorithm("fedavg"), rounds=1)
    assert list(run.state.clients) == []
    assert run.state.moments == {}


# ---- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": "cosine"}, "schedule: expected 'constant' or 'linear', found 'cosine'"),
        ({"decayed": "some"}, "decayed: expected 'all' or 'matrices', found 'some'"),
        ({"optimizer": "shared"}, "optimizer: expected 'fresh' or 'kept', found 'shared'"),
        ({"warmup": 1.5}, "warmup: expected a number of at most 1, found 1.5"),
        ({"warmup": -0.1}, "warmup: expected a number of at least 0, found -0.1"),
        ({"clip_norm": 0.0}, "clip_norm: expected a number above 0, found 0.0"),
        ({"clip_norm": float("nan")}, "clip_norm: expected a finite number, found nan"),
    ],
)
def test_wrong_settings_are_refused(change, message):
    with pytest.raises(FederationError, match=message):
        replace(training_of(), **change)
