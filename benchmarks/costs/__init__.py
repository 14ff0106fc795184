"""Communication and client costs as data: the papers' equations, and amounts derived from shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

Parts = Mapping[str, float]  # kind of payload, as in the ledger -> bytes over all rounds, directions and clients
Kinds = Mapping[tuple[str, str], int]  # (direction, kind), such as ("up", "features") -> bytes


@dataclass(frozen=True)
class Terms:
    """The terms of cost equations in the papers' symbols; sizes in bytes."""

    T: float  # communication rounds
    n_c: float  # clients
    n_s: float  # texts of all clients
    n_t: float  # tokens per padded text
    c: float  # exchanged encoder layers
    dim_emb: float  # width of token embeddings
    W_s: float  # the head
    BL: float  # one encoder layer
    BE: float  # the embeddings
    BERT: float  # the whole model


@dataclass(frozen=True)
class SplitTerms:
    """The terms of split learning's cost equations in FedBERT's symbols (section 3.5); sizes in bytes.

    E, H: embeddings and head; tied tensors count once. pL: the payload across a cut in one direction per client and
    epoch; the mean if clients differ. T: epochs per client.
    """

    rounds: float  # of averaging
    N: float  # clients
    T: float
    pL: float
    W: float  # the whole model
    E: float
    H: float


@dataclass(frozen=True)
class ClosedForm:
    """A paper's equation for a method's communication cost per run, a function of Terms or SplitTerms.

    equation: its number in the paper. units: kind of payload -> bytes per GB in the equation, if it differs from the
    paper's GB.
    """

    equation: str
    text: str
    parts: Callable[[Any], Parts]
    units: Mapping[str, int] = field(default_factory=dict)

    def cost_bytes(self, terms: Terms | SplitTerms) -> float:
        return sum(self.parts(terms).values())

    def cost_gb(self, terms: Terms | SplitTerms, gigabyte: int) -> float:
        """The cost as the paper computes it, possibly in mixed units. gigabyte: the paper's GB in bytes."""
        return sum(size / self.units.get(kind, gigabyte) for kind, size in self.parts(terms).items())


@dataclass(frozen=True)
class PeftTerms:
    """The terms of closed forms for parameter-efficient methods; sizes in numbers of values, without the head.

    N: the encoder's parameters that full fine-tuning trains. E: its embeddings, which are frozen in this suite.
    """

    L: int  # encoder layers
    d: int  # width of hidden states
    f: int  # width of the feed-forward layers
    K: int  # clients per round
    h: int  # the head
    N: int
    E: int
    r: int  # the rank of LoRA


@dataclass(frozen=True)
class WireForm:
    """A closed form for the bytes that a client sends and receives in a round after the first."""

    text: str
    up: Callable[[PeftTerms], float]
    down: Callable[[PeftTerms], float]

    def both(self, terms: PeftTerms) -> float:
        return self.up(terms) + self.down(terms)


@dataclass(frozen=True)
class Factor:
    """An interpretation of a factor that a paper states: one form's bytes divided by another's.

    text: what it counts. terms: fixed values of terms, such as {"h": 0} for the adapter without the head.
    """

    text: str
    over: WireForm
    form: WireForm
    terms: Mapping[str, int] = field(default_factory=dict)

    def ratio(self, terms: PeftTerms) -> float:
        """The factor for an encoder, summed over both directions."""
        counted = replace(terms, **self.terms)
        return self.over.both(counted) / self.form.both(counted)


@dataclass(frozen=True)
class ModelSizes:
    """The sizes of a model's parts in fp32 bytes, and its head's input.

    layers_read: the number of last layers that the head reads. all_tokens: whether it reads all tokens or only [CLS].
    """

    embeddings_bytes: int
    layer_bytes: int
    head_bytes: int
    model_bytes: int
    width: int
    layers_read: int
    all_tokens: bool


def byte_unit(count: float, gigabyte: int = 10**9) -> tuple[int, str]:
    """A readable unit for a number of bytes: the unit's size in bytes and its name.

    gigabyte: the paper's GB, used from 0.1 GB; smaller numbers are in MB and kB, or in MiB and KiB for 2^30.
    """
    decimal = ((gigabyte / 10, gigabyte, "GB"), (10**6, 10**6, "MB"), (10**3, 10**3, "kB"))
    binary = ((2**30, 2**30, "GiB"), (2**20, 2**20, "MiB"), (2**10, 2**10, "KiB"))
    units = binary if gigabyte == 2**30 else decimal
    return next(((size, name) for least, size, name in units if count >= least), (1, "B"))


@dataclass(frozen=True)
class Traffic:
    """Bytes by direction and kind of payload, summed over clients."""

    kinds: Kinds

    @property
    def up_bytes(self) -> int:
        """The bytes that clients send."""
        return sum(size for (direction, _), size in self.kinds.items() if direction == "up")

    @property
    def down_bytes(self) -> int:
        """The bytes that clients receive."""
        return sum(size for (direction, _), size in self.kinds.items() if direction == "down")


