"""The two F1s of entities: seqeval's own, and the one of FedBFPT's code."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import seqeval.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.running import scoring
from benchmarks.tasks import task
from fedsim.data import IGNORED, Examples, Subset
from fedsim.objectives import build_objective

NOT_ASKED = IGNORED
TAGS = ("O", "B-x", "I-x", "B-y", "I-y")
No, Bx, Ix, By, Iy = range(len(TAGS))
SENTENCES = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8), min_size=1, max_size=6
)


def table(sentences: list[list[int]], width: int = 9) -> np.ndarray:
    return np.array([[NOT_ASKED, *tags, *[NOT_ASKED] * (width - len(tags))] for tags in sentences])


def value(name: str, predicted: list[list[int]], true: list[list[int]]) -> float:
    predictions, references = table(predicted), table(true)
    predictions[references == NOT_ASKED] = Bx  # what is not asked for is not judged
    return scoring._value(name, predictions, references)


def sides(pairs: list[list[tuple[int, int]]]) -> tuple[list[list[int]], ...]:
    return tuple([[pair[side] for pair in tags] for tags in pairs] for side in (0, 1))


@given(SENTENCES)
@settings(max_examples=100, deadline=None)
def test_entity_f1_is_seqevals(pairs):
    predicted, true = sides(pairs)
    names = [[[TAGS[tag] for tag in tags] for tags in side] for side in (true, predicted)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seqeval's, of what is undefined: 0 here as there
        expected = seqeval.metrics.f1_score(*names)
    assert value("entity_f1", predicted, true) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("predicted", "true", "expected"),
    [
        ([[Bx, Ix, No]], [[Bx, Ix, No]], 1),
        ([[Bx, No, No]], [[Bx, Ix, No]], 0),  # too short
        ([[By, Iy, No]], [[Bx, Ix, No]], 0),  # of another kind
        ([[Ix, Ix, No]], [[Bx, Ix, No]], 1),  # an I- begins an entity, too, as in conlleval
        ([[Bx, Iy, No]], [[Bx, By, No]], 1),
        ([[Bx, No, By]], [[Bx, No, No]], 2 / 3),
        ([[No, No, No]], [[No, No, No]], 0),
        ([[No, Bx], [Ix, No]], [[No, Bx], [Ix, No]], 1),  # two entities: none crosses the end of a sentence
        ([[No, Bx], [Ix, No]], [[No, Bx], [No, No]], 2 / 3),
    ],
)
def test_entity_f1_by_hand(predicted, true, expected):
    assert value("entity_f1", predicted, true) == pytest.approx(expected)


def spans(tags: list[int]) -> set[tuple[int, int, int]]:
    """Word by word, what the vectorised function does at once: first, last, kind of the last."""
    found, first = set(), None
    for place, tag in enumerate(tags):
        if tag % 2 == 0 and tag > 0:
            if first is None:
                found.add((place, place, tag // 2))
            continue
        if first is not None:
            found.add((first, place - 1, (tags[place - 1] + 1) // 2))
        first = place if tag else None
    return found


@given(SENTENCES)
@settings(max_examples=200, deadline=None)
def test_the_authors_own_f1_is_that_of_their_spans(pairs):
    predicted, true = sides(pairs)
    own, its = (spans([tag for tags in side for tag in tags]) for side in (predicted, true))
    expected = 2 * len(own & its) / (len(own) + len(its)) if own & its else 0.0
    assert value("entity_f1_concatenated", predicted, true) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("predicted", "true", "expected"),
    [
        ([[Bx, Ix, No]], [[Bx, Ix, No]], 1),
        ([[Bx, No], [No, Bx]], [[Bx, No], [No, Bx]], 1),  # of the second nothing is counted
        ([[No, Bx]], [[No, Bx]], 0),  # open at the very end: dropped
        ([[No, Bx], [Ix, No]], [[No, Bx], [Ix, No]], 1),  # one span across the end of a sentence
        ([[No, Bx], [Ix, No]], [[No, Bx], [No, No]], 0),
        ([[Bx, Iy, No]], [[By, Iy, No]], 1),  # the kind of the last word
        ([[Ix, Ix, No]], [[Bx, Ix, No]], 0),  # two spans of one word
        ([[Ix, Ix, No]], [[Ix, Bx, No]], 1),  # and so are these
    ],
)
def test_the_authors_own_f1_by_hand(predicted, true, expected):
    assert value("entity_f1_concatenated", predicted, true) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["entity_f1", "entity_f1_concatenated"])
def test_bootstrap_error_is_near_the_theory(name):
    # One entity a sentence, named in a share p of them and never wrongly: f1 = 2p / (1 + p), whose slope
    # 2 / (1 + p)² times sqrt(p (1 - p) / n) is its standard error.
    n, p, of = 1500, 0.5, task("scierc")
    targets = np.tile([Bx, No], n)
    examples = Examples(
        np.zeros(2 * n, np.int32), np.zeros(2 * n, np.int32), np.arange(0, 2 * n + 1, 2), np.zeros(n), 0
    )
    subset = Subset(Examples(**{**vars(examples), "targets": targets}), np.arange(n))
    objective = build_objective(of.objective, of.classes)
    answers = np.zeros(objective.shape(subset), np.float32)
    answers[::2, 0, Bx] = 1
    assert scoring.scores(of.metrics, objective, answers, subset)[name] == pytest.approx(2 * p / (1 + p))
    found = scoring.sampling_error(name, objective, answers, subset, np.random.default_rng(0))
    assert found == pytest.approx(2 / (1 + p) ** 2 * math.sqrt(p * (1 - p) / n), rel=0.3)
