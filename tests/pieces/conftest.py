"""A federation that trains in milliseconds, and a task of a test's own; everything in here is a public piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fedsim.algorithms import Workload
from fedsim.checkpoint import Checkpoint
from fedsim.data import Client, Examples, Subset
from fedsim.engine import FederatedAlgorithm, Run, Scorer, run_federation
from fedsim.models.encoder import encoder_from_config
from fedsim.models.model import Model
from fedsim.models.sequence import with_head
from fedsim.objectives import Classification, Objective
from fedsim.precision import resolve_precision
from fedsim.wire import Channel, Params
from tests.local_training import local_training

# V words, S positions, D wide, F wide inside a layer, L layers, C classes, n examples of each client
V, S, D, F, L, C, N = 60, 16, 16, 24, 3, 2, (14, 10, 6)
CONFIG: Mapping[str, Any] = {
    "model_type": "bert",
    "vocab_size": V,
    "hidden_size": D,
    "num_hidden_layers": L,
    "num_attention_heads": 2,
    "intermediate_size": F,
    "max_position_embeddings": S,
    "initializer_range": 0.2,
}
EMBEDDINGS = (V + S + 2) * D + 2 * D  # words, positions, two types, LayerNorm
LAYER = 4 * (D * D + D) + 2 * D + (D * F + F) + (F * D + D) + 2 * D  # query, key, value, output; inner, outer; norms
HEAD = (D * D + D) + (D * C + C)  # pooler and classifier


def score(answers: np.ndarray, subset: Subset) -> dict[str, float | None]:
    """Accuracy, and a number that changes with the last bit of any answer."""
    return {"accuracy": float((answers.argmax(1) == subset.labels).mean()), "sum": float(answers.sum(dtype=np.float64))}


class Watched(Channel):
    """A channel that remembers the names of what crossed it."""

    def __init__(self, codec: str = "fp32") -> None:
        super().__init__(codec)
        self.names: set[str] = set()

    def to_client(self, client: int, payload: Mapping[str, Tensor], kind: str = "parameters") -> Params:
        self.names.update(payload)
        return super().to_client(client, payload, kind)

    def to_server(self, client: int, payload: Mapping[str, Tensor], kind: str = "parameters") -> Params:
        self.names.update(payload)
        return super().to_server(client, payload, kind)


class Small:
    """Three clients of unequal size, who classify texts by their first token, and a BERT of three layers."""

    embeddings, layer, head, layers, width, positions, classes, sizes = EMBEDDINGS, LAYER, HEAD, L, D, S, C, N

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        offsets = np.concatenate([[0], np.cumsum(rng.integers(3, 10, 2 * sum(N)))])
        tokens = rng.integers(1, V, offsets[-1]).astype(np.int32)
        labels = (tokens[offsets[:-1]] > V / 2).astype(np.int64)
        examples = Examples(tokens, np.zeros_like(tokens), offsets, labels, padding_id=0)
        shares = np.split(np.arange(2 * sum(N)), np.cumsum(np.repeat(N, 2))[:-1])
        self.clients = [
            Client(number, Subset(examples, shares[2 * number]), {"test": Subset(examples, shares[2 * number + 1])})
            for number in range(len(N))
        ]

    def setting(
        self,
        objective: Objective | None = None,
        head: str = "pooled",
        config: Mapping[str, Any] = CONFIG,
        kernels: str = "packed",
        **training: Any,
    ) -> Workload:
        """The same weights each time, in a new model."""
        asked = objective or Classification(C)

        def load() -> Model:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                encoder = encoder_from_config(config)
            return Model(
                with_head(encoder, asked.outputs, 0, head=head), resolve_precision("fp32", "cpu"), asked, kernels
            )

        values = {"seed": 0, "learning_rate": 5e-3, "batch_size": 4, **training}
        return Workload(load, local_training(**values), asked, max_length=S)

    def run(
        self,
        algorithm: FederatedAlgorithm,
        channel: Channel | None = None,
        rounds: int = 2,
        clients: Sequence[Client] | None = None,
        checkpoint: Checkpoint | None = None,
        score: Scorer = score,
    ) -> Run:
        chosen = clients or self.clients
        return run_federation(
            algorithm, chosen, channel or Channel(), score, rounds=rounds, seed=0, checkpoint=checkpoint
        )


@pytest.fixture(scope="session")
def small() -> Small:
    return Small()


@pytest.fixture
def watched() -> Callable[..., Watched]:
    return Watched
