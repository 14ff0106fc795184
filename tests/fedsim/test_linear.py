"""The linear model on TF-IDF: what it reads off token ids, what it learns, and that it is fitted once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import matthews_corrcoef

from fedsim.algorithms.linear import STRENGTHS, Text, correlation, grams, overlap, texts_of
from fedsim.checkpoint import Checkpoint
from fedsim.data import Client, Examples, Subset
from fedsim.errors import FederationError
from fedsim.objectives import Classification, Regression, TokenClassification

CLS, SEP, WORDS = 1, 2, range(5, 40)


def examples_of(pairs, labels) -> Examples:
    """Texts of one or two parts, with special tokens as BERT's tokenizer sets them."""
    ids, types = [], []
    for parts in pairs:
        ids.append([CLS, *(token for part in parts for token in (*part, SEP))])
        types.append([0, *(segment for segment, part in enumerate(parts) for _ in (*part, SEP))])
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in ids])])
    tokens, segments = (np.concatenate(values).astype(np.int32) for values in (ids, types))
    return Examples(tokens, segments, offsets, np.asarray(labels), padding_id=0)


def clients_of(examples: Examples, count: int = 3) -> list[Client]:
    """Two thirds to train on, one third to be scored on."""
    parts = np.array_split(np.arange(len(examples)), count)
    cuts = [2 * len(part) // 3 for part in parts]
    return [
        Client(number, Subset(examples, part[:cut]), {"test": Subset(examples, part[cut:])})
        for number, (part, cut) in enumerate(zip(parts, cuts, strict=True))
    ]


def drawn(kind: str, count: int = 240):
    """Texts whose class is told by a word, by the order of two words, or by what a pair shares."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, count)
    pairs = []
    for label in labels:
        filler = [list(rng.choice(WORDS, 6)) for _ in range(2)]
        if kind == "word":
            pairs.append([[*filler[0], 50 + label]])
        elif kind == "order":
            pairs.append([[*filler[0], *((50, 51) if label else (51, 50))]])
        else:
            pairs.append([filler[0], list(rng.permutation(filler[0])) if label else filler[1]])
    return pairs, labels


def accuracy(run) -> float:
    return float(np.mean([scores["test"]["accuracy"] for scores in run.results[-1].client_scores]))


def built(small, outputs=2):
    return small.algorithm("linear", small.setting(outputs=outputs))


# ---- what it reads ---------------------------------------------------------------------------------------------------


def test_uni_and_bigrams_by_segment():
    text = Text(np.array([1, 7, 8, 9, 2, 7, 2]), np.array([0, 0, 0, 0, 0, 1, 1]))
    assert grams(text, (1, 2)) == {0: [(7,), (8,), (7, 8), (9,), (8, 9)], 1: [(7,)]}
    assert grams(text, (8,)) == {0: [(1,), (7,), (1, 7), (9,), (2,), (9, 2)], 1: [(7,), (2,), (7, 2)]}


def test_overlaps_are_shares_of_each_texts_distinct_terms():
    pair = {0: [(7,), (8,), (7, 8), (7,)], 1: [(8,), (9,), (5,), (7,), (7, 8)]}
    assert overlap(pair) == [1, 1 / 2, 1, 1]  # 7 and 8 of two, of four; then the one bigram
    assert overlap({0: [(7,)]}) == overlap({}) == [0, 0, 0, 0]


def test_texts_come_in_their_order():
    pairs, labels = drawn("pair", 20)
    examples = examples_of(pairs, labels)
    order = np.random.default_rng(1).permutation(20)
    for index, text in zip(order, texts_of(Subset(examples, order)), strict=True):
        span = slice(examples.offsets[index], examples.offsets[index + 1])
        assert text.ids.tolist() == examples.tokens[span].tolist()
        assert text.segments.tolist() == examples.types[span].tolist()


def test_special_tokens_say_nothing(small):
    """Other special tokens, or none: the same answers to the bit."""
    pairs, labels = drawn("word", 60)
    plain = examples_of(pairs, labels)
    ordinary = ~np.isin(plain.tokens, (CLS, SEP))
    lengths = np.add.reduceat(ordinary.astype(np.int64), plain.offsets[:-1])
    bare = Examples(
        plain.tokens[ordinary], plain.types[ordinary], np.concatenate([[0], np.cumsum(lengths)]), plain.labels, 0
    )
    others = Examples(np.where(ordinary, plain.tokens, plain.tokens + 90), plain.types, plain.offsets, plain.labels, 0)
    runs = [small.run(built(small), clients=clients_of(examples)) for examples in (plain, bare, others)]
    assert runs[0].results == runs[1].results == runs[2].results


# ---- what it learns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["word", "order", "pair"])
def test_it_learns_words_their_order_and_what_a_pair_shares(small, kind):
    clients = clients_of(examples_of(*drawn(kind)))
    linear, majority = (
        small.run(small.algorithm(name, **options), rounds=1, clients=clients)
        for name, options in (("linear", {}), ("local_majority", {"whose": "all"}))
    )
    assert accuracy(linear) > 0.95
    assert accuracy(majority) < 0.65


def test_it_learns_scores(small):
    rng = np.random.default_rng(0)
    texts = [[list(rng.choice(WORDS, 8))] for _ in range(200)]
    scores = np.array([5 * np.mean(np.array(parts[0]) > 22) for parts in texts], dtype=np.float32)
    clients = clients_of(examples_of(texts, scores))
    algorithm = built(small, outputs=1)
    run = small.run(algorithm, rounds=1, clients=clients)
    part = clients[0].evaluation["test"]
    answers = algorithm.predict(run.state, clients[0], part)
    assert (answers.shape, answers.dtype) == ((len(part), 1), np.float32)
    assert np.corrcoef(answers[:, 0], part.labels)[0, 1] > 0.9


def test_a_class_that_does_not_occur_is_not_answered(small):
    pairs, labels = drawn("word")
    clients = clients_of(examples_of(pairs, 2 * labels))  # of four classes, the first and the third
    algorithm = small.algorithm("linear", small.setting(objective=Classification(4)))
    run = small.run(algorithm, rounds=1, clients=clients)
    answers = algorithm.predict(run.state, clients[0], clients[0].evaluation["test"])
    assert answers.shape == (len(clients[0].evaluation["test"]), 4)
    assert set(answers.argmax(1)) == {0, 2}
    assert np.isfinite(answers).all()
    assert accuracy(run) > 0.95


def test_three_classes_and_one(small):
    pairs, labels = drawn("word")
    for classes in (labels + np.arange(len(labels)) % 2, np.ones_like(labels)):
        clients = clients_of(examples_of(pairs, classes))
        algorithm = small.algorithm("linear", small.setting(objective=Classification(3)))
        run = small.run(algorithm, rounds=1, clients=clients)
        answers = algorithm.predict(run.state, None, clients[0].train)
        assert answers.shape == (len(clients[0].train), 3)
        assert set(answers.argmax(1)) <= set(classes)


@pytest.mark.parametrize("good", STRENGTHS)
def test_the_strength_that_tells_apart_is_chosen_and_all_are_learned_from(small, monkeypatch, good):
    fit = Classification.linear

    def only_one_learns(self, features, targets, strength):
        weights, biases = fit(self, features, targets, max(STRENGTHS))
        return weights * (strength == good), biases

    monkeypatch.setattr(Classification, "linear", only_one_learns)
    fitted = watched_fits(monkeypatch)
    clients = clients_of(examples_of(*drawn("word", 120)))
    small.run(built(small), rounds=1, clients=clients)
    known = sum(len(client.train) for client in clients)
    to_choose = known - math.ceil(known / 5)
    assert fitted == [*((to_choose, strength) for strength in STRENGTHS), (known, good)]


@pytest.mark.filterwarnings("ignore:A single label")
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30))
def test_correlation_of_classes_is_matthews(pairs):
    predictions, references = np.array(pairs).T
    assert correlation(predictions, references) == pytest.approx(matthews_corrcoef(references, predictions), abs=1e-9)


def test_correlation_of_scores_is_pearsons():
    predictions, references = np.random.default_rng(0).normal(size=(2, 9))
    assert correlation(predictions, references) == pytest.approx(np.corrcoef(predictions, references)[0, 1])
    assert correlation(np.zeros(9), references) == correlation(references, np.zeros(9)) == 0


# ---- fitted once, from nothing but examples and seed -----------------------------------------------------------------


def watched_fits(monkeypatch) -> list[tuple[int, float]]:
    """(examples, strength) of each model that is fitted."""
    seen: list[tuple[int, float]] = []
    fit = Classification.linear

    def watched(self, features, targets, strength):
        seen.append((len(targets), strength))
        return fit(self, features, targets, strength)

    monkeypatch.setattr(Classification, "linear", watched)
    return seen


def test_it_is_fitted_once_a_run(small, monkeypatch):
    fitted = watched_fits(monkeypatch)
    algorithm = built(small)
    small.run(algorithm, rounds=3)
    assert len(fitted) == len(STRENGTHS) + 1
    small.run(algorithm, rounds=1, clients=small.clients[:2])  # others' examples: another model
    assert len(fitted) == 2 * (len(STRENGTHS) + 1)


def test_nothing_is_sent_and_no_model_is_loaded(small):
    def no_model():
        raise AssertionError("a linear model needs no encoder")

    run = small.run(small.algorithm("linear", small.setting(no_model)))
    assert run.channel.ledger.rows == []
    assert [result.metrics.train_loss for result in run.results] == [None, None]
    assert built(small).server is None


def test_a_resumed_run_is_the_uninterrupted_one(small, tmp_path, assert_same_run):
    whole = small.run(built(small), rounds=2)
    small.run(built(small), rounds=1, checkpoint=Checkpoint(tmp_path, "linear"))
    assert_same_run(small.run(built(small), rounds=2, checkpoint=Checkpoint(tmp_path, "linear")), whole)


def test_an_empty_part_has_no_answers(small):
    empty = Subset(small.examples, np.empty(0, dtype=np.int64))
    algorithm = built(small)
    run = small.run(algorithm, rounds=1)
    assert algorithm.predict(run.state, None, empty).shape == (0, 2)


def test_tokens_have_no_linear_model(small):
    setting = small.setting(objective=TokenClassification(2))
    with pytest.raises(FederationError, match="no linear model of TokenClassification: choose another method"):
        small.run(small.algorithm("linear", setting), rounds=1)


def test_the_regression_is_ridge(small):
    """On one feature, centred: x y / (x x + penalty)."""
    from scipy.sparse import csr_matrix

    weights, biases = Regression().linear(csr_matrix([[-1.0], [1.0]]), np.array([0.0, 4.0]), strength=0.5)
    assert weights == pytest.approx(np.array([[4 / (2 + 2)]]))
    assert biases == pytest.approx([2.0])
