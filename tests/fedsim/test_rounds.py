"""Cohorts, the weighted mean, and what a round leaves alone."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim.algorithms.averaging import aggregation_weights
from fedsim.data import Client, Subset
from fedsim.engine import draw_cohort, pooled_scores
from fedsim.errors import DivergedError
from fedsim.plan import ExchangePlan


def bare_clients(sizes):
    return [Client(number, Subset(None, np.arange(size)), {}) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("participation", "clients", "size"),
    [(1.0, 7, 7), (0.5, 10, 5), (0.3, 10, 3), (0.25, 10, 3), (0.24, 10, 2), (0.01, 10, 1), (1.0, 1, 1)],
)
def test_cohort_size_is_the_share_rounded_and_at_least_one(participation, clients, size):
    assert len(draw_cohort(bare_clients([1] * clients), participation, seed=0, round=1)) == size


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 1000), st.booleans()), min_size=1, max_size=12))
def test_weights_are_shares_of_those_who_send_a_tensor(members):
    clients = bare_clients([size for size, _ in members])
    names = {"a": "A", "b": "B"}
    plans = {}
    for client, (_, sends_b) in zip(clients, members, strict=True):
        sent = frozenset("ab" if sends_b else "a")
        plans[client.id] = ExchangePlan(names, frozenset(), sent, sent, frozenset())
    weights = aggregation_weights(clients, plans)
    for target, senders in (("A", members), ("B", [member for member in members if member[1]])):
        found = [weights[client.id][target] for client in clients if target in weights[client.id]]
        expected = np.array([size for size, _ in senders], dtype=np.float64)
        assert found == pytest.approx((expected / expected.sum()).tolist() if senders else [])
        assert not senders or sum(found) == pytest.approx(1)


@pytest.mark.parametrize("participation", [1.0, 0.67])
def test_merged_tensors_are_the_cohorts_mean_weighted_by_examples(small, recording_channel, participation):
    channel = recording_channel()
    run = small.run(small.algorithm("fedavg"), channel=channel, rounds=3, participation=participation)
    cohort = run.results[-1].cohort
    sizes = np.array([len(small.clients[client].train) for client in cohort], dtype=np.float64)
    sent = [channel.received[3, client, "up"] for client in cohort]
    assert run.state.shared.keys() == sent[0].keys()
    for name, merged in run.state.shared.items():
        stacked = np.stack([tensors[name].numpy().astype(np.float64) for tensors in sent])
        np.testing.assert_allclose(merged.numpy(), np.average(stacked, axis=0, weights=sizes), atol=1e-6)
    if participation < 1:
        assert len(cohort) == 2

    # and the round's loss is weighted the same way
    metrics = run.results[-1].metrics
    assert metrics.train_loss == pytest.approx(np.average(metrics.client_losses, weights=sizes))


@pytest.mark.parametrize(
    ("name", "options"),
    [("fedavg", {}), ("fedsplitbert", {"critical_layer": 3}), ("fedsplitbert", {"critical_layer": 2})],
)
def test_local_embeddings_are_trained_and_never_sent(small, recording_channel, name, options):
    workload, channel = small.workload(), recording_channel()
    embeddings = workload.model.groups.embeddings
    before = workload.model.snapshot(embeddings)
    run = small.run(small.algorithm(name, workload, embeddings="local", **options), channel=channel)
    assert channel.received
    assert not any(tensors.keys() & embeddings for tensors in channel.received.values())
    words = next(tensor for tensor in embeddings if "word_embeddings" in tensor)
    trained = [run.state.clients.get(client)[words] for client in range(3)]
    assert not torch.equal(trained[0], before[words])
    assert not torch.equal(trained[0], trained[1])


@pytest.mark.parametrize("critical_layer", [0, 1])
def test_client_that_never_took_part_predicts_with_merged_and_initial_tensors(small, critical_layer):
    workload = small.workload()
    initial = workload.model.snapshot(workload.model.parameters)
    algorithm = small.algorithm("fedsplitbert", workload, critical_layer=critical_layer)
    run = small.run(algorithm, rounds=1, participation=0.34)
    (member,) = run.results[0].cohort
    resting = next(client for client in small.clients if client.id != member)
    subset = resting.evaluation["test"]
    found = algorithm.predict(run.state, resting, subset)

    fresh = small.load()
    fresh.write({**initial, **run.state.shared})
    np.testing.assert_array_equal(found, fresh.predict(subset, 64, None))
    assert len(run.state.shared) == (16 if critical_layer else 0)  # tensors of one layer
    assert list(run.state.clients) == [member]
    assert not np.array_equal(algorithm.predict(run.state, small.clients[member], subset), found)


def test_divergence_names_round_and_client(small):
    workload = small.workload(learning_rate=1e30, batch_size=4)
    with pytest.raises(DivergedError, match=r"round 1 on client 0: the mean loss is (nan|inf).*1e\+30"):
        small.run(small.algorithm("fedavg", workload))


def test_personal_models_answer_together_with_their_mean(small):
    common = Subset(small.examples, np.arange(20))
    clients = [Client(client.id, client.train, {"test": common}) for client in small.clients]
    own = small.algorithm("fedsplitbert", critical_layer=1)
    together = small.algorithm("fedsplitbert", critical_layer=1, answers="mean")
    apart, joint = (small.run(algorithm, clients=clients) for algorithm in (own, together))

    assert joint.channel.ledger.rows == apart.channel.ledger.rows  # the training is the same
    outputs = [own.predict(apart.state, client, common) for client in clients]
    assert not np.array_equal(outputs[0], outputs[1])
    np.testing.assert_array_equal(together.predict(joint.state, clients[0], common), np.mean(outputs, axis=0))
    assert len({str(scores) for scores in joint.results[-1].client_scores}) == 1
    assert len({str(scores) for scores in apart.results[-1].client_scores}) > 1


def test_pooled_scores_are_of_all_examples_in_client_order(small):
    def score(answers, subset):
        return {"clients": answers[:, 0].tolist(), "examples": subset.indices.tolist()}

    tests = {client.id: client.evaluation["test"] for client in small.clients}
    answers = {f"{number}/test": np.full((len(part), 2), number, np.float32) for number, part in tests.items()}
    assert pooled_scores(answers, small.clients, score)["test"] == {
        "clients": [number for number, part in tests.items() for _ in part.indices],
        "examples": [int(index) for part in tests.values() for index in part.indices],
    }
