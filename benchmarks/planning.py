"""What a benchmark will send, counted without training: one round of the real channel on `meta` tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.backbones import architecture
from benchmarks.spec import Cell
from benchmarks.tasks import task


@dataclass(frozen=True)
class WirePlan:
    """Bytes of one round with every client in it, by direction and summed over clients, and of the set-up."""

    up_bytes: int
    down_bytes: int
    setup_bytes: int


def wire_plan(cell: Cell, backbone: str | None = None) -> WirePlan:
    """Derive a cell's bytes from its backbone's configuration; no weights, no data."""
    import numpy as np
    import torch

    from fedsim.algorithms import Setting, build_algorithm
    from fedsim.data import Client, Examples, Part
    from fedsim.models.encoder import encoder_from_config
    from fedsim.models.resident import Resident
    from fedsim.models.sequence import with_classifier
    from fedsim.precision import Precision
    from fedsim.store import ClientStore
    from fedsim.training import LocalTraining
    from fedsim.wire import Channel

    found = task(cell.task)

    def load_model() -> Resident:
        with torch.device("meta"):
            encoder = encoder_from_config(_full(architecture(backbone or cell.backbone)))
            model = with_classifier(encoder, found.outputs, cell.seed)
        return Resident(model, Precision(torch.device("meta"), "fp32"), regression=found.labels is None)

    class Untrained(LocalTraining):
        def run(self, *_: Any) -> float:
            return 0.0

    class Forgetful(ClientStore):
        def put(self, *_: Any) -> None:
            """Meta tensors have no values to keep."""

    empty = np.zeros(1, dtype=np.int32)
    example = Examples(empty, empty, np.array([0, 1]), np.zeros(1, dtype=np.int64), 0)
    part = Part(example, np.zeros(1, dtype=np.int64))
    clients = [Client(number, part, {"test": part}) for number in range(cell.clients)]
    training = Untrained(cell.seed, cell.training.learning_rate, cell.training.batch_size)
    algorithm = build_algorithm(cell.algorithm, Setting(load_model, training, found.outputs), cell.options)
    channel = Channel(cell.codec)
    state = algorithm.init(clients, channel, Forgetful())
    channel.round = 1
    algorithm.round(state, clients, channel)
    ledger = channel.ledger
    return WirePlan(ledger.total_bytes("up"), ledger.total_bytes("down"), ledger.setup_bytes)


def _full(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if not name.startswith("_")}
