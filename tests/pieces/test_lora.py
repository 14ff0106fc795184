"""A LoRA exchange (Hu et al. 2021): adapters on query and value of every layer; only they and the head cross."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from fedsim.algorithms import Workload
from fedsim.algorithms.averaging import averaging
from fedsim.engine import FederatedAlgorithm
from fedsim.models.model import Model
from fedsim.plan import identity_plan
from fedsim.rng import SERVER, torch_seeded

R = 2


class Adapted(nn.Linear):
    """h = W_0 x + (α / r) B A x (equation 3); A is drawn, B is zero, and W_0 keeps its name."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__(base.in_features, base.out_features)
        self.weight, self.bias, self.scaling = base.weight, base.bias, alpha / rank
        self.lora_A = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) + self.scaling * functional.linear(
            functional.linear(input, self.lora_A), self.lora_B
        )


def adapted(base: Model, rank: int, alpha: float, seed: int) -> Model:
    """The model with adapters on W_q and W_v (section 4.2)."""
    with torch_seeded(seed, 0, SERVER, "lora"):
        for module in list(base.network.encoder.modules()):
            for name, child in list(module.named_children()):
                if name in ("query", "value"):
                    setattr(module, name, Adapted(child, rank, alpha))
    return Model(base.network, base.precision, base.objective)


def lora(setting: Workload, rank: int = R, alpha: float = 2 * R) -> FederatedAlgorithm:
    """Clients train and exchange the adapters and the head, over a frozen W_0."""
    own = replace(setting, load_model=lambda: adapted(setting.load_model(), rank, alpha, setting.training.seed))
    model = own.model.groups
    adapters = frozenset(name for name in model.names if ".lora_" in name)
    plan = identity_plan(model.names, shared=adapters | model.head, local=frozenset())
    return averaging(own, lambda round, client: plan)


def is_adapter(name: str) -> bool:
    return name.endswith(("query.lora_A", "query.lora_B", "value.lora_A", "value.lora_B"))


def test_only_adapters_and_head_cross_and_their_bytes_follow_from_the_rank(small, watched):
    setting, channel = small.setting(), watched()
    ledger = small.run(lora(setting), channel, rounds=2).channel.ledger
    head = setting.model.groups.head
    assert len({name for name in channel.names if is_adapter(name)}) == 2 * 2 * small.layers
    assert {name for name in channel.names if not is_adapter(name)} == head
    values = 2 * R * small.width * 2 * small.layers + small.head  # A and B, r · D each, on two matrices a layer
    assert {row[2:] for row in ledger.rows if row.round} == {
        (direction, "parameters", values, 4 * values, 1) for direction in ("down", "up")
    }
    assert ledger.total_bytes() == 2 * 2 * len(small.clients) * 4 * values


def test_the_base_is_the_pre_trained_one_to_the_bit(small):
    setting = small.setting(epochs=3)
    algorithm = lora(setting)
    run = small.run(algorithm)
    trained, initial = algorithm.server(run.state), setting.initial
    frozen = initial.keys() - setting.model.groups.head
    assert all(torch.equal(trained[name], initial[name]) for name in frozen)
    assert not any(torch.equal(trained[name], initial[name]) for name in initial.keys() - frozen)
    assert all(trained[name].any() for name in trained if name.endswith("lora_B"))
