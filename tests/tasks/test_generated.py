"""GLUE's generated tasks: their schemas are the real ones, and there is something to learn in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_predict

from benchmarks.tasks import task
from benchmarks.tasks.generated import VOCABULARY, generate
from benchmarks.tasks.glue import GLUE

IDS = [glue.id for glue in GLUE]
SINGLE = {"cola", "sst2"}
SHARES_OF_LABEL_1 = {  # of the real data
    "cola": 0.70,
    "sst2": 0.56,
    "mrpc": 0.67,
    "qqp": 0.37,
    "mnli": 1 / 3,
    "rte": 0.5,
    "qnli": 0.5,
    "wnli": 0.49,
}


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(IDS), st.integers(0, 2**32), st.integers(27, 80))
def test_schema_is_that_of_the_task(task_id, seed, examples):
    data = generate(task_id, seed, examples)
    assert (len(data.pool), len(data.pool.labels)) == (examples, examples)
    assert {"test", *data.held_out} == set(task(task_id).evaluations)
    for part in (data.pool, *data.held_out.values()):
        assert {len(texts) for texts in part.texts} == {1 if task_id in SINGLE else 2}
        if task_id == "stsb":
            assert part.labels.dtype == np.float64
            assert set(part.labels) <= {tenths / 10 for tenths in range(0, 51, 2)}
        else:
            assert part.labels.dtype == np.int64
            assert set(part.labels.tolist()) == set(range(task(task_id).classes))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(IDS), st.integers(0, 2**32))
def test_texts_are_5_to_14_words_of_the_vocabulary(task_id, seed):
    for texts in generate(task_id, seed, examples=30).pool.texts:
        for text in texts:
            words = text.split(" ")
            assert type(text) is str
            assert set(words) <= set(VOCABULARY)
            assert 5 <= len(words) <= 14


def test_vocabulary_is_small_and_lower_case():
    assert len(VOCABULARY) == len(set(VOCABULARY)) < 350
    assert all(word == "." or (word.isascii() and word.isalpha() and word.islower()) for word in VOCABULARY)


@pytest.mark.parametrize("task_id", IDS)
def test_a_seed_decides_everything(task_id):
    assert task(task_id).generate(7).digest == task(task_id).generate(7).digest
    assert task(task_id).generate(7).digest != task(task_id).generate(8).digest


def test_tasks_of_one_seed_differ():
    assert len({task(task_id).generate(0).digest for task_id in IDS}) == len(IDS)


@pytest.mark.parametrize("task_id", SHARES_OF_LABEL_1)
def test_label_shares_are_those_of_the_real_data(task_id):
    labels = task(task_id).generate(0).pool.labels
    assert np.mean(labels == 1) == pytest.approx(SHARES_OF_LABEL_1[task_id], abs=0.01)


def test_mismatched_examples_are_about_other_things():
    data = task("mnli").generate(0)
    pooled = {word for texts in data.pool.texts for text in texts for word in text.split()}
    mismatched = {word for texts in data.held_out["mismatched"].texts for text in texts for word in text.split()}
    assert len(mismatched - pooled) > 20


@pytest.mark.parametrize("task_id", IDS)
def test_a_bag_of_words_beats_the_majority(task_id):
    """Five folds over seeds 0 and 1. The noise, 10 %, is the only thing a classifier cannot learn."""
    pools = [task(task_id).generate(seed).pool for seed in (0, 1)]
    texts = [" ".join(texts) for pool in pools for texts in pool.texts]
    labels = np.concatenate([pool.labels for pool in pools])
    words = CountVectorizer().fit_transform(texts)
    if task_id == "stsb":
        predicted = cross_val_predict(Ridge(alpha=10.0), words, labels, cv=5)
        assert np.corrcoef(predicted, labels)[0, 1] > 0.7
        return
    predicted = cross_val_predict(LogisticRegression(), words, labels, cv=5)
    majority = np.bincount(labels).max() / len(labels)
    assert majority + 0.1 < np.mean(predicted == labels) < 0.97
