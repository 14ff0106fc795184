"""Adapters: stable names, the stated parameters and no others trained, sent and kept, and runs that resume."""

import re
from typing import Any

import numpy as np
import pytest
import torch

from fedsim.adapter_config import FIELDS, AdapterConfig, from_fields
from fedsim.errors import FederationError
from fedsim.models.adapters import with_adapter
from fedsim.models.families import FAMILIES
from tests.fedsim.conftest import CONFIG, LORA, Small

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


@pytest.mark.parametrize("kind", FIELDS)
def test_an_adapter_trains_sends_and_changes_its_own_parameters_and_the_head(small, kind):
    config, values = VALUES[kind]
    workload = small.workload(adapter=config, batch_size=8)
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
    plain, wrapped = small.load(kernels="reference"), small.load(adapter=VALUES[kind][0])
    test = small.clients[0].evaluation["test"]
    same = np.allclose(plain.predict(test, 8, None), wrapped.predict(test, 8, None), rtol=0, atol=1e-6)
    assert same == (kind != "prefix")  # whose positions are read from the start
    assert wrapped.network.added.isdisjoint(plain.parameters)


@pytest.mark.parametrize("kind", ["lora", "ia3", "bottleneck", "core"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_takes_an_adapter_with_short_names_and_keeps_its_own(family, kind):
    of_family = Small(model_type=family)
    plain, model = of_family.load(), of_family.load(adapter=VALUES[kind][0])
    assert model.parameters.keys() - plain.parameters.keys() == model.network.added
    assert plain.parameters.keys() <= model.parameters.keys()
    assert model.trainable == model.network.adapted | model.groups.head
    if kind == "lora":
        assert all(re.search(r"\.lora_[AB]$", name) for name in model.network.adapted)
        layers = 1 if family == "gpt2" else 2  # whose queries, keys and values are one layer
        assert len(model.network.adapted) == 2 * DEPTH * layers
    assert model.predict(of_family.clients[0].train, 8, None).shape == (14, 2)


def test_a_prefix_is_attended_to_as_keys_and_values_written_out(small):
    model = small.load(adapter=VALUES["prefix"][0])
    layer: Any = model.network.encoder.encoder.layer[0].attention.self
    states, mask = torch.randn(2, 5, D), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)
    base, heads = layer.base_layer.eval(), CONFIG["num_attention_heads"]
    output = layer(states, mask[:, None, None].expand(2, 1, 5, 5))[0]

    def by_head(rows):
        return rows.unflatten(-1, (heads, -1)).transpose(1, 2)

    keys, values = (
        by_head(torch.cat([prefix.expand(2, -1, -1), project(states)], 1))
        for prefix, project in ((layer.prefix_key, base.key), (layer.prefix_value, base.value))
    )
    scores = by_head(base.query(states)) @ keys.transpose(2, 3) / (D // heads) ** 0.5
    seen = torch.cat([torch.ones(2, len(layer.prefix_key), dtype=torch.bool), mask], 1)
    weights = scores.masked_fill(~seen[:, None, None], -torch.inf).softmax(-1)
    torch.testing.assert_close(output, (weights @ values).transpose(1, 2).flatten(2))


def test_a_drawn_adapter_depends_on_its_seed_alone(small):
    one, same, other = (with_adapter(small.load().network, LORA, seed) for seed in (0, 0, 1))
    draws = [dict(network.named_parameters()) for network in (one, same, other)]
    first = next(name for name in draws[0] if "lora_A" in name)
    assert torch.equal(draws[0][first], draws[1][first])
    assert not torch.equal(draws[0][first], draws[2][first])


@pytest.mark.parametrize(
    ("name", "options"), [("fedfreezebert", {}), ("fedbert_sequential", {"turns": "round"}), ("fedbert_parallel", {})]
)
def test_methods_without_a_use_for_an_adapter_say_so(small, name, options):
    with pytest.raises(FederationError, match="expected a model without an adapter, found lora"):
        small.run(small.algorithm(name, small.workload(adapter=LORA), **options))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": "bitfit", "r": 4}, "adapter bitfit: expected no other field, found r"),
        ({"kind": "lora", "r": 0}, "r: expected a number above 0, found 0"),
        ({"kind": "ia3", "alpha": 1.0}, "expected fields among targets, found alpha"),
    ],
)
def test_a_field_that_a_kind_does_not_read_is_refused(fields, expected):
    with pytest.raises(FederationError, match=expected):
        AdapterConfig(**fields)
    assert AdapterConfig("lora") == AdapterConfig("lora", 8, 16.0, ("query", "value"))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({"r": 8}, "the field kind, one of lora, "), ({"kind": "core", "r": 5000}, "r of at most the encoder's width, ")],
)
def test_a_missing_kind_and_too_high_a_rank_are_refused(fields, expected):
    with pytest.raises(FederationError, match=expected):
        Small().load(adapter=from_fields(fields))


@pytest.mark.parametrize(
    ("family", "config", "expected"),
    [
        ("bert", AdapterConfig("lora", targets=("nothing",)), "targets that are linear layers of the encoder"),
        ("gpt2", AdapterConfig("prefix"), r"an encoder with modules attention\.self, found none"),
    ],
)
def test_an_encoder_without_the_adapted_layers_is_refused(family, config, expected):
    with pytest.raises(FederationError, match=f"expected {expected}"):
        Small(model_type=family).load(adapter=config)
