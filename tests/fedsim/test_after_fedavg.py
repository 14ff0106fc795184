"""What begins from FedAvg's last model: local fine-tuning, and each client's own label prior."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsim.checkpoint import Checkpoint
from fedsim.data import Client, Examples, Subset
from fedsim.errors import FederationError
from fedsim.objectives import Classification, MaskedLM, Regression, TokenClassification, Vocabulary


def begun_from(small, params, **options):
    """A setting whose model begins with these parameters."""

    def load():
        model = small.load(**options)
        model.write(params)
        return model

    return load


def answers_of(algorithm, state, clients):
    return [algorithm.predict(state, client, client.evaluation["test"]) for client in clients]


@pytest.fixture(scope="module")
def averaged(small):
    """FedAvg's last parameters, and what it answers each client."""
    setting = small.setting(epochs=2)
    algorithm = small.algorithm("fedavg", setting)
    state = small.run(algorithm).state
    return setting.server_params(state), answers_of(algorithm, state, small.clients)


# ---- local fine-tuning -------------------------------------------------------------------------------------------


def test_fine_tuning_for_no_epoch_is_fedavg(small, averaged):
    params, expected = averaged
    algorithm = small.algorithm("fedsplitbert", small.setting(begun_from(small, params), epochs=0), critical_layer=0)
    run = small.run(algorithm, rounds=1)
    for found, own in zip(answers_of(algorithm, run.state, small.clients), expected, strict=True):
        np.testing.assert_array_equal(found, own)


def test_fine_tuning_is_local_training_of_fedavgs_model(small, averaged):
    params, _ = averaged
    load = begun_from(small, params)
    setting = small.setting(load, epochs=2)
    algorithm = small.algorithm("fedsplitbert", setting, critical_layer=0)
    run = small.run(algorithm, rounds=1)
    for client, found in zip(small.clients, answers_of(algorithm, run.state, small.clients), strict=True):
        model = load()
        model.write(params)
        names = sorted(model.groups.names - model.groups.embeddings)
        setting.training.run(model, client.train, names, 1, client.id)
        np.testing.assert_array_equal(found, model.predict(client.evaluation["test"], 64, None))


def test_after_the_set_up_nothing_crosses_where_nothing_is_shared(small):
    ledger = small.run(small.algorithm("fedsplitbert", critical_layer=0)).channel.ledger
    assert {row.round for row in ledger.rows} == {0}
    assert ledger.setup_bytes > 0 == ledger.total_bytes()


# ---- the label prior: an objective's arithmetic --------------------------------------------------------------------


def labelled(labels) -> Subset:
    """Texts of one token with these labels."""
    labels = np.asarray(labels)
    tokens = np.ones(len(labels), dtype=np.int32)
    return Subset(
        Examples(tokens, tokens * 0, np.arange(len(labels) + 1), labels, padding_id=0), np.arange(len(labels))
    )


def of_counts(counts) -> Subset:
    return labelled(np.repeat(np.arange(len(counts)), counts))


COUNTS = st.integers(2, 5).flatmap(lambda classes: st.lists(st.integers(0, 40), min_size=classes, max_size=classes))


def test_logits_are_adjusted_by_hand():
    objective, known = Classification(2), of_counts((1, 5))
    everyone = {"classes": torch.tensor([7, 7], dtype=torch.int32)}  # smoothed: a half each, against 2/8 and 6/8
    answers = objective.with_prior(np.array([[0.5, 0.0], [9.0, -1.0]], np.float32), known, everyone)
    adjustment = [math.log(1 / 4) - math.log(1 / 2), math.log(3 / 4) - math.log(1 / 2)]
    np.testing.assert_allclose(answers, np.add([[0.5, 0.0], [9.0, -1.0]], adjustment), rtol=1e-6)
    assert answers.dtype == np.float32
    assert answers.argmax(1).tolist() == [1, 0]


@given(COUNTS, st.integers(1, 9))
def test_equal_shares_change_no_bit(counts, times):
    objective, known = Classification(len(counts)), of_counts(counts)
    everyone = {"classes": torch.tensor([times * (count + 1) - 1 for count in counts])}  # the same ones, smoothed
    answers = np.random.default_rng(0).normal(size=(4, len(counts))).astype(np.float32)
    np.testing.assert_array_equal(objective.with_prior(answers, known, everyone), answers)


@given(COUNTS)
def test_of_texts_that_say_nothing_the_clients_most_frequent_label_is_left(counts):
    objective, known = Classification(len(counts)), of_counts(counts)
    everyone = {"classes": torch.full((len(counts),), 100)}
    nothing = np.zeros((3, len(counts)), np.float32)
    expected = objective.prior(known, known).argmax(1)[0] if sum(counts) else 0
    assert objective.with_prior(nothing, known, everyone).argmax(1).tolist() == [expected] * 3


