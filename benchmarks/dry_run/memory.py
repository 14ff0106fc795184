"""Memory of training by shapes: the peak of a method's tensors in its own rounds, which run on `meta` tensors."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from math import ceil
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.costs import Fit, HeldBytes
from benchmarks.dry_run.client_costs import MOMENTS, SPLIT
from benchmarks.dry_run.rounds import SINGLE, DryRun, DryTraining, architecture_of, client_of, cohorts
from benchmarks.dry_run.stand_ins import META, Features, NoStore, OneText, States
from benchmarks.errors import UserError
from benchmarks.run_config import RunConfig
from fedsim.algorithms import Workload
from fedsim.data import Batch, ExampleSet, Subset
from fedsim.micro_batches import MicroBatches
from fedsim.models.model import Model, encoder_layers
from fedsim.objectives import Objective
from fedsim.precision import DTYPES, Precision
from fedsim.training import LocalTraining

RESERVED = 0.1  # share of a GPU's memory for its context, its libraries and gaps between tensors
SCORED = Workload.evaluation_batch_size
ROUNDS = 2  # in the second one the server has a mean and clients have what they keep
CLIENT, SERVER, KEPT = "client", "server", "kept"
aten = torch.ops.aten

# ---- what a device keeps -----------------------------------------------------------------------------------------


class LiveBytes(TorchDispatchMode):
    """Sums the bytes of all tensors that exist, each storage once, by the side that made them.

    It does not see what a kernel allocates for itself while it runs.
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
        """Keep these bytes if they are the most so far."""
        if live.total() > self.peak.total():
            self.peak = live.copy()


