"""Local training: batches, an optimiser with single steps, and a learning-rate schedule.

`LocalTraining.run` combines them into a client's local epochs; split training combines them differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from fedsim.data import Batch, Examples, Subset, training_batches
from fedsim.errors import DivergedError, FederationError
from fedsim.micro_batches import MicroBatches
from fedsim.models.model import Model
from fedsim.objectives import Objective
from fedsim.precision import Precision
from fedsim.rng import numpy_generator, torch_seeded
from fedsim.server import Moments
from fedsim.train_config import TrainConfig
from fedsim.wire import Params

ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")  # AdamW's state per parameter
BETA1 = 0.9  # AdamW's, as in every paper


def learning_rate_share(schedule: str, step: int, steps: int, warmup: int) -> float:
    """The learning rate as a share of its peak: linear warm-up, then "constant", or "linear" decay to 0.

    step: number of the step in the run, from 0. steps, warmup: steps in the run and in its warm-up. Source: Devlin et
    al. 2019, appendix A.2.
    """
    rising = min(1.0, (step + 1) / warmup) if warmup else 1.0
    return min(rising, (steps - step) / max(1, steps - warmup)) if schedule == "linear" else rising


class Optimizer:
    """AdamW over the given parameters, with single steps at the scheduled learning rate."""

    def __init__(
        self, parameters: Mapping[str, nn.Parameter], config: TrainConfig, precision: Precision, first: int, total: int
    ) -> None:
        """precision: for loss scaling. first, total: steps already done, and steps in the run."""
        self.parameters, self._config = parameters, config
        self.done, self._total = first, total
        groups: dict[bool, list[nn.Parameter]] = {True: [], False: []}
        for parameter in parameters.values():  # biases and LayerNorm's parameters are vectors
            groups[config.decayed == "all" or parameter.ndim > 1].append(parameter)
        self._adamw = torch.optim.AdamW(
            [
                {"params": params, "weight_decay": config.weight_decay * kind}
                for kind, params in groups.items()
                if params
            ],
            lr=config.learning_rate,
            betas=(BETA1, config.beta2),
            eps=config.epsilon,
            fused=precision.device.type != "meta",  # `meta` has no fused kernel
        )
        self._scaler = precision.scaler()

    def backward(self, outputs: Tensor, gradient: Tensor | None = None) -> None:
        """Accumulate the gradients of a loss, or those of outputs with a given gradient."""
        if gradient is None:
            self._scaler.scale(outputs).backward()
        else:
            outputs.backward(self._scaler.scale(gradient).to(outputs.dtype))

    def gradient(self, tensor: Tensor) -> Tensor:
        """The loss gradient at a tensor, without the loss scaling."""
        if tensor.grad is None:
            raise FederationError("gradient: expected a tensor that the loss depends on, after `backward`")
        return tensor.grad / self._scaler.get_scale()

    def norm(self) -> Tensor:
        """The norm of all gradients, without the loss scaling; valid before a step."""
        return self._norm() / self._scaler.get_scale()

    def step(self, adjust: Callable[[], None] | None = None, elsewhere: Tensor | None = None) -> None:
        """Update the parameters, then clear the gradients.

        adjust: changes the gradients first, for example by FedProx's term. elsewhere: norm of another party's
        gradients, included when gradients are clipped.
        """
        config = self._config
        share = learning_rate_share(config.schedule, self.done, self._total, round(config.warmup * self._total))
        share *= config.decay ** (self.done * config.rounds // self._total)  # the rounds done before this one
        for group in self._adamw.param_groups:
            group["lr"] = config.learning_rate * share
        if adjust is not None or config.clip_norm is not None:
            self._scaler.unscale_(self._adamw)
        if adjust is not None:
            adjust()
        if config.clip_norm is not None:
            norm = self._norm() if elsewhere is None else torch.hypot(self._norm(), elsewhere)
            torch.nn.utils.clip_grads_with_norm_(self.parameters.values(), config.clip_norm, norm)
        self._scaler.step(self._adamw)
        self._scaler.update()
        self.clear()
        self.done += 1

    def _norm(self) -> Tensor:
        gradients = (parameter.grad for parameter in self.parameters.values())
        return torch.nn.utils.get_total_norm([gradient for gradient in gradients if gradient is not None])

    def clear(self) -> None:
        """Remove the gradients."""
        self._adamw.zero_grad(set_to_none=True)

    @property
    def moments(self) -> Moments:
        """The optimiser's state, by moment and parameter name."""
        state = self._adamw.state
        return {
            moment: {name: state[parameter][moment] for name, parameter in self.parameters.items() if state[parameter]}
            for moment in ADAM_STATE
        }

    def load(self, moments: Mapping[str, Params]) -> None:
        """Continue from kept moments; a parameter without moments starts fresh."""
        for name, parameter in self.parameters.items():
            if name in moments.get(ADAM_STATE[0], {}):
                self._adamw.state[parameter] = {
                    moment: moments[moment][name].to(parameter.device, copy=True) for moment in ADAM_STATE
                }


