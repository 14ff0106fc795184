"""Which client holds which examples: validation parts, data seeds, groups by first text, subsets, overlap."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from benchmarks.dry_run.stand_ins import Texts
from benchmarks.encoders.encoding import Encoded
from benchmarks.errors import UserError
from benchmarks.run_config import RunConfig
from benchmarks.running.data_split import split_data
from benchmarks.tasks import TaskData, TextExamples, task
from fedsim.data import Client
from partitions import PartitionError, PartitionReport
from tests.benchmarks.conftest import DEMO

LABELS = {"scheme": "label-table", "shares": ((20, 80), (50, 50), (80, 20)), "size": None}
CELL = replace(DEMO, partition=LABELS)
GENERATED = {name: task(name).generate(0) for name in ("mrpc", "stsb")}
EQUAL = {"scheme": "equal"}


def shared(cell: RunConfig, loaded: TaskData | None = None) -> tuple[list[Client], PartitionReport]:
    """A cell's clients, whose texts are not read."""
    uncut: Mapping[str, Encoded] = defaultdict(lambda: Encoded(Texts()))
    return split_data(cell, task(cell.task), loaded or GENERATED[cell.task], uncut)


def held(client: Client) -> dict[str, list[int]]:
    """Which texts a client trains on and is scored on."""
    return {"train": client.train.indices.tolist()} | {
        name: part.indices.tolist() for name, part in client.evaluation.items()
    }


def all_held(cell: RunConfig, loaded: TaskData | None = None) -> list[dict[str, list[int]]]:
    return [held(client) for client in shared(cell, loaded)[0]]


@pytest.mark.parametrize("grouped", [False, True])
def test_validation_is_a_part_of_the_training_subset(grouped):
    cell = replace(CELL, grouped=grouped)
    with_validation = all_held(replace(cell, validation_share=0.25))
    for before, after in zip(all_held(cell), with_validation, strict=True):
        assert after["test"] == before["test"]
        assert sorted(after["train"] + after["validation"]) == before["train"]
        assert abs(len(after["validation"]) - 0.25 * len(before["train"])) <= (3 if grouped else 0.5)


@pytest.mark.parametrize("shares", [LABELS["shares"], ((100, 0), (0, 100), (100, 0))])
def test_independent_examples_are_test_examples_with_even_labels(shares):
    """Each client has others, whatever labels it trains on; sweep trials are not scored on them."""
    cell = replace(CELL, independent=True, partition={**LABELS, "shares": shares})
    clients, labels = all_held(cell), GENERATED[CELL.task].pool.labels
    test = {text for client in clients for text in client["test"]}
    dealt = [client["independent"] for client in clients]
    assert len(set(chain(*dealt))) == len(list(chain(*dealt)))
    assert set(chain(*dealt)) <= test
    rarest = min(np.bincount(labels[sorted(test)]))
    assert [np.bincount(labels[part]).tolist() for part in dealt] == [[rarest // 3] * 2] * 3
    assert [client["test"] for client in all_held(replace(cell, independent=False))] == [c["test"] for c in clients]
    assert "independent" not in shared(replace(cell, holdout="validation"))[0][0].evaluation


def test_independent_examples_need_every_label():
    cell = replace(CELL, independent=True, partition={**LABELS, "shares": ((100, 0),) * 3})
    with pytest.raises(UserError, match="at least 3 test examples of every label"):
        shared(cell)


@pytest.mark.parametrize(
    ("seed", "share", "found", "needed"),
    [
        (0, 0.0, "test_share 0.2: expected at least 3", 3),
        (0, 0.1, "test_share 0.2: expected at least 3", 7),
        (4, 0.1, "validation_share 0.1: expected at least 6", 7),
    ],
)
def test_clients_too_small_for_their_splits_are_refused_with_a_size_for_all_splits(seed, share, found, needed):
    """Of 6 examples, one is for testing, and of 5 a tenth is none."""
    dirichlet = {"scheme": "dirichlet", "alpha": 0.3}
    cell = replace(CELL, clients=8, partition=dirichlet, data_seed=seed, validation_share=share)
    with pytest.raises(PartitionError, match=rf"{found} .*, --set partition\.min_size={needed}, or another"):
        shared(cell)
    shared(replace(cell, partition={**dirichlet, "min_size": needed}))
    sizes = replace(cell, clients=2, partition={"scheme": "sizes", "sizes": (2, 50)})
    with pytest.raises(PartitionError, match=f"a partition with a min_size of {needed}, such as dirichlet, or another"):
        shared(sizes)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_cell_for_tuning_sees_no_test_example(grouped):
    """A trial's test set is a part of the table cell's training set, with or without a validation share."""
    table = all_held(replace(CELL, grouped=grouped))
    tuning = all_held(replace(CELL, grouped=grouped, holdout="validation"))
    for parts, trial in zip(table, tuning, strict=True):
        assert sorted(trial["train"] + trial["test"]) == parts["train"]
        assert list(trial) == ["train", "test"]
    assert tuning == all_held(replace(CELL, grouped=grouped, holdout="validation", validation_share=0.3))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"grouped": True},
        {"task": "stsb", "partition": EQUAL},
        {"partition": {**CELL.partition, "size": 40}},
    ],
    ids=["plain", "grouped", "scores", "subset"],
)
def test_the_data_seed_decides_and_nothing_else(changes):
    cell = replace(CELL, validation_share=0.2, **changes)
    fixed = all_held(replace(cell, data_seed=3))
    assert fixed == all_held(replace(cell, data_seed=3, seed=8))
    assert fixed == all_held(replace(cell, seed=3))  # None: the cell's own
    assert fixed != all_held(replace(cell, data_seed=4))
    training = replace(cell.training, rounds=7, learning_rate=1e-5)
    assert fixed == all_held(replace(cell, data_seed=3, algorithm="central", training=training))


