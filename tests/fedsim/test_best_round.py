"""The answers of the best round and of the last three outlive kills, as the state does, and their files are checked."""

import numpy as np
import pytest

from fedsim.checkpoint import Checkpoint
from fedsim.engine import pooled_scores
from fedsim.errors import CheckpointError
from fedsim.store import ClientStore


def second(results):
    """The second of any number of rounds is the best one."""
    return len(results) == 2


@pytest.fixture
def run(small, counting, tmp_path):
    def of(rounds, folder=None, **engine):
        folder = tmp_path / (folder or "kept")
        kept = {"checkpoint": Checkpoint(folder, "a run"), "store": ClientStore(folder)}
        return small.run(engine.pop("algorithm", counting), rounds=rounds, is_best=second, **kept, **engine)

    return of


def answers_of(run):
    kept = {number: {name: own.tolist() for name, own in run.answers[number].items()} for number in run.answers}
    return run.best, kept


@pytest.mark.parametrize("stops", [(1, 6), (2, 6), (3, 6), (5, 6), (1, 2, 3, 4, 5, 6), (6, 6)])
def test_resumed_is_uninterrupted(stops, run, small, counting):
    """With six rounds, the best one is not among the last three, nor next to them."""
    best, kept = expected = answers_of(small.run(counting, rounds=6, is_best=second))
    assert (best, list(kept)) == (2, [2, 4, 5, 6])
    for number, answers in kept.items():  # of its own round each: the method's clients answer by the round's number
        assert answers["1/test"][0] == [number + 1] * 2
    found = [run(rounds) for rounds in stops]
    assert answers_of(found[-1]) == expected
    assert (found[0].best is None) == (stops[0] == 1)


@pytest.mark.parametrize(
    ("rounds", "best", "expected"),
    [
        (1, None, [1]),
        (2, None, [1, 2]),
        (3, None, [1, 2, 3]),
        (4, None, [2, 3, 4]),
        (4, 1, [1, 2, 3, 4]),
        (4, 4, [2, 3, 4]),
        (6, 3, [3, 4, 5, 6]),
        (6, 4, [4, 5, 6]),
    ],
)
def test_a_run_keeps_the_answers_of_the_last_three_rounds_and_the_best(rounds, best, expected, small, counting):
    found = small.run(counting, rounds=rounds, is_best=lambda results: len(results) == best)
    assert (found.best, list(found.answers)) == (best, expected)


@pytest.mark.parametrize("number", [2, 4, 5, 6])
@pytest.mark.parametrize("damage", ["changed", "cut short", "missing"])
def test_damage_is_noticed(damage, number, run, tmp_path):
    run(6)
    path = tmp_path / "kept" / f"answers-round-{number}.safetensors"
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:-1] + (bytes([content[-1] ^ 1]) if damage == "changed" else b""))
    with pytest.raises(CheckpointError, match=rf"{path.name} is damaged .* Remove the folder"):
        run(7)


# ---- scores on all clients' examples ---------------------------------------------------------------------------


def test_pooled_scores_are_of_all_examples_in_client_order(small):
    seen = []

    def score(answers, subset):
        seen.append((answers, subset.indices))
        return {"sum": float(answers.sum())}

    answers = {f"{client.id}/{name}": np.full((len(part), 2), client.id, np.float32)
               for client in small.clients for name, part in client.evaluation.items()}  # fmt: skip
    found = pooled_scores(answers, small.clients, score)
    sizes = [len(client.evaluation["test"]) for client in small.clients]
    assert found == {
        "test": {"sum": float(sum(2 * size * client.id for size, client in zip(sizes, small.clients, strict=True)))}
    }
    assert seen[0][1].tolist() == [i for client in small.clients for i in client.evaluation["test"].indices]
    assert seen[0][0][:, 0].tolist() == [
        client.id for client in small.clients for _ in client.evaluation["test"].indices
    ]
