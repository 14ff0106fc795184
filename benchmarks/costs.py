"""What communication costs, as pure data: a paper's equations of it, and the bytes that were derived from shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

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
class ClosedForm:
    """A method's communication cost as an equation of its paper gives it.

    units: kind of payload -> bytes of the GB in which the equation itself counts that kind, where that is not the
    paper's.
    """

    equation: str  # the number that the paper gives it
    text: str
    parts: Callable[[Terms], Parts]
    units: Mapping[str, int] = field(default_factory=dict)

    def cost_bytes(self, terms: Terms) -> float:
        """The cost with every byte counted alike."""
        return sum(self.parts(terms).values())

    def cost_gb(self, terms: Terms, gigabyte: int) -> float:
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


@dataclass(frozen=True)
class WirePlan:
    """Bytes of one round with every client in it, by direction and summed over clients, and of the set-up.

    kinds: (direction, kind) -> the part of a round's bytes that is of that kind, such as ("up", "features").
    """

    up_bytes: int
    down_bytes: int
    setup_bytes: int
    kinds: Mapping[tuple[str, str], int]
    sizes: ModelSizes
