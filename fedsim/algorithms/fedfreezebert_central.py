"""C-FedFreezeBERT (Galal et al. 2024, Algorithm 2): clients send features once; the server trains on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fedsim.algorithms import Workload, require_choice
from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics, RoundOutcome
from fedsim.errors import FederationError
from fedsim.store import ClientStore
from fedsim.wire import Channel


def fedfreezebert_central(
    workload: Workload, features: str = "padded", half_features: bool = False
) -> FederatedAlgorithm:
    """The single round: features, masks and labels go up, the server trains the head W_s on them, W_s goes down.

    features: "padded" to n_t tokens per text as in the paper's formula, or "trimmed" to the text's tokens; the server
    trains on features rounded by the channel's codec. For a head that reads only [CLS], only [CLS] is sent, without
    mask. Masks take one byte per token; trimmed texts have a 4-byte token count instead. half_features: clients keep
    features in half precision; the codec determines what is sent.

    The server trains for `training.local_epochs` epochs with one optimiser: the paper's Adam is AdamW with
    `training.weight_decay` 0. Order and dropout equal the first client's, so that on the same features this is central
    training of the head.
    """
    require_choice("features", features, ("padded", "trimmed"))
    model, training = workload.model, workload.training
    width = training.config.max_length if features == "padded" else None
    head = sorted(model.groups.head)
    by_features = partial(workload.by_features, half=half_features)

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        for client in clients:
            channel.setup(client.id, model.read(sorted(model.groups.names - model.groups.head)))
        return FederationState(round=0, shared={}, moments={}, clients=store)

    def round(state: FederationState, cohort: Sequence[Client], channel: Channel) -> RoundOutcome:
        if state.round > 0:
            raise FederationError("C-FedFreezeBERT: expected 1 round, found more; set training.local_epochs instead")
        model.write(workload.initial)
        store = workload.features.store(model)
        for client in cohort:
            subset = by_features(client.train)
            for received in channel.stream_to_server(client.id, chunks(workload, subset, width)):
                store.add(received["features"], received.get("masks"), received["labels"])
        examples = store.examples()
        everyone = Subset(examples, np.arange(len(examples)))
        loss = training.run(model, everyone, head, 1, cohort[0].id)
        trained = model.read(head)
        for client in cohort:
            channel.to_client(client.id, trained)
        return FederationState(1, channel.at_rest(trained), {}, state.clients), RoundMetrics((loss,), loss)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        model.write(workload.server_params(state))
        return workload.scored(model, by_features(subset))

    return FederatedAlgorithm(init, round, predict, personal=False, server=workload.server_params)


def chunks(workload: Workload, subset: Subset, width: int | None) -> Iterator[dict[str, Tensor]]:
    """A client's payload in chunks: features [K, B, width, D], or, without `width`, [K, T, D] with T tokens in all.

    subset: the client's examples as features.
    """
    for start in range(0, len(subset), workload.evaluation_batch_size):
        batch = subset.examples.collate(subset.indices[start : start + workload.evaluation_batch_size], width)
        states_KBSD, mask_BS = batch["features"], batch["attention_mask"].bool()
        if not workload.model.network.head.tokens:
            yield {"features": states_KBSD, "labels": batch["labels"]}
        elif width:
            yield {"features": states_KBSD, "masks": mask_BS, "labels": batch["labels"]}
        else:
            lengths = mask_BS.sum(1, dtype=torch.int32)
            yield {"features": states_KBSD[:, mask_BS], "masks": lengths, "labels": batch["labels"]}