class Losses:
    """A round's batch losses and their mean per text, or per token for a language model."""

    def __init__(self, model: Model) -> None:
        self._objective = model.objective
        self._total = torch.zeros((), device=model.device)
        self._weight = 0

    def add(self, loss: Tensor, batch: Batch) -> None:
        """Add a batch's mean loss."""
        weight = self._objective.weight(batch)
        self._total += loss.detach() * weight
        self._weight += weight

    def mean(self, trained: Mapping[str, Tensor], where: str, learning_rate: float) -> float:
        """The mean; raises DivergedError if it or a trained tensor is not finite. where: for the message."""
        mean = self._total.item() / max(1, self._weight)  # a language model's batch may have no target
        finite = bool(torch.nn.utils.get_total_norm(list(trained.values())).isfinite())
        if not (math.isfinite(mean) and finite):  # the last step shows only in the parameters
            raise DivergedError(
                f"training diverged {where}: the mean loss is {mean}"
                f"{'' if finite else ' and the parameters are not finite'}. "
                f"Lower the learning rate (now {learning_rate}), or choose the precision fp32."
            )
        return mean


@dataclass(frozen=True)
class LocalTraining:
    """A client's training on its examples in one round.

    seed: for order, dropout and targets. on_batch: called after each step with the number of examples. micro_batches:
    how batches are split to fit into memory.
    """

    config: TrainConfig
    seed: int = 0
    on_batch: Callable[[int], None] = lambda examples: None
    micro_batches: MicroBatches = field(default_factory=MicroBatches)

    @property
    def width(self) -> int | None:
        """Padded length in tokens; None: the longest text in the batch."""
        return self.config.max_length if self.config.padding == "fixed" else None

    def steps(self, subset: Subset) -> int:
        """Optimiser steps per round on a subset."""
        return self.config.local_epochs * math.ceil(len(subset) / self.config.batch_size)

    def batches(self, subset: Subset, objective: Objective, round: int, client: int) -> Iterator[Batch]:
        """The batches of a round's epochs, with the objective's targets."""
        for epoch in range(self.config.local_epochs):
            order = numpy_generator(self.seed, round, client, f"shuffle-{epoch}")
            drawn = numpy_generator(self.seed, round, client, f"targets-{epoch}")
            for batch in training_batches(subset, self.config.batch_size, self.width, order):
                yield objective.prepare(batch, drawn)

    def run(
        self,
        model: Model,
        subset: Subset,
        names: list[str],
        round: int,
        client: int,
        anchor: Params | None = None,
        proximal: float = 0.0,
        moments: Moments | None = None,
        correct: Callable[[Mapping[str, Tensor]], None] | None = None,
    ) -> float:
        """Train the model's named parameters in place.

        Args:
            model: The model, with the values to start from.
            subset: Training examples, for `local_epochs` epochs.
            names: The parameters to train.
            round: A key for order, dropout and targets.
            client: Another key for them.
            anchor: The parameters that FedProx's term covers, with their values in it: proximal / 2 * ||w - anchor||²
                (Li et al. 2020, equation 2).
            proximal: The weight of this term.
            moments: Kept optimiser moments, read before the first step and replaced after the last.
            correct: Changes the gradients of the named parameters in place before each step.

        Returns:
            The mean loss from `Losses`. It excludes FedProx's term, so that methods can be compared.
        """
        kept = moments if self.config.optimizer == "kept" else None
        with self._compact_vocabulary(model, subset, names) as compact:
            model.set_trained(names)
            parameters, steps = {name: model.parameters[name] for name in names}, self.steps(subset)
            done, total = (round - 1) * steps, self.config.rounds * steps
            optimizer = Optimizer(parameters, self.config, model.precision, done, total)
            if kept:
                optimizer.load(kept)
            losses = Losses(model)
            model.network.train()
            nearby = compact.anchor(anchor or {}) if compact else anchor or {}
            adjust = _adjustment(optimizer, nearby, proximal, correct)

            def add(part: Batch, share: float) -> Tensor:
                loss = model.loss(compact.batch(part) if compact else part) * share
                optimizer.backward(loss)
                return loss

            with torch_seeded(self.seed, round, client, "dropout"):
                for batch in self.batches(subset, model.objective, round, client):
                    loss = self.micro_batches.accumulate(batch, add, optimizer.clear)
                    optimizer.step(adjust)
                    losses.add(loss, batch)
                    self.on_batch(len(batch["labels"]))
        if kept is not None:
            kept.clear()
            kept.update(optimizer.moments)
        return losses.mean(optimizer.parameters, f"in round {round} on client {client}", self.config.learning_rate)

    def _compact_vocabulary(
        self, model: Model, subset: Subset, names: list[str]
    ) -> AbstractContextManager[CompactVocabulary | None]:
        """The subset's vocabulary, if training only its embeddings is exact; else None."""
        config, examples = self.config, subset.examples
        plain = config.weight_decay == 0 and config.optimizer == "fresh" and config.clip_norm is None
        exact = plain and model.objective.sparse_gradients
        if not (exact and model.word_embeddings in names and isinstance(examples, Examples)):
            return nullcontext()
        return compact_embeddings(examples.token_ids(subset.indices), model)


