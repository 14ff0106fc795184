"""The client's side of a round: local epochs of AdamW on its own examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from fedsim.data import Part, training_batches
from fedsim.errors import DivergedError
from fedsim.models.resident import Resident
from fedsim.models.words import Words, only_words_of
from fedsim.rng import numpy_generator, torch_seeded
from fedsim.wire import Params


def _ignore(examples: int) -> None:
    """No one watches."""


@dataclass(frozen=True)
class LocalTraining:
    """What every client does with its examples in a round. width: None pads to the longest of a batch."""

    seed: int
    learning_rate: float
    batch_size: int
    epochs: int = 1
    weight_decay: float = 0.01
    width: int | None = None
    on_batch: Callable[[int], None] = _ignore  # told the number of examples after each step

    def run(
        self, resident: Resident, part: Part, names: list[str], round: int, client: int, anchor: Params, proximal: float
    ) -> float:
        """Train the named parameters of the resident model in place; returns the mean loss per example.

        anchor, proximal: FedProx's term, proximal / 2 * ||w - anchor||² over the anchor's parameters (Li et al.
        2020, equation 2); the returned loss is the task's alone, so that methods can be compared.
        """
        with self._words(resident, part, names) as words:
            parameters = [resident.parameters[name] for name in names]
            resident.set_trained(names)
            optimizer = torch.optim.AdamW(parameters, lr=self.learning_rate, weight_decay=self.weight_decay, fused=True)
            scaler = resident.precision.scaler()
            total = torch.zeros((), device=resident.device)
            resident.model.train()
            nearby = words.anchor(anchor) if words else anchor
            with torch_seeded(self.seed, round, client, "dropout"):
                for epoch in range(self.epochs):
                    order = numpy_generator(self.seed, round, client, f"shuffle-{epoch}")
                    for batch in training_batches(part, self.batch_size, self.width, order):
                        loss = resident.loss(words.batch(batch) if words else batch)
                        scaler.scale(loss).backward()
                        if proximal:
                            scaler.unscale_(optimizer)
                            add_proximal_gradient(resident.parameters, nearby, proximal)
                        scaler.step(optimizer)
                        scaler.update()
                        optimizer.zero_grad(set_to_none=True)
                        total += loss.detach() * len(batch["labels"])
                        self.on_batch(len(batch["labels"]))
        mean = total.item() / (self.epochs * len(part))
        finite = bool(torch.nn.utils.get_total_norm(parameters).isfinite())
        if not (math.isfinite(mean) and finite):  # the last step's damage shows in the parameters alone
            raise DivergedError(
                f"training diverged in round {round} on client {client}: the mean loss is {mean}"
                f"{'' if finite else ' and the parameters are not finite'}. "
                f"Lower the learning rate (now {self.learning_rate}), or choose the precision fp32."
            )
        return mean

    def _words(self, resident: Resident, part: Part, names: list[str]) -> AbstractContextManager[Words | None]:
        """The words to train embeddings of: the part's own, where that is exact."""
        trained = resident.word_embeddings in names
        return only_words_of(part, resident) if trained and self.weight_decay == 0 else nullcontext()


def add_proximal_gradient(parameters: Mapping[str, Tensor], anchor: Params, proximal: float) -> None:
    """Add proximal * (w - anchor), the gradient of FedProx's term, to the gradients of the trained parameters."""
    for name, start in anchor.items():
        parameter = parameters[name]
        if parameter.grad is not None:
            parameter.grad.add_(parameter.detach() - start, alpha=proximal)
