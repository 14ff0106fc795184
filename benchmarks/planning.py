"""What a cell will send, counted without training: its rounds over the real channel, on `meta` tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from benchmarks.backbones import architecture
from benchmarks.costs import Kinds, ModelSizes, WirePlan
from benchmarks.errors import UserError
from benchmarks.spec import Cell
from benchmarks.tasks import task

if TYPE_CHECKING:
    from fedsim.algorithms import Setting
    from fedsim.feature_cache import FeatureCache
    from fedsim.models.model import Model
    from fedsim.objectives import Objective
    from fedsim.training import LocalTraining


def counted_setting(
    cell: Cell, backbone: str, training: LocalTraining, features: FeatureCache, objective: Objective | None = None
) -> Setting:
    """Where a cell's method runs to be counted: its model on the `meta` device, and stand-ins for what takes time.

    objective: None for one of the cell's task that reads no text.
    """
    import torch

    from fedsim.algorithms import Setting
    from fedsim.models.encoder import encoder_from_config
    from fedsim.models.model import Model
    from fedsim.models.sequence import with_head
    from fedsim.objectives import Vocabulary, build_objective
    from fedsim.precision import Precision

    found, config = task(cell.task), _full(architecture(backbone))
    if objective is None:
        vocabulary = Vocabulary(int(config.get("vocab_size", 30522)), mask_id=0)
        objective = build_objective(found.objective, found.classes, vocabulary, found.objective_options)

    def load_model() -> Model:
        with torch.device("meta"):
            encoder = encoder_from_config(config)
            model = with_head(encoder, objective.outputs, cell.seed, head=cell.head)
        return Model(model, Precision(torch.device("meta"), "fp32"), objective)

    return Setting(
        load_model,
        training,
        objective,
        max_length=cell.training.max_length,
        features=features,
        clients=cell.clients,
        participation=cell.training.participation,
    )


def wire_plan(cell: Cell, backbone: str | None = None, examples: Sequence[int] | None = None) -> WirePlan:
    """Derive the bytes of a cell's rounds from its backbone's configuration; no weights, no data.

    Each round is asked with the cohort that the engine will draw for it; only distinct ones are run.
    examples: of each client's training subset, for a method that sends something for each. UserError where the bytes
    depend on them and they are not given, or on the texts' own lengths, or where the method has fewer rounds.
    """
    import numpy as np

    from benchmarks.planned import Features, Forgetful, Texts
    from benchmarks.rounds import amounts_by_round, cohorts
    from benchmarks.untrained import Repeated, Untrained
    from fedsim.algorithms import build_algorithm
    from fedsim.data import Client, Subset
    from fedsim.engine import FederationState
    from fedsim.wire import Channel

    sizes = examples or [1] * cell.clients
    if len(sizes) != cell.clients:
        raise UserError(f"examples: expected a number for each of {cell.clients} clients, found {len(sizes)}")
    clients = [Client(number, Subset(Texts(), np.zeros(size, dtype=np.int64)), {}) for number, size in enumerate(sizes)]
    budget = cell.training
    of_one_length = budget.padding == "fixed" or task(cell.task).long_texts == "packed"
    training = Untrained(
        cell.seed,
        budget.learning_rate,
        budget.batch_size,
        budget.local_epochs,
        width=budget.max_length if of_one_length else None,
        rounds=budget.rounds,
        optimizer=budget.optimizer,
        counted=examples is not None,
    )
    setting = counted_setting(cell, backbone or cell.backbone, training, Features(counted=examples is not None))
    algorithm = build_algorithm(cell.algorithm, setting, cell.options)
    before = Channel(cell.codec)
    start = algorithm.init(clients, before, Forgetful())

    def sent(state: FederationState, cohort: Sequence[Client]) -> tuple[FederationState, Kinds]:
        channel = Repeated(cell.codec)
        channel.round = state.round + 1
        training.channel[:] = [channel]
        with training.mode if algorithm.plan is None else nullcontext():
            after, _ = algorithm.round(state, cohort, channel)
        kinds: dict[tuple[str, str], int] = {}
        for row in channel.ledger.rows:
            kinds[row.direction, row.kind] = kinds.get((row.direction, row.kind), 0) + row.bytes
        return after, kinds

    rounds = amounts_by_round(algorithm, start, cohorts(cell, clients), sent, of_client=lambda client: None)
    return WirePlan.of_rounds(rounds, before.ledger.setup_bytes, _sizes(setting.model))


def _sizes(model: Model) -> ModelSizes:
    parts, head = model.groups, model.network.head

    def size(names: Iterable[str]) -> int:
        return sum(model.parameters[name].numel() * model.parameters[name].element_size() for name in names)

    return ModelSizes(
        embeddings_bytes=size(parts.embeddings),
        layer_bytes=size(parts.layers[0]),
        head_bytes=size(parts.head),
        model_bytes=size(parts.names),
        width=model.hidden,
        layers_read=head.states,
        all_tokens=head.tokens,
    )


def _full(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if not name.startswith("_")}
