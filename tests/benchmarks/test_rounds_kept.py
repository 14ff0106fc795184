"""A record keeps the answers of its last three rounds and of the chosen one; earlier versions kept fewer."""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from benchmarks.errors import UserError
from benchmarks.predictions import (
    Predictions,
    copy_predictions,
    has_predictions,
    predictions_file,
    read_predictions,
    write_predictions,
)
from benchmarks.results import RunResult, read_result
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell
from benchmarks.running.scoring import scores
from benchmarks.tasks import task
from fedsim.data import Client, Subset
from fedsim.objectives import build_objective

CELL = RunConfig(
    scale="demo",
    task="mrpc",
    task_version=1,
    source="generated",
    backbone="tiny",
    clients=3,
    partition={"scheme": "equal"},
    algorithm="fedavg",
    options={},
    training=TrainConfig(rounds=6, learning_rate=2e-3, batch_size=64, max_length=32, precision="fp32"),
    seed=0,
    validation_share=0.25,
)
PERSONAL = {"algorithm": "fedsplitbert", "options": {"critical_layer": 2}}
CENTRAL = {"task": "arsarcasm", "test_share": 0.0}


def run(cell: RunConfig, folder: Path) -> RunResult:
    return run_cell(cell, RunOptions(results_dir=folder, device="cpu"), lambda _: None)


def contents(folder: Path, record: RunResult) -> dict[str, np.ndarray]:
    """The arrays of a record's file, by name."""
    compressed = (folder / record.predictions_name).read_bytes()
    return safetensors.numpy.load(lzma.decompress(compressed))


@pytest.mark.parametrize(
    ("changes", "chosen", "expected"),
    [
        (PERSONAL, 1, [1, 4, 5, 6]),
        ({"training": replace(CELL.training, rounds=4)}, 1, [1, 2, 3, 4]),
        ({}, 3, [3, 4, 5, 6]),
        (CENTRAL, 4, [4, 5, 6]),
        ({}, 6, [4, 5, 6]),
        ({"validation_share": 0.0}, 1, [4, 5, 6]),  # nothing to choose by: the last one
    ],
)
def test_a_record_keeps_the_answers_of_its_last_three_rounds_and_of_the_chosen_one(
    changes: Mapping[str, Any], chosen: int, expected: list[int], choose: Callable[[int], None], tmp_path: Path
) -> None:
    """And those of each round come to that round's scores, client by client and exactly."""
    choose(chosen)
    record = run(replace(CELL, **changes), tmp_path)
    clients, kept = read(tmp_path / "records", record)
    assert record.chosen_round == (chosen if record.chosen_by else len(record.rounds))
    for (client, name), own in kept.items():
        assert list(own.by_round) == expected
        assert own.last is own.by_round[len(record.rounds)]
        assert own.chosen is own.by_round[record.chosen_round]
        for number, outputs in own.by_round.items():
            found = scored(record, clients[client].evaluation[name], outputs)
            assert found == record.rounds[number - 1].client_scores[client][name]
    assert any(not np.array_equal(*pair) for own in kept.values() for pair in pairwise(own.by_round.values()))


def read(folder: Path, record: RunResult) -> tuple[list[Client], dict[tuple[int, str], Predictions]]:
    """A record's clients and predictions."""
    settings = RunOptions(device="cpu")
    clients, _ = build_clients(record.cell, load_inputs(record.cell, settings), settings)
    return clients, read_predictions(folder, record)


def scored(record: RunResult, subset: Subset, outputs: np.ndarray) -> Mapping[str, float | None]:
    of = task(record.cell.task)
    return scores(of.metrics, build_objective(of.objective, of.classes), outputs, subset)


# ---- files of earlier versions ---------------------------------------------------------------------------------


