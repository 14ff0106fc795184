"""The contract of all methods: a resumed run equals an uninterrupted one, and reference rows send nothing."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from fedsim.algorithms import algorithm_names
from fedsim.checkpoint import Checkpoint
from fedsim.data import Client, Subset
from fedsim.objectives import TokenRecovery
from fedsim.store import ClientStore
from fedsim.wire import Channel
from tests.fedsim.conftest import LORA, MASKED, assert_same_run, assert_same_tensors, clients_of
from tests.fedsim.test_lora import METHODS as LORA_METHODS

MASKED_LM = {"head": "masked-lm", "objective": MASKED}
OF_TOKENS = {"head": "average", "objective": TokenRecovery(16)}
KEPT, HALF = {"optimizer": "kept"}, {"participation": 0.5}
ADAM = {"server": {"name": "adam", "learning_rate": 1e-2}}
# (method, its options, rounds, changes to the workload)
CASES = [
    ("fedavg", ADAM, 3, {}),
    ("fedavg", {"server": {"learning_rate": 0.7, "momentum": 0.9, "nesterov": True}}, 3, KEPT),
    ("fedsplitbert", {"critical_layer": 1}, 3, KEPT),
    ("fedper", {"embeddings": "global"}, 3, {}),
    ("fedrep", {}, 3, KEPT),
    ("ditto", {"pull": 0.1}, 3, {}),
    ("scaffold", {}, 3, HALF),
    ("fedbfpt", {"local_layers": 2}, 3, MASKED_LM),
    ("fedbfpt", {"local_layers": [1, 2, 3], "trained": "all"}, 3, MASKED_LM),
    ("fedbert_sequential", {"turns": "round"}, 3, {**MASKED_LM, **KEPT}),
    ("fedbert_sequential", {"handed_on": "optimizer"}, 3, {**MASKED_LM, **KEPT}),
    ("fedbert_parallel", {"averaged": "embeddings"}, 3, {**MASKED_LM, **KEPT}),
    ("fedbert_parallel", {"averaged": "all", "transformer": "own"}, 3, {**MASKED_LM, **KEPT}),
    ("central", {}, 3, KEPT),
    ("fedfreezebert", {}, 3, {}),
    ("fedfreezebert_central", {}, 1, {}),
    ("local_prior", {}, 1, {}),
    ("local_majority", {}, 2, {}),
    ("untrained", {}, 2, {}),
    ("linear", {}, 2, {}),
    ("unigram", {}, 1, MASKED_LM),
    ("inversion", {}, 1, OF_TOKENS),
    ("nearest_neighbour", {}, 1, OF_TOKENS),
    ("token_majority", {}, 1, OF_TOKENS),
]
WITH_LORA = [
    *((method, options, 3, {"adapter": LORA}) for method, options, *_ in LORA_METHODS.values()),
    *((method, {}, 3, {"adapter": LORA, **KEPT}) for method in ("fedavg", "fedper", "central")),
    ("fedsplitbert", {"critical_layer": 1}, 3, {"adapter": LORA, **KEPT}),
]
# By codecs with a memory.
CODED = [
    ("int8", "fedavg", {}, 4, HALF),
    ("qsgd:7:64", "fedavg", ADAM, 4, HALF),
    ("topk:0.05", "fedavg", {}, 4, HALF),
    ("topk:0.05", "fedsplitbert", {"critical_layer": 2}, 4, HALF),
    ("topk:0.05", "fedbfpt", {"local_layers": 2}, 4, {}),
    ("qsgd:7:64", "fedbert_parallel", {}, 4, {}),
    ("topk:0.05", "fedbert_parallel", {}, 4, {}),
    ("topk:0.05", "fedbert_sequential", {"turns": "round"}, 4, {}),
]
# Methods whose clients train apart.
APART = [
    case
    for case in CASES
    if case[0] in ("fedavg", "fedsplitbert", "fedper", "fedrep", "ditto", "fedbfpt", "fedfreezebert")
]
APART += [
    ("fedbert_parallel", {"averaged": averaged, "transformer": "own"}, 3, {**MASKED_LM, **KEPT})
    for averaged in ("embeddings", "head-embeddings", "all")
]
SILENT = {"central", "local_majority", "untrained", "linear", "unigram"}
SILENT |= {"inversion", "nearest_neighbour", "token_majority"}


def test_every_method_is_here():
    assert {name for name, *_ in (*CASES, *WITH_LORA)} == set(algorithm_names())


@pytest.mark.parametrize(
    ("codec", "name", "options", "rounds", "changes"), [*(("fp32", *case) for case in (*CASES, *WITH_LORA)), *CODED]
)
def test_resumed_run_is_the_uninterrupted_one(small, tmp_path, codec, name, options, rounds, changes):
    clients = small.clients
    if changes is OF_TOKENS:
        clients = clients_of(replace(small.examples, targets=small.examples.tokens.astype(np.int64)))

    def run(rounds, **engine):
        workload = small.workload(**{"rounds": 4 if codec != "fp32" else 3, "batch_size": 8, **changes})
        algorithm, config = small.algorithm(name, workload, **options), workload.training.config
        engine |= {"rounds": rounds, "participation": config.participation}
        state = small.run(algorithm, channel=Channel(codec, seed=5), clients=clients, **engine)
        return state, algorithm.predict(state.state, clients[0], clients[0].evaluation["test"])

    def kept(in_memory):
        return {"checkpoint": Checkpoint(tmp_path, name), "store": ClientStore(tmp_path, in_memory)}

    whole, answers = run(rounds)
    for stop in range(1, rounds):
        run(stop, **kept(in_memory=stop % 2 == 0))
    for in_memory in (True, False):  # the second time nothing is left to do
        resumed, again = run(rounds, **kept(in_memory))
        assert_same_run(resumed, whole)
        np.testing.assert_array_equal(again, answers)
    assert (whole.channel.ledger.rows == []) == (name in SILENT)


@pytest.mark.parametrize(("name", "options", "rounds", "changes"), APART)
def test_the_order_in_which_clients_end_changes_nothing(small, name, options, rounds, changes):
    def last_first(update, work):
        return [copy.deepcopy(update(each)) for each in list(work)[::-1]][::-1]  # as from another process

    def run(map_clients):
        workload = replace(small.workload(**{"rounds": 3, "batch_size": 8, **changes}), map_clients=map_clients)
        return small.run(small.algorithm(name, workload, **options), rounds=rounds)

    assert_same_run(run(last_first), run(map))


def test_two_methods_on_one_resident_model_are_what_they_are_apart(small):
    """Tensors that the model already holds are not copied again, with no visible effect."""
    workload = small.workload()
    methods = {"fedavg": {"embeddings": "global"}, "fedsplitbert": {"critical_layer": 1}}
    apart = [small.run(small.algorithm(name, **options)) for name, options in methods.items()]
    for _ in range(2):
        for (name, options), expected in zip(methods.items(), apart, strict=True):
            assert_same_run(small.run(small.algorithm(name, workload, **options)), expected)


def test_central_training_sees_every_clients_examples(small):
    merged = Subset(small.examples, np.concatenate([client.train.indices for client in small.clients]))
    clients = [small.clients, [Client(0, merged, {})]]
    together, alone = (
        small.run(small.algorithm("central", small.workload(batch_size=4)), clients=each) for each in clients
    )
    assert_same_tensors(together.state.shared, alone.state.shared)
