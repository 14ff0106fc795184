"""FLOPs of a text, counted by PyTorch on `meta` tensors while a method's own code runs on texts of a few tokens."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from benchmarks.planned import States
from fedsim.data import IGNORED, Batch, ExampleSet, Subset, asked
from fedsim.models.model import Model
from fedsim.objectives import Objective, Regression
from fedsim.training import LocalTraining

aten = torch.ops.aten


class Size(NamedTuple):
    """Tokens of a text, and how many of them are asked for, where an objective asks for tokens."""

    tokens: int
    asked: int


SIZES = (Size(2, 1), Size(4, 1), Size(6, 1), Size(6, 2))  # as many as `PerText` has coefficients


@dataclass(frozen=True)
class PerText:
    """FLOPs of a text of S tokens, N of them asked for: base + token S + pair S² + target N."""

    base: int
    token: int
    pair: int
    target: int

    @classmethod
    def fitted(cls, flops: Sequence[int]) -> Self:
        """Those of a text of each of SIZES; matrix products make no other terms than these."""
        short, middle, long, more = flops
        pair = (long - 2 * middle + short) // 8
        token = (middle - short) // 2 - 6 * pair
        target = more - long
        return cls(short - 2 * token - 4 * pair - target, token, pair, target)

    def of(self, lengths: np.ndarray, targets: int) -> int:
        """FLOPs of texts of these lengths, int64 [n], of which so many tokens in all are asked for."""
        tokens, pairs = int(lengths.sum()), int((lengths.astype(np.int64) ** 2).sum())
        return self.base * len(lengths) + self.token * tokens + self.pair * pairs + self.target * targets


class OnMeta(TorchDispatchMode):
    """While it is entered, code that asks a `meta` tensor for values gets some with which it goes on.

    They are true, 1 and 1.0; of a mask over tokens, as many places as are asked for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked = 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is aten._local_scalar_dense.default and args[0].is_meta:
            return 1.0 if args[0].is_floating_point() else args[0].dtype == torch.bool or 1
        if func is aten._to_copy.default and args[0].is_meta and torch.device(kwargs.get("device") or "meta") != _META:
            return torch.zeros(args[0].shape, **kwargs)
        if func is aten.index.Tensor:
            args = (args[0], [place for index in args[1] for place in self._places(index)])
        return self.computed(func, args, kwargs)

    def computed(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What a function comes to, all of whose arguments have values, or need none."""
        return func(*args, **kwargs)

    def _places(self, index: Tensor | None) -> list[Tensor | None]:
        if index is None or not index.is_meta or index.dtype != torch.bool:
            return [index]
        return [torch.empty(self.asked, dtype=torch.int64, device=_META) for _ in range(index.ndim)]


class FlopCounter(OnMeta):
    """Counts the FLOPs of matrix products while it is entered; each product of two numbers and its sum are two."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0
        self.latest = PerText(0, 0, 0, 0)  # of the batches that were read to their end last
        self._owner: list[int] = []
        self._since = 0

    def credit(self, owner: list[int]) -> None:
        """Add what is computed until the next call to the number that a list then has last; of no list to none."""
        if self._owner:
            self._owner[-1] += self.flops - self._since
        self._owner, self._since = owner, self.flops

    def of(self, compute: Callable[[Size], object]) -> PerText:
        """FLOPs of what a function computes on a text of a size; credited to no one."""
        before, counts = self.flops, []
        for size in SIZES:
            self.asked, start = size.asked, self.flops
            compute(size)
            counts.append(self.flops - start)
        self.flops = before
        return PerText.fitted(counts)

    def computed(self, func: Any, args: Any, kwargs: Any) -> Any:
        packet = func._overloadpacket
        if packet not in flop_registry:
            with self:  # in inference mode products arrive as parts of larger functions
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        out = func(*args, **kwargs)
        if packet in flop_registry:
            self.flops += flop_registry[packet](*args, **kwargs, out_val=out)
        return out


_META = torch.device("meta")


class OneText:
    """A text of some tokens, of which nothing else is known, for an objective."""

    def __init__(self, size: Size, objective: Objective) -> None:
        self.labels = np.zeros(1, dtype=np.float32 if isinstance(objective, Regression) else np.int64)
        self.lengths = np.array([size.tokens])
        targets = np.where(np.arange(size.tokens) < size.asked, 0, IGNORED)
        self.targets = targets if objective.of_tokens else None

    @property
    def subset(self) -> Subset:
        """It alone; a batch may have it several times."""
        return Subset(self, np.zeros(1, dtype=np.int64))

    def collate(self, indices: np.ndarray, width: int | None = None) -> Batch:
        ids = torch.zeros(len(indices), int(self.lengths[0]), dtype=torch.int64)
        labels = torch.from_numpy(asked(self, indices, ids.shape[1]))
        return {"input_ids": ids, "attention_mask": ids + 1, "token_type_ids": ids, "labels": labels}


def prepared_already(objective: Objective) -> Objective:
    """The objective for batches that have their targets: it draws none."""
    kind = type(objective)
    own = {"prepare": lambda self, batch, rng: batch}
    values = {each.name: getattr(objective, each.name) for each in fields(objective)}
    made: Objective = type(kind.__name__, (kind,), own)(**values)
    return made


@dataclass(frozen=True)
class Counted(LocalTraining):
    """Local training whose batches are a text of each of SIZES, so that all that is computed on them can be counted.

    It does not matter who reads them: `run`, or a method that composes batches and optimisers itself.
    on_batches: told by whose training which part's batches were read to their end, and the FLOPs of a text.
    known: FLOPs that were counted before, and are not counted again.
    """

    counter: FlopCounter = field(default_factory=FlopCounter)
    on_batches: Callable[[LocalTraining, Subset, PerText], None] = lambda training, subset, flops: None
    known: dict[Hashable, PerText] = field(default_factory=dict)

    def run(self, model: Model, subset: Subset, names: list[str], *where: Any, **options: Any) -> float:
        key = ("training", frozenset(names), isinstance(subset.examples, States), architecture_of(model))
        if key in self.known:
            self.on_batches(self, subset, self.known[key])
            return 0.0
        loss = super().run(model, subset, names, *where, **options)
        self.known[key] = self.counter.latest
        return loss

    def batches(self, subset: Subset, objective: Objective, round: int, client: int) -> Iterator[Batch]:
        counts: list[int] = []
        for size in SIZES:
            text: ExampleSet = OneText(size, objective)
            if isinstance(subset.examples, States):
                text = States(subset.examples.model, text, counted=True)
            self.counter.credit(counts)
            self.counter.asked = size.asked
            counts.append(0)
            yield text.collate(np.zeros(1, dtype=np.int64))
        self.counter.credit([])
        self.counter.latest = PerText.fitted(counts)
        self.on_batches(self, subset, self.counter.latest)


def architecture_of(model: Model) -> Hashable:
    """All of a model that decides about its FLOPs."""
    objective = model.objective
    tensors = {name: value for name, value in vars(objective).items() if isinstance(value, Tensor)}
    shapes = ((name, tuple(each.shape)) for name, each in (*model.parameters.items(), *tensors.items()))
    return frozenset(shapes), type(model.network.encoder), type(model.network.head), type(objective).__name__
