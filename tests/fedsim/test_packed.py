"""Layers over packed tokens equal the library's over padded ones, except for rounding and dropout's draws."""

import numpy as np
import pytest
import torch
from torch import nn

from fedsim.adapter_config import AdapterConfig
from fedsim.data import IGNORED
from fedsim.models.packed.parts import Masks
from fedsim.objectives import Classification, TokenClassification
from fedsim.rng import torch_seeded
from tests.fedsim.conftest import Small, local_training

FAMILIES = {
    family: Small(model_type=family, num_hidden_layers=4, **changes)
    for family, changes in {"bert": {}, "roberta": {"type_vocab_size": 1}, "xlm-roberta": {}}.items()
}
ADAPTERS = {
    "none": None,
    "lora": AdapterConfig("lora", r=3, alpha=6.0),
    "lora-everywhere": AdapterConfig("lora", r=2, targets=("key", "intermediate.dense", "output.dense")),
    "bitfit": AdapterConfig("bitfit"),
}


def pair(head="pooled", precision="fp32", family="bert", objective=None, adapter="none"):
    """The same model without dropout twice, over packed tokens and by the library; the B of its LoRA is not 0."""
    models = []
    for kernels in ("packed", "reference"):
        model = FAMILIES[family].load(
            objective or Classification(3), head, ADAPTERS[adapter], precision, kernels=kernels, dropout=False
        )
        generator = torch.Generator().manual_seed(0)
        factors = sorted(name for name in model.parameters if name.endswith("lora_B"))
        model.write({n: torch.randn(model.parameters[n].shape, generator=generator) / 4 for n in factors})
        models.append(model)
    assert [model.packed for model in models] == [True, False]
    return models


def batch_of(lengths, width=None, of_tokens=False):
    rng = np.random.default_rng(len(lengths))
    shape = (len(lengths), width or max(lengths))
    mask = (np.arange(shape[1]) < np.array(lengths)[:, None]).astype(np.int64)
    ids = rng.integers(2, 60, shape) * mask + (1 - mask)  # 1 pads, as RoBERTa has it
    labels = np.where(mask, rng.integers(0, 3, shape), IGNORED) if of_tokens else rng.integers(0, 3, len(lengths))
    tensors = {"input_ids": ids, "attention_mask": mask, "token_type_ids": rng.integers(0, 2, shape) * mask}
    return {name: torch.from_numpy(values) for name, values in {**tensors, "labels": labels}.items()}


def gradients(model, batch, names=None):
    model.set_trained(names or model.trainable)
    model.network.train()
    loss = model.loss(batch)
    loss.backward()
    return loss.item(), {name: parameter.grad for name, parameter in model.parameters.items()}


def assert_same_gradients(models, batch):
    """Those of the library's to rounding; where one side has none, the other's are 0."""
    (loss, packed), (expected_loss, expected) = (gradients(model, batch) for model in models)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    largest = max(gradient.abs().max().item() for gradient in expected.values() if gradient is not None)
    for name, parameter in models[0].parameters.items():
        none = torch.zeros_like(parameter)
        ours, theirs = (none if each[name] is None else each[name] for each in (packed, expected))
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5 * min(1, largest), msg=name)


LENGTHS = {"ragged": [3, 9, 5, 9, 1], "equal": [7, 7, 7], "one": [4]}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("head", ["pooled", "ordinary", "average", "psum", "hsum", "tokens"])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("width", [None, 12])
def test_losses_and_gradients_are_the_librarys(family, head, lengths, width):
    objective = TokenClassification(3) if head == "tokens" else Classification(3)
    batch = batch_of(LENGTHS[lengths], width, of_tokens=head == "tokens")
    assert_same_gradients(pair(head, family=family, objective=objective), batch)


@pytest.mark.parametrize("adapter", [name for name in ADAPTERS if name != "none"])
@pytest.mark.parametrize(("head", "family"), [("pooled", "bert"), ("average", "bert"), ("psum", "roberta")])
def test_with_an_adapter_losses_and_gradients_are_the_librarys(adapter, head, family):
    assert_same_gradients(pair(head, family=family, adapter=adapter), batch_of(LENGTHS["ragged"]))