@given(st.lists(COUNTS, min_size=1, max_size=4))
def test_tallies_add_up_to_that_of_all(clients):
    classes = max(map(len, clients))
    objective = Classification(classes)
    tallies = [objective.tally(of_counts(counts))["classes"] for counts in clients]
    together = labelled(np.concatenate([of_counts(counts).labels for counts in clients]).astype(np.int64))
    assert torch.equal(torch.stack(tallies).sum(0, dtype=torch.int32), objective.tally(together)["classes"])


@given(st.lists(st.floats(0, 5, width=32), min_size=1, max_size=9), st.lists(st.floats(-9, 9, width=32), min_size=1))
@settings(max_examples=30)
def test_scores_are_cut_to_the_clients_own_range(known, answered):
    objective, own = Regression(), labelled(np.array(known, np.float32))
    assert objective.tally(own) == {}
    answers = np.array(answered, np.float32)[:, None]
    found = objective.with_prior(answers, own, {})
    assert found.min() >= min(known)
    assert found.max() <= max(known)
    inside = (answers >= min(known)) & (answers <= max(known))
    np.testing.assert_array_equal(found[inside], answers[inside])


@pytest.mark.parametrize("objective", [TokenClassification(2), MaskedLM(9, Vocabulary(9, np.arange(4, 9), mask_id=3))])
def test_other_objectives_have_no_prior(small, objective):
    reason = f"no answer follows from {type(objective).__name__}'s targets alone: choose another method"
    with pytest.raises(FederationError, match=reason):
        objective.with_prior(np.zeros((1, 2)), of_counts((1, 1)), {})
    with pytest.raises(FederationError, match=reason):
        small.run(small.algorithm("local_prior", small.setting(objective=objective)))


# ---- the method ----------------------------------------------------------------------------------------------------


def prior_of(small, averaged, **options):
    return small.algorithm("local_prior", small.setting(begun_from(small, averaged[0], **options), **options))


def test_answers_are_fedavgs_with_the_clients_own_prior(small, averaged):
    algorithm = prior_of(small, averaged)
    run = small.run(algorithm, rounds=1)
    everyone = np.bincount(np.concatenate([client.train.labels for client in small.clients]), minlength=2) + 1
    found = answers_of(algorithm, run.state, small.clients)
    for client, answers, plain in zip(small.clients, found, averaged[1], strict=True):
        own = np.bincount(client.train.labels, minlength=2) + 1
        ratio = (own / own.sum()) / (everyone / everyone.sum())
        np.testing.assert_allclose(answers, plain + np.log(ratio), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(algorithm.predict(run.state, None, client.evaluation["test"]), plain)
    assert [result.metrics.train_loss for result in run.results] == [None]


def test_one_client_alone_answers_as_the_server_does(small, averaged):
    algorithm = prior_of(small, averaged)
    run = small.run(algorithm, rounds=1, clients=small.clients[:1])
    np.testing.assert_array_equal(answers_of(algorithm, run.state, small.clients[:1])[0], averaged[1][0])


def test_label_counts_alone_cross(small, averaged):
    ledger = small.run(prior_of(small, averaged), rounds=1).channel.ledger
    assert sorted(row for row in ledger.rows if row.round) == sorted(
        (1, client.id, direction, "counts", 2, 8, 1) for client in small.clients for direction in ("up", "down")
    )
    model = small.load()
    assert ledger.setup_bytes == 4 * 3 * sum(parameter.numel() for parameter in model.parameters.values())


def test_a_score_sends_nothing(small):
    scores = np.linspace(0, 5, len(small.examples.labels), dtype=np.float32)
    examples = Examples(small.examples.tokens, small.examples.types, small.examples.offsets, scores, 0)
    clients = [
        Client(client.id, Subset(examples, client.train.indices), {"test": Subset(examples, client.train.indices)})
        for client in small.clients
    ]
    algorithm = small.algorithm("local_prior", small.setting(outputs=1))
    run = small.run(algorithm, rounds=1, clients=clients)
    assert run.channel.ledger.total_bytes() == 0
    for client, answers in zip(clients, answers_of(algorithm, run.state, clients), strict=True):
        assert client.train.labels.min() <= answers.min() <= answers.max() <= client.train.labels.max()


def test_labels_are_counted_once(small, averaged):
    with pytest.raises(FederationError, match="expected 1 round"):
        small.run(prior_of(small, averaged), rounds=2)


def test_a_resumed_run_is_the_uninterrupted_one(small, averaged, tmp_path, assert_same_run):
    whole = small.run(prior_of(small, averaged), rounds=1)
    small.run(prior_of(small, averaged), rounds=1, checkpoint=Checkpoint(tmp_path, "prior"))
    algorithm = prior_of(small, averaged)
    resumed = small.run(algorithm, rounds=1, checkpoint=Checkpoint(tmp_path, "prior"))
    assert_same_run(resumed, whole)
    plain = prior_of(small, averaged)
    again = small.run(plain, rounds=1)
    for one, other in zip(
        answers_of(algorithm, resumed.state, small.clients), answers_of(plain, again.state, small.clients), strict=True
    ):
        np.testing.assert_array_equal(one, other)
