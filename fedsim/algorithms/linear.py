"""A linear model on TF-IDF, of all clients' examples in one place: what a text's words say by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fedsim.algorithms import Workload
from fedsim.algorithms.central import pooled
from fedsim.data import Client, Subset, evaluation_batches
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.rng import SERVER, numpy_generator
from fedsim.store import ClientStore
from fedsim.wire import Channel

STRENGTHS = (0.03, 0.3, 3.0, 30.0)  # inverse L2 penalties that are tried
HELD = 5  # of so many training examples one is held back to choose the strength by
PARTS = (0, 1)  # segment ids of a pair's two texts
Term = tuple[int, ...]


class Text(NamedTuple):
    """A text's token ids and the segment that each is in, int64 [S]."""

    ids: np.ndarray
    segments: np.ndarray


TRAINS = False


def linear(setting: Workload) -> FederatedAlgorithm:
    """The reference that an encoder has to beat; like `central` it has all training examples, and nothing is sent.

    Features: TF-IDF (logarithmic term frequency, rows of length 1) of uni- and bigrams of token ids, each with its
    segment, so that a pair's two texts differ; and of a pair, the share of each text's distinct uni- and bigrams that
    the other has too. Tokens that begin or end every text are special ones and left out. By scikit-learn: logistic
    regression for classes, ridge regression for a score. The strength of its penalty is chosen on a fifth of the
    training examples, drawn by the seed, by the correlation of answers and targets: the loss alone would take a model
    that answers the majority where classes are of unequal size. Then all are learned from.

    It is fitted when it is first asked, from the examples and the seed alone, and is the same whenever that is.
    """
    own = _Linear(setting)
    return FederatedAlgorithm(own.init, own.round, own.predict, personal=False)


@dataclass
class _Linear:
    """The reference's parts."""

    setting: Workload
    clients: list[Client] = field(default_factory=list)
    fitted: _Fitted | None = None

    def init(self, clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        self.clients, self.fitted = list(clients), None
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(
        self, state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        return FederationState(state.round + 1, {}, {}, state.clients), RoundMetrics((), None)

    def predict(self, state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        if not len(subset):
            return np.zeros(self.setting.objective.shape(subset), dtype=np.float32)
        self.fitted = self.fitted or self._fit(pooled(self.clients))
        return self.fitted.outputs(self.fitted.terms.features(texts_of(subset)))

    def _fit(self, known: Subset) -> _Fitted:
        objective = self.setting.objective
        texts = texts_of(known)
        terms = _Terms.of(texts)
        features, targets = terms.features(texts), known.labels
        order = numpy_generator(self.setting.training.seed, 0, SERVER, "linear").permutation(len(texts))
        held, rest = np.split(order, [-(-len(order) // HELD)])

        def fit(rows: np.ndarray, strength: float) -> _Fitted:
            return _Fitted(terms, *objective.linear(features[rows], targets[rows], strength))

        def score(strength: float) -> float:
            answers = fit(rest, strength).outputs(features[held])
            return correlation(*objective.for_metrics(answers, Subset(known.examples, known.indices[held])))

        chosen = max(STRENGTHS, key=score) if len(rest) else STRENGTHS[0]
        return fit(np.arange(len(texts)), chosen)


@dataclass(frozen=True)
class _Terms:
    """What texts are made of: special tokens, and a fitted vectorizer of the others' uni- and bigrams."""

    special: tuple[int, ...]
    vectorizer: Any

    @classmethod
    def of(cls, texts: Sequence[Text]) -> _Terms:
        from sklearn.feature_extraction.text import TfidfVectorizer

        ends = ({int(text.ids[place]) for text in texts} for place in (0, -1))
        special = tuple(found for ids in ends if len(ids) == 1 for found in ids)
        terms = cls(special, TfidfVectorizer(analyzer=lambda text: _joined(grams(text, special)), sublinear_tf=True))
        terms.vectorizer.fit(texts)
        return terms

    def features(self, texts: Sequence[Text]) -> Any:
        """A sparse matrix [n, F]: TF-IDF, then overlaps."""
        from scipy import sparse

        overlaps = [overlap(grams(text, self.special)) for text in texts]
        return sparse.hstack([self.vectorizer.transform(texts), sparse.csr_matrix(overlaps)], format="csr")


@dataclass(frozen=True)
class _Fitted:
    """A linear model: weights [C, F], biases [C]."""

    terms: _Terms
    weights: np.ndarray
    biases: np.ndarray

    def outputs(self, features: Any) -> np.ndarray:
        """The objective's answers, float32 [n, C]."""
        return np.asarray(features @ self.weights.T + self.biases, dtype=np.float32)


def texts_of(subset: Subset) -> list[Text]:
    """Every text of a subset, in its order."""
    found: dict[int, Text] = {}
    for positions, batch in evaluation_batches(subset, batch_size=256, width=None):
        ids, segments, mask = (batch[name].numpy() for name in ("input_ids", "token_type_ids", "attention_mask"))
        for row, (position, length) in enumerate(zip(positions.tolist(), mask.sum(1).tolist(), strict=True)):
            found[position] = Text(ids[row, :length], segments[row, :length])
    return [found[position] for position in range(len(subset))]


def grams(text: Text, special: Sequence[int]) -> dict[int, list[Term]]:
    """Segment -> its uni- and bigrams, without special tokens and none across them."""
    found: dict[int, list[Term]] = {}
    before: tuple[int, int] | None = None  # segment and id of an ordinary token right before
    for token, segment in zip(text.ids.tolist(), text.segments.tolist(), strict=True):
        if token in special:
            before = None
            continue
        terms = found.setdefault(segment, [])
        terms.append((token,))
        if before and before[0] == segment:
            terms.append((before[1], token))
        before = segment, token
    return found


def overlap(by_segment: dict[int, list[Term]]) -> list[float]:
    """Shares of the distinct unigrams of a pair's first and second text that the other has, then of the bigrams."""
    shares = []
    for length in (1, 2):
        first, second = ({term for term in by_segment.get(part, ()) if len(term) == length} for part in PARTS)
        shares += [len(first & second) / max(1, len(own)) for own in (first, second)]
    return shares


def correlation(predictions: np.ndarray, references: np.ndarray) -> float:
    """Pearson's r of scores; of classes Matthews' correlation (Gorodkin 2004), the same of their indicators.

    0 where one of the two is constant: nothing is told apart.
    """
    both = [np.asarray(values, dtype=np.float64)[:, None] for values in (predictions, references)]
    if references.dtype.kind != "f":
        classes = np.union1d(predictions, references)
        both = [(values == classes).astype(np.float64) for values in both]
    one, other = (values - values.mean(axis=0) for values in both)
    map_clients = np.sqrt((one**2).sum() * (other**2).sum())
    return float((one * other).sum() / map_clients) if map_clients > 0 else 0.0


def _joined(by_segment: dict[int, list[Term]]) -> list[Term]:
    return [(segment, *term) for segment, terms in by_segment.items() for term in terms]
