"""What a cell's training costs in FLOPs, estimated from shapes and the tokens of the real data."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.backbones import KNOWN, architecture, build_tokenizer, locate
from benchmarks.errors import UserError
from benchmarks.settings import Settings
from benchmarks.spec import Cell, canonical_json

if TYPE_CHECKING:
    from benchmarks.flops import PerText, Size
    from fedsim.data import Client, Subset
    from fedsim.engine import FederationState
    from fedsim.models.model import Model
    from fedsim.objectives import Objective
    from fedsim.training import LocalTraining

KNOWN_FLOPS: dict[Hashable, PerText] = {}  # of models and what was done with them: the same in every cell


@dataclass(frozen=True)
class Effort:
    """Optimiser steps of a cell, and FLOPs of its training and of its scoring after each round."""

    steps: int
    training_flops: float
    scoring_flops: float

    @property
    def flops(self) -> float:
        """All of them."""
        return self.training_flops + self.scoring_flops

    def hours(self, flops_per_second: float) -> float:
        """Wall time at a sustained rate."""
        return self.flops / flops_per_second / 3600


def estimate_effort(cell: Cell, settings: Settings) -> Effort:
    """FLOPs of a cell on the data at hand: those of its matrix products, forwards and backwards.

    The method's own rounds run on `meta` tensors, on texts of a few tokens, and PyTorch counts; so a gradient counts
    where there is one, whoever composes the training. A text of S tokens costs a + b S + c S², and so much for each
    token that is asked for; the sum is over the texts of each round's cohort. Padding is left out, or counted where
    training.padding is "fixed". Over a frozen encoder each text counts once where its features are kept. What a round
    computes besides the batches of its training is left out.
    UserError where neither the data nor a tokenizer is at hand.
    """
    from benchmarks.federation import build_clients, load_inputs, objective_of
    from benchmarks.flops import prepared_already
    from benchmarks.rounds import amounts_by_round, cohorts

    counted = replace(cell, backbone=_with_same_vocabulary(cell.backbone, settings))
    inputs = load_inputs(counted, replace(settings, backbone=None))
    clients, _ = build_clients(counted, inputs, settings)
    words = int(architecture(cell.backbone)["vocab_size"])
    objective = objective_of(inputs.task, words, lambda: build_tokenizer(inputs.backbone))
    tally = _Tally(cell, objective, prepared_already(objective))
    with tally.counter:
        start = tally.algorithm.init(clients, tally.channel, tally.store)
        rounds = amounts_by_round(tally.algorithm, start, cohorts(cell, clients), tally.round, lambda client: client.id)
        training = tally.featured_flops + sum(amounts["flops"] for amounts in rounds)
        scoring = tally.scoring_flops(clients)
    return Effort(sum(amounts["steps"] for amounts in rounds), training, scoring)


class _Tally:
    """The counts of one cell."""

    def __init__(self, cell: Cell, objective: Objective, prepared: Objective) -> None:
        """objective: the task's; prepared: the same for texts that stand in for real ones."""
        from benchmarks.flops import Counted, FlopCounter
        from benchmarks.planned import Features, Forgetful
        from benchmarks.planning import counted_setting
        from fedsim.algorithms import build_algorithm
        from fedsim.wire import Channel

        self.cell, self.objective = cell, objective
        self.counter, self.channel, self.store = FlopCounter(), Channel(cell.codec), Forgetful()
        training = cell.training
        counted = Counted(
            cell.seed,
            training.learning_rate,
            training.batch_size,
            training.local_epochs,
            rounds=training.rounds,
            counter=self.counter,
            on_batches=self._trained,
            known=KNOWN_FLOPS,
        )
        features = Features(counted=True, on_part=self._featured)
        self.setting = counted_setting(cell, cell.backbone, counted, features, prepared)
        self.algorithm = build_algorithm(cell.algorithm, self.setting, cell.options)
        self.reached: FederationState | None = None  # after the first round that was run
        self.amounts: dict[str, int] = {}
        self.encoded: dict[Hashable, Subset] = {}  # parts whose features were asked for
        self.encoder: PerText | None = None  # of one of their texts
        self.featured_flops = 0

    def round(self, state: FederationState, cohort: Sequence[Client]) -> tuple[FederationState, dict[str, int]]:
        """The FLOPs and steps of a round's training."""
        self.amounts = {"flops": 0, "steps": 0}
        after, _ = self.algorithm.round(state, cohort, self.channel)
        self.reached = self.reached or after
        return after, self.amounts

    def scoring_flops(self, clients: Sequence[Client]) -> int:
        """FLOPs of every client's answers after each round, by what it takes after the first."""
        asked = {}  # a subset that several clients are scored on is answered once, unless their answers are their own
        for client in clients:
            for subset in client.evaluation.values():
                asked[id(subset), client.id if self.algorithm.personal else None] = client, subset
        before = self.featured_flops
        answers = sum(self._flops(self._answer(client), subset) for client, subset in asked.values())
        if self.encoder is not None:
            for _, subset in asked.values():
                self._encode(subset)
        return self.cell.training.last_round * answers + self.featured_flops - before

    def _answer(self, client: Client) -> PerText:
        """FLOPs of a text's answer by a client's model."""
        from benchmarks.flops import OneText, architecture_of
        from benchmarks.rounds import decisive

        def answer(size: Size) -> None:
            assert self.reached is not None
            self.algorithm.predict(self.reached, client, OneText(size, self.setting.objective).subset)

        plan = self.algorithm.plan
        own: Hashable = client.id if plan is None else decisive(plan(1, client.id))
        method = self.cell.algorithm, canonical_json(self.cell.options), self.cell.clients
        key = ("answer", method, own, self.algorithm.personal, architecture_of(self.setting.model))
        return self._once(key, answer)

    def _trained(self, training: LocalTraining, subset: Subset, flops: PerText) -> None:
        self.amounts["flops"] += training.epochs * self._flops(flops, subset)
        self.amounts["steps"] += training.steps(subset)

    def _featured(self, model: Model, subset: Subset) -> None:
        from benchmarks.flops import OneText, architecture_of

        def encode(size: Size) -> None:
            import torch

            with torch.inference_mode():
                model.features(
                    OneText(size, self.setting.objective).subset.examples.collate(np.zeros(1, dtype=np.int64))
                )

        self.encoder = self._once(("features", architecture_of(self.setting.model)), encode)
        if not isinstance(subset.examples, OneText):
            self._encode(subset)

    def _encode(self, subset: Subset) -> None:
        """Count a subset's features, the first time that they are asked for."""
        key = id(subset.examples), subset.indices.tobytes()
        if key not in self.encoded and self.encoder is not None:
            self.encoded[key] = subset
            self.featured_flops += self._flops(self.encoder, subset)

    def _once(self, key: Hashable, compute: Callable[[Size], None]) -> PerText:
        if key not in KNOWN_FLOPS:
            KNOWN_FLOPS[key] = self.counter.of(compute)
        return KNOWN_FLOPS[key]

    def _flops(self, flops: PerText, subset: Subset) -> int:
        lengths = lengths_of(subset)
        if self.cell.training.padding == "fixed":
            lengths = np.full_like(lengths, self.cell.training.max_length)
        return flops.of(lengths, self._targets(subset) if flops.target else 0)

    def _targets(self, subset: Subset) -> int:
        """Tokens of a subset that are asked for in an epoch."""
        from benchmarks.planned import States
        from fedsim.data import IGNORED, Subset, evaluation_batches
        from fedsim.rng import numpy_generator

        if isinstance(subset.examples, States):
            subset = Subset(subset.examples.examples, subset.indices)
        rng = numpy_generator(self.cell.seed, 0, 0, "targets")
        batches = evaluation_batches(subset, self.cell.training.batch_size, None)
        return sum(int((self.objective.prepare(batch, rng)["labels"] != IGNORED).sum()) for _, batch in batches)


def lengths_of(subset: Subset) -> np.ndarray:
    """Tokens of each text of a subset, int64 [n]: operations are products of them."""
    return subset.examples.lengths[subset.indices].astype(np.int64)


def _with_same_vocabulary(backbone: str, settings: Settings) -> str:
    """The backbone, or one of the same vocabulary whose files are here: it cuts texts into the same tokens."""
    size, bpe = architecture(backbone)["vocab_size"], KNOWN[backbone].bpe if backbone in KNOWN else ""
    same = (name for name, entry in KNOWN.items() if (entry.config["vocab_size"], entry.bpe) == (size, bpe))
    for name in (backbone, *same):
        try:
            return locate(name, True, settings.data_dir, settings.results_dir).id
        except UserError:
            continue
    raise UserError(f"no tokenizer of {backbone} on this machine: expected its files, to count tokens; fetch it first")
