"""Activation checkpointing: the same gradients with dropout, from layers that run twice and keep less."""

import numpy as np
import pytest
import torch

from benchmarks.dry_run.memory import LiveBytes
from fedsim.models.packed.encoder import PackedLayer
from tests.fedsim.conftest import CAUSAL, CLASSES, GPT2, MASKED, Small, assert_same_run

TEXTS = 400
CASES = {
    "classification": (CLASSES, "pooled", "fedavg", {"proximal": 0.1}),
    "four paths": (CLASSES, "psum", "fedavg", {"embeddings": "global"}),
    "sub-models": (MASKED, "masked-lm", "fedbfpt", {"local_layers": 2}),
    "split masked LM": (MASKED, "masked-lm", "fedbert_parallel", {"averaged": "embeddings"}),
}


@pytest.mark.parametrize("kernels", ["packed", "reference"])
@pytest.mark.parametrize("case", CASES)
def test_a_run_is_the_same_to_the_bit(deep, case, kernels):
    objective, head, name, options = CASES[case]

    def run(checkpoints):
        workload = deep.workload(
            lambda: deep.load(objective, head, kernels=kernels, checkpoints=checkpoints), objective, rounds=2
        )
        return deep.run(deep.algorithm(name, workload, **options))

    assert_same_run(run(True), run(False))


def gradients(model, batch):
    model.set_trained(model.parameters)
    model.network.train()
    torch.manual_seed(1)
    model.loss(batch).backward()
    return {name: parameter.grad for name, parameter in model.parameters.items()}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kernels", ["packed", "reference"])
def test_layers_run_twice_and_keep_less(deep, monkeypatch, kernels, precision):
    calls, forward = [], PackedLayer.forward
    monkeypatch.setattr(PackedLayer, "forward", lambda *given: calls.append(1) or forward(*given))
    batch = deep.examples.collate(np.arange(TEXTS) % len(deep.examples))

    def measured(checkpoints):
        model = deep.load(head="average", kernels=kernels, checkpoints=checkpoints, precision=precision)
        for layer in model.network.encoder.encoder.layer:
            layer.intermediate.register_forward_hook(lambda *given: calls.append(1))
        calls.clear()
        with LiveBytes() as live:
            tensors = gradients(model, batch)
        return tensors, len(calls), live.peak.total()

    (kept, once, most), (again, twice, less) = measured(False), measured(True)
    assert (once, twice) == (4, 8)
    assert less < 0.5 * most
    assert all(torch.equal(again[name], gradient) for name, gradient in kept.items())


def test_gpt2_has_the_same_gradients_but_for_rounding(deep):
    """Without the cache of keys and values, which a second pass would fill again, sums have another order."""
    batch = CAUSAL.prepare(deep.examples.collate(deep.clients[0].train.indices), None)
    gpt2 = Small(**GPT2)
    kept, again = (gradients(gpt2.load(CAUSAL, "causal-lm", checkpoints=way), batch) for way in (False, True))
    for name, gradient in kept.items():
        torch.testing.assert_close(again[name], gradient, rtol=1e-4, atol=1e-7)
