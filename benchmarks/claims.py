"""Claims as data: sentences of a paper, and the relations between cells that they assert. Imports nothing heavy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise, product
from typing import Literal, TypeAlias

P_VALUE = "t_test/p_value"  # the score as which a p-value is published
MAJORITY = "local-majority"  # the row, of any table, that answers each client's most frequent label and sends nothing


@dataclass(frozen=True)
class At:
    """A row of a benchmark; printed: the row under which the paper prints it, where that is another one."""

    benchmark: str
    row: str
    printed: str = ""


@dataclass(frozen=True)
class Printed:
    """A printed column that holds no score, such as costs in the paper's unit: "Table VI", "cost_gb"."""

    table: str
    column: str


@dataclass(frozen=True)
class Target:
    """A score to be reached.

    percent: task -> the target that the paper names, in its metric's unit, for the paper's scale. With another encoder
    it means nothing: elsewhere the target is, seed by seed, the best that one of the baselines scores after any round.
    Where the local majority scores as much, at any scale, the target says nothing.
    baselines: the first is the one by whose round a limit in bytes is scaled.
    only_printed: no other target may stand in for the paper's, as any scale has one that all methods reach.
    """

    percent: Mapping[str, float]
    baselines: tuple[At, ...]
    score: str = "test/accuracy"
    only_printed: bool = False


@dataclass(frozen=True)
class Better:
    """Every row is better than every rival on every task and score, in the round that counts.

    by: least gain that counts, in the metric's unit (or percent of the rival where `relative`); 0: any above 0; below
    0: no more than so much worse.
    most: the largest one that counts ("a little").
    tasks, scores: () means all that both tables print. some: one case is enough ("sometimes").
    measure: "score"; "loss", the training loss, lower is better; "rounds" until the target, fewer is better.
    target: of "rounds"; without one, the best that a rival scores after any round.
    over_failed: whether a rival counts that has learned nothing, as its failing is what is claimed.
    """

    rows: tuple[At, ...]
    than: tuple[At, ...]
    by: float = 0.0
    most: float = math.inf
    tasks: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    measure: Literal["score", "loss", "rounds"] = "score"
    relative: bool = False
    some: bool = False
    target: Target | None = None
    over_failed: bool = False


@dataclass(frozen=True)
class AverageBetter:
    """A table's average is better by at least `by` points, at most `most`, than every rival's.

    Of several rows the mean is meant, table by table, and of several tables the mean of these.
    A row's rivals are those of its own table, or all where none is of it.
    over_failed: as in Better.
    """

    rows: tuple[At, ...]
    than: tuple[At, ...]
    by: float
    most: float = math.inf
    over_failed: bool = False

    def choices(self) -> Iterator[Mapping[str, At]]:
        """Every choice of one rival for each table (its benchmark's id): the best one of each is among them."""
        tables = tuple(dict.fromkeys(row.benchmark for row in self.rows))
        own = {name: tuple(at for at in self.than if at.benchmark == name) or self.than for name in tables}
        return (dict(zip(tables, chosen, strict=True)) for chosen in product(*own.values()))


@dataclass(frozen=True)
class Similar:
    """A row scores as another does on every task and score, within so many points (percent of it where `relative`)."""

    row: At
    other: At
    within: float
    tasks: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    relative: bool = False


@dataclass(frozen=True)
class NotTold:
    """A two-sided t test over seeds does not tell a row's scores from another's: its p is above a level.

    A paper may assert that much, and it is no evidence that they are equal, so records show p and decide nothing.
    printed: the table under which the paper's own p-values are published, at the row and the task as P_VALUE.
    """

    row: At
    other: At
    above: float
    printed: str
    tasks: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reaches:
    """Every row reaches the target on every task: within so many rounds, below so many uploaded bytes, or at all.

    Bytes are the paper's at its scale; elsewhere the same share of a round of the target's first baseline, by `sizes`.
    costs: where the paper prints the bytes until the target; sizes: where it prints those of a round.
    """

    rows: tuple[At, ...]
    target: Target
    within_rounds: int | None = None
    below_bytes: float | None = None
    costs: Printed | None = None
    sizes: Printed | None = None


