"""A run's stored predictions: recorded scores follow from them exactly, and damaged files are rejected."""

import lzma
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from benchmarks.errors import UserError
from benchmarks.predictions import Predictions, halved, predictions_file, read_predictions
from benchmarks.results import RunResult, chosen_round
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell
from benchmarks.running.scoring import is_chosen, scores
from benchmarks.tasks import task
from fedsim.data import IGNORED, Client
from fedsim.engine import RoundMetrics, RoundResult
from fedsim.objectives import build_objective
from tests.benchmarks.conftest import DEMO

CELL = replace(DEMO, training=replace(DEMO.training, batch_size=64), validation_share=0.25)
PERSONAL = {"algorithm": "fedsplitbert", "options": {"critical_layer": 2}}
CENTRAL = {"task": "arsarcasm", "test_share": 0.0}
# Central test and validation sets: clients keep nothing back.
OFFICIAL = {"test_share": 0.0, "validation_share": 0.0, "clients": 2}
SHORT = TrainConfig(rounds=3, learning_rate=1e-3, batch_size=32, max_length=12, precision="fp32")
CASES: dict[str, Mapping[str, Any]] = {
    "shared model": {},
    "personal models": PERSONAL,
    "held-out set": {"task": "mnli"},
    "scores": {"task": "stsb"},
    "central set, personal models": {**CENTRAL, **PERSONAL},
    "no validation": {"validation_share": 0.0},
    "tags": {**OFFICIAL, "task": "scierc", "head": "tokens", "training": SHORT},
    "tags, personal models": {**OFFICIAL, "task": "scierc", "head": "tokens", "training": SHORT, **PERSONAL},
    "official labels": {**OFFICIAL, "task": "rct20k"},
}


def run(cell: RunConfig, folder: Path) -> RunResult:
    return run_cell(cell, RunOptions(results_dir=folder, device="cpu"), lambda _: None)


def clients_of(cell: RunConfig) -> list[Client]:
    settings = RunOptions(device="cpu")
    return build_clients(cell, load_inputs(cell, settings), settings)[0]


def check_answers(folder: Path, record: RunResult, rounds: list[int]) -> dict[tuple[int, str], Predictions]:
    """Check the rounds of the stored predictions, and that each round's recorded scores follow exactly."""
    of = task(record.cell.task)
    objective = build_objective(of.objective, of.classes)
    clients = clients_of(record.cell)
    kept = read_predictions(folder, record)
    assert kept.keys() == {(client.id, name) for client in clients for name in client.evaluation}
    for (client, name), part in kept.items():
        subset = clients[client].evaluation[name]
        gold = subset.references
        assert part.indices.tolist() == subset.indices.tolist()
        assert part.gold[part.gold != IGNORED].tolist() == gold[gold != IGNORED].tolist()
        assert list(part.by_round) == rounds
        assert part.last is part.by_round[len(record.rounds)]
        assert part.chosen is part.by_round[record.chosen_round]
        for number, outputs in part.by_round.items():
            answers = outputs
            if of.tags:
                assert part.gold.dtype == outputs.dtype == np.int8
                answers = np.zeros(objective.shape(subset), np.float32)
                rows, places = (gold != IGNORED).nonzero()
                answers[rows, places, outputs[outputs != IGNORED]] = 1
            values = scores(of.metrics, objective, answers, subset)
            assert values == record.rounds[number - 1].client_scores[client][name]
    return kept


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, RunResult]]:
    """Run a case once; return the records' folder and its record. Tests must not change them."""
    folder = tmp_path_factory.mktemp("predictions")
    return cache(lambda case: (folder / "records", run(replace(CELL, **CASES[case]), folder)))


# ---- answers and scores ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_recorded_and_pooled_scores_follow_from_the_answers(case, finished):
    """Exactly, as half precision changes no label and scores are stored unrounded."""
    folder, record = finished(case)
    kept = check_answers(folder, record, [1, 2, 3])
    if "tags" in case:
        return
    kind = np.float32 if case == "scores" else np.float16
    assert all(outputs.dtype == kind for part in kept.values() for outputs in part.by_round.values())
    for name, expected in record.rounds[-1].pooled_scores.items():
        parts = [part for (_, evaluation), part in kept.items() if evaluation == name]
        predicted, gold = np.concatenate([part.last for part in parts]), np.concatenate([part.gold for part in parts])
        if case == "scores":
            assert expected["pearson"] == pytest.approx(np.corrcoef(predicted[:, 0], gold)[0, 1])
        else:
            assert expected["accuracy"] == pytest.approx(np.mean(predicted.argmax(1) == gold))