@pytest.mark.parametrize("adapter", ["none", "lora"])
def test_in_half_precision_its_rounding_is_of_the_librarys_order(adapter):
    """At most twice as much: activations between layers are in half precision too, as in whole models in bf16."""
    exact = gradients(pair(adapter=adapter)[1], batch_of(LENGTHS["ragged"]))[1]
    errors = []
    for model in pair(precision="bf16", adapter=adapter):
        rounded = gradients(model, batch_of(LENGTHS["ragged"]))[1]
        assert {gradient.dtype for gradient in rounded.values() if gradient is not None} == {torch.float32}
        errors.append(sum((rounded[n] - exact[n]).square().sum() for n in exact if exact[n] is not None).sqrt())
    assert errors[0] < 2.5 * errors[1]


@pytest.mark.parametrize("trained", ["layer.1.", "layer.3.", "head.", "embeddings"])
def test_what_is_frozen_gets_no_gradient_and_passes_it_on(trained):
    models = pair()
    names = [name for name in models[0].parameters if trained in name]
    (_, packed), (_, expected) = (gradients(model, batch_of(LENGTHS["ragged"]), names) for model in models)
    assert {name for name, gradient in packed.items() if gradient is not None} == set(names)
    for name in names:
        torch.testing.assert_close(packed[name], expected[name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_every_step_computes_with_the_weights_of_the_step_before(small, precision):
    """A fused optimiser changes weights without a version bump, so a kept cast of them would become stale."""
    losses = []
    for kernels in ("packed", "reference"):
        model = small.load(precision=precision, kernels=kernels, dropout=False)
        training = local_training(seed=0, learning_rate=5e-3, batch_size=8, epochs=4)
        names = sorted(model.groups.names - model.groups.embeddings)
        losses.append([training.run(model, small.clients[0].train, names, number, 0) for number in (1, 2)])
        answers = model.predict(small.clients[0].train, 3, None)
        model.write({name: torch.zeros_like(model.parameters[name]) for name in names})
        assert not np.array_equal(model.predict(small.clients[0].train, 3, None), answers)
    assert losses[0] == pytest.approx(losses[1], rel=1e-4 if precision == "fp32" else 0.05)
    assert losses[0][1] < 0.8 * losses[0][0]


def test_answers_do_not_depend_on_the_batch_or_on_padding(small):
    packed, reference = small.load(), small.load(kernels="reference")
    part = small.clients[0].train
    expected = reference.predict(part, 64, None)
    for size, width in ((1, None), (5, None), (64, None), (5, 16)):
        np.testing.assert_allclose(packed.predict(part, size, width), expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_drops_its_share_and_keeps_the_mean(dtype):
    with torch_seeded(0, 0, 0, "dropout"):
        mask = Masks(dtype).draw(200_000, 0.1)
    assert mask.scale == pytest.approx(1 / 0.9, rel=1e-4)
    values = torch.full((400, 500), -3.0, dtype=dtype)
    dropped = mask.of(values)
    assert set(dropped.unique().tolist()) == {-3.0, 0.0}
    share = (dropped == 0).double().mean().item()
    assert share == pytest.approx(0.1, abs=5 * (0.1 * 0.9 / 200_000) ** 0.5)
    assert torch.equal(mask.apply_(values.clone()), dropped)
    assert mask.factor(values.float()).mean().item() == pytest.approx(1, abs=0.01)


def test_another_linear_layer_is_not_passed_over(small):
    class Louder(nn.Linear):
        def forward(self, input):
            return 2 * super().forward(input)

    model, part = small.load(), small.clients[0].train
    before = model.predict(part, 8, None)
    query = model.network.encoder.encoder.layer[1].attention.self.query
    louder = Louder(query.in_features, query.out_features)
    louder.load_state_dict(query.state_dict())
    model.network.encoder.encoder.layer[1].attention.self.query = louder
    assert np.abs(model.predict(part, 8, None) - before).max() > 1e-3
