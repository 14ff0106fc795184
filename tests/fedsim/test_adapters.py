"""Adapters: stable names, the stated parameters and no others trained, sent and kept, and runs that resume."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fedsim.adapter_config import FIELDS, AdapterConfig
from fedsim.algorithms import algorithm_names
from fedsim.checkpoint import Checkpoint
from fedsim.errors import FederationError
from fedsim.models.adapters import with_adapter
from fedsim.models.model import Model
from fedsim.models.sequence import encoder_from_config, with_head
from fedsim.objectives import Classification
from fedsim.precision import resolve_precision
from fedsim.store import ClientStore
from tests.fedsim.conftest import CONFIG

LORA = AdapterConfig("lora", r=2, alpha=4.0)
D, WIDE, DEPTH = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["num_hidden_layers"]
HEAD = D * D + D + 2 * D + 2  # pooler and classifier
# The values that each kind trains, without the head, by the closed forms of its paper.
VALUES = {
    "lora": (LORA, 4 * DEPTH * 2 * D),
    "ia3": (AdapterConfig("ia3"), DEPTH * (3 * D + WIDE)),
    "bitfit": (AdapterConfig("bitfit"), DEPTH * (7 * D + WIDE)),
    "bottleneck": (AdapterConfig("bottleneck", r=4), 2 * DEPTH * (2 * D * 4 + 4 + D)),
    "prefix": (AdapterConfig("prefix", r=3), 2 * DEPTH * 3 * D),
    "core": (AdapterConfig("core", r=4), 2 * DEPTH * 4 * 4),
}
SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2, "num_hidden_layers": 2}
FAMILIES = {
    "bert": SIZES,
    "roberta": SIZES,
    "electra": SIZES | {"embedding_size": 16},
    "mpnet": SIZES,
    "distilbert": {"dim": 16, "hidden_dim": 24, "n_heads": 2, "n_layers": 2},
    "gpt2": {"n_embd": 16, "n_head": 2, "n_layer": 2},
}


def adapted(small, config=LORA, **workload):
    """A workload whose model has an adapter."""

    def load():
        model = small.load()
        return Model(with_adapter(model.network, config, 0), model.precision, model.objective)

    return small.workload(load, **{"batch_size": 8, **workload})


def test_every_kind_is_here():
    assert VALUES.keys() == FIELDS.keys()


@pytest.mark.parametrize("kind", VALUES)
def test_an_adapter_trains_sends_and_changes_its_own_parameters_and_the_head(small, kind):
    config, values = VALUES[kind]
    workload = adapted(small, config)
    run = small.run(small.algorithm("fedavg", workload), rounds=1)
    down = [row for row in run.channel.ledger.rows if row.round == 1 and row.direction == "down"]
    up = [row for row in run.channel.ledger.rows if row.direction == "up"]
    assert {row.values for row in (*down, *up)} == {values + HEAD}
    assert run.state.shared.keys() <= workload.model.trainable
    after, before = workload.server_params(run.state), workload.initial
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved >= {name for name in run.state.shared if "key.bias" not in name}
    assert moved <= workload.model.trainable


@pytest.mark.parametrize("kind", VALUES)
def test_an_adapter_changes_no_answer_until_it_is_trained(small, kind):
    config, _ = VALUES[kind]
    plain, wrapped = small.load(kernels="reference"), adapted(small, config).model
    test = small.clients[0].evaluation["test"]
    same = np.allclose(plain.predict(test, 8, None), wrapped.predict(test, 8, None), rtol=0, atol=1e-6)
    assert same == (kind != "prefix")  # whose positions are read from the start
    assert wrapped.network.added.isdisjoint(plain.parameters)


@pytest.mark.parametrize("kind", ["ia3", "bottleneck", "core"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_takes_an_adapter(family, kind):
    encoder = encoder_from_config({"model_type": family, "vocab_size": 60, **FAMILIES[family]})
    network = with_adapter(with_head(encoder, 2, 0, head="average"), VALUES[kind][0], 0)
    model = Model(network, resolve_precision("fp32", "cpu"), Classification(2))
    batch = {"input_ids": torch.ones(2, 5, dtype=torch.int64), "attention_mask": torch.ones(2, 5, dtype=torch.int64)}
    batch |= {"token_type_ids": torch.zeros(2, 5, dtype=torch.int64), "labels": torch.zeros(2, dtype=torch.int64)}
    assert model.logits(batch).shape == (2, 2)


def test_a_prefix_is_attended_to_as_keys_and_values_written_out(small):
    model = adapted(small, VALUES["prefix"][0]).model
    layer: Any = model.network.encoder.encoder.layer[0].attention.self
    states, mask = torch.randn(2, 5, D), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)
    own, heads = layer.base_layer.eval(), CONFIG["num_attention_heads"]
    found = layer(states, mask[:, None, None].expand(2, 1, 5, 5))[0]

    def by_head(rows):
        return rows.unflatten(-1, (heads, -1)).transpose(1, 2)

    keys, values = (
        by_head(torch.cat([prefix.expand(2, -1, -1), project(states)], 1))
        for prefix, project in ((layer.prefix_key, own.key), (layer.prefix_value, own.value))
    )
    scores = by_head(own.query(states)) @ keys.transpose(2, 3) / (D // heads) ** 0.5
    seen = torch.cat([torch.ones(2, len(layer.prefix_key), dtype=torch.bool), mask], 1)
    weights = scores.masked_fill(~seen[:, None, None], -torch.inf).softmax(-1)
    torch.testing.assert_close(found, (weights @ values).transpose(1, 2).flatten(2))


def test_a_prefix_needs_berts_attention():
    with torch.device("meta"):
        encoder = encoder_from_config({"model_type": "gpt2", "vocab_size": 60, **FAMILIES["gpt2"]})
    with pytest.raises(FederationError, match=r"expected an encoder with modules attention\.self, found none"):
        with_adapter(with_head(encoder, 2, 0, head="average"), AdapterConfig("prefix"), 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_names_are_the_encoders_own_and_short_ones_of_the_adapter(family):
    with torch.device("meta"):
        encoder = encoder_from_config({"model_type": family, "vocab_size": 60, **FAMILIES[family]})
        network = with_head(encoder, 2, 0, head="average")
    plain = Model(network, replace(resolve_precision("fp32", "cpu"), device=torch.device("meta")), Classification(2))
    before = set(plain.parameters)
    model = Model(with_adapter(network, LORA, 0), plain.precision, plain.objective)
    assert set(model.parameters) - before == model.network.adapted
    assert before <= set(model.parameters)
    assert all(re.search(r"\.lora_[AB]$", name) for name in model.network.adapted)
    layers = 1 if family == "gpt2" else 2  # whose queries, keys and values are one layer
    assert len(model.network.adapted) == 2 * 2 * layers
    assert model.trainable == model.network.adapted | model.groups.head


def test_a_drawn_adapter_depends_on_its_seed_alone_and_changes_no_answer(small):
    one, same, other = (with_adapter(small.load().network, LORA, seed) for seed in (0, 0, 1))
    draws = [dict(network.named_parameters()) for network in (one, same, other)]
    first = next(name for name in draws[0] if "lora_A" in name)
    assert torch.equal(draws[0][first], draws[1][first])
    assert not torch.equal(draws[0][first], draws[2][first])
    test = small.clients[0].evaluation["test"]
    plain, wrapped = small.load(kernels="reference"), adapted(small).model
    assert (plain.predict(test, 8, None) == wrapped.predict(test, 8, None)).all()  # B = 0


@pytest.mark.parametrize("name", ["fedavg", "fedsplitbert", "fedper", "central"])
def test_resumed_run_is_the_uninterrupted_one(small, assert_same_run, tmp_path, name):
    options = {"critical_layer": 1} if name == "fedsplitbert" else {}

    def run(rounds, **engine):
        workload = adapted(small, rounds=3, optimizer="kept")
        return small.run(small.algorithm(name, workload, **options), rounds=rounds, **engine)

    run(2, checkpoint=Checkpoint(tmp_path, name), store=ClientStore(tmp_path))
    resumed = run(3, checkpoint=Checkpoint(tmp_path, name), store=ClientStore(tmp_path))
    assert_same_run(resumed, run(3))


def test_methods_without_a_use_for_an_adapter_say_so(small):
    for name in ("fedfreezebert", "fedbert_sequential", "fedbert_parallel"):
        assert name in algorithm_names()
        options = {"turns": "round"} if name == "fedbert_sequential" else {}
        with pytest.raises(FederationError, match="expected a model without an adapter, found lora"):
            small.run(small.algorithm(name, adapted(small), **options))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": "bitfit", "r": 4}, "r: the adapter bitfit does not have it"),
        ({"kind": "lora", "r": 0}, "r: expected a number above 0, found 0"),
        ({"kind": "ia3", "alpha": 1.0}, "expected targets"),
    ],
)
def test_a_field_that_a_kind_does_not_read_is_refused(fields, expected):
    with pytest.raises(FederationError, match=expected):
        AdapterConfig(**fields)
    assert AdapterConfig("lora") == AdapterConfig("lora", 8, 16.0, ("query", "value"))


def test_targets_that_the_encoder_does_not_have_are_refused(small):
    with pytest.raises(FederationError, match="expected targets that are linear layers of the encoder, found nothing"):
        with_adapter(small.load().network, AdapterConfig("lora", targets=("nothing",)), 0)