@pytest.mark.parametrize("case", CASES)
def test_the_chosen_round_is_the_first_best_on_validation(case, finished):
    _, record = finished(case)
    name = task(record.cell.task).metrics[0]
    if case == "no validation":
        assert (record.chosen_by, record.chosen_round) == ("", len(record.rounds))
        assert "chosen_by" not in record.to_json()
        return
    values = [entry.scores["validation"][name] for entry in record.rounds]
    assert record.chosen_by == f"validation/{name}"
    assert record.chosen_round == values.index(max(value for value in values if value is not None)) + 1
    assert record.score(f"test/{name}", "chosen") == record.rounds[record.chosen_round - 1].scores["test"][name]


@given(values=st.lists(st.none() | st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=8))
def test_the_round_kept_on_the_way_is_the_one_chosen_at_the_end(values):
    results = [
        RoundResult(number, (0,), RoundMetrics((), None), ({"validation": {"f1": value}},), {})
        for number, value in enumerate(values, start=1)
    ]
    kept = [number for number in range(1, len(values) + 1) if is_chosen(results[:number], "validation/f1")]
    assert kept[-1] == chosen_round([{"validation": {"f1": value}} for value in values], "validation/f1")
    assert not is_chosen(results, "")


# ---- central test and validation sets ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tags", "official labels"])
def test_trials_are_scored_on_the_validation_set_and_see_no_test(name):
    cell = replace(CELL, **CASES[name])
    table, tuning = (clients_of(each) for each in (cell, replace(cell, holdout="validation")))
    for client, trial in zip(table, tuning, strict=True):
        assert client.train.indices.tolist() == trial.train.indices.tolist()
        assert list(trial.evaluation) == ["test"]
        part, expected = trial.evaluation["test"], client.evaluation["validation"]
        assert part.indices.tolist() == expected.indices.tolist()
        assert part.references.tolist() == expected.references.tolist()


def test_sampling_errors_of_common_and_of_separate_test_sets(tmp_path, finished):
    folder, record = finished("central set, personal models")
    assert record.examples("test") == 120  # one test set, however many clients are scored on it
    one, other, _ = (part.last for (_, name), part in read_predictions(folder, record).items() if name == "test")
    assert not np.array_equal(one, other)
    cell = replace(CELL, **CENTRAL, validation_share=0.0, training=replace(CELL.training, rounds=1))
    common = run(cell, tmp_path)
    share = common.score("test/accuracy")
    assert share is not None
    assert common.sampling_errors["test"]["accuracy"] == pytest.approx(math.sqrt(share * (1 - share) / 120))
    record = run(replace(cell, holdout="validation", partition={"scheme": "dirichlet", "alpha": 1.0}), tmp_path)
    sizes = [client["test"] for client in record.clients]
    shares = [scores["test"]["accuracy"] or 0.0 for scores in record.rounds[-1].client_scores]
    assert len(set(sizes)) > 1
    errors = [math.sqrt(share * (1 - share) / size) for share, size in zip(shares, sizes, strict=True)]
    assert record.sampling_errors["test"]["accuracy"] == pytest.approx(math.hypot(*errors) / len(errors))
    assert record.examples("test") == sum(sizes)


OUTPUTS = arrays(
    np.float32,
    array_shapes(min_dims=2, max_dims=3, min_side=2, max_side=4),
    elements=st.floats(width=32) | st.sampled_from([1.0, 1.0001, 1.0002, 65504.0, 1e30, -1e30]),
)


@given(OUTPUTS)
@hypothesis_settings(max_examples=300)
def test_half_precision_keeps_the_argmax_and_finite_values(outputs):
    halves = halved(outputs)
    assert halves.dtype == np.float16
    assert halves.shape == outputs.shape
    assert (np.isfinite(halves) == np.isfinite(outputs)).all()
    if np.isfinite(outputs).all():
        assert np.array_equal(halves.argmax(axis=-1), outputs.argmax(axis=-1))
        near = np.abs(outputs) < 60000
        assert np.allclose(halves[near], outputs[near], rtol=2e-3, atol=1e-6)


def test_a_file_with_other_content_than_the_records_is_refused(finished, tmp_path):
    folder, record = finished("shared model")
    content = predictions_file(folder, record).read_bytes()
    whole = lzma.decompress(content)
    refused = {
        "missing": None,
        "cut short": content[:-1],
        "not compressed": whole,
        "changed before it was compressed": lzma.compress(whole[:-1] + bytes([whole[-1] ^ 1])),
    }
    for name, damaged in refused.items():
        path = predictions_file(tmp_path / name, record)
        path.parent.mkdir()
        if damaged is not None:
            path.write_bytes(damaged)
        with pytest.raises(
            UserError, match=rf"{path}: expected the predictions of {record.file_name}, found a damaged or missing file"
        ):
            read_predictions(path.parent, record)
