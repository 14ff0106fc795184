"""Layers over packed tokens equal the library's over padded ones, except for rounding and dropout's draws."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from fedsim.adapter_config import AdapterConfig
from fedsim.data import IGNORED
from fedsim.models.adapters import with_adapter
from fedsim.models.model import Model
from fedsim.models.packed.encoder import PackedEncoder
from fedsim.models.packed.parts import Masks
from fedsim.models.sequence import encoder_from_config, with_head
from fedsim.objectives import Classification, TokenClassification
from fedsim.precision import resolve_precision
from fedsim.rng import torch_seeded
from tests.fedsim.conftest import local_training

NARROW = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 24}
VOCABULARY = {"vocab_size": 60, "max_position_embeddings": 20, "initializer_range": 0.2}
FAMILIES = {
    "bert": {},
    "roberta": {"type_vocab_size": 1, "pad_token_id": 1},
    "xlm-roberta": {"type_vocab_size": 1, "pad_token_id": 1},
}


def pair(head="pooled", precision="fp32", family="bert", objective=None):
    """The same model twice, over packed tokens and by the library."""
    objective = objective or Classification(3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = encoder_from_config({"model_type": family, **NARROW, **VOCABULARY, **FAMILIES[family]})
    network = with_head(encoder, objective.outputs, seed=0, head=head)
    own = resolve_precision(precision, "cpu")
    return [Model(copy.deepcopy(network), own, objective, kernels) for kernels in ("packed", "reference")]


def batch_of(lengths, width=None, of_tokens=False):
    rng = np.random.default_rng(len(lengths))
    shape = (len(lengths), width or max(lengths))
    mask = (np.arange(shape[1]) < np.array(lengths)[:, None]).astype(np.int64)
    ids = rng.integers(2, 60, shape) * mask + (1 - mask)  # 1 pads, as RoBERTa has it
    labels = np.where(mask, rng.integers(0, 3, shape), IGNORED) if of_tokens else rng.integers(0, 3, len(lengths))
    tensors = {"input_ids": ids, "attention_mask": mask, "token_type_ids": rng.integers(0, 2, shape) * mask}
    return {name: torch.from_numpy(values) for name, values in {**tensors, "labels": labels}.items()}


def without_dropout(model):
    for module in model.network.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def gradients(model, batch, names=None):
    model.set_trained(names or model.parameters)
    model.network.train()
    loss = model.loss(batch)
    loss.backward()
    return loss.item(), {name: own.grad for name, own in model.parameters.items()}


LENGTHS = {"ragged": [3, 9, 5, 9, 1], "equal": [7, 7, 7], "one": [4]}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("head", ["pooled", "ordinary", "average", "psum", "hsum", "tokens"])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("width", [None, 12])
def test_losses_and_gradients_are_the_librarys(family, head, lengths, width):
    objective = TokenClassification(3) if head == "tokens" else Classification(3)
    models = [without_dropout(model) for model in pair(head, family=family, objective=objective)]
    batch = batch_of(LENGTHS[lengths], width, of_tokens=head == "tokens")
    assert [model.packed for model in models] == [True, False]
    (loss, found), (expected_loss, expected) = (gradients(model, batch) for model in models)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    largest = max(gradient.abs().max() for gradient in expected.values() if gradient is not None)
    for name, gradient in expected.items():
        if gradient is None or found[name] is None:
            assert not (gradient is not None and gradient.any()), name
            assert not (found[name] is not None and found[name].any()), name
        else:
            torch.testing.assert_close(found[name], gradient, rtol=1e-3, atol=1e-5 * largest.item(), msg=name)


def test_in_half_precision_its_rounding_is_of_the_librarys_order():
    """At most twice as much: activations between layers are in half precision too, as in whole models in bf16."""
    exact = gradients(without_dropout(pair()[1]), batch_of(LENGTHS["ragged"]))[1]
    errors = []
    for model in pair(precision="bf16"):
        found = gradients(without_dropout(model), batch_of(LENGTHS["ragged"]))[1]
        assert {gradient.dtype for gradient in found.values() if gradient is not None} == {torch.float32}
        errors.append(sum((found[n] - exact[n]).square().sum() for n in exact if exact[n] is not None).sqrt())
    assert errors[0] < 2.5 * errors[1]


@pytest.mark.parametrize("trained", ["layer.1.", "layer.3.", "head.", "embeddings"])
def test_what_is_frozen_gets_no_gradient_and_passes_it_on(trained):
    models = [without_dropout(model) for model in pair()]
    names = [name for name in models[0].parameters if trained in name]
    (_, found), (_, expected) = (gradients(model, batch_of(LENGTHS["ragged"]), names) for model in models)
    assert {name for name, gradient in found.items() if gradient is not None} == set(names)
    for name in names:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-3, atol=1e-5)


ADAPTERS = {
    "lora": AdapterConfig("lora", r=3, alpha=6.0),
    "lora-everywhere": AdapterConfig("lora", r=2, targets=("key", "intermediate.dense", "output.dense")),
    "bitfit": AdapterConfig("bitfit"),
}


def adapted_pair(name, head="pooled", precision="fp32", family="bert"):
    """The same model with an adapter, whose B is not 0, twice: over packed tokens and by the library."""
    models = []
    for plain, kernels in zip(pair(head, precision, family), ("packed", "reference"), strict=True):
        network = with_adapter(plain.network, ADAPTERS[name], 0)
        generator = torch.Generator().manual_seed(0)
        model = without_dropout(Model(network, plain.precision, plain.objective, kernels))
        drawn = {
            name: torch.randn(model.parameters[name].shape, generator=generator) / 4
            for name in sorted(network.adapted)
            if name.endswith("lora_B")
        }
        model.write(drawn)
        models.append(model)
    assert [model.packed for model in models] == [True, False]
    return models


@pytest.mark.parametrize("name", ADAPTERS)
@pytest.mark.parametrize(("head", "family"), [("pooled", "bert"), ("average", "bert"), ("psum", "roberta")])
def test_with_an_adapter_losses_and_gradients_are_the_librarys(name, head, family):
    models = adapted_pair(name, head, family=family)
    batch = batch_of(LENGTHS["ragged"])
    (loss, found), (expected_loss, expected) = (gradients(model, batch, model.trainable) for model in models)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    assert {own for own, gradient in found.items() if gradient is not None} <= models[0].trainable
    for own in models[0].trainable:
        wanted = 0 * models[0].parameters[own].detach() if expected[own] is None else expected[own]
        gradient = torch.zeros_like(wanted) if found[own] is None else found[own]
        torch.testing.assert_close(gradient, wanted, rtol=1e-3, atol=1e-5, msg=own)


def test_with_lora_in_half_precision_its_rounding_is_of_the_librarys_order():
    exact_model = adapted_pair("lora")[1]
    exact = gradients(exact_model, batch_of(LENGTHS["ragged"]), exact_model.trainable)[1]
    errors = []
    for model in adapted_pair("lora", precision="bf16"):
        found = gradients(model, batch_of(LENGTHS["ragged"]), model.trainable)[1]
        errors.append(sum((found[n] - exact[n]).square().sum() for n in exact if exact[n] is not None).sqrt())
    assert errors[0] < 2.5 * errors[1]


def test_an_adapter_that_packed_layers_do_not_compute_takes_the_librarys(small):
    network = with_adapter(small.load().network, AdapterConfig("ia3"), 0)
    model = Model(network, small.load().precision, small.load().objective)
    assert not model.packed
    assert not PackedEncoder(network.encoder).fits


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_every_step_computes_with_the_weights_of_the_step_before(small, precision):
    """A fused optimiser changes weights without a version bump, so a kept cast of them would become stale."""
    losses = []
    for kernels in ("packed", "reference"):
        model = without_dropout(small.load(precision=precision, kernels=kernels))
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
