"""Epochs of masked language modelling, each drawn from generators of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.pretraining.corpus import Corpus
from benchmarks.pretraining.masking import Vocabulary, hide
from benchmarks.pretraining.model import MaskedLanguageModel, fresh_model
from benchmarks.pretraining.recipes import Recipe
from fedsim.data import Batch, evaluation_batches, training_batches
from fedsim.errors import DivergedError
from fedsim.precision import Precision
from fedsim.rng import SERVER, numpy_generator, torch_seeded

Hidden = tuple[Batch, Tensor, Tensor]  # a batch, the positions of its hidden tokens, and these tokens


@dataclass
class Progress:
    """Mean losses per hidden token, in nats, after each finished epoch."""

    losses: list[float] = field(default_factory=list)
    held_out_losses: list[float] = field(default_factory=list)

    @property
    def epochs(self) -> int:
        """Finished epochs."""
        return len(self.losses)


class Trainer:
    """A recipe's model, its optimiser, and where they stand."""

    def __init__(self, recipe: Recipe, corpus: Corpus, precision: Precision) -> None:
        self.recipe, self.corpus, self.precision = recipe, corpus, precision
        tokenizer = corpus.tokenizer
        self.vocabulary = Vocabulary(
            corpus.place(tokenizer.mask_token_id),
            frozenset(map(corpus.place, tokenizer.all_special_ids)),
            len(corpus.vocabulary),
        )
        self.model: MaskedLanguageModel = fresh_model(recipe, corpus.vocabulary).to(precision.device)
        self.parameters = dict(self.model.named_parameters())
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
        )
        self.scaler = precision.scaler()
        self.progress = Progress()
        self.epoch_steps = math.ceil(len(corpus.train) / recipe.batch_size)

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole recipe."""
        return self.recipe.epochs * self.epoch_steps

    def train_epoch(self, on_step: Callable[[int], None]) -> None:
        """One epoch, then the held-out score. on_step: told how many steps are done."""
        epoch = self.progress.epochs + 1
        total = torch.zeros((), device=self.precision.device)
        count = 0
        self.model.train()
        with torch_seeded(self.recipe.seed, epoch, SERVER, "dropout"):
            for step, hidden in enumerate(self._training_batches(epoch), start=(epoch - 1) * self.epoch_steps):
                for group in self.optimizer.param_groups:
                    group["lr"] = learning_rate(self.recipe, step, self.steps)
                loss = self._loss(hidden)
                self.scaler.scale(loss).backward()
                self.scaler.unscale_(self.optimizer)
                torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.recipe.gradient_norm)
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad(set_to_none=True)
                total += loss.detach() * len(hidden[2])
                count += len(hidden[2])
                on_step(step + 1)
        mean, held_out = total.item() / count, self.held_out_loss()
        if not math.isfinite(mean + held_out):
            raise DivergedError(
                f"recipe {self.recipe.id} diverged in epoch {epoch}: the mean loss is {mean}, {held_out} on held-out "
                f"texts. Lower the recipe's learning rate (now {self.recipe.learning_rate})."
            )
        self.progress.losses.append(mean)
        self.progress.held_out_losses.append(held_out)

    def held_out_loss(self) -> float:
        """Mean loss per hidden token of the held-out texts; the same tokens are hidden every time."""
        total, count = 0.0, 0
        self.model.eval()
        rng = numpy_generator(self.recipe.seed, 0, SERVER, "held-out masks")
        with torch.inference_mode():
            for _, batch in evaluation_batches(self.corpus.held_out, self.recipe.batch_size, None):
                hidden = self._hide(batch, rng)
                total += self._loss(hidden).item() * len(hidden[2])
                count += len(hidden[2])
        return total / count

    def _training_batches(self, epoch: int) -> Iterator[Hidden]:
        order = numpy_generator(self.recipe.seed, epoch, SERVER, "shuffle")
        masks = numpy_generator(self.recipe.seed, epoch, SERVER, "masks")
        for batch in training_batches(self.corpus.train, self.recipe.batch_size, None, order):
            yield self._hide(batch, masks)

    def _hide(self, batch: Batch, rng: np.random.Generator) -> Hidden:
        return hide(batch, self.recipe.masked_share, self.vocabulary, rng)

    def _loss(self, hidden: Hidden) -> Tensor:
        batch, positions, targets = hidden
        device = self.precision.device
        with self.precision.autocast():
            logits = self.model({name: value.to(device) for name, value in batch.items()}, positions.to(device))
        return functional.cross_entropy(logits.float(), targets.to(device))


def learning_rate(recipe: Recipe, step: int, steps: int) -> float:
    """The rate of a step, counted from 0: up to the peak in a straight line, then down towards 0."""
    warmup = max(1, round(recipe.warmup_share * steps))
    return recipe.learning_rate * min((step + 1) / warmup, (steps - step) / max(1, steps - warmup))
