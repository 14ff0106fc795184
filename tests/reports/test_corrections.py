"""Rows without training: answers of two clients and two labels, corrected by hand; and those of committed records."""

import dataclasses
import math

import numpy as np
import pytest

from benchmarks.corrections import PRIOR
from benchmarks.registry import benchmark
from benchmarks.results import RunResult
from reports import ReportError
from reports.evidence.corrections import Answers, corrected, ece, log_ratios, nll, strength, thresholds
from reports.evidence.records import request_for
from reports.evidence.scores import scores_of
from tests.contract.project import committed_records

# Client 0 has trained on 7 zeros and 1 one, client 1 the other way round: with add-one, 8/10 and 2/10 against a half.
RATIO = np.log([8 / 5, 2 / 5])
RATIOS = np.array([RATIO, RATIO[::-1]])


def answers(margins: list[float], gold: list[int]) -> Answers:
    """Two logits, whose difference is each example's margin of label 1."""
    return Answers(np.array([[0.0, margin] for margin in margins]), np.array(gold))


def test_log_ratios_of_two_clients():
    np.testing.assert_allclose(log_ratios(np.array([[7, 1], [1, 7]])), RATIOS)


def test_the_prior_moves_a_clients_margin_by_the_log_of_its_odds():
    """The odds of label 1 at client 0 are a quarter of those over all clients: margins fall by log 4 = 1.39."""
    moved = answers([1.3, 1.5], [0, 1]).shifted(RATIOS[0])
    np.testing.assert_allclose(moved.logits[:, 1] - moved.logits[:, 0], [1.3 - math.log(4), 1.5 - math.log(4)])
    assert moved.accuracy == 1.0


def test_one_strength_for_all_clients_is_the_smallest_of_the_best():
    """Client 0's zero is answered right from a margin below 0 on: 2.0 / log 4 = 1.44, so from strength 1.5 on.

    Client 1's zero is answered wrong from strength 2.9 on: its margin −4.0 rises by log 4 for each unit.
    """
    held = [answers([2.0], [0]), answers([-4.0], [0])]
    np.testing.assert_allclose(strength(RATIOS, held), 1.5 * RATIOS)
    assert strength(RATIOS, []) is None
    np.testing.assert_allclose(strength(RATIOS, [answers([-1.0], [0]), answers([1.0], [1])]), 0 * RATIOS)


def test_one_threshold_a_client_is_the_smallest_move_of_the_best():
    """Client 0 tells 1.0 from 3.0: every threshold between them is right, and the middle one, 2, is tried."""
    held = [answers([1.0, 3.0], [0, 1]), answers([-1.0, 1.0], [0, 1])]
    moves = thresholds(RATIOS, held)
    assert moves is not None
    np.testing.assert_allclose(moves, [[0, -2], [0, 0]])
    assert [each.shifted(by).accuracy for each, by in zip(held, moves, strict=True)] == [1, 1]
    np.testing.assert_allclose(thresholds(RATIOS, [answers([-3.0, -2.0], [1, 1])] * 2), [[0, 4], [0, 4]])  # all ones
    assert thresholds(np.zeros((2, 3)), held) is None  # of three labels there is none


def test_calibration_by_hand():
    """Two examples of 90 % for label 1, of which one is right: NLL is the mean of −log 0.9 and −log 0.1, ECE 40 %."""
    both = answers([math.log(9)] * 2, [1, 0])
    assert nll(both) == pytest.approx(-(math.log(0.9) + math.log(0.1)) / 2)
    assert ece(both) == pytest.approx(0.4)
    apart = answers([math.log(9), -math.log(3)], [1, 1])  # bins of 0.9 and 0.75: |0.9 − 1| / 2 + |0.75 − 0| / 2
    assert ece(apart) == pytest.approx((0.1 + 0.75) / 2)


# ---- committed records ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def every_fedavg() -> tuple[RunResult, ...]:
    table = benchmark("fedsplitbert-table3")
    column = next(column for column in table.columns if column.task == "mrpc")
    request = request_for(table, table.scale("lite"), committed_records().values())
    return request.records_of(table.row("fedavg"), column)


@pytest.fixture(scope="module")
def fedavg(every_fedavg: tuple[RunResult, ...]) -> RunResult:
    return every_fedavg[0]


def test_uncorrected_answers_have_the_scores_that_the_run_recorded(fedavg):
    answered = corrected(fedavg, "as-answered")
    assert answered is not None
    for name in ("test/accuracy", "test/f1", "pooled/accuracy"):
        assert answered.by_round(name)[-1] == pytest.approx(fedavg.by_round(name)[-1])
    assert answered.by_round("test/accuracy")[0] is None  # no answers of the first round were kept
    assert scores_of([fedavg], "test/nll").at("last")[0] > 0  # a score that the run did not record
    without = dataclasses.replace(fedavg, predictions={})
    assert scores_of([without], "test/nll").at("last") == (None,)
    with pytest.raises(ReportError, match="expected the score 'test/pearson' of every round, found none"):
        scores_of([without], "test/pearson")


def test_corrected_answers_are_scored_at_the_round_that_the_run_chose(every_fedavg):
    early = next(record for record in every_fedavg if record.chosen_round < len(record.rounds))
    answered, prior = corrected(early, "as-answered"), corrected(early, PRIOR)
    assert answered is not None
    assert prior is not None
    assert answered.chosen_round == prior.chosen_round == early.chosen_round
    accuracies = [scores_of([record], "test/accuracy").at("chosen") for record in (answered, early)]
    assert accuracies[0] == pytest.approx(accuracies[1])
    assert prior.at_last_round().chosen_round == len(early.rounds)
    assert "chosen_before" not in prior.to_json()


def test_without_the_file_of_answers_or_the_counts_of_labels_there_is_no_such_row(fedavg, tmp_path):
    assert corrected(dataclasses.replace(fedavg, folder=tmp_path), PRIOR) is None
    unknown = {**fedavg.partition, "obtained_counts": None}
    assert corrected(dataclasses.replace(fedavg, partition=unknown), PRIOR) is None
    fewer = tuple({**client, "train": client["train"] - 1} for client in fedavg.clients)
    assert corrected(dataclasses.replace(fedavg, clients=fewer), PRIOR) is None  # labels of one example are unknown
