"""The local `evaluate` modules against scikit-learn, SciPy and numbers worked out by hand."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks import scoring
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


@pytest.mark.parametrize("name", ["token_recovery", "text_recovery"])
def test_recovery_of_nothing_is_undefined(name):
    assert math.isnan(compute(name, TEXTS[2:], TEXTS[2:]))


# 3 true positives, 1 false positive, 2 false negatives, 4 true negatives.
PREDICTED = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
TRUE = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("accuracy", 7 / 10),
        ("f1", 6 / (6 + 1 + 2)),  # of label 1; label 0 has 8 / 11
        ("matthews_correlation", (3 * 4 - 1 * 2) / math.sqrt(4 * 5 * 5 * 6)),
    ],
)
def test_a_confusion_matrix_by_hand(name, expected):
    assert compute(name, PREDICTED, TRUE) == pytest.approx(expected, abs=1e-12)


def test_pearson_by_hand():
    # Deviations (-1, 0, 1) and (-4, -1, 5) / 3: products sum to 3, squares to 2 and 42 / 9.
    assert compute("pearson", [1.0, 2.0, 3.0], [0.0, 1.0, 3.0]) == pytest.approx(3 / math.sqrt(2 * 42 / 9))


def test_perplexity_by_hand():
    # Two texts, 3 tokens of probability 1/4 each and 1 of 1/2: exp of (3 ln 4 + ln 2) / 4.
    found = compute("perplexity", [3 * math.log(1 / 4), math.log(1 / 2)], [3, 1])
    assert found == pytest.approx(2 ** (7 / 4))
    assert compute("perplexity", [0.0, 0.0], [2, 1]) == 1.0


def test_perplexity_without_tokens_is_undefined():
    assert math.isnan(compute("perplexity", [0.0], [0]))


def test_perplexity_beyond_all_numbers_is_infinite():
    assert compute("perplexity", [-1e6], [1]) == math.inf
    assert compute("perplexity", [-13.193], [1]) == pytest.approx(536_600, rel=1e-3)  # a score, however large


@pytest.mark.parametrize("value", [0.1, 3.0])
def test_pearson_of_a_constant_is_undefined(value):
    # The mean of ten times 0.1 is not 0.1, so a spread of rounding errors is left where none should be.
    assert math.isnan(compute("pearson", [value] * 10, np.arange(10.0)))
    assert math.isnan(compute("pearson", np.arange(10.0), [value] * 10))


@pytest.mark.parametrize("name", ["f1", "matthews_correlation"])
@pytest.mark.parametrize("references", [[0, 0, 0], [0, 1, 1]])
def test_a_classifier_that_never_says_1_gets_0(name, references):
    assert compute(name, [0, 0, 0], references) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_modules_describe_themselves(name):
    info = scoring._modules()[name].info
    assert info.module_name == name
    assert info.description
    assert info.inputs_description
    assert info.reference_urls
    assert set(info.features) == {"predictions", "references"}


SCORE_ALL = """
from benchmarks import scoring
from benchmarks.tasks import tasks
from fedsim.data import Examples, Subset
from fedsim.objectives import Vocabulary, build_objective
import numpy as np
tokens, labels = np.zeros(16, np.int32), np.array([0, 1, 0, 1])
for task in tasks():
    objective = build_objective(task.objective, task.classes, Vocabulary(2, np.arange(2), 0))
    targets = np.repeat(labels, 4) if objective.of_tokens else None
    subset = Subset(Examples(tokens, tokens, np.arange(0, 17, 4), labels, 0, targets), np.arange(4))
    ids = objective.of_tokens and len(objective.shape(subset)) == 2
    answers = np.ones(objective.shape(subset), dtype=int if ids else np.float32)
    print(scoring.scores(task.metrics, objective, answers, subset))
"""


def test_no_home_is_needed_and_nothing_is_left_behind(tmp_path):
    """So that processes share no folder, and one that is killed spoils nothing for the next."""
    blocked = tmp_path / "a file, so that no folder can be made in it"
    blocked.touch()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "XDG_"))}
    environment = {**kept, "HOME": str(blocked / "home"), "TMPDIR": str(temporary), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCORE_ALL],
        cwd=Path(scoring.__file__).parent.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("accuracy") == 17
    assert done.stdout.count("'entity_f1'") == 2
    assert done.stdout.count("token_recovery") == 2
    assert list(temporary.iterdir()) == []


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