@dataclass(frozen=True)
class WirePlan:
    """A run's bytes in each round, in order, summed over participating clients, and in the set-up."""

    rounds: tuple[Traffic, ...]  # at least one
    setup_bytes: int
    sizes: ModelSizes

    @cached_property
    def total(self) -> Traffic:
        """The sum over all rounds."""
        kinds: Counter[tuple[str, str]] = Counter()
        for each in self.rounds:
            kinds.update(each.kinds)
        return Traffic(dict(kinds))

    @property
    def kinds(self) -> Kinds:
        """Bytes per round by direction and kind, the rounded mean if rounds differ."""
        return {name: round(size / len(self.rounds)) for name, size in self.total.kinds.items()}

    @property
    def up_bytes(self) -> int:
        """Bytes per round that clients send, the rounded mean if rounds differ."""
        return round(self.total.up_bytes / len(self.rounds))

    @property
    def down_bytes(self) -> int:
        """Bytes per round that clients receive, the rounded mean if rounds differ."""
        return round(self.total.down_bytes / len(self.rounds))

    @property
    def alike(self) -> bool:
        """Whether all rounds send equal bytes."""
        return all(each == self.rounds[0] for each in self.rounds[1:])


@dataclass(frozen=True)
class ClientCosts:
    """The cost of a client's local training, derived from shapes; the mean over rounds and clients.

    Args:
        forward: The number of encoder layers that run.
        backward: The number of encoder layers that get a gradient.
        trained: The number of encoder layers that are trained.
        width: The width of hidden states.
        flops: For training on one text with `length` tokens, `asked` of them masked.
        up_bytes: Sent per round.
        down_bytes: Received per round.
        saved_bytes: The upload's size as a `torch.save` file.
        setup_bytes: Sent once.
        parameters_bytes: The model's weights, in fp32.
        gradients_bytes: The trained part's gradients, in fp32.
        moments_bytes: AdamW's moments, in fp32.
        activations_bytes: Stored in the forward pass for a batch with `batch_size` texts.
    """

    forward: float
    backward: float
    trained: float
    width: int
    length: int
    asked: int
    batch_size: int
    flops: float
    up_bytes: float
    down_bytes: float
    saved_bytes: float
    setup_bytes: float
    parameters_bytes: float
    gradients_bytes: float
    moments_bytes: float
    activations_bytes: float

    @property
    def held_bytes(self) -> float:
        """Training memory: weights, gradients, the optimiser's moments and activations."""
        return self.parameters_bytes + self.gradients_bytes + self.moments_bytes + self.activations_bytes


@dataclass(frozen=True)
class HeldBytes:
    """The peak bytes of tensors in one of a run's processes.

    Args:
        client: The training client's weights, gradients, optimiser moments, activations and logits.
        server: The server's weights and means, and other clients' tensors on the device; in split training, the layers
            with their activations.
        resting: The fixed part for scoring.
        scored_text: The part per text for scoring.
        host: All clients' private tensors, optimiser moments and codec residuals between rounds, in the host's memory.
    """

    client: int
    server: int
    resting: int
    scored_text: int
    host: int

    @property
    def training(self) -> int:
        """The bytes for training, in which client and server take part at the same time."""
        return self.client + self.server

    def scoring_of(self, texts: int) -> int:
        """The bytes for scoring this many texts at once."""
        return self.resting + texts * self.scored_text


@dataclass(frozen=True)
class Fit:
    """How a run's batches fit a GPU.

    part: how many of a training batch's texts go through the model at once. scored: the same in scoring. held, whole:
    memory with that part, and with whole batches.
    """

    part: int
    scored: int
    held: HeldBytes
    whole: HeldBytes

    @property
    def total(self) -> int:
        """The process's peak bytes with these parts."""
        return max(self.held.training, self.held.scoring_of(self.scored))


@dataclass(frozen=True)
class Gpu:
    """A GPU. tflops: its peak rate for matrix products in `precision`, in 10^12 operations per second."""

    name: str
    memory: int  # in bytes
    tflops: float
    precision: str


# Memory and peak rates are from NVIDIA's data sheets "V100 Tensor Core GPU" (2020; SXM2), "RTX A6000" (2021), "A100
# Tensor Core GPU" (2021; SXM), "H100 Tensor Core GPU" (2022; SXM) and "H200 Tensor Core GPU" (2023; SXM), on
# resources.nvidia.com and images.nvidia.com.
# Rates are for dense products on tensor cores: half the rates with sparsity (A6000: 309.7, H100: 1 979).
GPUS = {
    "v100-16": Gpu("V100 16 GB", 16 * 2**30, 125, "fp16"),
    "v100-32": Gpu("V100 32 GB", 32 * 2**30, 125, "fp16"),
    "a6000": Gpu("RTX A6000", 48 * 2**30, 155, "bf16"),
    "a100-40": Gpu("A100 40 GB", 40 * 2**30, 312, "bf16"),
    "a100-80": Gpu("A100 80 GB", 80 * 2**30, 312, "bf16"),
    "h100": Gpu("H100", 80 * 2**30, 989, "bf16"),
    "h200": Gpu("H200", 141 * 10**9, 989, "bf16"),
}
GPU_USED = 0.3  # assumed share of a GPU's peak rate when training encoders of this size
LAUNCH_S = 0.04  # seconds in which a host launches the kernels for a part of a batch, for 12 layers (`make bench`)


@dataclass(frozen=True)
class Work:
    """Operations for training on one full-length text, at the client and at the server, derived from shapes.

    features: for computing a text's features at the client, once.
    """

    client: float
    server: float = 0.0
    features: float = 0.0


@dataclass(frozen=True)
class WorkForm:
    """A paper's formula for a client's computation, up to a factor that cancels in ratios."""

    text: str
    work: Callable[[ClientCosts], float]


@dataclass(frozen=True)
class Costing:
    """How a table shows the cost of a client's training, as ratios to a baseline.

    baseline: row id. forms: name -> formula. timed: the file with the rows' training times from `make bench`.
    """

    baseline: str
    forms: Mapping[str, WorkForm]
    timed: Path