@dataclass(frozen=True)
class Cheaper:
    """Every row sends `factor` times fewer bytes than every rival: in a round, or until it reaches a target (uploads).

    most: the largest factor that counts ("not by a great factor").
    whole_run: in all rounds, not in one. Bytes of rounds and runs are those of the paper's own encoder, whose shapes
    give them at every scale, in the directions of the paper's convention.
    places: decimals to which the paper rounds the ratio; None: it has to be reached exactly.
    costs: where the paper prints those bytes.
    """

    rows: tuple[At, ...]
    than: tuple[At, ...]
    factor: float
    tasks: tuple[str, ...]
    most: float = field(kw_only=True, default=math.inf)
    target: Target | None = None
    places: int | None = None
    costs: Printed | None = None
    whole_run: bool = False


@dataclass(frozen=True)
class CostShare:
    """Every row costs from `least` to `most` percent of what every rival costs.

    of: "bytes" of a round in the directions of the paper's convention, or "flops" of training on a text, both with the
    paper's own encoder, by its shapes; "seconds" of a round's training, which records show and which decide nothing,
    as they were timed beside other work.
    places: decimals to which the paper rounds the share; None: it is taken exactly.
    costs: where the paper prints the cost of which it is a share.
    """

    rows: tuple[At, ...]
    than: tuple[At, ...]
    of: Literal["bytes", "flops", "seconds"]
    tasks: tuple[str, ...]
    least: float = -math.inf
    most: float = math.inf
    places: int | None = None
    costs: Printed | None = None


@dataclass(frozen=True)
class Sends:
    """So many rounds of every row send from `least` to `most` bytes, with the paper's own encoder, by its shapes.

    sizes: where the paper prints the bytes of a round.
    """

    rows: tuple[At, ...]
    tasks: tuple[str, ...]
    rounds: int
    least: float
    most: float = math.inf
    sizes: Printed | None = None


@dataclass(frozen=True)
class AtMost:
    """A score of no row is above so many percent (or a plain number, by its metric's unit), in the round that counts.

    beside: a score that is shown with it and decides nothing.
    """

    rows: tuple[At, ...]
    score: str
    percent: float
    tasks: tuple[str, ...] = ()
    beside: str = ""


@dataclass(frozen=True)
class Same:
    """Two rows are the same run on every task: all scores and losses of every round, and all bytes."""

    row: At
    other: At
    tasks: tuple[str, ...] = ()


Relation: TypeAlias = Better | AverageBetter | Similar | NotTold | Reaches | Cheaper | CostShare | Sends | AtMost | Same


def rows_named(relation: Relation) -> Iterator[At]:
    """Every row that a relation names, with its target's baselines."""
    for entry in (getattr(relation, each.name) for each in fields(relation)):
        for value in entry if isinstance(entry, tuple) else (entry,):
            if isinstance(value, At):
                yield value
            elif isinstance(value, Target):
                yield from value.baselines


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, or a part of one, and what it asserts: all of its relations.

    is_source: published values were derived from its own words. They prove nothing of it and are left out in print.
    otherwise: other readings of its words, by name: judged and shown beside it, and deciding nothing.
    caveats: scale -> what a reader of the verdict has to know there.
    headline: whether the first page tells its verdict, once there is one.
    """

    id: str  # "1a": its number, and a letter where one sentence asserts several things
    quotation: str  # literal, short
    place: str  # "section IV-C"
    relations: tuple[Relation, ...]
    reading: str = field(kw_only=True, default="")  # how its words became numbers
    is_source: bool = field(kw_only=True, default=False)
    otherwise: Mapping[str, tuple[Relation, ...]] = field(kw_only=True, default_factory=dict)
    caveats: Mapping[str, str] = field(kw_only=True, default_factory=dict)
    headline: bool = field(kw_only=True, default=False)

    @property
    def every_relation(self) -> tuple[Relation, ...]:
        """Those that it asserts, and those of other readings."""
        return (*self.relations, *(relation for other in self.otherwise.values() for relation in other))

    @property
    def number(self) -> int:
        """The number of the sentence."""
        found = re.match(r"\d+", self.id)
        if found is None:
            raise ValueError(f"claim {self.id!r}: expected an id that begins with a number")
        return int(found[0])

    @property
    def benchmarks(self) -> frozenset[str]:
        """The ids of the benchmarks that it speaks of, which may be another paper's."""
        return frozenset(at.benchmark for relation in self.every_relation for at in rows_named(relation))


def rising(rows: tuple[At, ...], tasks: tuple[str, ...] = (), scores: tuple[str, ...] = ()) -> tuple[Better, ...]:
    """Each row is better than the one before it."""
    return tuple(Better((high,), (low,), tasks=tasks, scores=scores) for low, high in pairwise(rows))
