"""A linear model on TF-IDF features of token ids: the reference that an encoder has to beat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import matthews_corrcoef

from fedsim.algorithms import Workload, idle_round, silent_start
from fedsim.algorithms.central import pooled
from fedsim.data import Client, Subset, evaluation_batches
from fedsim.engine import FederatedAlgorithm, FederationState
from fedsim.errors import FederationError
from fedsim.objectives import Classification, Objective, Regression
from fedsim.rng import SERVER, numpy_generator
from fedsim.store import ClientStore
from fedsim.wire import Channel

UNTRAINED = ("linear",)
STRENGTHS = (0.03, 0.3, 3.0, 30.0)  # candidate inverse L2 penalties
HELD = 5  # one in HELD training examples is held out to choose the strength
NEVER = -30.0  # the logit of a class without examples
Text = list[tuple[int, int]]  # (id, segment) per token
Grams = dict[int, list[tuple[int, ...]]]  # segment -> its uni- and bigrams


def linear(workload: Workload) -> FederatedAlgorithm:
    """The reference that an encoder has to beat; like `central` it trains on all examples, and nothing is sent.

    Features: TF-IDF (logarithmic term frequency, rows of length 1) of uni- and bigrams of token ids, each with its
    segment, so that a pair's two texts differ; and for a pair, the share of each text's distinct uni- and bigrams that
    also occur in the other. Tokens that begin or end every text count as special and are omitted. Model: scikit-learn's
    logistic regression for classes, ridge regression for a score. The penalty's strength is chosen on a random fifth of
    the training examples, by the correlation between answers and targets: by the loss, a majority model would win if
    classes are imbalanced. Then the model is fitted on all of them.

    It is fitted on first use and depends only on examples and seed, so a resumed run has the same model.
    """
    everyone: list[Client] = []
    models: list[Callable[[Subset], np.ndarray]] = []  # empty until it is fitted

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        everyone[:] = clients
        models.clear()
        return silent_start(clients, channel, store)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        if not len(subset):
            return np.zeros(workload.objective.shape(subset), dtype=np.float32)
        if not models:
            models.append(_fit(workload, pooled(everyone)))
        return models[0](subset)

    return FederatedAlgorithm(init, idle_round, predict, personal=False)


def _fit(workload: Workload, train: Subset) -> Callable[[Subset], np.ndarray]:
    """Fit the model; returns the function that answers for a subset, float32 [n, C]."""
    objective, texts, targets = workload.objective, _texts_of(train), train.labels
    ends = ({text[place][0] for text in texts} for place in (0, -1))
    special = frozenset(token for ids in ends if len(ids) == 1 for token in ids)
    grams = [grams_of(text, special) for text in texts]
    vectorizer = TfidfVectorizer(analyzer=_with_segments, sublinear_tf=True).fit(grams)

    def features(grams: Sequence[Grams]) -> Any:
        return sparse.hstack([vectorizer.transform(grams), sparse.csr_matrix([*map(overlap, grams)])], format="csr")

    def outputs(features_NF: Any, model: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        return np.asarray(features_NF @ model[0].T + model[1], dtype=np.float32)

    def score(strength: float) -> float:
        answers = outputs(values[held], fitted(objective, values[rest], targets[rest], strength))
        return correlation(*objective.for_metrics(answers, Subset(train.examples, train.indices[held])))

    values = features(grams)
    order = numpy_generator(workload.training.seed, 0, SERVER, "linear").permutation(len(texts))
    held, rest = np.split(order, [-(-len(order) // HELD)])
    strength = max(STRENGTHS, key=score) if len(rest) else STRENGTHS[0]
    model = fitted(objective, values, targets, strength)
    return lambda subset: outputs(features([grams_of(text, special) for text in _texts_of(subset)]), model)


def _texts_of(subset: Subset) -> list[Text]:
    """Every text in a subset, in order."""
    texts: dict[int, Text] = {}
    for positions, batch in evaluation_batches(subset, batch_size=256, width=None):
        ids, segments, mask = (batch[name].tolist() for name in ("input_ids", "token_type_ids", "attention_mask"))
        for row, position in enumerate(positions.tolist()):
            texts[position] = list(zip(ids[row], segments[row], strict=True))[: sum(mask[row])]
    return [texts[position] for position in range(len(subset))]


def grams_of(text: Text, special: frozenset[int]) -> Grams:
    """The uni- and bigrams per segment, without special tokens and without bigrams across them."""
    grams: Grams = {}
    before: tuple[int, int] | None = None  # the preceding ordinary token and its segment
    for token, segment in text:
        if token in special:
            before = None
            continue
        grams.setdefault(segment, []).append((token,))
        if before and before[1] == segment:
            grams[segment].append((before[0], token))
        before = token, segment
    return grams


def _with_segments(by_segment: Grams) -> list[tuple[int, ...]]:
    """A text's terms: its grams, each prefixed by its segment."""
    return [(segment, *gram) for segment, grams in by_segment.items() for gram in grams]


def overlap(by_segment: Grams) -> list[float]:
    """Shares of distinct unigrams in a pair's first and second text that occur in the other; then for bigrams."""
    shares = []
    for length in (1, 2):
        first, second = ({gram for gram in by_segment.get(part, ()) if len(gram) == length} for part in (0, 1))
        shares += [len(first & second) / max(1, len(grams)) for grams in (first, second)]
    return shares


def correlation(predictions: np.ndarray, references: np.ndarray) -> float:
    """Pearson's r for scores, Matthews' correlation for classes; 0 if either input is constant."""
    if references.dtype.kind != "f":
        return float(matthews_corrcoef(references, predictions))
    if np.ptp(predictions) == 0 or np.ptp(references) == 0:
        return 0.0
    return float(np.corrcoef(predictions, references)[0, 1])


def fitted(
    objective: Objective, features_NF: Any, targets_N: np.ndarray, strength: float
) -> tuple[np.ndarray, np.ndarray]:
    """Weights [C, F] and biases [C] of logistic regression for classes, or of ridge regression for a score.

    A class without training examples is practically never answered.

    Args:
        objective: An objective on texts.
        features_NF: A sparse matrix.
        targets_N: Classes or scores.
        strength: The inverse of the L2 penalty.
    """
    if not isinstance(objective, Classification):
        raise FederationError(
            f"linear model: expected labels or scores, found {type(objective).__name__}; choose another method"
        )
    if isinstance(objective, Regression):
        ridge = Ridge(alpha=1 / strength).fit(features_NF, targets_N)
        return ridge.coef_[None], np.array([ridge.intercept_])
    seen = np.unique(targets_N)
    weights, biases = np.zeros((objective.outputs, features_NF.shape[1])), np.full(objective.outputs, NEVER)
    biases[seen] = 0
    if len(seen) > 1:
        logistic = LogisticRegression(C=strength, max_iter=1000).fit(features_NF, targets_N)
        parts = logistic.coef_, logistic.intercept_[:, None]
        # For two classes, scikit-learn keeps the logit of the second only.
        both = (np.concatenate([-part, part]) / 2 if len(seen) == 2 else part for part in parts)
        weights[seen], biases[seen, None] = both
    return weights, biases
