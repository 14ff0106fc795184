"""The answers of the best round and of the last three outlive kills, as the state does, and their files are checked."""

from dataclasses import replace

import numpy as np
import pytest

from fedsim.checkpoint import Checkpoint
from fedsim.engine import pooled_scores
from fedsim.errors import CheckpointError
from fedsim.store import ClientStore

BEST = "answers-round-2.safetensors"


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


def test_a_run_drops_the_answers_of_a_round_that_is_no_longer_best(small, counting):
    found = small.run(counting, rounds=7, is_best=lambda results: len(results) in (1, 2, 3))
    assert (found.best, list(found.answers)) == (3, [3, 5, 6, 7])


def test_files_of_answers_stay_until_another_round_is_best_or_the_run_is_recorded(run, small, counting, tmp_path):
    for rounds, kept in enumerate(([1], [1, 2], [1, 2, 3], [2, 3, 4], [2, 3, 4, 5], [2, 4, 5, 6]), start=1):
        assert files_of_answers(run(rounds) and tmp_path / "kept") == kept
    Checkpoint(tmp_path / "kept", "a run").remove()
    assert not (tmp_path / "kept").exists()
    every = {"checkpoint": Checkpoint(tmp_path / "every", "a run"), "store": ClientStore(tmp_path / "every")}
    small.run(counting, rounds=5, is_best=lambda results: True, **every)
    assert files_of_answers(tmp_path / "every") == [3, 4, 5]


def files_of_answers(folder):
    """The rounds whose answers lie in a folder."""
    return sorted(int(path.stem.removeprefix("answers-round-")) for path in folder.glob("answers-*.safetensors"))


def test_a_checkpoint_writes_the_answers_of_a_round_once(run, tmp_path):
    run(2)
    before = (tmp_path / "kept" / BEST).stat()
    run(6)
    after = (tmp_path / "kept" / BEST).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_answers_that_clients_share_are_kept(run, small, counting, tmp_path):
    """A shared model on a central test set: one array for all of them, in memory and after a restart."""
    common = small.clients[0].evaluation["test"]
    clients = [replace(client, evaluation={"test": common}) for client in small.clients]
    shared = replace(counting, personal=False, predict=lambda *_: np.ones((len(common), 2), dtype=np.float32))
    best, before = answers_of(run(2, algorithm=shared, clients=clients))
    assert len(before[2]) == len(clients)
    again, after = answers_of(run(3, algorithm=shared, clients=clients))
    assert (again, {number: after[number] for number in before}) == (best, before)
    assert after[3] == before[2]


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


def test_answers_of_tokens_are_as_wide_as_the_widest(small):
    widths = {client.id: 2 + client.id for client in small.clients}
    answers = {f"{client.id}/test": np.ones((len(client.evaluation["test"]), widths[client.id], 3))
               for client in small.clients}  # fmt: skip
    shapes = []
    pooled_scores(answers, small.clients, lambda own, subset: shapes.append((own.shape, len(subset))) or {})
    total = sum(len(client.evaluation["test"]) for client in small.clients)
    assert shapes == [((total, max(widths.values()), 3), total)]
