"""Inversion: an attack, not a method of training. How much text can a server read off the states that it receives?

C-FedFreezeBERT's server receives features, that of split learning the embeddings' outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from fedsim.algorithms import Workload
from fedsim.algorithms.central import pooled
from fedsim.data import IGNORED, Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.errors import FederationError
from fedsim.models.inverter import inverter
from fedsim.models.model import Model
from fedsim.models.shallower import shallower
from fedsim.rng import SERVER, numpy_generator
from fedsim.store import ClientStore, same_device
from fedsim.wire import Channel, codec_dtype

PUBLIC_TEXTS = 2000


def inversion(
    setting: Workload, public_texts: int = PUBLIC_TEXTS, sent: str = "fp32", layer: int | None = None
) -> FederatedAlgorithm:
    """A curious server, which has the pre-trained encoder as everyone has, learns to turn features back into tokens.

    Its one round trains an inverter for `local_epochs` epochs on the texts that it knows (`known_texts`) and their
    features. `predict` inverts the features of texts that it does not know: what C-FedFreezeBERT's clients would send
    for the same head, rounded to the element type `sent`. Which hidden states these are is the head's choice; one that
    reads [CLS] alone sends no token a row of its own, and is refused. With a `layer` they are those that leave it
    (0: the embeddings), which split learning sends.

    Nothing is sent, so nothing is counted: the method that is attacked has sent it all already.
    """
    dtype = codec_dtype(sent)
    setting = attacked(setting, layer)
    training = setting.training

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        if not setting.model.network.head.tokens:
            raise FederationError("inversion: expected a head that reads every token, such as average or psum")
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(
        state: FederationState, cohort: Sequence[Client], channel: Channel
    ) -> tuple[FederationState, RoundMetrics]:
        if state.round > 0:
            raise FederationError("inversion trains once: expected 1 round, with training.local_epochs")
        known = known_texts(cohort, public_texts, training.seed)
        occurring = np.unique(tokens_of(known))
        model = inverter(setting.model, occurring, dtype, training.seed)
        names = sorted(name for name in model.parameters if name.startswith("head."))
        loss = training.run(model, setting.by_features(known), names, 1, cohort[0].id)
        shared = model.snapshot(names) | {"occurring": torch.from_numpy(occurring)}
        return FederationState(1, shared, {}, state.clients), RoundMetrics((loss,), loss)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        learned = dict(state.shared)
        model = inverter(setting.model, learned.pop("occurring").cpu().numpy(), dtype, training.seed)
        model.write(same_device(learned, model.device))
        return model.predict(setting.by_features(subset), setting.evaluation_batch_size, training.width)

    return FederatedAlgorithm(init, round, predict, personal=False)


def attacked(setting: Workload, layer: int | None) -> Workload:
    """The same with an encoder that ends behind a layer, so that features are what leaves it; None: all of it.

    layer: 0 of the embeddings, then the encoder's from 1. FederationError where there is none such.
    """
    if layer is None:
        return setting

    def load_model() -> Model:
        whole = setting.model
        if whole.network.head.states > 1:
            raise FederationError("attacked layer: expected a head that reads one hidden state, such as average")
        groups = whole.groups
        if not isinstance(layer, int) or not 0 <= layer <= groups.depth:
            raise FederationError(f"attacked layer: expected 0, the embeddings, to {groups.depth}, found {layer!r}")
        cut = shallower(whole, groups.embeddings | groups.up_to(layer) | groups.head)
        return Model(cut.network, cut.precision, cut.objective, "reference")  # packed kernels are those of layers

    return replace(setting, load_model=load_model)


def known_texts(clients: Sequence[Client], public_texts: int, seed: int) -> Subset:
    """Texts that the server has anyway, drawn from the clients' training parts (all of them where there are no more).

    What is scored is none of them.
    """
    if public_texts < 1:
        raise FederationError(f"public_texts: expected 1 or more, found {public_texts}")
    texts = pooled(clients)
    drawn = numpy_generator(seed, 1, SERVER, "public").permutation(len(texts))[:public_texts]
    return Subset(texts.examples, texts.indices[drawn])


def tokens_of(texts: Subset) -> np.ndarray:
    """The ids of all tokens that are asked for, end to end."""
    references = texts.references
    return references[references != IGNORED]
