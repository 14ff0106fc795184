"""The local `evaluate` modules against scikit-learn, SciPy and numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.running import scoring
from fedsim.data import IGNORED

OF_TOKENS = ("entity_f1", "entity_f1_concatenated", "text_recovery", "token_recovery")
NAMES = ("accuracy", "f1", "f1_pn", "matthews_correlation", "pearson", "perplexity", *OF_TOKENS)
REFERENCES = {
    "accuracy": sklearn.metrics.accuracy_score,
    "f1": lambda true, predicted: sklearn.metrics.f1_score(true, predicted, labels=[0, 1], zero_division=0),
    "matthews_correlation": sklearn.metrics.matthews_corrcoef,
}
BITS = st.integers(0, 1)
SENTIMENTS = st.integers(0, 2)  # negative, neutral, positive


def compute(name, predictions, references):
    return scoring._modules()[name].compute(predictions=predictions, references=references)[name]


@pytest.mark.filterwarnings("ignore:A single label was found")
@pytest.mark.parametrize("name", REFERENCES)
@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(BITS, BITS), min_size=1, max_size=30))
def test_classification_agrees_with_scikit_learn(name, pairs):
    predictions, references = (np.array(side) for side in zip(*pairs, strict=True))
    expected = REFERENCES[name](references, predictions)
    assert compute(name, predictions, references) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(pairs=st.lists(st.tuples(SENTIMENTS, SENTIMENTS), min_size=1, max_size=30))
def test_f1_pn_agrees_with_scikit_learn(pairs):
    predictions, references = (np.array(side) for side in zip(*pairs, strict=True))
    expected = sklearn.metrics.f1_score(references, predictions, labels=[0, 2], average="macro", zero_division=0)
    assert compute("f1_pn", predictions, references) == pytest.approx(expected, abs=1e-12)


def test_f1_pn_by_hand():
    # Negative: 2 right, 1 taken for neutral. Positive: 1 right, 1 neutral taken for it. F1: 4 / 5 and 2 / 3.
    assert compute("f1_pn", [0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 2]) == pytest.approx((4 / 5 + 2 / 3) / 2)
    # A neutral tweet more or less that is right changes nothing.
    assert compute("f1_pn", [0, 0, 1, 1, 1, 2, 2], [0, 0, 0, 1, 1, 1, 2]) == pytest.approx((4 / 5 + 2 / 3) / 2)


@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 25)), min_size=2, max_size=30))
def test_pearson_agrees_with_scipy(pairs):
    predictions, references = (np.array(side) / 5 for side in zip(*pairs, strict=True))
    assume(np.ptp(predictions) > 0 and np.ptp(references) > 0)
    expected = scipy.stats.pearsonr(predictions, references).statistic
    assert compute("pearson", predictions, references) == pytest.approx(expected, abs=1e-9)


# Three texts of 3, 2 and no tokens that are asked for; NO is padding or a special token.
NO = IGNORED
TEXTS = [[NO, 7, 8, 9, NO], [NO, 7, 8, NO, NO], [NO, NO, NO, NO, NO]]


@pytest.mark.parametrize(
    ("recovered", "tokens", "texts"),
    [
        ([[1, 7, 8, 9, 2], [1, 7, 8, 2, 0], [1, 2, 0, 0, 0]], 5 / 5, 2 / 2),  # what is not asked for is not judged
        ([[1, 7, 8, 9, 2], [1, 8, 7, 2, 0], [1, 2, 0, 0, 0]], 3 / 5, 1 / 2),  # at the wrong places
        ([[1, 7, 8, 8, 2], [1, 7, 7, 2, 0], [1, 2, 0, 0, 0]], 3 / 5, 0 / 2),  # one wrong token spoils a text
        ([[NO] * 5] * 3, 0, 0),  # not answered
    ],
)
def test_recovery_by_hand(recovered, tokens, texts):
    assert compute("token_recovery", recovered, TEXTS) == pytest.approx(tokens)
    assert compute("text_recovery", recovered, TEXTS) == pytest.approx(texts)


def test_pearson_by_hand():
    # Deviations (-1, 0, 1) and (-4, -1, 5) / 3: products sum to 3, squares to 2 and 42 / 9.
    assert compute("pearson", [1.0, 2.0, 3.0], [0.0, 1.0, 3.0]) == pytest.approx(3 / math.sqrt(2 * 42 / 9))


def test_perplexity_by_hand():
    # Two texts, 3 tokens of probability 1/4 each and 1 of 1/2: exp of (3 ln 4 + ln 2) / 4.
    found = compute("perplexity", [3 * math.log(1 / 4), math.log(1 / 2)], [3, 1])
    assert found == pytest.approx(2 ** (7 / 4))
    assert compute("perplexity", [0.0, 0.0], [2, 1]) == 1.0


@pytest.mark.parametrize("value", [0.1, 3.0])
def test_pearson_of_a_constant_is_undefined(value):
    # The mean of ten times 0.1 is not 0.1, so a spread of rounding errors is left where none should be.
    assert math.isnan(compute("pearson", [value] * 10, np.arange(10.0)))
    assert math.isnan(compute("pearson", np.arange(10.0), [value] * 10))


@pytest.mark.parametrize("name", NAMES)
def test_modules_describe_themselves(name):
    info = scoring._modules()[name].info
    assert info.module_name == name
    assert info.description
    assert info.inputs_description
    assert info.reference_urls
    assert set(info.features) == {"predictions", "references"}


@pytest.mark.parametrize("name", NAMES)
def test_a_module_asked_without_arrow_says_the_same_to_the_bit(name):
    draw = np.random.default_rng(0)
    for n in (1, 2, 7, 300):
        if name in OF_TOKENS:
            predictions, references = draw.integers(0, 3, (2, n, 5))
        elif name == "pearson":
            predictions, references = draw.normal(size=n).astype(np.float32).astype(float), draw.random(n, np.float32)
        elif name == "perplexity":
            predictions, references = -10 * draw.random(n), draw.integers(1, 9, n)
        else:
            predictions, references = draw.integers(0, 3, (2, n))
        found, expected = scoring._value(name, predictions, references), compute(name, predictions, references)
        assert found == expected or (math.isnan(found) and math.isnan(expected))
