"""What the benchmarks train: random texts of MRPC's lengths with an encoder of the lite scale's sizes.

Time depends neither on what texts say nor on what an encoder knows, so neither data nor weights are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.encoders.backbones import architecture
from benchmarks.run_config import JSON
from fedsim.algorithms import Workload
from fedsim.data import Client, Examples, Subset
from fedsim.features import FeatureCache
from fedsim.models.model import Model
from fedsim.models.sequence import encoder_from_config, with_head
from fedsim.objectives import Classification
from fedsim.precision import resolve_precision
from fedsim.train_config import TrainConfig
from fedsim.training import LocalTraining

BACKBONE = "all-MiniLM-L6-v2"
# Tokens of MRPC's pairs in the bert-base-uncased vocabulary: least, every tenth, most; 53.2 in the mean.
MRPC_LENGTHS = (19, 36, 41, 45, 50, 53, 57, 61, 64, 70, 103)
MAX_LENGTH = 128  # tokens at which the papers cut


def random_clients(
    clients: int, trained: int, tested: int = 0, lengths: tuple[int, ...] = MRPC_LENGTHS, vocabulary: int = 30522
) -> list[Client]:
    """Clients with random texts of two classes. trained, tested: texts of each. lengths: quantiles of their tokens."""
    rng = np.random.default_rng(0)
    count = clients * (trained + tested)
    drawn = np.interp(rng.random(count), np.linspace(0, 1, len(lengths)), lengths).round().astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(drawn)])
    tokens = rng.integers(1, vocabulary, offsets[-1], dtype=np.int32)
    examples = Examples(tokens, np.zeros_like(tokens), offsets, rng.integers(0, 2, count), padding_id=0)
    return [
        Client(number, Subset(examples, part[tested:]), {"test": Subset(examples, part[:tested])} if tested else {})
        for number, part in enumerate(np.array_split(np.arange(count), clients))
    ]


def workload_of(
    backbone: str = BACKBONE,
    device: str = "cpu",
    head: str = "pooled",
    folder: Path | None = None,
    config: Mapping[str, JSON] | None = None,
    **training: JSON,
) -> Workload:
    """Training in batches of 16 of a backbone with fresh weights, copied before anything is trained.

    folder: of cached features. config: changes to the encoder's configuration. training: changes to the TrainConfig.
    """
    local = TrainConfig(**{"rounds": 1, "learning_rate": 5e-5, "batch_size": 16, **training})
    objective = Classification(2)
    encoder = encoder_from_config({**architecture(backbone), **(config or {})})
    network = with_head(encoder, objective.outputs, seed=0, head=head)
    model = Model(network, resolve_precision(local.precision, device), objective, local.kernels)
    workload = Workload(
        lambda: model, LocalTraining(local), objective, max_length=MAX_LENGTH, features=FeatureCache(folder)
    )
    _ = workload.initial
    return workload


def trained_names(workload: Workload) -> list[str]:
    """The parameters that FedAvg trains and exchanges: all but the embeddings, which are frozen."""
    groups = workload.model.groups
    return sorted(groups.names - groups.embeddings)
