"""Equalities to the last bit, and the proximal term against an explicit loop."""

import random
from itertools import product

import numpy as np
import pytest
import torch
from torch.nn import functional

from fedsim.data import training_batches
from fedsim.rng import derive_seed
from fedsim.training import LocalTraining
from tests.fedsim.conftest import assert_same_run, assert_same_tensors


def central_training(small, training: LocalTraining, rounds, trained, proximal=0.0, anchored=frozenset()):
    """Bare training of client 1 alone: AdamW begins anew in every round, as a federation's clients do.

    The proximal term stands in the loss, as in the paper, and is taken to the parameters at the round's start.
    """
    loaded = small.load()
    model = loaded.network
    parameters = dict(model.named_parameters())
    part = small.clients[1].train
    for name, parameter in parameters.items():
        parameter.requires_grad_(name in trained)
    losses = []
    for number in range(1, rounds + 1):
        anchor = {name: parameters[name].detach().clone() for name in sorted(anchored)}
        chosen = [parameters[name] for name in sorted(trained)]
        optimizer = torch.optim.AdamW(
            chosen, lr=training.config.learning_rate, weight_decay=training.config.weight_decay, fused=True
        )
        total = torch.zeros(())
        model.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(training.seed, number, 1, "dropout"))
            for epoch in range(training.config.local_epochs):
                order = np.random.default_rng(derive_seed(training.seed, number, 1, f"shuffle-{epoch}"))
                for batch in training_batches(part, training.config.batch_size, training.width, order):
                    (logits,) = loaded.path_logits(batch)  # one path
                    task_loss = functional.cross_entropy(logits, batch["labels"])
                    loss = task_loss
                    for name, start in anchor.items():
                        loss = loss + proximal / 2 * (parameters[name] - start).square().sum()
                    loss.backward()
                    optimizer.step()
                    optimizer.zero_grad(set_to_none=True)
                    total += task_loss.detach() * len(batch["labels"])
        losses.append(total.item() / (training.config.local_epochs * len(part)))
    return {name: parameter.detach() for name, parameter in parameters.items()}, losses


@pytest.mark.parametrize("codec", ["fp32", "fp16"])
@pytest.mark.parametrize(
    "options",
    [
        *({"embeddings": embeddings} for embeddings in ("frozen", "global", "local")),
        {"server": {"name": "adam", "learning_rate": 1e-2}, "proximal": 0.1},
        {"server": {"learning_rate": 0.5}, "proximal": 0.1},
    ],
)
def test_all_layers_shared_is_fedavg(small, options, codec):
    fedavg, split = (
        small.run(small.algorithm(name, small.workload(batch_size=4), **options, **layers), codec)
        for name, layers in (("fedavg", {}), ("fedsplitbert", {"critical_layer": small.depth}))
    )
    assert_same_run(fedavg, split)
    assert len(fedavg.results) == 2
    assert fedavg.results[0].metrics != fedavg.results[1].metrics  # it did train


@pytest.mark.parametrize("critical_layer", [1, 3])
def test_proximal_term_is_that_of_the_loss(small, critical_layer):
    workload = small.workload(epochs=2, batch_size=4)
    groups = workload.model.groups
    trained = groups.names - groups.embeddings
    shared = groups.up_to(critical_layer) | (groups.head if critical_layer == groups.depth else frozenset())
    one = small.clients[1:2]

    run = small.run(
        small.algorithm("fedsplitbert", workload, critical_layer=critical_layer, proximal=10.0), clients=one
    )
    tensors = {**run.state.shared, **run.state.clients.get(1)}
    expected, losses = central_training(small, workload.training, 2, trained, 10.0, shared)
    plain, _ = central_training(small, workload.training, 2, trained)

    # Autograd adds the term's gradient in another order, hence not to the last bit. A key's bias has no gradient
    # (softmax cancels it) but that rounding, which Adam magnifies to whole steps: it is left out.
    compared = {name for name in trained if not name.endswith("key.bias")}
    for name in compared:
        torch.testing.assert_close(tensors[name], expected[name], rtol=0, atol=1e-4)
    assert [result.metrics.train_loss for result in run.results] == pytest.approx(losses, rel=1e-4)
    assert max((plain[name] - expected[name]).abs().max() for name in shared & compared) > 1e-2


@pytest.mark.parametrize(
    ("method", "options", "changes"),
    [
        *(("fedavg", {}, {"epochs": 2, "width": width}) for width in (None, 12)),
        *(
            ("fedsplitbert", {"critical_layer": layer, "embeddings": embeddings}, {})
            for layer, embeddings in product(range(4), ("frozen", "global", "local"))
        ),
    ],
)
def test_one_client_is_central_training_whatever_stays_local(small, method, options, changes):
    workload = small.workload(batch_size=4, **changes)
    groups, frozen = workload.model.groups, options.get("embeddings", "frozen") == "frozen"
    trained = groups.names - (groups.embeddings if frozen else frozenset())
    run = small.run(small.algorithm(method, workload, **options), clients=small.clients[1:2], rounds=3)
    expected, losses = central_training(small, workload.training, 3, trained)
    tensors = {**run.state.shared, **run.state.clients.get(1)}
    assert_same_tensors(tensors, {name: expected[name] for name in trained})
    assert [result.metrics.train_loss for result in run.results] == losses


def test_nothing_shared_is_each_client_alone(small):
    together = small.run(small.algorithm("fedsplitbert", critical_layer=0))
    for client in small.clients:
        alone = small.run(small.algorithm("fedsplitbert", critical_layer=0), clients=[client])
        assert_same_tensors(alone.state.clients.get(client.id), together.state.clients.get(client.id))
        scores = [result.client_scores[client.id] for result in together.results]
        assert [result.client_scores[0] for result in alone.results] == scores


def test_a_run_neither_reads_nor_moves_the_global_generators(small):
    def states():
        return torch.get_rng_state().tolist(), random.getstate(), repr(np.random.get_state())  # noqa: NPY002

    algorithm = small.algorithm("fedavg")
    before = states()
    first = small.run(algorithm)
    assert states() == before
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        assert small.run(small.algorithm("fedavg")).results == first.results
