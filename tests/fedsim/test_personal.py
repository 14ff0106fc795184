"""FedRep, Ditto and SCAFFOLD: limiting cases, the order of training, and bytes."""

import pytest
import torch

from fedsim.algorithms.ditto import PERSONAL
from fedsim.algorithms.scaffold import KIND
from tests.fedsim.conftest import LORA, assert_same_tensors


def of_client(run, client, prefix=""):
    kept = run.state.clients.get(client)
    return {name.removeprefix(prefix): value for name, value in kept.items() if name.startswith(prefix)}


@pytest.mark.parametrize("adapter", [None, LORA])
def test_dittos_shared_model_is_fedavg_to_the_bit(small, adapter):
    one, other = (small.run(small.algorithm(name, small.workload(adapter=adapter))) for name in ("ditto", "fedavg"))
    assert_same_tensors(one.state.shared, other.state.shared)
    assert one.channel.ledger.rows == other.channel.ledger.rows


def test_ditto_without_a_pull_is_training_alone(small):
    """With one client FedAvg's mean is the client's model; the proximal term moves it."""
    client = small.clients[1:2]
    alone = small.run(small.algorithm("fedavg"), clients=client, rounds=3)
    shared, free, pulled = (
        small.run(small.algorithm("ditto", pull=pull), rounds=3, clients=clients)
        for pull, clients in ((0.0, client), (0.0, None), (1.0, None))
    )
    assert_same_tensors(of_client(shared, 1, PERSONAL), alone.state.shared)
    assert_same_tensors(of_client(free, 1, PERSONAL), alone.state.shared)
    name = min(alone.state.shared)
    assert not torch.equal(of_client(pulled, 1, PERSONAL)[name], alone.state.shared[name])


def test_ditto_answers_by_each_clients_own_model(small):
    algorithm = small.algorithm("ditto", pull=0.0)
    ended = small.run(algorithm)
    subset = small.clients[0].evaluation["test"]
    answers = [algorithm.predict(ended.state, who, subset) for who in (None, *small.clients[:2])]
    assert len({each.tobytes() for each in answers}) == 3


def test_fedrep_trains_the_head_first_and_then_the_body(small):
    workload = small.workload()
    trained, run = [], workload.training.run

    def watched(model, subset, names, *where, **options):
        before = model.snapshot(model.parameters)
        loss = run(model, subset, names, *where, **options)
        trained.append({name for name, value in model.parameters.items() if not torch.equal(value, before[name])})
        return loss

    object.__setattr__(workload.training, "run", watched)
    ended = small.run(small.algorithm("fedrep", workload), rounds=1)
    head, body = workload.model.groups.head, workload.model.groups.names - workload.model.groups.head
    assert all(trained[place] and trained[place] <= (body if place % 2 else head) for place in range(6))
    assert ended.state.clients.get(0).keys() == head
    assert not ended.state.shared.keys() & head


@pytest.mark.parametrize("adapter", [None, LORA])
def test_scaffold_with_one_client_is_central(small, adapter):
    workload, client = small.workload(adapter=adapter, clients=1), small.clients[1:2]
    one, central = (
        small.run(small.algorithm(name, workload), clients=client, rounds=3) for name in ("scaffold", "central")
    )
    for name, value in central.state.shared.items():
        torch.testing.assert_close(one.state.shared[name], value, rtol=0, atol=1e-5)


def test_scaffolds_controls_are_mean_gradients_and_of_their_own_kind(small):
    workload = small.workload()
    ended = small.run(small.algorithm("scaffold", workload))
    states = [ended.state.clients.get(client.id) for client in small.clients]
    for name, control in ended.state.moments[KIND].items():
        torch.testing.assert_close(control, sum(each[name] for each in states) / len(states), rtol=0, atol=1e-6)
    assert max(float(value.abs().max()) for value in states[0].values()) > 0
    rows = [row for row in ended.channel.ledger.rows if row.round]
    by_kind = {kind: sum(row.bytes for row in rows if row.kind == kind) for kind in ("parameters", KIND)}
    assert by_kind["parameters"] == by_kind[KIND] == 2 * 2 * 3 * 4 * sum(value.numel() for value in states[0].values())


def test_a_correction_moves_the_second_round_alone(small):
    fedavg, scaffold = (small.run(small.algorithm(name), rounds=1) for name in ("fedavg", "scaffold"))
    later = [small.run(small.algorithm(name), rounds=2).state.shared for name in ("fedavg", "scaffold")]
    for name, value in fedavg.state.shared.items():
        torch.testing.assert_close(scaffold.state.shared[name], value, rtol=0, atol=1e-6)
    assert any((later[0][name] - later[1][name]).abs().max() > 1e-4 for name in later[0])
