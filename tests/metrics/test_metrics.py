"""Metrics against scikit-learn, SciPy, seqeval and numbers by hand; scores and their standard errors."""

import math
import warnings

import numpy as np
import pytest
import scipy.stats
import seqeval.metrics
import sklearn.metrics
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.errors import UserError
from benchmarks.measures import metric
from benchmarks.metrics import DEFINITIONS
from benchmarks.running import scoring
from benchmarks.tasks import task
from fedsim.data import IGNORED as NO
from fedsim.data import Examples, Subset
from fedsim.errors import DivergedError
from fedsim.objectives import build_objective

OF_TOKENS = ("entity_f1", "entity_f1_concatenated", "text_recovery", "token_recovery")
F1 = {"average": "macro", "zero_division": 0}
REFERENCES = {
    "accuracy": (2, sklearn.metrics.accuracy_score),
    "f1": (2, lambda *sides: sklearn.metrics.f1_score(*sides, labels=[0, 1], zero_division=0)),
    "matthews_correlation": (2, sklearn.metrics.matthews_corrcoef),
    "macro_f1": (3, lambda *sides: sklearn.metrics.f1_score(*sides, **F1)),
    "f1_pn": (3, lambda *sides: sklearn.metrics.f1_score(*sides, labels=[0, 2], **F1)),
}
TAGS = ("O", "B-x", "I-x", "B-y", "I-y")
O, Bx, Ix, By, Iy = range(len(TAGS))  # noqa: E741
SENTENCES = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8), min_size=1, max_size=6
)


def compute(name, predictions, references):
    return scoring._modules()[name].compute(predictions=predictions, references=references)[name]


@pytest.mark.filterwarnings("ignore:A single label was found")
@pytest.mark.parametrize("name", REFERENCES)
@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_classification_agrees_with_scikit_learn(name, pairs):
    labels, reference = REFERENCES[name]
    predictions, references = (np.array(side) % labels for side in zip(*pairs, strict=True))
    assert compute(name, predictions, references) == pytest.approx(reference(references, predictions), abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 25)), min_size=2, max_size=30))
def test_pearson_agrees_with_scipy(pairs):
    predictions, references = (np.array(side) / 5 for side in zip(*pairs, strict=True))
    assume(np.ptp(predictions) > 0 and np.ptp(references) > 0)
    expected = scipy.stats.pearsonr(predictions, references).statistic
    assert compute("pearson", predictions, references) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("value", [0.1, 3.0])
def test_pearson_of_a_constant_is_undefined(value):
    # The mean of ten times 0.1 is not 0.1, so a spread of rounding errors is left where none should be.
    assert math.isnan(compute("pearson", [value] * 10, np.arange(10.0)))
    assert math.isnan(compute("pearson", np.arange(10.0), [value] * 10))


# Three texts of 3, 2 and no tokens that count; NO is padding or a special token.
TEXTS = [[NO, 7, 8, 9, NO], [NO, 7, 8, NO, NO], [NO, NO, NO, NO, NO]]


@pytest.mark.parametrize(
    ("recovered", "tokens", "texts"),
    [
        ([[1, 7, 8, 9, 2], [1, 7, 8, 2, 0], [1, 2, 0, 0, 0]], 5 / 5, 2 / 2),  # other positions do not count
        ([[1, 7, 8, 9, 2], [1, 8, 7, 2, 0], [1, 2, 0, 0, 0]], 3 / 5, 1 / 2),  # at the wrong places
        ([[1, 7, 8, 8, 2], [1, 7, 7, 2, 0], [1, 2, 0, 0, 0]], 3 / 5, 0 / 2),  # one wrong token spoils a text
    ],
)
def test_recovery_by_hand(recovered, tokens, texts):
    assert compute("token_recovery", recovered, TEXTS) == pytest.approx(tokens)
    assert compute("text_recovery", recovered, TEXTS) == pytest.approx(texts)


def test_other_metrics_by_hand():
    # Deviations (-1, 0, 1) and (-4, -1, 5) / 3: products sum to 3, squares to 2 and 42 / 9.
    assert compute("pearson", [1.0, 2.0, 3.0], [0.0, 1.0, 3.0]) == pytest.approx(3 / math.sqrt(2 * 42 / 9))
    # Two texts, 3 tokens of probability 1/4 each and 1 of 1/2: exp of (3 ln 4 + ln 2) / 4.
    assert compute("perplexity", [3 * math.log(1 / 4), math.log(1 / 2)], [3, 1]) == pytest.approx(2 ** (7 / 4))
    # Negative: 2 right, 1 taken for neutral. Positive: 1 right, 1 neutral taken for it. F1: 4 / 5 and 2 / 3.
    assert compute("f1_pn", [0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 2]) == pytest.approx((4 / 5 + 2 / 3) / 2)


