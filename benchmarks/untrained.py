"""Rounds that are only counted: local training that trains nothing, and batches that stand for many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from benchmarks.flops import OneText, OnMeta, Size
from benchmarks.planned import Texts
from fedsim.data import Batch, Subset
from fedsim.objectives import Objective
from fedsim.training import LocalTraining
from fedsim.wire import Channel


class Repeated(Channel):
    """A channel on which what is sent counts several times, while `times` is more than one."""

    times = 1

    def _transfer(self, tensor: Tensor) -> tuple[Tensor, int, int]:
        received, values, size = super()._transfer(tensor)
        return received, self.times * values, self.times * size


@dataclass(frozen=True)
class Untrained(LocalTraining):
    """Local training that leaves everything as it is.

    A method that reads the batches itself gets one of each size, of texts of `width` tokens, and what it sends then
    counts as often as there are such batches. counted: whether the numbers of examples are the data's own. mode: is
    entered while a round is counted, so that a method can compute on such batches. channel: that round's.
    """

    counted: bool = False
    mode: OnMeta = field(default_factory=OnMeta)
    channel: list[Repeated] = field(default_factory=list)

    def run(self, *_: Any, **__: Any) -> float:
        return 0.0

    def batches(self, subset: Subset, objective: Objective, round: int, client: int) -> Iterator[Batch]:
        if not self.counted or self.width is None:
            Texts().collate()
        channel, size = self.channel[-1], Size(self.width or 0, 1)
        whole, rest = divmod(len(subset), self.batch_size)
        for texts, times in ((self.batch_size, whole), (rest, 1)):
            if texts and times:
                self.mode.asked, channel.times = texts * size.asked, self.epochs * times
                yield OneText(size, objective).subset.examples.collate(np.zeros(texts, dtype=np.int64))
        channel.times = 1
