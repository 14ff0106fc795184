"""Baselines: references that need no training rounds. Nothing is exchanged but by the label prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from fedsim.algorithms import Workload, idle_round, require_choice, silent_start
from fedsim.algorithms.central import pooled
from fedsim.data import IGNORED, Client, Subset, evaluation_batches
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.errors import FederationError
from fedsim.objectives import CausalLM, MaskedLM
from fedsim.rng import SERVER, numpy_generator
from fedsim.store import ClientStore
from fedsim.wire import Channel, Params

UNTRAINED = ("untrained", "local_majority", "local_prior", "unigram", "linear")
STRENGTHS = (0.03, 0.3, 3.0, 30.0)  # inverse L2 penalties that the linear model tries
HELD = 5  # one of so many training examples is held back, to choose the strength
Gram = tuple[int, ...]


def untrained(setting: Workload) -> FederatedAlgorithm:
    """One model for all clients, which answers the same after every round."""

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        return setting.answers(setting.server_params(state), subset)

    return FederatedAlgorithm(silent_start, idle_round, predict, personal=False, server=setting.server_params)


def local_majority(setting: Workload, whose: str = "own") -> FederatedAlgorithm:
    """The baseline that personalisation has to beat: what follows from a client's training labels alone.

    The most frequent class or tag, of equally frequent ones the smallest id; for a score, the mean training score.
    whose: labels: a client's "own", or those of "all" clients together, which all clients then answer.
    """
    require_choice("whose", whose, ("own", "all"))
    everyone: list[Client] = []

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        everyone[:] = clients
        return silent_start(clients, channel, store)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        if whose == "all":
            return setting.objective.prior(pooled(everyone), subset)
        if client is None:
            raise FederationError("local majority: the server has no answer of its own; ask the clients")
        return setting.objective.prior(client.train, subset)

    return FederatedAlgorithm(init, idle_round, predict, personal=whose == "own")


def local_prior(setting: Workload) -> FederatedAlgorithm:
    """Nothing is trained: clients answer by the model that the run begins with, corrected by their own label shares.

    A client's logits get log p_own - log p_all, with add-one smoothing (section 4.1's adjustment, from the shares that
    the model was trained on to the client's own). In the one round each client's label counts go up and their sum comes
    down, of the kind "counts", 4 bytes a label. Scores are cut to the range of the client's own instead, for which
    nothing is sent. The server's own answers are the model's.
    """
    model, objective = setting.model, setting.objective

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        for client in clients:
            channel.setup(client.id, setting.initial)
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        if state.round > 0:
            raise FederationError("local prior: labels are counted once: expected 1 round")
        everyone: Params = {}
        for client in cohort:
            for name, counts in channel.to_server(client.id, objective.tally(client.train), "counts").items():
                everyone[name] = everyone[name] + counts if name in everyone else counts
        for client in cohort:
            channel.to_client(client.id, everyone, "counts")
        return FederationState(1, everyone, {}, state.clients), RoundMetrics((), None)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        model.set_trained(())  # so that what stands there already is not written again for each client
        model.hold(setting.initial)
        answers = model.predict(subset, setting.evaluation_batch_size, setting.training.width)
        return answers if client is None else objective.with_prior(answers, client.train, state.shared)

    return FederatedAlgorithm(init, round, predict, server=lambda state: dict(setting.initial))


def unigram(setting: Workload) -> FederatedAlgorithm:
    """Count how often each token occurs in all clients' texts together, plus one (Laplace); nothing is sent.

    It is asked for the same tokens as a model. In masked language modelling special tokens are never masked, so they
    have no share. FederationError if the objective is no language model.
    """
    objective = setting.objective
    if not isinstance(objective, CausalLM | MaskedLM):
        raise FederationError(f"unigram: expected a language model's objective, found {type(objective).__name__}")

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        counts = torch.ones(objective.outputs, dtype=torch.float64)
        for _, batch in evaluation_batches(pooled(cohort), setting.evaluation_batch_size, setting.training.width):
            tokens = batch["input_ids"][batch["attention_mask"].bool()]
            counts += torch.bincount(tokens, minlength=objective.outputs)
        if isinstance(objective, MaskedLM):
            special = torch.ones_like(counts, dtype=torch.bool)
            special[torch.from_numpy(objective.vocabulary.ordinary_ids)] = False
            counts[special] = 0
        shares = {"shares": counts / counts.sum()}
        return FederationState(state.round + 1, shares, {}, state.clients), RoundMetrics((), None)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        log_shares_C = state.shared["shares"].cpu().log().float()
        answers = np.zeros(objective.shape(subset))
        rng = numpy_generator(0, 0, SERVER, "evaluation")  # as a model's answers are drawn
        for positions, drawn in evaluation_batches(subset, setting.evaluation_batch_size, setting.training.width):
            batch = objective.prepare(drawn, rng)
            asked = int((batch["labels"] != IGNORED).sum())
            answers[positions] = objective.answer(log_shares_C.expand(asked, -1), batch)
        return answers

    return FederatedAlgorithm(silent_start, round, predict, personal=False)


def linear(setting: Workload) -> FederatedAlgorithm:
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
            return np.zeros(setting.objective.shape(subset), dtype=np.float32)
        if not models:
            models.append(_fit(setting, pooled(everyone)))
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
        from sklearn.feature_extraction.text import TfidfVectorizer

        ends = ({int(text.ids[place]) for text in texts} for place in (0, -1))
        special = frozenset(token for ids in ends if len(ids) == 1 for token in ids)

        def analyze(text: _Text) -> list[Gram]:
            return [(segment, *gram) for segment, grams in grams_of(text, special).items() for gram in grams]

        return cls(special, TfidfVectorizer(analyzer=analyze, sublinear_tf=True).fit(texts))

    def features(self, texts: Sequence[_Text]) -> Any:
        """A sparse matrix [n, F]: TF-IDF, then overlaps."""
        from scipy import sparse

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


def _fit(setting: Workload, known: Subset) -> _Model:
    objective, texts = setting.objective, _texts_of(known)
    terms = _Terms.of(texts)
    features, targets = terms.features(texts), known.labels
    order = numpy_generator(setting.training.seed, 0, SERVER, "linear").permutation(len(texts))
    held, rest = np.split(order, [-(-len(order) // HELD)])

    def fit(rows: np.ndarray, strength: float) -> _Model:
        return _Model(terms, *objective.linear(features[rows], targets[rows], strength))

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
    from sklearn.metrics import matthews_corrcoef

    if references.dtype.kind != "f":
        return float(matthews_corrcoef(references, predictions))
    if np.ptp(predictions) == 0 or np.ptp(references) == 0:
        return 0.0
    return float(np.corrcoef(predictions, references)[0, 1])
