"""The contract of all methods: a resumed run equals an uninterrupted one, and reference rows send nothing."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from fedsim.algorithms import algorithm_names
from fedsim.checkpoint import Checkpoint
from fedsim.data import Examples, Subset
from fedsim.objectives import MaskedLM, TokenRecovery, Vocabulary
from fedsim.store import ClientStore
from tests.fedsim.test_lora import METHODS as LORA_METHODS

MASKED = MaskedLM(60, Vocabulary(60, np.arange(10, 60), mask_id=3))
OF_WORDS = {"head": "masked-lm", "objective": MASKED}
OF_TOKENS = {"head": "average", "objective": TokenRecovery(16)}
# (method, its options, rounds, changes to the workload)
CASES = [
    ("fedavg", {"server": {"name": "adam", "learning_rate": 1e-2}}, 3, {}),
    ("fedavg", {"server": {"learning_rate": 0.7, "momentum": 0.9, "nesterov": True}}, 3, {"optimizer": "kept"}),
    ("fedsplitbert", {"critical_layer": 1}, 3, {"optimizer": "kept"}),
    ("fedper", {"embeddings": "global"}, 3, {}),
    ("fedrep", {}, 3, {"optimizer": "kept"}),
    ("ditto", {"pull": 0.1}, 3, {}),
    ("scaffold", {}, 3, {"participation": 0.5}),
    ("fedbfpt", {"local_layers": 2}, 3, OF_WORDS),
    ("fedbfpt", {"local_layers": [1, 2, 3], "trained": "all"}, 3, OF_WORDS),
    ("fedbert_sequential", {"turns": "round"}, 3, {**OF_WORDS, "optimizer": "kept"}),
    ("fedbert_sequential", {"handed_on": "optimizer"}, 3, {**OF_WORDS, "optimizer": "kept"}),
    ("fedbert_parallel", {"averaged": "embeddings"}, 3, {**OF_WORDS, "optimizer": "kept"}),
    ("fedbert_parallel", {"averaged": "all", "transformer": "own"}, 3, {**OF_WORDS, "optimizer": "kept"}),
    ("central", {}, 3, {"optimizer": "kept"}),
    ("fedfreezebert", {}, 3, {}),
    ("fedfreezebert_central", {}, 1, {}),
    ("local_prior", {}, 1, {}),
    ("local_majority", {}, 2, {}),
    ("untrained", {}, 2, {}),
    ("linear", {}, 2, {}),
    ("unigram", {}, 1, OF_WORDS),
    ("inversion", {}, 1, OF_TOKENS),
    ("nearest_neighbour", {}, 1, OF_TOKENS),
    ("token_majority", {}, 1, OF_TOKENS),
]
# Methods whose clients train apart.
APART = [
    case
    for case in CASES
    if case[0] in ("fedavg", "fedsplitbert", "fedper", "fedrep", "ditto", "fedbfpt", "fedfreezebert")
]
APART += [
    ("fedbert_parallel", {"averaged": averaged, "transformer": "own"}, 3, {**OF_WORDS, "optimizer": "kept"})
    for averaged in ("embeddings", "head-embeddings", "all")
]
SILENT = {"central", "local_majority", "untrained", "linear", "unigram"}
SILENT |= {"inversion", "nearest_neighbour", "token_majority"}


def test_every_method_is_here():
    assert {name for name, *_ in (*CASES, *LORA_METHODS.values())} == set(algorithm_names())


@pytest.fixture
def with_targets(small):
    """Clients whose tokens are also their targets."""
    given = small.examples
    examples = Examples(given.tokens, given.types, given.offsets, given.labels, 0, given.tokens.astype(np.int64))
    return [
        type(client)(client.id, *(Subset(examples, part.indices) for part in (client.train,)), {
            name: Subset(examples, part.indices) for name, part in client.evaluation.items()
        })
        for client in small.clients
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "rounds", "changes"), CASES)
def test_resumed_run_is_the_uninterrupted_one(
    small, with_targets, assert_same_run, tmp_path, name, options, rounds, changes
):
    clients = with_targets if changes is OF_TOKENS else small.clients

    def run(rounds, **engine):
        workload = small.workload(**{"rounds": 3, "batch_size": 8, **changes})
        algorithm = small.algorithm(name, workload, **options)
        state = small.run(algorithm, rounds=rounds, clients=clients, score=lambda *_: {}, **engine)
        return state, algorithm.predict(state.state, clients[0], clients[0].evaluation["test"])

    def kept():
        return {"checkpoint": Checkpoint(tmp_path, name), "store": ClientStore(tmp_path)}

    whole, answers = run(rounds)
    run(max(1, rounds - 1), **kept())
    for _ in range(2):  # the second time nothing is left to do
        resumed, again = run(rounds, **kept())
        assert_same_run(resumed, whole)
        np.testing.assert_array_equal(again, answers)
    assert (whole.channel.ledger.rows == []) == (name in SILENT)


@pytest.mark.parametrize(("name", "options", "rounds", "changes"), APART)
def test_the_order_in_which_clients_end_changes_nothing(small, assert_same_run, name, options, rounds, changes):
    def last_first(update, work):
        return [copy.deepcopy(update(each)) for each in list(work)[::-1]][::-1]  # as from another process

    def run(map_clients):
        workload = replace(small.workload(**{"rounds": 3, "batch_size": 8, **changes}), map_clients=map_clients)
        return small.run(small.algorithm(name, workload, **options), rounds=rounds, score=lambda *_: {})

    assert_same_run(run(last_first), run(map))


def test_two_methods_on_one_resident_model_are_what_they_are_apart(small, assert_same_run):
    """Tensors that the model already holds are not copied again, with no visible effect."""
    workload = small.workload()
    methods = {"fedavg": {"embeddings": "global"}, "fedsplitbert": {"critical_layer": 1}}
    apart = [small.run(small.algorithm(name, **options)) for name, options in methods.items()]
    for _ in range(2):
        for (name, options), expected in zip(methods.items(), apart, strict=True):
            assert_same_run(small.run(small.algorithm(name, workload, **options)), expected)


def test_central_training_sees_every_clients_examples(small, assert_same_tensors):
    merged = Subset(small.examples, np.concatenate([client.train.indices for client in small.clients]))
    together = small.run(small.algorithm("central", small.workload(batch_size=4)))
    client = type(small.clients[0])(0, merged, {})
    alone = small.run(small.algorithm("central", small.workload(batch_size=4)), clients=[client])
    assert_same_tensors(together.state.shared, alone.state.shared)