@pytest.fixture
def earlier(choose: Callable[[int], None], tmp_path: Path) -> Callable[[int], tuple[Path, RunResult, RunResult]]:
    """A run's records of this version and of an earlier one, which has its own folder.

    Earlier versions kept the answers after the last round and, where that is another one, after the chosen round.
    """

    def build(chosen: int) -> tuple[Path, RunResult, RunResult]:
        choose(chosen)
        record = run(replace(CELL, **PERSONAL), tmp_path)
        names = {f"last-{6 - chosen}": "chosen"} if 4 <= chosen < 6 else {"chosen": "chosen"}
        names |= {name: name for name in ("indices", "gold", "last")}
        arrays = {}
        for name, array in contents(tmp_path / "records", record).items():
            part, _, what = name.rpartition("/")
            if what in names:
                arrays[f"{part}/{names[what]}"] = array
        content = safetensors.numpy.save(arrays)
        known = replace(record, predictions={"sha256": hashlib.sha256(content).hexdigest()})
        folder = tmp_path / "earlier"
        folder.mkdir()
        (folder / record.predictions_name.removesuffix(".xz")).write_bytes(content)
        return folder, record, known

    return build


@pytest.mark.parametrize("chosen", [2, 4, 5, 6])
def test_a_file_of_an_earlier_version_has_what_it_had(
    chosen: int, earlier: Callable[[int], tuple[Path, RunResult, RunResult]], tmp_path: Path
) -> None:
    folder, record, known = earlier(chosen)
    now, then = read_predictions(tmp_path / "records", record), read_predictions(folder, known)
    assert has_predictions(folder, known)
    assert then.keys() == now.keys()
    for part, own in then.items():
        assert list(own.by_round) == sorted({chosen, 6})
        for number, outputs in own.by_round.items():
            assert np.array_equal(outputs, now[part].by_round[number])
        assert own.last is own.by_round[6]
        assert own.chosen is own.by_round[chosen]
        assert np.array_equal(own.gold, now[part].gold)
        assert np.array_equal(own.indices, now[part].indices)


@pytest.mark.parametrize("chosen", [2, 5])
def test_a_run_scored_at_its_last_round_does_not_take_the_chosen_answers_for_the_last(
    chosen: int, earlier: Callable[[int], tuple[Path, RunResult, RunResult]], tmp_path: Path
) -> None:
    folder, record, known = earlier(chosen)
    for place, one, expected in ((folder, known, [6]), (tmp_path / "records", record, [4, 5, 6])):
        chosen_then, now = read_predictions(place, one), read_predictions(place, one.at_last_round())
        assert one.at_last_round().chosen_round == 6
        for part, own in now.items():
            assert list(own.by_round) == expected
            assert own.chosen is own.last is own.by_round[6]
            assert np.array_equal(own.last, chosen_then[part].last)
        assert any(not np.array_equal(own.last, chosen_then[part].chosen) for part, own in now.items())


def test_a_file_of_an_earlier_version_is_copied_compressed(
    earlier: Callable[[int], tuple[Path, RunResult, RunResult]], tmp_path: Path
) -> None:
    folder, _, known = earlier(2)
    (path,) = folder.iterdir()
    assert predictions_file(folder, known) == path
    copy_predictions(folder, known, tmp_path / "copied")
    (copied,) = (tmp_path / "copied").iterdir()
    assert copied.name == known.predictions_name
    assert lzma.decompress(copied.read_bytes()) == path.read_bytes()
    assert has_predictions(tmp_path / "copied", known)
    write_predictions(folder, known, path.read_bytes())
    assert predictions_file(folder, known).name == known.predictions_name  # where both are there


def test_damage_of_a_file_of_an_earlier_version_is_noticed(
    earlier: Callable[[int], tuple[Path, RunResult, RunResult]],
) -> None:
    folder, _, known = earlier(2)
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    for reader in (read_predictions, has_predictions):
        with pytest.raises(UserError, match=rf"{path}: expected the predictions of {known.file_name}, found none"):
            reader(folder, known)


def test_committed_records_have_the_answers_after_their_last_and_their_chosen_round() -> None:
    """Twelve of those in which they are not the same."""
    folder = Path(__file__).parents[2] / "benchmarks" / "fedsplitbert" / "records"
    seen = 0
    for path in sorted(folder.glob("*.json")):
        record = read_result(path)
        if seen == 12 or not record.predictions or record.chosen_round == len(record.rounds):
            continue
        for own in read_predictions(folder, record).values():
            assert own.by_round.keys() >= {len(record.rounds), record.chosen_round}
            assert own.last is own.by_round[len(record.rounds)]
            assert own.chosen is own.by_round[record.chosen_round]
        seen += 1
    assert seen == 12
