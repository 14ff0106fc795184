"""A linear model on TF-IDF features of token ids: the reference that an encoder has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
STRENGTHS = (0.03, 0.3, 3.0, 30.0)  # inverse L2 penalties that are tried
HELD = 5  # one of so many training examples is held back, to choose the strength
NEVER = -30.0  # the logit of a class that did not occur
Gram = tuple[int, ...]


def linear(workload: Workload) -> FederatedAlgorithm:
    """The reference that an encoder has to beat; like `central` it has all training examples, and nothing is sent.

    Features: TF-IDF (logarithmic term frequency, rows of length 1) of uni- and bigrams of token ids, each with its
    segment, so that a pair's two texts differ; and for a pair, the share of each text's distinct uni- and bigrams that
    the other has too. Tokens that begin or end every text are special ones and left out. Model: scikit-learn's logistic
    regression for classes, ridge regression for a score. The strength of its penalty is chosen on a fifth of the
    training examples, drawn by the seed, by the correlation of answers and targets: by the loss alone, a model that
    answers the majority would win where classes are of unequal size. Then it is fitted on all of them.

    It is fitted when it is first asked, from the examples and the seed alone, so a resumed run has the same model.
    """
    everyone: list[Client] = []
    models: list[_Model] = []  # none before it is first asked

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        everyone[:] = clients
        models.clear()
        return silent_start(clients, channel, store)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        if not len(subset):
            return np.zeros(workload.objective.shape(subset), dtype=np.float32)
        if not models:
            models.append(_fit(workload, pooled(everyone)))
        return models[0].outputs(models[0].terms.features(_texts_of(subset)))

    return FederatedAlgorithm(init, idle_round, predict, personal=False)


class _Text(NamedTuple):
    """A text's token ids and the segment of each, int64 [S]."""

    ids: np.ndarray
    segments: np.ndarray


@dataclass(frozen=True)
class _Terms:
    """How texts become features: special tokens, and a fitted vectorizer of the others' uni- and bigrams."""

    special: frozenset[int]
    vectorizer: Any

    @classmethod
    def of(cls, texts: Sequence[_Text]) -> _Terms:
        ends = ({int(text.ids[place]) for text in texts} for place in (0, -1))
        special = frozenset(token for ids in ends if len(ids) == 1 for token in ids)

        def analyze(text: _Text) -> list[Gram]:
            return [(segment, *gram) for segment, grams in grams_of(text, special).items() for gram in grams]

        return cls(special, TfidfVectorizer(analyzer=analyze, sublinear_tf=True).fit(texts))

    def features(self, texts: Sequence[_Text]) -> Any:
        """A sparse matrix [n, F]: TF-IDF, then overlaps."""
        overlaps = [overlap(grams_of(text, self.special)) for text in texts]
        return sparse.hstack([self.vectorizer.transform(texts), sparse.csr_matrix(overlaps)], format="csr")


@dataclass(frozen=True)
class _Model:
    """A linear model: weights [C, F], biases [C]."""

    terms: _Terms
    weights: np.ndarray
    biases: np.ndarray

    def outputs(self, features: Any) -> np.ndarray:
        """The objective's answers, float32 [n, C]."""
        return np.asarray(features @ self.weights.T + self.biases, dtype=np.float32)


def _fit(workload: Workload, known: Subset) -> _Model:
    objective, texts = workload.objective, _texts_of(known)
    terms = _Terms.of(texts)
    features, targets = terms.features(texts), known.labels
    order = numpy_generator(workload.training.seed, 0, SERVER, "linear").permutation(len(texts))
    held, rest = np.split(order, [-(-len(order) // HELD)])

    def fit(rows: np.ndarray, strength: float) -> _Model:
        return _Model(terms, *fitted(objective, features[rows], targets[rows], strength))

    def score(strength: float) -> float:
        answers = fit(rest, strength).outputs(features[held])
        return correlation(*objective.for_metrics(answers, Subset(known.examples, known.indices[held])))

    chosen = max(STRENGTHS, key=score) if len(rest) else STRENGTHS[0]
    return fit(np.arange(len(texts)), chosen)


def _texts_of(subset: Subset) -> list[_Text]:
    """Every text of a subset, in its order."""
    texts: dict[int, _Text] = {}
    for positions, batch in evaluation_batches(subset, batch_size=256, width=None):
        ids, segments, mask = (batch[name].numpy() for name in ("input_ids", "token_type_ids", "attention_mask"))
        for row, (position, length) in enumerate(zip(positions.tolist(), mask.sum(1).tolist(), strict=True)):
            texts[position] = _Text(ids[row, :length], segments[row, :length])
    return [texts[position] for position in range(len(subset))]


def grams_of(text: _Text, special: frozenset[int]) -> dict[int, list[Gram]]:
    """Segment -> its uni- and bigrams, without special tokens and none across them."""
    grams: dict[int, list[Gram]] = {}
    before: tuple[int, int] | None = None  # segment and id of an ordinary token right before
    for token, segment in zip(text.ids.tolist(), text.segments.tolist(), strict=True):
        if token in special:
            before = None
            continue
        grams.setdefault(segment, []).append((token,))
        if before and before[0] == segment:
            grams[segment].append((before[1], token))
        before = segment, token
    return grams


def overlap(by_segment: dict[int, list[Gram]]) -> list[float]:
    """Shares of the distinct unigrams of a pair's first and second text that the other has; then of the bigrams."""
    shares = []
    for length in (1, 2):
        first, second = ({gram for gram in by_segment.get(part, ()) if len(gram) == length} for part in (0, 1))
        shares += [len(first & second) / max(1, len(grams)) for grams in (first, second)]
    return shares


def correlation(predictions: np.ndarray, references: np.ndarray) -> float:
    """Pearson's r of scores, Matthews' correlation of classes; 0 if one of the two is constant."""
    if references.dtype.kind != "f":
        return float(matthews_corrcoef(references, predictions))
    if np.ptp(predictions) == 0 or np.ptp(references) == 0:
        return 0.0
    return float(np.corrcoef(predictions, references)[0, 1])


def fitted(
    objective: Objective, features_NF: Any, targets_N: np.ndarray, strength: float
) -> tuple[np.ndarray, np.ndarray]:
    """Weights [C, F] and biases [C] of logistic regression for classes, or of ridge regression for a score.

    A class that does not occur is as good as never answered.

    Args:
        objective: Of texts.
        features_NF: A sparse matrix.
        targets_N: Classes or scores.
        strength: The inverse of the L2 penalty.
    """
    if not isinstance(objective, Classification):
        raise FederationError(f"there is no linear model of {type(objective).__name__}: choose another method")
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