PAIRS = st.lists(st.tuples(st.integers(0, 25), st.integers(0, 1)), min_size=12, max_size=90)
SCHEMES = st.sampled_from([EQUAL, {"scheme": "dirichlet", "alpha": 0.7}, CELL.partition])


def data_of(pairs: list[tuple[int, int]]) -> TaskData:
    texts = tuple((f"first {first}", f"second {place}") for place, (first, _) in enumerate(pairs))
    return TaskData(TextExamples(texts, np.array([label for _, label in pairs])), "made here")


@given(pairs=PAIRS, partition=SCHEMES, seed=st.integers(0, 99), validation=st.sampled_from([0.0, 0.3]))
@hypothesis_settings(max_examples=80, deadline=None)
def test_no_first_text_is_both_trained_on_and_held_back_by_any_client(pairs, partition, seed, validation):
    cell = replace(CELL, partition=partition, seed=seed, test_share=0.3, validation_share=validation, grouped=True)
    try:
        clients, report = shared(cell, data_of(pairs))
    except PartitionError:
        return  # so few texts that a side would be empty

    def firsts(parts: list[Any]) -> set[int]:
        return {pairs[text][0] for part in parts for text in part.indices}

    trained = firsts([client.train for client in clients])
    sides = [firsts([client.evaluation[name] for client in clients]) for name in clients[0].evaluation]
    assert all(not trained & side for side in sides)
    assert len(sides) < 2 or not sides[0] & sides[1]
    assert report.overlap == {}
    assert tuple(len(list(chain(*held(client).values()))) for client in clients) == report.sizes
    texts = list(chain(*(chain(*held(client).values()) for client in clients)))
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("option", ["test_share", "validation_share"])
def test_a_share_that_leaves_nothing_is_named(option, grouped):
    cell = replace(CELL, grouped=grouped, **{option: 0.001})
    with pytest.raises(PartitionError, match=f"{option} 0.001"):
        shared(cell)


def test_cut_texts_are_counted_by_client_and_set():
    data = data_of([(place, place % 2) for place in range(60)])
    cut = np.arange(60) % 3 == 0
    cell, of = replace(CELL, partition=EQUAL), task(CELL.task)
    clients, report = split_data(cell, of, data, {"pool": Encoded(Texts(), cut=cut)})
    for name, parts in {"train": [c.train for c in clients], "test": [c.evaluation["test"] for c in clients]}.items():
        assert report.cut[name] == tuple(int(cut[part.indices].sum()) for part in parts)
    assert sum(map(sum, report.cut.values())) == cut.sum()
    assert split_data(cell, of, data, {"pool": Encoded(Texts())})[1].cut == {}
