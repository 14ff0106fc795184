"""A process's only model, with parameters copied in and out in place, and its parts by name."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fedsim.adapter_config import AdapterConfig
from fedsim.data import IGNORED, Batch, Subset, evaluation_batches
from fedsim.errors import FederationError, plural
from fedsim.micro_batches import MicroBatches
from fedsim.models.adapters import stable_name
from fedsim.models.checkpointing import checkpointed
from fedsim.models.families import has_packed_layers
from fedsim.models.heads import HEADS, States
from fedsim.models.packed.encoder import PackedEncoder
from fedsim.models.sequence import SequenceModel
from fedsim.objectives import Objective
from fedsim.precision import DTYPES, Precision
from fedsim.rng import SERVER, numpy_generator

LAYER = re.compile(r"\.(?:layer|h)\.(\d+)\.")  # BERT's family, GPT-2
# BERT's family with ELECTRA's embeddings_project, GPT-2, and the bias shared by MPNet's layers.
_EMBEDDINGS = ("encoder.embeddings", "encoder.wte.", "encoder.wpe.", "encoder.encoder.relative_attention_bias.")
PACKED = ("lora", "bitfit")  # adapters that packed layers support
_LAST = "encoder.ln_f."  # GPT-2's norm after its last layer


@dataclass(frozen=True)
class ParameterGroups:
    """Parameter names by part: embeddings, encoder layers from the bottom, and the head (pooler, classifier)."""

    embeddings: frozenset[str]
    layers: tuple[frozenset[str], ...]
    head: frozenset[str]

    @property
    def depth(self) -> int:
        """Number of encoder layers."""
        return len(self.layers)

    @property
    def names(self) -> frozenset[str]:
        """All parameters."""
        return self.embeddings.union(*self.layers, self.head)

    def up_to(self, layer: int) -> frozenset[str]:
        """Encoder layers 1 … `layer`, counted from 1 as in the papers."""
        if not isinstance(layer, int) or not 0 <= layer <= self.depth:
            raise FederationError(f"critical layer {layer}: expected 0 to {self.depth}, the encoder's number of layers")
        return frozenset().union(*self.layers[:layer])

    def view(self, layers: Sequence[int]) -> dict[str, str]:
        """A sub-model's names -> this model's: its layer i is layer `layers[i]` here, other names are the same.

        Layers are counted from 0; the same layer may appear several times.
        """
        view = {name: name for name in self.names if not LAYER.search(name)}
        for index, target in enumerate(layers):
            for name in self.layers[target]:
                if number := LAYER.search(name):
                    view[f"{name[: number.start(1)]}{index}{name[number.end(1) :]}"] = name
        return view


def parameter_groups(names: Iterable[str]) -> ParameterGroups:
    """Group a SequenceModel's parameter names ("encoder.…", "head.…") by part."""
    embeddings, head, last = set(), set(), set()
    layers: dict[int, set[str]] = {}
    for name in names:
        match = LAYER.search(name)
        if name.startswith("head."):
            head.add(name)
        elif match:
            layers.setdefault(int(match[1]), set()).add(name)
        elif name.startswith(_EMBEDDINGS):
            embeddings.add(name)
        elif name.startswith(_LAST):
            last.add(name)
        else:
            raise FederationError(f"encoder: expected BERT's parameters, found {name!r}; choose another encoder")
    if sorted(layers) != list(range(len(layers))) or not layers:
        numbers = ", ".join(map(str, sorted(layers))) or "none"
        raise FederationError(f"encoder: expected layers numbered from 0 on, found {numbers}; choose another encoder")
    layers[len(layers) - 1] |= last
    return ParameterGroups(frozenset(embeddings), tuple(frozenset(layers[i]) for i in sorted(layers)), frozenset(head))


def resolve_kernels(
    requested: str, device: torch.device, config: Mapping[str, Any], adapter: AdapterConfig | None = None
) -> str:
    """The kernels for an encoder with this configuration: packed only on CPUs and with BERT's layers.

    "packed": this project's, over packed tokens; "reference": the transformers library's, over padded tokens. GPUs have
    faster attention kernels, and the `meta` device computes nothing.
    """
    fits = has_packed_layers(config) and (adapter is None or adapter.kind in PACKED)
    return "packed" if requested == "packed" and device.type == "cpu" and fits else "reference"


