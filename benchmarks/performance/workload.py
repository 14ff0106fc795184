"""What the suite trains: random texts of MRPC's lengths and an encoder of the lite scale's sizes.

Time depends neither on what texts say nor on what an encoder knows, so nothing has to be at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.encoders.backbones import architecture
from benchmarks.run_config import JSON
from fedsim.algorithms import Workload
from fedsim.data import Client, Examples, Subset
from fedsim.feature_cache import FeatureCache
from fedsim.models.encoder import encoder_from_config
from fedsim.models.model import Model
from fedsim.models.sequence import with_head
from fedsim.objectives import Classification, Objective
from fedsim.precision import resolve_precision
from fedsim.train_config import TrainConfig
from fedsim.training import LocalTraining

BACKBONE = "all-MiniLM-L6-v2"
# Tokens of MRPC's pairs in the bert-base-uncased vocabulary: least, every tenth, most; 53.2 in the mean.
MRPC_LENGTHS = (19, 36, 41, 45, 50, 53, 57, 61, 64, 70, 103)
LEARNING_RATE = 5e-5
MAX_LENGTH = 128  # tokens at which the papers cut
LABELS = Classification(2)


def texts(
    count: int, lengths: tuple[int, ...] = MRPC_LENGTHS, vocabulary: int = 30522, seed: int = 0, first: int = 1000
) -> Examples:
    """Random texts of two classes, their lengths as these quantiles say, of the words from the first one on."""
    rng = np.random.default_rng(seed)
    shares = np.linspace(0, 1, len(lengths))
    drawn = np.interp(rng.random(count), shares, lengths).round().astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(drawn)])
    tokens = rng.integers(first, vocabulary, offsets[-1], dtype=np.int32)
    return Examples(tokens, np.zeros_like(tokens), offsets, rng.integers(0, 2, count), padding_id=0)


def clients_of(examples: Examples, clients: int, tested: int = 0) -> list[Client]:
    """Clients that share the examples out equally; each keeps so many for its test."""
    parts = np.array_split(np.arange(len(examples)), clients)
    return [
        Client(
            number,
            Subset(examples, part[tested:]),
            {"test": Subset(examples, part[:tested])} if tested else {},
        )
        for number, part in enumerate(parts)
    ]


def setting_of(
    backbone: str = BACKBONE,
    precision: str = "auto",
    kernels: str = "packed",
    head: str = "pooled",
    device: str | None = None,
    folder: Path | None = None,
    config: Mapping[str, JSON] | None = None,
    objective: Objective = LABELS,
    seed: int = 0,
    **training: JSON,
) -> Workload:
    """A client's local training, batches of 16; the backbone has fresh weights. folder: of cached features.

    config: changes to the encoder's configuration. objective: what it is trained for; two labels, where none is said.
    """
    local = TrainConfig(**{"rounds": 1, "learning_rate": LEARNING_RATE, "batch_size": 16, **training})

    def load() -> Model:
        encoder = encoder_from_config({**architecture(backbone), **(config or {})})
        network = with_head(encoder, objective.outputs, seed=0, head=head)
        return Model(network, resolve_precision(precision, device), objective, kernels)

    return Workload(load, LocalTraining(local, seed), objective, max_length=MAX_LENGTH, features=FeatureCache(folder))
