"""Tensors without values: answers to code that reads values, a device's bytes, and a GPU's arithmetic."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Hashable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.dry_run.stand_ins import META
from fedsim.precision import DTYPES, Precision

CLIENT, SERVER, KEPT = "client", "server", "kept"
aten = torch.ops.aten
_MADE: dict[Hashable, tuple[bool, list[Any]]] = {}  # an operation and its inputs' shapes -> its results' shapes


class Values(TorchDispatchMode):
    """Answers code that reads a `meta` tensor's values: true, 1, 1.0; a mask over tokens selects `targets` of them.

    Shapes of results are derived once per operation and inputs' shapes: PyTorch derives them in Python, and layers
    repeat.
    """

    targets = 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is aten._local_scalar_dense.default and args[0].is_meta:
            return 1.0 if args[0].is_floating_point() else args[0].dtype == torch.bool or 1
        if func is aten._to_copy.default and args[0].is_meta and torch.device(kwargs.get("device") or META) != META:
            return torch.zeros(args[0].shape, **kwargs)
        if func is aten.index.Tensor:
            args = (args[0], [place for index in args[1] for place in self._places(index)])
        if _changes_in_place(func) and args[0].is_meta:
            return args[0]
        key = _signature((func, args, tuple(kwargs.items()))) if _makes_anew(func) else None
        if key is None:
            return func(*args, **kwargs)
        if key not in _MADE:
            made = func(*args, **kwargs)
            each = made if isinstance(made, tuple) else (made,)
            are_meta = all(isinstance(one, Tensor) and one.is_meta and not one.storage_offset() for one in each)
            shapes = [(one.shape, one.stride(), one.dtype) for one in each] if are_meta else []
            _MADE[key] = isinstance(made, tuple), shapes
            return made
        is_tuple, shapes = _MADE[key]
        if not shapes:
            return func(*args, **kwargs)
        anew = [torch.empty_strided(shape, stride, dtype=dtype, device=META) for shape, stride, dtype in shapes]
        return tuple(anew) if is_tuple else anew[0]

    def _places(self, index: Tensor | None) -> list[Tensor | None]:
        if index is None or not index.is_meta or index.dtype != torch.bool:
            return [index]
        return [torch.empty(self.targets, dtype=torch.int64, device=META) for _ in range(index.ndim)]


@cache
def _makes_anew(func: Any) -> bool:
    """Whether an operation returns only new memory and changes nothing else."""
    schema = func._schema
    return bool(schema.returns) and not schema.is_mutable and all(each.alias_info is None for each in schema.returns)


@cache
def _changes_in_place(func: Any) -> bool:
    """Whether an operation changes only its first argument's values, not the shape, and returns it."""
    schema, to = func._schema, func._schema.returns
    changes = len(to) == 1 and to[0].alias_info is not None and to[0].alias_info.is_write
    return bool(changes and schema.name.endswith("_") and torch.Tag.inplace_view not in func.tags)


def _signature(value: Any) -> Hashable | None:
    """The inputs that determine the shapes of an operation's results; None if a tensor has values."""
    if isinstance(value, Tensor):
        return (value.shape, value.stride(), value.dtype) if value.is_meta else None
    if isinstance(value, tuple | list):
        parts = tuple(map(_signature, value))
        return None if None in parts else parts
    return (type(value), value)


class LiveBytes(TorchDispatchMode):
    """Sums the bytes of all live tensors by the side that made them; each storage counts once.

    Temporary memory inside kernels does not count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.side = KEPT
        self.live: Counter[str] = Counter()
        self.peak: Counter[str] = Counter()
        self._seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, Tensor):
                self._add(tensor.untyped_storage())
        return made

    def _add(self, storage: torch.UntypedStorage) -> None:
        key, side, size = storage._cdata, self.side, storage.nbytes()
        if key in self._seen:
            return

        def freed() -> None:
            self._seen.discard(key)
            self.live[side] -= size

        self._seen.add(key)
        self.live[side] += size
        weakref.finalize(storage, freed)
        self.reach(self.live)

    def reach(self, live: Counter[str]) -> None:
        """Keep these bytes if they are the highest so far."""
        if live.total() > self.peak.total():
            self.peak = live.copy()


class OnGpu(TorchFunctionMode):
    """A GPU's arithmetic for tensors without values: mixed precision, attention without maps, dropout by masks.

    Matrix products run in half precision, norms and powers in single precision, as in PyTorch's autocast on CUDA.
    """

    HALF = (F.linear, torch.addmm, torch.matmul, Tensor.matmul, torch.bmm, torch.einsum)
    SINGLE = (F.layer_norm, F.softmax, F.log_softmax, F.cross_entropy, F.mse_loss, torch.pow, Tensor.pow)

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            return self._attention(*args, **(kwargs or {}))
        if func is F.dropout:
            return self._dropout(*args, **(kwargs or {}))
        dtype = self.dtype if func in self.HALF else torch.float32 if func in self.SINGLE else None
        return func(*[self._cast(value, dtype) for value in args], **(kwargs or {}))

    def _cast(self, value: Any, dtype: torch.dtype | None) -> Any:
        return value.to(dtype) if dtype and isinstance(value, Tensor) and value.is_floating_point() else value

    def _attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        **_: Any,
    ) -> Tensor:
        parts = [self._cast(part, self.dtype) for part in (query, key, value)]
        bias = None
        if attn_mask is not None:
            shape = (*query.shape[:-1], key.shape[-2])
            bias = torch.empty(attn_mask.shape, dtype=self.dtype, device=query.device).expand(shape)
        attend = aten._scaled_dot_product_efficient_attention
        states: Tensor = attend(*parts, bias, True, dropout_p, is_causal, scale=scale)[0]
        return states

    def _dropout(self, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        return torch.native_dropout(input, p, True)[0] if training and p else input


class GpuPrecision(Precision):
    """A GPU's precision, on tensors without values."""

    def autocast(self) -> AbstractContextManager[object]:
        return OnGpu(DTYPES[self.name])

    def scaler(self) -> torch.amp.GradScaler:
        return torch.amp.GradScaler("cpu", enabled=False)  # two numbers