class Model:
    """A model on its device, with parameters by name and a training objective."""

    def __init__(
        self,
        network: SequenceModel,
        precision: Precision,
        objective: Objective,
        kernels: str = "packed",
        checkpoints: bool = False,
    ) -> None:
        """kernels: for the encoder's layers, see `resolve_kernels`. checkpoints: recompute their activations to save
        memory.
        """
        self.precision = precision
        self.kernels, self.checkpoints = kernels, checkpoints
        self.device = precision.device
        self.network = network.to(self.device)
        # named_parameters, never state_dict: a tied tensor must be counted once
        self.parameters = {stable_name(name): parameter for name, parameter in network.named_parameters()}
        self.objective = objective
        self._held: dict[str, Tensor] = {}  # by name, the tensors that `hold` wrote and that are unchanged since
        encoder: Any = network.encoder
        packed = resolve_kernels(kernels, self.device, encoder.config.to_dict(), network.adapter) == "packed"
        self._packed = PackedEncoder(encoder, checkpoints) if packed else None

    @property
    def packed(self) -> bool:
        """Whether the encoder's layers run over packed tokens."""
        return self._packed is not None

    @property
    def groups(self) -> ParameterGroups:
        """The parameters by part."""
        return parameter_groups(self.parameters)

    @property
    def trainable(self) -> frozenset[str]:
        """The names of trainable parameters: all, or the adapter's and the head's."""
        return self.network.adapted | self.groups.head if self.network.adapter else frozenset(self.parameters)

    @property
    def hidden(self) -> int:
        """Width of the encoder's hidden states."""
        config: Any = self.network.encoder.config  # its fields differ between families
        return int(config.hidden_size)

    @property
    def word_embeddings(self) -> str:
        """The name of the encoder's word embeddings."""
        encoder: Any = self.network.encoder
        weight = encoder.get_input_embeddings().weight
        return next(name for name, parameter in self.parameters.items() if parameter is weight)

    def write(self, values: Mapping[str, Tensor]) -> None:
        """Copy values into the parameters of the same names; FederationError if a shape differs."""
        with torch.no_grad():
            for name, value in values.items():
                self._held.pop(name, None)
                if value.shape != self.parameters[name].shape:  # `copy_` would repeat a shorter tensor
                    expected, found = (list(each.shape) for each in (self.parameters[name], value))
                    raise FederationError(f"{name}: expected shape {expected}, found {found}")
                self.parameters[name].copy_(value)

    def hold(self, values: Mapping[str, Tensor]) -> None:
        """Like `write`, for tensors that never change in place: a tensor that was copied before is not copied again.

        A parameter that requires gradients may have been trained, so it is always written.
        """
        frozen = {name for name in values if not self.parameters[name].requires_grad}
        due = {name: value for name, value in values.items() if name not in frozen or self._held.get(name) is not value}
        self.write(due)
        self._held.update({name: value for name, value in due.items() if name in frozen})

    def lend(self, values: Mapping[str, Tensor]) -> None:
        """Let parameters share these tensors' memory, so that training changes the tensors in place."""
        for name, value in values.items():
            self._held.pop(name, None)
            self.parameters[name].data = value

    def read(self, names: Iterable[str]) -> dict[str, Tensor]:
        """The named parameters themselves, not copies."""
        return {name: self.parameters[name].detach() for name in names}

    def snapshot(self, names: Iterable[str]) -> dict[str, Tensor]:
        """Copies of the named parameters."""
        return {name: self.parameters[name].detach().clone() for name in names}

    def set_trained(self, names: Iterable[str]) -> None:
        """Require gradients only for these parameters."""
        trained = frozenset(names)
        for name, parameter in self.parameters.items():
            parameter.requires_grad_(name in trained)
        self._held = {name: value for name, value in self._held.items() if name not in trained}

    def path_logits(self, batch: Batch, changed: bool = True) -> Tensor:
        """Outputs [P, N, C] for all paths, in fp32, computed in the model's precision.

        changed: whether parameters may have changed since the last pass.
        """
        if self.network.head.answers_tokens != self.objective.of_tokens:
            heads = ", ".join(name for name, kind in HEADS.items() if kind.answers_tokens == self.objective.of_tokens)
            asks, answers = ("tokens", "texts") if self.objective.of_tokens else ("texts", "tokens")
            raise FederationError(
                f"head {type(self.network.head).__name__}: expected one that answers for {asks}, as "
                f"{type(self.objective).__name__} needs, found one for {answers}; choose one of the heads {heads}"
            )
        moved = self._moved(batch)
        states = self._states(moved, changed)
        with self.precision.autocast():
            return self.network(moved, states).float()

    def loss(self, batch: Batch) -> Tensor:
        """Mean loss over a batch's targets, summed over the head's paths."""
        labels = batch["labels"].to(self.device, non_blocking=True)
        targets = labels[labels != IGNORED] if self.objective.of_tokens else labels
        return torch.stack([self.objective.loss(outputs, targets) for outputs in self.path_logits(batch)]).sum()

    def features(self, batch: Batch) -> Tensor:
        """The hidden states for the head, [K, B, S, D], or [K, B, 1, D] for only [CLS]."""
        states = torch.stack(tuple(self._states(self._moved(batch))))
        return states if self.network.head.tokens else states[:, :, :1]

    def predict(
        self, subset: Subset, batch_size: int, width: int | None, parts: MicroBatches | None = None
    ) -> np.ndarray:
        """The answers for a subset, one row per text, in order; random targets are equal in every call.

        parts: How batches are split for the model; None: not at all, until memory runs out.
        """
        self.network.eval()
        parts = parts or MicroBatches(trains=False)
        answers: np.ndarray | None = None
        with torch.inference_mode():
            for number, (positions, batch) in enumerate(self._prepared(subset, batch_size, width)):
                rows = parts.answers(batch, partial(self._answer, changed=number == 0))
                if answers is None:
                    answers = np.zeros(self.objective.shape(subset), dtype=rows.dtype)
                kept = rows[:, : answers.shape[1]]  # without fixed padding beyond the longest text
                answers[positions, : kept.shape[1]] = kept
        return answers if answers is not None else np.zeros(self.objective.shape(subset), dtype=np.float32)

    def _answer(self, batch: Batch, changed: bool) -> np.ndarray:
        return self.objective.answer(self.path_logits(batch, changed).mean(0), batch)

    def _prepared(self, subset: Subset, batch_size: int, width: int | None) -> Iterable[tuple[np.ndarray, Batch]]:
        """The batches for scoring, with the objective's random targets; for token objectives, the widest first.

        Otherwise the heap could not reuse freed memory for the next batch's logits, which are as wide as the
        vocabulary.
        """
        rng, drawn = numpy_generator(0, 0, SERVER, "evaluation"), evaluation_batches(subset, batch_size, width)
        prepared = ((positions, self.objective.prepare(batch, rng)) for positions, batch in drawn)
        return reversed(list(prepared)) if self.objective.of_tokens else prepared

    def _states(self, batch: Batch, changed: bool = True) -> States:
        """The hidden states for the head; only each text's first token if that saves computation."""
        network, packed = self.network, self._packed
        if packed is None or "features" in batch or not packed.fits:
            keeps_all = not (self.checkpoints and torch.is_grad_enabled())
            autocast, layers = self.precision.autocast, encoder_layers(self)
            with autocast(), nullcontext() if keeps_all else checkpointed(network.encoder, layers, autocast):
                return network.states(batch)
        # A hook on the head sends its inputs over the wire: all tokens.
        first = not (network.head.tokens or network.head._forward_pre_hooks)
        dtype = DTYPES[self.precision.name]
        if changed:
            packed.refresh(dtype)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not network.is_frozen):
            return packed.states(network.inputs(batch), dtype, network.head.states, first)

    def _moved(self, batch: Batch) -> Batch:
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in batch.items()}


def encoder_layers(model: Model) -> list[nn.Module]:
    """The encoder's layers from the bottom."""
    names = [(f".{name}.", module) for name, module in model.network.encoder.named_modules()]
    return [module for name, module in names if (match := LAYER.search(name)) and match.end() == len(name)]


def shallower(model: Model, names: Set[str]) -> Model:
    """A copy of a model with only its first layers, as many as the names have, and all other parts.

    A plan's view maps a client's layers to the server's.
    FederationError if the names do not fit such a model.
    """
    depth = len({match[1] for name in names if (match := LAYER.search(name))})
    network = copy.deepcopy(model.network)
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.ModuleList) and name in ("layer", "h"):
                setattr(module, name, child[:depth])
    cut = Model(network, model.precision, model.objective, model.kernels, model.checkpoints)
    if cut.parameters.keys() != names:
        different = sorted(cut.parameters.keys() ^ names)
        raise FederationError(
            "exchange plan: expected a view of the server's model, or of its first layers with everything around "
            f"them, found {plural(len(different), 'other or missing parameter')}, such as {', '.join(different[:3])}"
        )
    return cut
