"""What was answered after the best round outlives kills, as the state does, and its file is checked."""

from dataclasses import replace

import numpy as np
import pytest

from fedsim.checkpoint import Checkpoint
from fedsim.engine import pooled_scores
from fedsim.errors import CheckpointError
from fedsim.store import ClientStore

BEST = "best-round-2.safetensors"


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
    number, answers = run.best
    return number, {name: own.tolist() for name, own in answers.items()}


@pytest.mark.parametrize("stops", [(1, 4), (2, 4), (3, 4), (1, 2, 3, 4), (4, 4)])
def test_resumed_is_uninterrupted(stops, run, small, counting):
    expected = answers_of(small.run(counting, rounds=4, is_best=second))
    assert expected[0] == 2
    found = [run(rounds) for rounds in stops]
    assert answers_of(found[-1]) == expected
    assert (found[0].best is None) == (stops[0] == 1)


def test_the_file_stays_until_another_round_is_best_or_the_run_is_recorded(run, small, counting, tmp_path):
    assert BEST not in files(run(1) and tmp_path / "kept")
    for rounds in (2, 3, 4):
        assert [name for name in files(run(rounds) and tmp_path / "kept") if name.startswith("best")] == [BEST]
    Checkpoint(tmp_path / "kept", "a run").remove()
    assert not (tmp_path / "kept").exists()
    every = {"checkpoint": Checkpoint(tmp_path / "every", "a run"), "store": ClientStore(tmp_path / "every")}
    small.run(counting, rounds=3, is_best=lambda results: True, **every)
    assert [name for name in files(tmp_path / "every") if name.startswith("best")] == ["best-round-3.safetensors"]


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_answers_that_clients_share_are_kept(run, small, counting, tmp_path):
    """A shared model on a central test set: one array for all of them, in memory and after a restart."""
    common = small.clients[0].evaluation["test"]
    clients = [replace(client, evaluation={"test": common}) for client in small.clients]
    shared = replace(counting, personal=False, predict=lambda *_: np.ones((len(common), 2), dtype=np.float32))
    before = answers_of(run(2, algorithm=shared, clients=clients))
    assert len(before[1]) == len(clients)
    assert answers_of(run(3, algorithm=shared, clients=clients)) == before


@pytest.mark.parametrize("damage", ["changed", "cut short", "missing"])
def test_damage_is_noticed(damage, run, tmp_path):
    run(2)
    path = tmp_path / "kept" / BEST
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:-1] + (bytes([content[-1] ^ 1]) if damage == "changed" else b""))
    with pytest.raises(CheckpointError, match=rf"{BEST} is damaged .* Remove the folder"):
        run(3)


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
