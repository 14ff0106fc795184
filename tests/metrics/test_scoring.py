"""Scores and their standard errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import scoring
from benchmarks.tasks import task

LABELS = np.array([1, 1, 0, 0])
LOGITS = np.array([[0, 2], [3, 1], [-1, -2], [-5, -4]], dtype=np.float32)  # predicts 1, 0, 0, 1


def rng(seed=0):
    return np.random.default_rng(seed)


def test_classes_are_the_largest_logits():
    # One hit of label 1, one false positive, one false negative.
    assert scoring.scores(task("mrpc"), LOGITS, LABELS) == {"f1": 0.5, "accuracy": 0.5}
    assert scoring.scores(task("cola"), LOGITS, LABELS) == {"matthews_correlation": 0.0}


def test_three_classes():
    outputs = np.eye(3, dtype=np.float32)
    assert scoring.scores(task("mnli"), outputs, np.array([0, 1, 1])) == {"accuracy": pytest.approx(2 / 3)}


def test_regression_takes_the_value_as_it_is():
    # Beyond 5 on purpose: clipped to the range of scores, the correlation would not be perfect.
    outputs = np.array([[-10], [0], [20], [30]], dtype=np.float32)
    labels = np.array([0.0, 1.0, 3.0, 4.0])
    assert scoring.scores(task("stsb"), outputs, labels) == {"pearson": pytest.approx(1.0)}


def test_a_constant_prediction_has_no_correlation():
    outputs, labels = np.full((4, 1), 2.5, np.float32), np.arange(4.0)
    assert scoring.scores(task("stsb"), outputs, labels) == {"pearson": None}
    assert scoring.sampling_error(task("stsb"), "pearson", outputs, labels, rng()) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outputs_of_a_diverged_model_are_not_scored(bad):
    outputs = LOGITS.copy()
    outputs[2, 1] = bad
    assert scoring.scores(task("mrpc"), outputs, LABELS) == {"f1": None, "accuracy": None}
    assert scoring.sampling_error(task("mrpc"), "accuracy", outputs, LABELS, rng()) is None


def test_an_empty_test_set_is_not_scored():
    assert scoring.scores(task("mnli"), np.zeros((0, 3), np.float32), np.array([], int)) == {"accuracy": None}


@pytest.mark.parametrize("outputs", [LOGITS[:, :1], LOGITS[:3], LOGITS[:, 0]])
def test_outputs_of_another_shape_are_refused(outputs):
    with pytest.raises(ValueError, match=r"expected outputs of shape \(4, 2\) for mrpc, found"):
        scoring.scores(task("mrpc"), outputs, LABELS)


def test_error_of_accuracy_is_binomial():
    labels = np.zeros(100, int)
    outputs = np.zeros((100, 2), np.float32)
    outputs[:20, 1] = 1  # 80 % right: sqrt(0.8 * 0.2 / 100) = 0.04
    assert scoring.sampling_error(task("wnli"), "accuracy", outputs, labels, rng()) == pytest.approx(0.04)


def test_bootstrap_error_of_pearson_is_near_the_theory():
    # For normal data the standard error of r is (1 - r²) / sqrt(n); 100 resamples know it to about 7 %.
    n, r = 2000, 0.6
    labels = rng(1).normal(size=n)
    outputs = (r * labels + math.sqrt(1 - r**2) * rng(2).normal(size=n))[:, None].astype(np.float32)
    found = scoring.sampling_error(task("stsb"), "pearson", outputs, labels, rng())
    assert found == pytest.approx((1 - r**2) / math.sqrt(n), rel=0.3)


def test_bootstrap_error_of_f1_is_near_the_theory():
    # All are named 1, a share p = 0.5 is 1: f1 = 2p / (1 + p), whose slope 2 / (1 + p)² times sqrt(p (1 - p) / n)
    # is its standard error.
    n, p = 1000, 0.5
    labels = np.arange(n) % 2
    outputs = np.tile(np.array([0, 1], np.float32), (n, 1))
    found = scoring.sampling_error(task("mrpc"), "f1", outputs, labels, rng())
    assert found == pytest.approx(2 / (1 + p) ** 2 * math.sqrt(p * (1 - p) / n), rel=0.3)


def test_bootstrap_error_of_f1_pn_is_near_the_theory():
    # No tweet is called negative or positive but rightly, and of each class a share p is found: each F1 is
    # 2p / (1 + p), with a standard error as above over the n / 3 tweets of its class; the mean of two is closer by
    # the root of 2.
    n, p = 1500, 0.5
    labels = np.arange(n) % 3
    predicted = np.where(np.arange(n) // 3 % 2, labels, 1)
    outputs = np.eye(3, dtype=np.float32)[predicted]
    assert scoring.scores(task("arsarcasm"), outputs, labels)["f1_pn"] == pytest.approx(2 * p / (1 + p))
    found = scoring.sampling_error(task("arsarcasm"), "f1_pn", outputs, labels, rng())
    one = 2 / (1 + p) ** 2 * math.sqrt(p * (1 - p) / (n / 3))
    assert found == pytest.approx(one / math.sqrt(2), rel=0.3)


def recovered_texts(n, p, width=5):
    """Ids of n texts, and answers that recover a share p of the texts whole and of the others nothing."""
    references = rng(1).integers(1, 50, size=(n, width))
    references[:, -1] = -1
    return np.where(np.arange(n)[:, None] < p * n, references, 0), references


def test_tokens_are_scored_as_they_are():
    answers, references = recovered_texts(10, 0.3)
    answers[9, 0] = references[9, 0]
    assert scoring.scores(task("arsarcasm-texts"), answers, references) == {
        "token_recovery": pytest.approx((3 * 4 + 1) / (10 * 4)),
        "text_recovery": pytest.approx(0.3),
    }


def test_bootstrap_error_of_recovery_draws_texts():
    # All or nothing of a text: both shares are those of n draws, not of its tokens, sqrt(p (1 - p) / n).
    n, p = 1000, 0.3
    answers, references = recovered_texts(n, p)
    for metric in ("token_recovery", "text_recovery"):
        found = scoring.sampling_error(task("arsarcasm-texts"), metric, answers, references, rng())
        assert found == pytest.approx(math.sqrt(p * (1 - p) / n), rel=0.3)


def test_answers_of_another_width_are_refused():
    answers, references = recovered_texts(4, 0.5)
    with pytest.raises(ValueError, match=r"expected outputs of shape \(4, 5\) for arsarcasm-texts, found \(4, 4\)"):
        scoring.scores(task("arsarcasm-texts"), answers[:, :-1], references)


def test_bootstrap_depends_on_the_generator_alone():
    errors = [scoring.sampling_error(task("mrpc"), "f1", LOGITS, LABELS, rng(seed)) for seed in (1, 1, 2)]
    assert errors[0] == errors[1] != errors[2]


def test_errors_of_a_mean_by_hand():
    assert scoring.combine_errors([3.0, 4.0]) == 2.5  # sqrt(9 + 16) / 2
    assert scoring.combine_errors([3.0, None]) is None
    assert scoring.combine_errors([]) is None


@given(st.floats(0, 1), st.integers(1, 50))
def test_equal_errors_shrink_with_the_root_of_the_clients(error, clients):
    assert scoring.combine_errors([error] * clients) == pytest.approx(error / math.sqrt(clients))
