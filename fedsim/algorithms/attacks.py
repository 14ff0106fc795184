"""Attacks, not training methods: how much text can a server recover from received hidden states?

C-FedFreezeBERT's server receives features; the server in split learning receives the embeddings' outputs. Attacks send
nothing: the attacked method has already sent everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedsim.algorithms import Workload, idle_round, silent_start
from fedsim.algorithms.central import pooled
from fedsim.codecs import codec_dtype
from fedsim.data import IGNORED, Client, Subset, evaluation_batches
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics, RoundOutcome
from fedsim.errors import FederationError
from fedsim.models.heads import Head, States
from fedsim.models.model import Model, shallower
from fedsim.models.sequence import SequenceModel
from fedsim.objectives import ROWS, TokenRecovery
from fedsim.rng import SERVER, numpy_generator, torch_seeded
from fedsim.store import ClientStore, same_device
from fedsim.wire import Channel

# Shape suffixes: B batch, S tokens, D hidden width, W ids, N tokens with a target, E word-embedding width, V
# vocabulary.

UNTRAINED = ("nearest_neighbour", "token_majority")
PUBLIC_TEXTS = 2000
WIDENING = 4  # the inverter's inner width per word-embedding width, as in BERT's feed-forward layers


def inversion(
    workload: Workload, public_texts: int = PUBLIC_TEXTS, sent: str = "fp32", layer: int | None = None
) -> FederatedAlgorithm:
    """A curious server, which has the pre-trained encoder, learns to recover tokens from features.

    Its single round trains an inverter for `local_epochs` epochs on known texts (`public_sample`) and their features.
    `predict` inverts the features of other texts: those that C-FedFreezeBERT's clients would send for the same head,
    rounded to the element type `sent`. The head determines these hidden states; a head that reads only [CLS] is
    rejected, as it has no row per token. With a `layer` they are that layer's outputs (0: the embeddings'), as in split
    learning.

    The attack sends nothing, so nothing is counted.
    """
    dtype = codec_dtype(sent)
    workload = attacked(workload, layer)
    training = workload.training

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        if not workload.model.network.head.tokens:
            raise FederationError("inversion: expected a head that reads every token, such as average or psum")
        return silent_start(clients, channel, store)

    def round(state: FederationState, cohort: Sequence[Client], channel: Channel) -> RoundOutcome:
        if state.round > 0:
            raise FederationError("inversion: expected 1 round, found more; set training.local_epochs instead")
        sample = public_sample(cohort, public_texts, training.seed)
        occurring = np.unique(tokens_of(sample))
        model = inverter(workload.model, occurring, dtype, training.seed)
        names = sorted(name for name in model.parameters if name.startswith("head."))
        loss = training.run(model, workload.by_features(sample), names, 1, cohort[0].id)
        shared = model.snapshot(names) | {"occurring": torch.from_numpy(occurring)}
        return FederationState(1, shared, {}, state.clients), RoundMetrics((loss,), loss)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        learned = dict(state.shared)
        model = inverter(workload.model, learned.pop("occurring").cpu().numpy(), dtype, training.seed)
        model.write(same_device(learned, model.device))
        return workload.scored(model, workload.by_features(subset))

    return FederatedAlgorithm(init, round, predict, personal=False)


def attacked(workload: Workload, layer: int | None) -> Workload:
    """The workload with an encoder that ends after a layer, whose outputs are the features; None: the whole encoder.

    layer: 0 for the embeddings, 1 and up for the encoder's layers. FederationError if there is no such layer.
    """
    if layer is None:
        return workload

    def load_model() -> Model:
        whole = workload.model
        if whole.network.head.states > 1:
            raise FederationError("attacked layer: expected a head that reads one hidden state, such as average")
        groups = whole.groups
        if not isinstance(layer, int) or not 0 <= layer <= groups.depth:
            raise FederationError(f"attacked layer: expected 0 (the embeddings) to {groups.depth}, found {layer!r}")
        cut = shallower(whole, groups.embeddings | groups.up_to(layer) | groups.head)
        return Model(cut.network, cut.precision, cut.objective, "reference")  # packed kernels need layers

    return replace(workload, load_model=load_model)


def public_sample(clients: Sequence[Client], public_texts: int, seed: int) -> Subset:
    """Random texts that the server knows, from the clients' training parts; all of them if there are fewer.

    Known texts are never scored.
    """
    if public_texts < 1:
        raise FederationError(f"public_texts: expected 1 or more, found {public_texts}")
    texts = pooled(clients)
    drawn = numpy_generator(seed, 1, SERVER, "public").permutation(len(texts))[:public_texts]
    return Subset(texts.examples, texts.indices[drawn])


def tokens_of(texts: Subset) -> np.ndarray:
    """The ids of all tokens with a target, concatenated."""
    references = texts.references
    return references[references != IGNORED]


class Readout(Head):
    """Maps each token's hidden states separately to an estimate of its word embedding, [1, N, E].

    dtype: the element type of the sent states, to which they are rounded.
    """

    tokens = True
    answers_tokens = True

    def __init__(self, states: int, hidden: int, embedding: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(states))
        self.inner = nn.Linear(states * hidden, WIDENING * embedding)
        self.outer = nn.Linear(WIDENING * embedding, embedding)

    def forward(self, states: States, mask_BS: Tensor, is_target_BS: Tensor | None = None) -> Tensor:
        received = [state.to(self.dtype).float() for state in states]
        normed = [norm(state) for norm, state in zip(self.norms, received, strict=True)]
        return self.outer(functional.gelu(self.inner(torch.cat(normed, dim=-1))))[is_target_BS][None]


def inverter(victim: Model, occurring: np.ndarray, dtype: torch.dtype, seed: int) -> Model:
    """A model that recovers texts from features with the encoder's word embeddings; the encoder stays unchanged.

    Args:
        victim: The attacked model.
        occurring: The ids of the tokens in the training texts, ascending.
        dtype: The element type of sent features.
        seed: For the initial values.
    """
    embeddings_VE = victim.parameters[victim.word_embeddings].detach()
    with torch_seeded(seed, 0, SERVER, "inverter"):
        readout = Readout(victim.network.head.states, victim.hidden, embeddings_VE.shape[1], dtype)
    objective = TokenRecovery(embeddings_VE.shape[1], embeddings_VE, torch.from_numpy(occurring).to(victim.device))
    return Model(SequenceModel(victim.network.encoder, readout), victim.precision, objective)


def nearest_neighbour(workload: Workload, sent: str = "fp32", dropout: float = 0.0) -> FederatedAlgorithm:
    """A curious server with the embedding layer, which it initialised or averages; it trains nothing.

    The tensor sent for a position depends only on that position's token (FedBERT, section 3.3, P_ef in Algorithms 2 and
    3). The answer is the token with the nearest embedding at that position, for token type 0, both rounded to the
    element type `sent`; ties go to the smallest id. The attack sends nothing. dropout: the share of zeros among the
    received values, as in training; the others are scaled up.
    """
    dtype = codec_dtype(sent)
    if not 0 <= dropout < 1:
        raise FederationError(f"dropout: expected a share in [0, 1), found {dropout}")
    workload = attacked(workload, 0)

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        if not workload.model.network.head.tokens:
            raise FederationError("nearest neighbour: expected a head that reads every token, such as average")
        return silent_start(clients, channel, store)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        answers = np.zeros_like(subset.references)
        batches = evaluation_batches(
            workload.by_features(subset), workload.evaluation_batch_size, workload.training.width
        )
        for number, (positions, batch) in enumerate(batches):
            with torch_seeded(workload.training.seed, number, SERVER, "dropout"):
                sent_BSD = functional.dropout(batch["features"][0].float(), dropout)
            received_BSD = sent_BSD.to(dtype).float()
            ids_BS = nearest_tokens(workload.model, received_BSD.to(workload.model.device), dtype).cpu().numpy()
            width = min(ids_BS.shape[1], answers.shape[1])
            answers[positions, :width] = ids_BS[:, :width]
        return answers

    return FederatedAlgorithm(init, idle_round, predict, personal=False)


@torch.inference_mode()
def nearest_tokens(model: Model, received_BSD: Tensor, dtype: torch.dtype) -> Tensor:
    """The id of the nearest token under a model without layers, per position and text: int64 [B, S].

    |e - x|² is smallest where e x - |e|²/2 is largest; tokens are compared ROWS at a time.
    """
    model.network.eval()
    length = received_BSD.shape[1]
    received_SBD = received_BSD.swapaxes(0, 1)
    best_SB = torch.full(received_SBD.shape[:2], -torch.inf, device=received_BSD.device)
    ids_SB = torch.zeros_like(best_SB, dtype=torch.int64)
    for ids_W in torch.arange(len(model.parameters[model.word_embeddings])).split(ROWS):
        ids_WS = ids_W[:, None].expand(-1, length)
        batch = {"input_ids": ids_WS, "attention_mask": torch.ones_like(ids_WS)}
        batch |= {"token_type_ids": torch.zeros_like(ids_WS)}
        embeddings_SWD = model.features(batch)[0].to(dtype).float().swapaxes(0, 1)
        scores_SBW = received_SBD @ embeddings_SWD.mT - embeddings_SWD.square().sum(-1)[:, None] / 2
        top_SB, place_SB = scores_SBW.max(-1)
        ids_SB = torch.where(top_SB > best_SB, place_SB + ids_W[0].item(), ids_SB)
        best_SB = torch.maximum(top_SB, best_SB)
    return ids_SB.T


def token_majority(workload: Workload, public_texts: int = PUBLIC_TEXTS) -> FederatedAlgorithm:
    """A server without features: it answers with the most frequent token in inversion's training texts.

    Ties go to the smallest id. There is no model, and nothing is sent.
    """

    def round(state: FederationState, cohort: Sequence[Client], channel: Channel) -> RoundOutcome:
        tokens = tokens_of(public_sample(cohort, public_texts, workload.training.seed))
        most_frequent = torch.tensor(np.bincount(tokens).argmax())
        return FederationState(state.round + 1, {"token": most_frequent}, {}, state.clients), RoundMetrics((), None)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        return np.full_like(subset.references, state.shared["token"].item())

    return FederatedAlgorithm(silent_start, round, predict, personal=False)
