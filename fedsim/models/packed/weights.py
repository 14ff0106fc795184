"""A layer's weights as the products want them: in the element type of the arithmetic, query, key and value as one."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Cast:
    """Some parameters, one under the other, in another element type: cast once a step, and not on every call."""

    def __init__(self, *parameters: nn.Parameter) -> None:
        self._parameters = parameters
        self._value: Tensor | None = None
        self._versions: list[tuple[int, int]] = []

    def value(self, dtype: torch.dtype) -> Tensor:
        """The parameters in this element type, as they were when `refresh` was last called with it."""
        if self._value is None or self._value.dtype != dtype:
            self.refresh(dtype)
        assert self._value is not None
        return self._value

    def refresh(self, dtype: torch.dtype) -> None:
        """Take over what the parameters are now.

        A change in place counts a tensor's version up, and other memory has another address; an optimiser's fused step
        does not count, so what is trained is always cast.
        """
        if len(self._parameters) == 1 and self._parameters[0].dtype == dtype:
            self._value = self._parameters[0].detach()  # nothing to cast
            return
        versions = [(parameter._version, parameter.data_ptr()) for parameter in self._parameters]
        fits = self._value is not None and self._value.dtype == dtype
        if fits and versions == self._versions and not any(parameter.requires_grad for parameter in self._parameters):
            return
        rows = [len(parameter) for parameter in self._parameters]
        with torch.inference_mode(False), torch.no_grad():  # training may come to use what scoring has cast
            if self._value is None or not fits:
                self._value = torch.empty((sum(rows), *self._parameters[0].shape[1:]), dtype=dtype)
            for part, parameter in zip(self._value.split(rows), self._parameters, strict=True):
                part.copy_(parameter.detach())
        self._versions = versions
