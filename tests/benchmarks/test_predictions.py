"""A run's answers: the recorded scores follow from them exactly, and damaged files are refused."""

from __future__ import annotations

import lzma
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from benchmarks.errors import UserError
from benchmarks.predictions import (
    Predictions,
    halved,
    read_predictions,
)
from benchmarks.results import RoundRecord, RunResult, chosen_round, read_result
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running import runner
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell, run_stage
from benchmarks.running.scoring import is_chosen, scores
from benchmarks.tasks import task
from fedsim.engine import RoundMetrics, RoundResult
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
    training=TrainConfig(rounds=3, learning_rate=2e-3, batch_size=64, max_length=32, precision="fp32"),
    seed=0,
    validation_share=0.25,
)
PERSONAL = {"algorithm": "fedsplitbert", "options": {"critical_layer": 2}}
CENTRAL = {"task": "arsarcasm", "test_share": 0.0}
CASES: dict[str, Mapping[str, Any]] = {
    "shared model": {},
    "own models": PERSONAL,
    "held-out set": {"task": "mnli"},
    "scores": {"task": "stsb"},
    "central set, shared model": CENTRAL,
    "central set, own models": {**CENTRAL, **PERSONAL},
    "no validation": {"validation_share": 0.0},
}


def run(cell: RunConfig, folder: Path) -> RunResult:
    return run_cell(cell, RunOptions(results_dir=folder, device="cpu"), lambda _: None)


def check_answers(folder: Path, record: RunResult, rounds: list[int]) -> dict[tuple[int, str], Predictions]:
    """The kept answers are of these rounds, and give exactly each round's recorded scores."""
    of, settings = task(record.cell.task), RunOptions(device="cpu")
    objective = build_objective(of.objective, of.classes)
    clients, _ = build_clients(record.cell, load_inputs(record.cell, settings), settings)
    kept = read_predictions(folder, record)
    assert kept.keys() == {(client.id, name) for client in clients for name in client.evaluation}
    for (client, name), own in kept.items():
        subset = clients[client].evaluation[name]
        assert own.indices.tolist() == subset.indices.tolist()
        assert own.gold.tolist() == subset.references.tolist()
        assert list(own.by_round) == rounds
        assert own.last is own.by_round[len(record.rounds)]
        assert own.chosen is own.by_round[record.chosen_round]
        for number, outputs in own.by_round.items():
            found = scores(of.metrics, objective, outputs, subset)
            assert found == record.rounds[number - 1].client_scores[client][name]
    return kept


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, RunResult]]:
    """The records' folder, and the record of each case; tests leave them as they are."""
    folder = tmp_path_factory.mktemp("predictions")
    return folder / "records", {name: run(replace(CELL, **changes), folder) for name, changes in CASES.items()}


# ---- what is kept ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_the_recorded_scores_come_out_again(case: str, finished: tuple[Path, dict[str, RunResult]]) -> None:
    """Exactly: half precision changes no label, and scores are kept as they are."""
    kind = np.float32 if case == "scores" else np.float16
    for own in check_answers(finished[0], finished[1][case], [1, 2, 3]).values():
        assert all(outputs.dtype == kind for outputs in own.by_round.values())


@pytest.mark.parametrize("case", CASES)
def test_pooled_scores_are_of_all_clients_examples_together(
    case: str, finished: tuple[Path, dict[str, RunResult]]
) -> None:
    folder, record = finished[0], finished[1][case]
    kept = read_predictions(folder, record)
    for name, expected in record.rounds[-1].pooled_scores.items():
        parts = [own for (_, evaluation), own in kept.items() if evaluation == name]
        predicted = np.concatenate([own.last for own in parts])
        gold = np.concatenate([own.gold for own in parts])
        if case == "scores":
            assert expected["pearson"] == pytest.approx(np.corrcoef(predicted[:, 0], gold)[0, 1])
        else:
            assert expected["accuracy"] == pytest.approx(np.mean(predicted.argmax(1) == gold))
    assert record.rounds[-1].pooled_scores.keys() == record.rounds[-1].scores.keys()


def test_the_chosen_round_is_the_first_best_on_validation(finished: tuple[Path, dict[str, RunResult]]) -> None:
    for case, record in finished[1].items():
        name = task(record.cell.task).metrics[0]
        if case == "no validation":
            assert (record.chosen_by, record.chosen_round) == ("", len(record.rounds))
            assert "chosen_by" not in record.to_json()
            continue
        values = [entry.scores["validation"][name] for entry in record.rounds]
        assert record.chosen_by == f"validation/{name}"
        assert record.chosen_round == values.index(max(value for value in values if value is not None)) + 1
        assert record.score(f"test/{name}", "chosen") == record.rounds[record.chosen_round - 1].scores["test"][name]
    assert any(record.chosen_round < len(record.rounds) for record in finished[1].values())  # or little was tested


