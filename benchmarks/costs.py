"""What communication and a client cost, as pure data: a paper's equations, and what was derived from shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

Parts = Mapping[str, float]  # kind of payload, as the ledger names it -> bytes of all rounds, directions and clients


@dataclass(frozen=True)
class Terms:
    """What equations of costs are made of, in the papers' symbols; sizes in bytes."""

    T: float  # communication rounds
    n_c: float  # clients
    n_s: float  # texts of all clients together
    n_t: float  # tokens to which each text is padded
    c: float  # encoder layers that are exchanged
    dim_emb: float  # width of a token's embedding
    W_s: float  # the head: what stands on the encoder
    BL: float  # one encoder layer
    BE: float  # the embeddings
    BERT: float  # the whole model


@dataclass(frozen=True)
class SplitTerms:
    """What equations of split learning's costs are made of, in FedBERT's symbols (section 3.5); sizes in bytes.

    E, H: embeddings and head, each tensor once where they are tied. pL: what crosses a cut in one direction in one
    client's epoch, over its true batches; where clients differ, their mean. T: epochs of one client.
    """

    rounds: float  # after which something is averaged
    N: float  # clients
    T: float
    pL: float
    W: float  # the whole model
    E: float
    H: float


@dataclass(frozen=True)
class ClosedForm:
    """A method's communication cost of a whole run as an equation of its paper gives it; of Terms, or SplitTerms.

    units: kind of payload -> bytes of the GB in which the equation itself counts that kind, where that is not the
    paper's.
    """

    equation: str  # the number that the paper gives it
    text: str
    parts: Callable[[Any], Parts]
    units: Mapping[str, int] = field(default_factory=dict)

    def cost_bytes(self, terms: Terms | SplitTerms) -> float:
        """The cost with every byte counted alike."""
        return sum(self.parts(terms).values())

    def cost_gb(self, terms: Terms | SplitTerms, gigabyte: int) -> float:
        """The cost as the paper computes it, whose parts need not be in one unit. gigabyte: the paper's, in bytes."""
        return sum(size / self.units.get(kind, gigabyte) for kind, size in self.parts(terms).items())


@dataclass(frozen=True)
class ModelSizes:
    """A model's parts in bytes of fp32, and what its head reads of a text.

    layers_read: how many of the last layers' embeddings; all_tokens: of all tokens, or of [CLS] alone.
    """

    embeddings_bytes: int
    layer_bytes: int
    head_bytes: int
    model_bytes: int
    width: int
    layers_read: int
    all_tokens: bool


class Traffic(Protocol):
    """Whatever has its bytes by direction: of a round or of a run, derived or as a record keeps them."""

    @property
    def up_bytes(self) -> float: ...

    @property
    def down_bytes(self) -> float: ...


def counted_bytes(traffic: Traffic, directions: Sequence[str]) -> float:
    """Bytes in the directions ("up", "down") that a paper's convention counts."""
    return sum({"up": traffic.up_bytes, "down": traffic.down_bytes}[way] for way in directions)


def byte_unit(count: float, gigabyte: int = 10**9) -> tuple[int, str]:
    """The unit in which so many bytes are read, in bytes, and its name.

    From a tenth of one it is the paper's GB, below that decimal MB and kB; of 2^30 bytes it is GiB, MiB and KiB.
    """
    decimal = ((gigabyte / 10, gigabyte, "GB"), (10**6, 10**6, "MB"), (10**3, 10**3, "kB"))
    binary = ((2**30, 2**30, "GiB"), (2**20, 2**20, "MiB"), (2**10, 2**10, "KiB"))
    units = binary if gigabyte == 2**30 else decimal
    return next(((size, name) for least, size, name in units if count >= least), (1, "B"))


Kinds = Mapping[tuple[str, str], int]  # (direction, kind), such as ("up", "features") -> its bytes


@dataclass(frozen=True)
class Sent:
    """Bytes by direction and summed over clients; kinds: of which payloads they are."""

    up_bytes: int
    down_bytes: int
    kinds: Kinds

    @classmethod
    def of(cls, kinds: Kinds) -> Self:
        """The bytes of these kinds."""
        up, down = (sum(size for (way, _), size in kinds.items() if way == direction) for direction in ("up", "down"))
        return cls(up, down, kinds)


@dataclass(frozen=True)
class WirePlan:
    """Bytes of a round, by direction and summed over the clients that take part, of all rounds, and of the set-up.

    up_bytes, down_bytes, kinds: of a round, the same in all rounds where `alike`, else their mean to the whole byte.
    rounds: each round's bytes, in order; a plan without them is of one round.
    """

    up_bytes: int
    down_bytes: int
    setup_bytes: int
    kinds: Kinds
    sizes: ModelSizes
    rounds: tuple[Sent, ...] = ()

    @classmethod
    def of_rounds(cls, rounds: Sequence[Kinds], setup_bytes: int, sizes: ModelSizes) -> Self:
        """The plan of rounds with these bytes; there is at least one."""
        sent = tuple(Sent.of(kinds) for kinds in rounds)
        total = _total(sent)
        up, down = (round(size / len(sent)) for size in (total.up_bytes, total.down_bytes))
        kinds = {name: round(size / len(sent)) for name, size in total.kinds.items()}
        return cls(up, down, setup_bytes, kinds, sizes, sent)

    @property
    def total(self) -> Sent:
        """All rounds together, to the byte."""
        return _total(self.rounds) if self.rounds else Sent(self.up_bytes, self.down_bytes, self.kinds)

    def over(self, rounds: int) -> Sent:
        """All of a run's rounds together; a plan of one round is of as many like it."""
        if self.rounds:
            return self.total
        kinds = {name: rounds * size for name, size in self.kinds.items()}
        return Sent(rounds * self.up_bytes, rounds * self.down_bytes, kinds)

    @property
    def alike(self) -> bool:
        """Whether every round sends the same."""
        return all(each == self.rounds[0] for each in self.rounds[1:])


def _total(rounds: Sequence[Sent]) -> Sent:
    kinds: Counter[tuple[str, str]] = Counter()
    for each in rounds:
        kinds.update(each.kinds)
    return Sent.of(dict(kinds))


@dataclass(frozen=True)
class ClientCosts:
    """What one client's local training costs by shapes: means over a cell's rounds and the clients that train in them.

    forward, backward, trained: encoder layers that run; that a gradient goes through, or ends in; whose weights are
    trained. width: of hidden states. flops: of the training on one text of `length` tokens, `asked` of them masked.
    up_bytes, down_bytes: payload of a round. saved_bytes: what goes up as a file of `torch.save`. setup_bytes: sent
    once. parameters_bytes, gradients_bytes, moments_bytes: of the model, and of what is trained of it, in fp32.
    activations_bytes: what is kept of a batch's forward pass for the backward pass; `batch_size` texts in a batch.
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
        """All that is held at once: weights, gradients, the optimiser's moments and activations."""
        return self.parameters_bytes + self.gradients_bytes + self.moments_bytes + self.activations_bytes


@dataclass(frozen=True)
class WorkForm:
    """A paper's formula of a client's computation, up to a factor: only ratios of two clients' mean something."""

    text: str
    work: Callable[[ClientCosts], float]


@dataclass(frozen=True)
class Costing:
    """How a table shows what one client's training costs, as ratios to a baseline.

    baseline: row id. forms: what a formula counts -> the formula. timed: the result of the part of `make bench` that
    trains the rows side by side.
    """

    baseline: str
    forms: Mapping[str, WorkForm]
    timed: Path | None = None