def _adjustment(
    optimizer: Optimizer,
    anchor: Mapping[str, Tensor],
    proximal: float,
    correct: Callable[[Mapping[str, Tensor]], None] | None,
) -> Callable[[], None] | None:
    """What changes the gradients before a step, by the arguments of `LocalTraining.run`; None if nothing does."""
    if not proximal and correct is None:
        return None

    def adjust() -> None:
        gradients = {name: each.grad for name, each in optimizer.parameters.items() if each.grad is not None}
        for name in gradients.keys() & anchor.keys() if proximal else ():
            gradients[name].add_(optimizer.parameters[name].detach() - anchor[name], alpha=proximal)
        if correct:
            correct(gradients)

    return adjust


@dataclass(frozen=True)
class CompactVocabulary:
    """A compact vocabulary with only the tokens in the given texts. name: the word-embedding parameter."""

    name: str
    places: Tensor  # row of each token id in the compact vocabulary, [V]
    ids: Tensor  # the token id of each row, [W]

    def batch(self, batch: Batch) -> Batch:
        """The batch with compact ids."""
        return {**batch, "input_ids": self.places[batch["input_ids"]]}

    def anchor(self, anchor: Params) -> Params:
        """The tensors, with word embeddings reduced to the compact rows."""
        if self.name not in anchor:
            return anchor
        whole = anchor[self.name]
        return {**anchor, self.name: whole[self.ids.to(whole.device)]}


@contextmanager
def compact_embeddings(present: np.ndarray, model: Model) -> Iterator[CompactVocabulary]:
    """Give the model embeddings for only the tokens present during a `with` block; then write them back.

    Other tokens get no gradient, and AdamW without weight decay leaves them unchanged: results are equal bit for bit.
    """
    encoder: Any = model.network.encoder
    whole: nn.Embedding = encoder.get_input_embeddings()
    name = model.word_embeddings
    # Ids up to the padding id keep their places, because RoBERTa models count positions from there.
    ids = np.union1d(present, np.arange((whole.padding_idx or 0) + 1)).astype(np.int64)
    places = np.zeros(whole.num_embeddings, dtype=np.int64)
    places[ids] = np.arange(len(ids))
    rows = torch.from_numpy(ids).to(model.device)
    compact = nn.Embedding.from_pretrained(whole.weight.detach()[rows], freeze=False, padding_idx=whole.padding_idx)
    encoder.set_input_embeddings(compact)
    model.parameters[name] = cast(nn.Parameter, compact.weight)
    try:
        yield CompactVocabulary(name, torch.from_numpy(places), torch.from_numpy(ids))
    finally:
        with torch.no_grad():
            whole.weight[rows] = compact.weight
        encoder.set_input_embeddings(whole)
        model.parameters[name] = cast(nn.Parameter, whole.weight)