def test_the_test_sets_error_is_that_of_the_chosen_rounds_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "is_chosen", lambda results, by: len(results) == 1)
    record = run(replace(CELL, training=replace(CELL.training, batch_size=16, local_epochs=4), **PERSONAL), tmp_path)

    def error(entry: RoundRecord) -> float:
        shares = [scores["test"]["accuracy"] or 0.0 for scores in entry.client_scores]
        parts = [share * (1 - share) / client["test"] for share, client in zip(shares, record.clients, strict=True)]
        return math.sqrt(sum(parts)) / len(parts)

    first, *_, last = record.rounds
    assert record.sampling_error("test/accuracy") == pytest.approx(error(first))
    assert error(first) != pytest.approx(error(last))


@given(values=st.lists(st.none() | st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=8))
def test_the_round_kept_on_the_way_is_the_one_chosen_at_the_end(values: list[float | None]) -> None:
    results = [
        RoundResult(number, (0,), RoundMetrics((), None), ({"validation": {"f1": value}},), {})
        for number, value in enumerate(values, start=1)
    ]
    kept = [number for number in range(1, len(values) + 1) if is_chosen(results[:number], "validation/f1")]
    assert kept[-1] == chosen_round([{"validation": {"f1": value}} for value in values], "validation/f1")
    assert not is_chosen(results, "")


# ---- labels that clients trained on ----------------------------------------------------------------------------


OUTPUTS = arrays(
    np.float32,
    array_shapes(min_dims=2, max_dims=3, min_side=2, max_side=4),
    elements=st.floats(width=32) | st.sampled_from([1.0, 1.0001, 1.0002, 65504.0, 1e30, -1e30]),
)


@given(OUTPUTS)
@hypothesis_settings(max_examples=300)
def test_half_precision_keeps_which_is_largest_and_what_is_finite(outputs: np.ndarray) -> None:
    found = halved(outputs)
    assert found.dtype == np.float16
    assert found.shape == outputs.shape
    assert (np.isfinite(found) == np.isfinite(outputs)).all()
    if np.isfinite(outputs).all():
        assert np.array_equal(found.argmax(axis=-1), outputs.argmax(axis=-1))
        near = np.abs(outputs) < 60000
        assert np.allclose(found[near], outputs[near], rtol=2e-3, atol=1e-6)


# ---- the last three rounds and the chosen one ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "chosen", "expected"),
    [
        (PERSONAL, 1, [1, 4, 5, 6]),
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
    record = run(replace(CELL, training=replace(CELL.training, rounds=6), **changes), tmp_path)
    assert record.chosen_round == (chosen if record.chosen_by else len(record.rounds))
    kept = check_answers(tmp_path / "records", record, expected)
    assert any(not np.array_equal(*pair) for own in kept.values() for pair in pairwise(own.by_round.values()))


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


# ---- kills, and starts that compute anew ---------------------------------------------------------------------------


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("records/*.safetensors.xz")}


def test_a_stage_that_is_run_again_leaves_the_predictions_of_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its weights are gone, and it is computed again, perhaps on another machine with other last bits."""
    settings = RunOptions(results_dir=tmp_path, device="cpu")
    cell = replace(CELL, training=replace(CELL.training, rounds=1))
    kept = run_stage(cell, settings, lambda _: None)
    before = files(tmp_path)
    kept.path.unlink()
    monkeypatch.setattr(runner, "pack_predictions", lambda *_: b"other bits")
    run_stage(cell, settings, lambda _: None)
    assert files(tmp_path) == before


# ---- damage ----------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_the_records_own_is_refused(
    finished: tuple[Path, dict[str, RunResult]], tmp_path: Path
) -> None:
    folder, record = finished[0], finished[1]["shared model"]
    content = (folder / record.predictions_name).read_bytes()
    whole = lzma.decompress(content)
    refused = {
        "missing": None,
        "cut short": content[:-1],
        "changed": content[:-1] + bytes([content[-1] ^ 1]),
        "not compressed": whole,
        "changed before it was compressed": lzma.compress(whole[:-1] + bytes([whole[-1] ^ 1])),
    }
    for name, damaged in refused.items():
        path = tmp_path / name / record.predictions_name
        path.parent.mkdir()
        if damaged is not None:
            path.write_bytes(damaged)
        with pytest.raises(UserError, match=rf"{path}: expected the predictions of {record.file_name}, found none"):
            read_predictions(path.parent, record)
