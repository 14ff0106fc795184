"""Local training: seeds, schedules, clipping, decay, kept optimisers, local embeddings, mixed precision."""

import contextlib

import numpy as np
import pytest
import torch
from torch import nn

from fedsim.data import Client, Subset
from fedsim.precision import Precision, resolve_precision
from fedsim.rng import derive_seed
from fedsim.train_config import TrainConfig
from fedsim.training import LocalTraining, Optimizer, learning_rate_share
from tests.fedsim.conftest import Small, assert_same_run, assert_same_tensors


def test_the_seed_of_a_key_never_changes():
    # BLAKE2b of "0/1/2/dropout", 8 bytes, without the lowest bit: a change here changes every result ever recorded.
    assert derive_seed(0, 1, 2, "dropout") == 3719375658264748528


def optimizer_of(parameters, first=0, total=8, **changes) -> Optimizer:
    config = TrainConfig(**{"rounds": 1, "learning_rate": 0.5, "batch_size": 4, "weight_decay": 0.0, **changes})
    return Optimizer(parameters, config, resolve_precision("fp32", "cpu"), first, total)


@pytest.mark.parametrize(
    ("name", "steps", "warmup", "shares"),
    [
        ("constant", 4, 2, [1 / 2, 1, 1, 1]),
        ("linear", 4, 0, [1, 3 / 4, 2 / 4, 1 / 4]),
        ("linear", 6, 2, [1 / 2, 1, 1, 3 / 4, 2 / 4, 1 / 4]),
        ("linear", 3, 3, [1 / 3, 2 / 3, 1]),
    ],
)
def test_schedules_by_hand(name, steps, warmup, shares):
    assert [learning_rate_share(name, step, steps, warmup) for step in range(steps)] == pytest.approx(shares)


@pytest.mark.parametrize("method", ["fedavg", "central"])
def test_a_schedule_runs_over_all_rounds(small, monkeypatch, method):
    """14 examples in batches of 4 are 4 steps a round, 8 in all, half of which warm up."""
    rates, step = [], torch.optim.AdamW.step

    def watched(self, *arguments, **options):
        rates.append(self.param_groups[0]["lr"])
        return step(self, *arguments, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", watched)
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
def test_biases_and_layer_norm_decay_only_if_all_parameters_do(small, decayed):
    model = small.load()
    with torch.no_grad():
        for parameter in model.parameters.values():
            parameter.fill_(2.0)
    optimizer = optimizer_of(model.parameters, weight_decay=0.1, decayed=decayed)
    optimizer.backward(sum(parameter.sum() for parameter in model.parameters.values()) * 0.0)
    optimizer.step()
    for name, parameter in model.parameters.items():
        kept = decayed == "matrices" and (name.endswith("bias") or "LayerNorm" in name)
        expected = 2.0 if kept else 2.0 * (1 - 0.5 * 0.1)  # without a gradient nothing moves but by decay
        assert torch.allclose(parameter, torch.full_like(parameter, expected)), name


@pytest.mark.parametrize("method", ["fedavg", "central"])
def test_two_rounds_that_keep_their_optimiser_are_one_of_two_epochs(small, method):
    """Without dropout and with one example, nothing depends on random draws."""
    client = Client(0, Subset(small.examples, np.array([3])), small.clients[0].evaluation)

    def run(rounds, **training):
        workload = small.workload(lambda: small.load(dropout=False), rounds=rounds, schedule="linear", **training)
        return small.run(small.algorithm(method, workload), clients=[client], rounds=rounds).state.shared

    once, fresh = run(1, epochs=2), run(2)
    assert_same_tensors(run(2, optimizer="kept"), once)
    assert any(not torch.equal(fresh[name], once[name]) for name in once)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fedavg", {"embeddings": "global", "proximal": 0.5}),
        ("fedsplitbert", {"critical_layer": 1, "embeddings": "local"}),
        ("central", {"embeddings": "global"}),
    ],
)
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_training_the_embeddings_of_own_words_alone_changes_no_bit(monkeypatch, name, options, family):
    """RoBERTa's positions are counted from after its padding id."""
    small = Small(model_type=family, pad_token_id=1)

    def run():
        workload = small.workload(weight_decay=0.0, epochs=2, batch_size=4)
        return small.run(small.algorithm(name, workload, **options))

    compact = run()
    monkeypatch.setattr(LocalTraining, "_compact_vocabulary", lambda *_: contextlib.nullcontext())
    assert_same_run(compact, run())


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), "fp16"), ((8, 0), "bf16")])
def test_auto_precision_on_a_gpu(monkeypatch, capability, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert resolve_precision("auto") == Precision(torch.device("cuda"), expected)


def test_bf16_computes_in_bf16_and_keeps_fp32(small):
    half = small.workload(lambda: small.load(precision="bf16", kernels="reference"))
    inner = []
    dense = half.model.network.encoder.encoder.layer[0].intermediate.dense
    dense.register_forward_hook(lambda module, inputs, output: inner.append(output.dtype))
    runs = [small.run(small.algorithm("fedavg", workload)) for workload in (half, small.workload())]
    assert set(inner) == {torch.bfloat16}
    assert {tensor.dtype for tensor in runs[0].state.shared.values()} == {torch.float32}
    losses = [[result.metrics.train_loss for result in run.results] for run in runs]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], abs=0.05)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_a_round_in_half_precision_on_a_gpu_is_close_to_the_cpus(small, precision):
    def run(load):
        # lr 1e-4: Adam's first steps are of that size whatever the gradient, so rounding moves no value by more.
        workload = small.workload(load, learning_rate=1e-4)
        return small.run(small.algorithm("fedsplitbert", workload, critical_layer=2), rounds=1)

    gpu, cpu = run(lambda: small.load(precision=precision, device="cuda")), run(small.load)
    for name, tensor in gpu.state.shared.items():
        assert tensor.dtype == torch.float32
        torch.testing.assert_close(tensor.cpu(), cpu.state.shared[name], rtol=0, atol=1e-3)
    # Dropout is drawn by another generator on a GPU.
    assert gpu.results[0].metrics.train_loss == pytest.approx(cpu.results[0].metrics.train_loss, abs=0.1)
    assert gpu.channel.ledger.rows == cpu.channel.ledger.rows
