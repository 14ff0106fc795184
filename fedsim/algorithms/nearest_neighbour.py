"""An attack on split learning: the server looks up received embeddings in the embedding layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fedsim.algorithms import Workload, idle_round, silent_start
from fedsim.algorithms.inversion import attacked
from fedsim.data import Client, Subset, evaluation_batches
from fedsim.engine import FederatedAlgorithm, FederationState
from fedsim.errors import FederationError
from fedsim.models.model import Model
from fedsim.objectives.kinds import ROWS
from fedsim.rng import SERVER, torch_seeded
from fedsim.store import ClientStore
from fedsim.wire import Channel, codec_dtype

# Shape suffixes: B batch, S tokens, D hidden width, W words.

TRAINS = False


def nearest_neighbour(setting: Workload, sent: str = "fp32", dropout: float = 0.0) -> FederatedAlgorithm:
    """A curious server that has the embedding layer, since it initialised or averages it, and learns nothing.

    What a client sends for a position depends on that position's token alone (FedBERT, section 3.3, the P_ef of
    Algorithms 2 and 3). The answer is the token whose embedding at that position, of type 0, is nearest, both rounded
    to the element type `sent`; of equally near ones the smallest id. The attack sends nothing.
    dropout: the share of the received values that is zero, as in training; the others are scaled up.
    """
    dtype = codec_dtype(sent)
    if not 0 <= dropout < 1:
        raise FederationError(f"dropout: expected a share in [0, 1), found {dropout}")
    setting = attacked(setting, 0)

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        if not setting.model.network.head.tokens:
            raise FederationError("nearest neighbour: expected a head that reads every token, such as average")
        return silent_start(clients, channel, store)

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        answers = np.zeros_like(subset.references)
        batches = evaluation_batches(setting.by_features(subset), setting.evaluation_batch_size, setting.training.width)
        for number, (positions, batch) in enumerate(batches):
            with torch_seeded(setting.training.seed, number, SERVER, "dropout"):
                sent_BSD = functional.dropout(batch["features"][0].float(), dropout)
            received_BSD = sent_BSD.to(dtype).float()
            ids_BS = nearest_words(setting.model, received_BSD.to(setting.model.device), dtype).cpu().numpy()
            width = min(ids_BS.shape[1], answers.shape[1])
            answers[positions, :width] = ids_BS[:, :width]
        return answers

    return FederatedAlgorithm(init, idle_round, predict, personal=False)


@torch.inference_mode()
def nearest_words(model: Model, received_BSD: Tensor, dtype: torch.dtype) -> Tensor:
    """For each position of each text, the id of the word that a model without layers maps nearest: int64 [B, S].

    |e - x|² is smallest where e x - |e|²/2 is largest; words are compared ROWS at a time.
    """
    model.network.eval()
    length = received_BSD.shape[1]
    received_SBD = received_BSD.swapaxes(0, 1)
    best_SB = torch.full(received_SBD.shape[:2], -torch.inf, device=received_BSD.device)
    ids_SB = torch.zeros_like(best_SB, dtype=torch.int64)
    for words_W in torch.arange(len(model.parameters[model.word_embeddings])).split(ROWS):
        ids_WS = words_W[:, None].expand(-1, length)
        batch = {"input_ids": ids_WS, "attention_mask": torch.ones_like(ids_WS)}
        batch |= {"token_type_ids": torch.zeros_like(ids_WS)}
        words_SWD = model.features(batch)[0].to(dtype).float().swapaxes(0, 1)
        scores_SBW = received_SBD @ words_SWD.mT - words_SWD.square().sum(-1)[:, None] / 2
        top_SB, place_SB = scores_SBW.max(-1)
        ids_SB = torch.where(top_SB > best_SB, place_SB + words_W[0].item(), ids_SB)
        best_SB = torch.maximum(top_SB, best_SB)
    return ids_SB.T