class OnGpu(TorchFunctionMode):
    """The arithmetic of a GPU for tensors without values: mixed precision, attention without maps, dropout by bits.

    Matrix products run in half precision, norms and powers in single precision, as PyTorch's autocast does on CUDA.
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


class _Gpu(Precision):
    """The precision of a GPU, on tensors without values."""

    def autocast(self) -> AbstractContextManager[object]:
        return OnGpu(DTYPES[self.name])

    def scaler(self) -> torch.amp.GradScaler:
        return torch.amp.GradScaler("cpu", enabled=False)  # two numbers


# ---- a method's own rounds ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Training(DryTraining):
    """Two steps of local training: on one part of a batch, then on a batch of two parts, or of one if it is whole.

    grown: for each shape of a training, what it adds at its peak; models of one shape are trained once.
    """

    live: LiveBytes = field(default_factory=LiveBytes)
    parts: int = 1
    grown: dict[Hashable, int] = field(default_factory=dict)

    def run(self, model: Model, subset: Subset, names: list[str], *where: Any, **options: Any) -> float:
        live, before = self.live, self.live.peak
        held, weights = live.live.total(), sum(map(_bytes, model.parameters.values()))
        key = frozenset(names), isinstance(subset.examples, States), architecture_of(model)
        if key not in self.grown:
            live.peak = Counter()
            LocalTraining.run(self, model, subset, names, *where, **options)
            self.grown[key], live.peak = live.peak.total() - held, before
        live.reach(Counter({CLIENT: weights + self.grown[key], SERVER: held - weights}))
        return 0.0

    def batches(self, subset: Subset, objective: Objective, round: int, client: int) -> Iterator[Batch]:
        tokens, size = self.config.max_length, self.micro_batches.size or 1
        text: ExampleSet = OneText(tokens, objective)
        if isinstance(subset.examples, States):
            text = States(subset.examples.model, text, is_counted=True)
        self.meter.values.targets = size * objective.targets_in(tokens)
        for count in (size, self.parts * size):
            yield text.collate(np.zeros(count, dtype=np.int64))


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _sides(model: Model, live: LiveBytes) -> None:
    """Let the meter know, in split training, on whose side a tensor of a step is made."""
    layers = encoder_layers(model)

    def side(name: str) -> Callable[..., None]:
        def enter(*_: Any) -> None:
            live.side = name

        return enter

    model.network.register_forward_pre_hook(side(CLIENT))
    layers[0].register_forward_pre_hook(side(SERVER))
    layers[-1].register_forward_hook(side(CLIENT))
    layers[-1].register_full_backward_pre_hook(side(SERVER))
    layers[0].register_full_backward_hook(side(CLIENT))


def _peak(cell: RunConfig, texts: int, precision: Precision, clients: int) -> HeldBytes:
    """The peak over two rounds of so many clients, and their scoring, with batches in parts of so many texts."""
    live, split = LiveBytes(), cell.algorithm in SPLIT
    config = replace(cell.training, local_epochs=1, padding="fixed", precision="fp32")
    parts = MicroBatches(texts, automatic=False)
    training = _Training(config, cell.seed, micro_batches=parts, live=live, parts=1 + (texts < config.batch_size))
    with live:
        run = DryRun(replace(cell, clients=clients), cell.backbone, training, Features(True), precision)
        model = run.workload.model
        if split:
            _sides(model, live)
        own = [name for name in model.parameters if name not in frozenset().union(*model.groups.layers)]
        state = run.algorithm.init(members := [client_of(number, 1) for number in range(clients)], run.setup, NoStore())
        rounds = zip(range(config.last_round), cohorts(run.cell, members), strict=False)
        stop = register_optimizer_step_pre_hook(lambda *_: setattr(live, "side", KEPT))
        try:
            for _, cohort in islice(rounds, ROUNDS):
                state, _ = run.measure(state, cohort)
        finally:
            stop.remove()
        trained, live.peak = live.peak, Counter()
        text = OneText(config.max_length, run.workload.objective)
        run.meter.values.targets = SCORED * run.workload.objective.targets_in(config.max_length)
        model.network.eval()
        with run.meter, torch.inference_mode():
            scored = text.collate(np.zeros(SCORED, dtype=np.int64))
            answers = model.network.head.answers_tokens == run.workload.objective.of_tokens  # not in attacks
            (model.path_logits if answers else model.features)(scored)
    total, client = trained.total(), trained[CLIENT]
    if split:
        client += (1 + MOMENTS) * sum(_bytes(model.parameters[name]) for name in own)
    return HeldBytes(client, total - client, live.peak.total())


@dataclass(frozen=True)
class Memory:
    """The most memory that one process of a run holds for tensors, by shapes.

    Attributes:
        cell: The run.
        precision: Of matrix products on a GPU, where attention keeps no maps and dropout a byte for each value; "cpu"
            for a CPU in single precision, where both keep all values.
    """

    cell: RunConfig
    precision: str = "fp16"

    def of(self, texts: int) -> HeldBytes:
        """The peak if so many texts of a batch go through the model at once."""
        if self.cell.algorithm not in SPLIT:
            return self._peak(texts, self.cell.clients)
        first = self._peak(texts, 1)
        return replace(first, server=first.server + (self.cell.cohort_size - 1) * self._further)

    @cached_property
    def _further(self) -> int:
        """What each further client of split training keeps while another trains."""
        one, two = (self._peak(1, clients) for clients in (1, 2))
        return two.server - one.server

    def _peak(self, texts: int, clients: int) -> HeldBytes:
        precision = SINGLE if self.precision == "cpu" else _Gpu(META, self.precision)
        return _peak(self.cell, texts, precision, clients)


def fit(cell: RunConfig, memory: int, precision: str = "fp16") -> Fit:
    """The largest part of a run's batches that fits a GPU, such that all parts of a batch are about as large.

    Args:
        cell: The run.
        memory: Of the GPU, in bytes; `RESERVED` of it is left free.
        precision: Of matrix products.

    Raises:
        UserError: Not even one text fits, or there is no configuration of the run's encoder.
    """
    room, batch, needed = (1 - RESERVED) * memory, cell.training.batch_size, Memory(cell, precision)
    whole = needed.of(batch)
    if whole.total <= room:
        return Fit(batch, whole, whole)
    least = needed.of(1)
    if least.total > room:
        raise UserError(
            f"{cell.label}: expected a GPU with {least.total / (1 - RESERVED) / 2**30:.1f} GiB for one text at a time, "
            f"found {memory / 2**30:.1f} GiB. Use a larger GPU, or shorter texts (training.max_length)."
        )
    texts = 1 + (batch - 1) * (room - least.total) / (whole.total - least.total)
    parts = max(2, ceil(batch / texts))  # a guess, as memory is nearly linear in texts
    while needed.of(ceil(batch / parts)).total > room:
        parts += 1
    while parts > 2 and needed.of(ceil(batch / (parts - 1))).total <= room:
        parts -= 1
    return Fit(part := ceil(batch / parts), needed.of(part), whole)
