"""The one model of a process: clients' parameters are copied in and out of it in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedsim.data import Batch, Part, evaluation_batches
from fedsim.models.anatomy import Anatomy, anatomy
from fedsim.models.sequence import SequenceModel
from fedsim.precision import Precision


class Resident:
    """A model on its device, with its parameters by name and the loss that suits its outputs."""

    def __init__(self, model: SequenceModel, precision: Precision, regression: bool = False) -> None:
        self.precision = precision
        self.device = precision.device
        self.model = model.to(self.device)
        # named_parameters, never state_dict: a tied tensor must be counted once
        self.parameters: dict[str, nn.Parameter] = dict(model.named_parameters())
        self.regression = regression

    @property
    def anatomy(self) -> Anatomy:
        """The parameters by part."""
        return anatomy(self.parameters)

    @property
    def hidden(self) -> int:
        """Width of the encoder's hidden states."""
        config: Any = self.model.encoder.config  # its fields differ from family to family
        return int(config.hidden_size)

    @property
    def word_embeddings(self) -> str:
        """The name of the encoder's word embeddings."""
        encoder: Any = self.model.encoder
        weight = encoder.get_input_embeddings().weight
        return next(name for name, parameter in self.parameters.items() if parameter is weight)

    def write(self, values: Mapping[str, Tensor]) -> None:
        """Copy values into the parameters of the same names."""
        with torch.no_grad():
            for name, value in values.items():
                self.parameters[name].copy_(value)

    def read(self, names: Iterable[str]) -> dict[str, Tensor]:
        """The named parameters themselves, not copies."""
        return {name: self.parameters[name].detach() for name in names}

    def snapshot(self, names: Iterable[str]) -> dict[str, Tensor]:
        """Copies of the named parameters."""
        return {name: self.parameters[name].detach().clone() for name in names}

    def set_trained(self, names: Iterable[str]) -> None:
        """Ask for gradients of these parameters and no others."""
        trained = frozenset(names)
        for name, parameter in self.parameters.items():
            parameter.requires_grad_(name in trained)

    def path_logits(self, batch: Batch) -> Tensor:
        """Outputs [P, B, C] of each path in fp32, computed in the chosen precision."""
        with self.precision.autocast():
            return self.model(self._moved(batch)).float()

    def logits(self, batch: Batch) -> Tensor:
        """Outputs [B, C]: the mean over the head's paths."""
        return self.path_logits(batch).mean(0)

    def loss(self, batch: Batch) -> Tensor:
        """Mean cross-entropy of a batch, or mean squared error of a score, summed over the head's paths."""
        labels = batch["labels"].to(self.device, non_blocking=True)
        return torch.stack([self._path_loss(logits, labels) for logits in self.path_logits(batch)]).sum()

    def features(self, batch: Batch) -> Tensor:
        """The hidden states that the head reads, [K, B, S, D], or of [CLS] alone, [K, B, 1, D]."""
        with self.precision.autocast():
            states = torch.stack(tuple(self.model.states(self._moved(batch))))
        return states if self.model.head.tokens else states[:, :, :1]

    def predict(self, part: Part, batch_size: int, width: int | None) -> np.ndarray:
        """Outputs float32 [n, C] for a part, in its order."""
        self.model.eval()
        outputs: np.ndarray | None = None
        with torch.inference_mode():
            for positions, batch in evaluation_batches(part, batch_size, width):
                logits = self.logits(batch).cpu().numpy()
                if outputs is None:
                    outputs = np.empty((len(part), logits.shape[1]), dtype=np.float32)
                outputs[positions] = logits
        return outputs if outputs is not None else np.empty((0, 1), dtype=np.float32)

    def _moved(self, batch: Batch) -> Batch:
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in batch.items()}

    def _path_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.regression:
            return functional.mse_loss(logits.squeeze(-1), labels)
        return functional.cross_entropy(logits, labels)
