"""A LoRA exchange (Hu et al. 2021) of public pieces: adapters on query and value; only they and the head cross."""

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
    """h = W_0 x + B A x (equation 3); A is drawn, B is zero, and W_0 keeps its name."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__(base.in_features, base.out_features)
        self.weight, self.bias = base.weight, base.bias
        self.lora_A = nn.Parameter(torch.randn(R, base.in_features) / R)
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, R))

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) + functional.linear(functional.linear(input, self.lora_A), self.lora_B)


def adapted(base: Model) -> Model:
    """The model with adapters on W_q and W_v (section 4.2)."""
    with torch_seeded(0, 0, SERVER, "lora"):
        for module in list(base.network.encoder.modules()):
            for name, child in list(module.named_children()):
                if name in ("query", "value"):
                    setattr(module, name, Adapted(child))
    return Model(base.network, base.precision, base.objective)


def lora(workload: Workload) -> FederatedAlgorithm:
    """Clients train and exchange the adapters and the head, over a frozen W_0."""
    own = replace(workload, load_model=lambda: adapted(workload.load_model()))
    model = own.model.groups
    adapters = frozenset(name for name in model.names if ".lora_" in name)
    plan = identity_plan(model.names, shared=adapters | model.head, local=frozenset())
    return averaging(own, lambda round, client: plan)


def test_only_adapters_and_head_cross_and_the_base_stays_as_it_was(small):
    workload = small.workload(epochs=3)
    algorithm = lora(workload)
    run = small.run(algorithm)
    initial, head = workload.initial, workload.model.groups.head
    # A and B, r · D each, on two matrices a layer
    values = 2 * R * small.hidden * 2 * small.depth + sum(initial[name].numel() for name in head)
    assert {row[2:] for row in run.channel.ledger.rows if row.round} == {
        (direction, "parameters", values, 4 * values, 1) for direction in ("down", "up")
    }
    trained = algorithm.server(run.state)
    assert all(torch.equal(trained[name], initial[name]) for name in initial.keys() - head)
    assert all(trained[name].any() for name in trained if name.endswith("lora_B"))


def test_fedper_keeps_every_clients_head(small):
    workload = small.workload()
    algorithm = small.algorithm("fedper", workload, embeddings="global")
    run = small.run(algorithm)
    parts = workload.model.groups
    assert run.state.shared.keys() == parts.names - parts.head
    heads = [run.state.clients.get(client.id) for client in small.clients]
    assert all(own.keys() == parts.head for own in heads)
    assert not any(torch.equal(heads[0][name], heads[1][name]) for name in parts.head)