def entities(name, predicted, true):
    predictions, references = (
        np.array([[NO, *tags, *[NO] * (9 - len(tags))] for tags in side]) for side in (predicted, true)
    )
    predictions[references == NO] = Bx  # these positions do not count
    return scoring._value(name, predictions, references)


def sides(pairs):
    return tuple([[pair[side] for pair in tags] for tags in pairs] for side in (0, 1))


@given(SENTENCES)
@settings(max_examples=100, deadline=None)
def test_entity_f1_is_seqevals(pairs):
    predicted, true = sides(pairs)
    names = [[[TAGS[tag] for tag in tags] for tags in side] for side in (true, predicted)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seqeval's, of undefined scores: 0 here as there
        expected = seqeval.metrics.f1_score(*names)
    assert entities("entity_f1", predicted, true) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("predicted", "true", "f1", "authors_f1"),
    [
        ([[Bx, Ix, O]], [[Bx, Ix, O]], 1, 1),
        ([[Bx, O, O]], [[Bx, Ix, O]], 0, 0),  # too short
        ([[Ix, Ix, O]], [[Bx, Ix, O]], 1, 0),  # an I- begins an entity, as in conlleval; or is a span of one word
        ([[Bx, Iy, O]], [[Bx, By, O]], 1, 0),
        ([[Bx, Iy, O]], [[By, Iy, O]], 0, 1),  # two entities; or one of the kind of its last word
        ([[Bx, O, By]], [[Bx, O, O]], 2 / 3, 1),  # a span that is open at the very end is dropped
        ([[O, O, O]], [[O, O, O]], 0, 0),
        ([[O, Bx], [Ix, O]], [[O, Bx], [O, O]], 2 / 3, 0),  # two entities; or one span across the end of a sentence
    ],
)
def test_f1_of_entities_by_hand(predicted, true, f1, authors_f1):
    assert entities("entity_f1", predicted, true) == pytest.approx(f1)
    assert entities("entity_f1_concatenated", predicted, true) == pytest.approx(authors_f1)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_metric_has_the_same_bits_without_arrow(name):
    draw = np.random.default_rng(0)
    for n in (1, 7, 300):
        if name in OF_TOKENS:
            predictions, references = draw.integers(0, 3, (2, n, 5))
        elif name == "pearson":
            predictions, references = draw.normal(size=n).astype(np.float32).astype(float), draw.random(n, np.float32)
        elif name == "perplexity":
            predictions, references = -10 * draw.random(n), draw.integers(1, 9, n)
        else:
            predictions, references = draw.integers(0, 3, (2, n))
        value, expected = scoring._value(name, predictions, references), compute(name, predictions, references)
        assert value == expected or (math.isnan(value) and math.isnan(expected))


LOGITS = np.array([[0, 2], [3, 1], [-1, -2], [-5, -4]], dtype=np.float32)  # predicts 1, 0, 0, 1


def rng(seed=0):
    return np.random.default_rng(seed)


def subset(labels, lengths=None, targets=None):
    """Examples with only labels [n], or token targets [total]."""
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


def test_the_correlation_with_a_constant_and_an_empty_test_set_are_not_scored():
    outputs, labels = np.full((4, 1), 2.5, np.float32), np.arange(4.0)
    assert scores("stsb", outputs, subset(labels)) == {"pearson": None}
    assert sampling_error("stsb", "pearson", outputs, subset(labels), rng()) is None
    assert scores("mnli", np.zeros((0, 3), np.float32), subset(np.array([], int))) == {"accuracy": None}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outputs_of_a_diverged_model_are_not_scored(bad):
    outputs = LOGITS.copy()
    outputs[2, 1] = bad
    with pytest.raises(DivergedError, match="expected finite predictions"):
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


def test_scores_of_some_clients_by_hand():
    scores = [0.5, 0.9, 0.7]
    assert metric("test/accuracy@worst").combined(scores) == 0.5
    assert metric("accuracy@client1").combined(scores) == 0.9
    assert metric("accuracy@client3").combined(scores) is None
    assert metric("accuracy@spread").combined(scores) == pytest.approx((0.08 / 3) ** 0.5)
    assert metric("accuracy@spread").combined([0.5]) is None
    assert not metric("accuracy@spread").higher_is_better
    assert metric("perplexity@worst").combined([30.0, 50.0]) == 50.0
    assert metric("accuracy@tenth").combined([0.5] * 9) is None
    assert metric("accuracy@tenth").combined([i / 20 for i in range(20)]) == pytest.approx(0.025)
    assert metric("accuracy@worst").combined([0.5, None]) is None
    with pytest.raises(UserError, match="worst, tenth, spread"):
        metric("accuracy@best")


def test_a_spread_of_perplexities_starts_at_zero_and_a_perplexity_at_one():
    assert metric("test/perplexity").limits == (1, math.inf)
    assert metric("test/perplexity@spread").limits == (0, math.inf)
