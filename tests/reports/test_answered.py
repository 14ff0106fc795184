"""Runs whose predictions lack a label: two clients with two labels, six rounds, of which the last three are kept."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import predictions
from benchmarks.predictions import Predictions, predictions_file
from benchmarks.results import RunResult
from reports.evidence.answered import lacks_a_label
from reports.evidence.records import request_for
from reports.views.comparison import Comparison


def logits(*labels: int) -> np.ndarray:
    return np.eye(2, dtype=np.float16)[list(labels)]


@pytest.fixture
def one_sided(record_of, tmp_path, monkeypatch) -> RunResult:
    """The clients answer 0 and 1 in round 4, all 0 in round 5, and each one label, but both together, in round 6."""
    by_client = ({4: (0, 1), 5: (0, 0), 6: (0, 0)}, {4: (1, 1), 5: (0, 0), 6: (1, 1)})
    gold = np.array([0, 1])
    parts = {}
    for client, rounds in enumerate(by_client):
        kept = {number: logits(*labels) for number, labels in rounds.items()}
        parts[client, "test"] = Predictions(gold, gold, kept[6], kept[6], kept)
    monkeypatch.setattr(predictions, "read_predictions", lambda folder, record: parts)
    record = record_of("fedavg", "qqp", {"test/accuracy": 0.5})
    rounds = tuple(replace(record.rounds[0], round=number) for number in range(1, 7))
    record = replace(record, rounds=rounds, predictions={"sha256": ""}, folder=tmp_path)
    predictions_file(tmp_path, record).touch()
    return record


def test_a_label_is_lacking_if_no_client_gives_it_in_a_round_that_counts(one_sided):
    assert lacks_a_label(one_sided, "test", "late")  # in round 5
    assert not lacks_a_label(one_sided, "test", "last")
    assert lacks_a_label(replace(one_sided, chosen_before=5), "pooled", "chosen")
    assert not lacks_a_label(one_sided, "independent", "late")  # no such predictions


def test_nothing_is_said_without_answers_or_training(one_sided):
    untrained = tuple(replace(entry, train_loss=None) for entry in one_sided.rounds)
    for changed in ({"folder": None}, {"predictions": {}}, {"rounds": untrained}):
        assert not lacks_a_label(replace(one_sided, **changed), "test", "late")


def test_a_table_names_such_cells(table3, one_sided):
    request = request_for(table3, table3.scale("lite"), [one_sided], score_at="late")
    assert any(note.endswith("predict a single class): FedAvg, QQP (1 of 1).") for note in Comparison(request).notes())
    at_last = replace(request, score_at="last")
    assert not any("never predict one of the labels" in note for note in Comparison(at_last).notes())
