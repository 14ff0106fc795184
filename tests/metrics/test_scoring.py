"""Scores and their standard errors."""

import math

import numpy as np
import pytest

from benchmarks.running import scoring
from benchmarks.tasks import task
from fedsim.data import Examples, Subset
from fedsim.errors import DivergedError
from fedsim.objectives import build_objective

LOGITS = np.array([[0, 2], [3, 1], [-1, -2], [-5, -4]], dtype=np.float32)  # predicts 1, 0, 0, 1


def rng(seed=0):
    return np.random.default_rng(seed)


def subset(labels, lengths=None, targets=None):
    """Examples of which nothing is known but what is asked: labels [n], or tokens' targets [total]."""
    offsets = np.concatenate([[0], np.cumsum(np.ones_like(labels, int) if lengths is None else lengths)])
    tokens = np.zeros(offsets[-1], np.int32)
    return Subset(Examples(tokens, tokens, offsets, labels, 0, targets), np.arange(len(labels)))


ASKED = subset(np.array([1, 1, 0, 0]))


def objective_of(task_id):
    return build_objective(task(task_id).objective, task(task_id).classes)


def scores(task_id, answers, asked):
    return scoring.scores(task(task_id).metrics, objective_of(task_id), answers, asked)


def sampling_error(task_id, metric, answers, asked, generator):
    return scoring.sampling_error(metric, objective_of(task_id), answers, asked, generator)


def test_classes_are_the_largest_logits():
    # One hit of label 1, one false positive, one false negative.
    assert scores("mrpc", LOGITS, ASKED) == {"f1": 0.5, "accuracy": 0.5}
    assert scores("cola", LOGITS, ASKED) == {"matthews_correlation": 0.0}


def test_the_correlation_with_a_constant_and_an_empty_test_set_are_not_scored():
    outputs, labels = np.full((4, 1), 2.5, np.float32), np.arange(4.0)
    assert scores("stsb", outputs, subset(labels)) == {"pearson": None}
    assert sampling_error("stsb", "pearson", outputs, subset(labels), rng()) is None
    assert scores("mnli", np.zeros((0, 3), np.float32), subset(np.array([], int))) == {"accuracy": None}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outputs_of_a_diverged_model_are_not_scored(bad):
    outputs = LOGITS.copy()
    outputs[2, 1] = bad
    with pytest.raises(DivergedError, match="expected finite answers"):
        scores("mrpc", outputs, ASKED)
    assert sampling_error("mrpc", "accuracy", outputs, ASKED, rng()) is None


def test_a_perplexity_is_a_score_while_a_float_holds_it():
    # The paper's FedAvg on GPT-2 ended at 536 572: 13.193 nats a token.
    objective, asked = build_objective("causal_lm", 1), subset(np.zeros(2))

    def perplexity(nats):
        return scoring.scores(["perplexity"], objective, np.array([[-nats, 1.0]] * 2), asked)["perplexity"]

    assert perplexity(13.193) == pytest.approx(536_600, rel=1e-3)
    assert perplexity(709.0) == pytest.approx(math.exp(709.0))
    with pytest.raises(DivergedError, match="expected a finite perplexity"):
        perplexity(710.0)


def test_error_of_accuracy_is_binomial():
    labels = np.zeros(100, int)
    outputs = np.zeros((100, 2), np.float32)
    outputs[:20, 1] = 1  # 80 % right: sqrt(0.8 * 0.2 / 100) = 0.04
    assert sampling_error("wnli", "accuracy", outputs, subset(labels), rng()) == pytest.approx(0.04)


def test_bootstrap_error_of_entity_f1_is_near_the_theory():
    # One entity a sentence, found in a share p of them and never wrongly: f1 = 2p / (1 + p), whose slope
    # 2 / (1 + p)² times sqrt(p (1 - p) / n) is its standard error.
    n, p = 1500, 0.5
    asked = subset(np.zeros(n), np.full(n, 2), np.tile([1, 0], n))
    answers = np.zeros(objective_of("scierc").shape(asked), np.float32)
    answers[::2, 0, 1] = 1
    assert scores("scierc", answers, asked)["entity_f1"] == pytest.approx(2 * p / (1 + p))
    errors = [sampling_error("scierc", "entity_f1", answers, asked, rng(seed)) for seed in (1, 1, 2)]
    assert errors[0] == pytest.approx(2 / (1 + p) ** 2 * math.sqrt(p * (1 - p) / n), rel=0.3)
    assert errors[0] == errors[1] != errors[2]  # it depends on the generator alone


def test_errors_of_a_mean_by_hand():
    assert scoring.combine_errors([3.0, 4.0]) == 2.5  # sqrt(9 + 16) / 2
    assert scoring.combine_errors([3.0, None]) is None
    assert scoring.combine_errors([]) is None
