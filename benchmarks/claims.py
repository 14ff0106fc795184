"""Claims as data: sentences of a paper, and the relations between runs that they assert."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise, product
from string import ascii_lowercase
from typing import Any, Literal, TypeAlias

P_VALUE = "t_test/p_value"  # the score under which a p-value is published
MAJORITY = "local-majority"  # the row, of any table, that answers each client's most frequent label


@dataclass(frozen=True)
class At:
    """A row of a benchmark; published: the row of the paper's numbers, if that is another one."""

    benchmark: str
    row: str
    published: str = ""


@dataclass(frozen=True)
class PublishedColumn:
    """A published column without scores, such as costs in the paper's unit: "Table VI", "cost_gb"."""

    table: str
    column: str


@dataclass(frozen=True)
class Target:
    """A score to reach.

    percent: task -> the paper's target, which counts at its scale; elsewhere the target is, for each seed, a baseline's
    best score after any round. A target that the local majority reaches shows nothing.
    baselines: a limit in bytes is scaled by a round of the first one.
    only_published: whether only the paper's own target counts.
    """

    percent: Mapping[str, float]
    baselines: tuple[At, ...]
    score: str = "test/accuracy"
    only_published: bool = False


@dataclass(frozen=True)
class Better:
    """Every row is better than every rival on every task and score, in the round that counts.

    by, most: the least and the largest gain ("a little"), in the metric's unit, or in percent of the rival if
    `relative`; 0 is any gain, and a negative `by` the largest loss.
    tasks, scores: () for all that both tables have. some: one comparison is enough ("sometimes").
    measure: "score", training "loss" (lower is better), or "rounds" until the target (fewer are better).
    target: for "rounds"; None for a rival's best score after any round.
    over_failed: whether a rival counts that has learned nothing, because the claim is that it fails.
    since: a row for each side, such as one before training; compared are the gains over these.
    p_values: where the paper publishes p-values of these comparisons, with the score P_VALUE. Published, two rows pass
    its t test if p > 0.05. A large p proves no equality, so runs are judged by the difference and only show their p.
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
    since: tuple[At, At] | None = None
    p_values: str = ""


def similar(row: At, other: At, within: float, tasks: tuple[str, ...] = (), **fields: Any) -> Better:
    """A row is within some points of another, or some percent if `relative`; one that has learned nothing counts."""
    return Better((row,), (other,), -within, within, tasks, over_failed=True, **fields)


@dataclass(frozen=True)
class AverageBetter:
    """A table's average is better than every rival's by at least `by` and at most `most` points.

    Several rows stand for their mean in each table, several tables for the mean of these. A row's rivals are those of
    its own table, or all if it has none. over_failed: as in Better.
    tasks: () for all of the table's. scores: a task's first one of these counts; () for the one that it averages.
    """

    rows: tuple[At, ...]
    than: tuple[At, ...]
    by: float
    most: float = math.inf
    over_failed: bool = False
    tasks: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()

    def choices(self) -> Iterator[Mapping[str, At]]:
        """Every choice of one rival for each table (benchmark id), among them the best one of each."""
        tables = tuple(dict.fromkeys(row.benchmark for row in self.rows))
        rivals = [tuple(at for at in self.than if at.benchmark == name) or self.than for name in tables]
        return (dict(zip(tables, chosen, strict=True)) for chosen in product(*rivals))


@dataclass(frozen=True)
class Reaches:
    """Every row reaches the target on every task: within some rounds, below some uploaded bytes, or at all.

    With another encoder the limit in bytes is the same share of a round of the target's first baseline, by `sizes`.
    costs, sizes: the published bytes until the target, and of a round.
    """

    rows: tuple[At, ...]
    target: Target
    within_rounds: int | None = None
    below_bytes: float | None = None
    costs: PublishedColumn | None = None
    sizes: PublishedColumn | None = None


@dataclass(frozen=True)
class CostBound:
    """Every row costs every rival's cost divided by `least` to `most`, or from `least` to `most` percent of it.

    of: bytes of a "round" or of a whole "run" in the directions of the paper's convention, or "flops" of training on a
    text, all by the shapes of the paper's encoder at every scale; or of a round after the first by the closed "form",
    with these values of its `terms` ({"h": 0}: without the head); or "seconds" of a round's training, which decide
    nothing; or "time" of a run on typical networks and devices, computed, which decides nothing either.
    With a target: uploaded bytes until a row reaches it.
    share: whether the bounds are percent. places: decimals to which the paper rounds; None for exact bounds.
    costs: where the paper has that cost. texts: of all clients together, where bytes depend on their number.
    A table that starts from earlier runs has their cost, with its own encoder.
    """

    rows: tuple[At, ...]
    than: tuple[At, ...]
    tasks: tuple[str, ...]
    least: float = -math.inf
    most: float = math.inf
    of: Literal["round", "run", "flops", "form", "seconds", "time"] = "round"
    share: bool = False
    target: Target | None = None
    places: int | None = None
    costs: PublishedColumn | None = None
    texts: int | None = None
    terms: Mapping[str, int] = field(default_factory=dict)

    def compare(self, row: Any, than: Any) -> Any:
        """The quotient of two costs that is bounded."""
        above, below = (100 * row, than) if self.share else (than, row)
        return above / below if below else math.inf


@dataclass(frozen=True)
class Sends:
    """Some rounds of every row send from `least` to `most` bytes, by the shapes of the paper's encoder.

    sizes: where the paper has the bytes of a round.
    """

    rows: tuple[At, ...]
    tasks: tuple[str, ...]
    rounds: int
    least: float
    most: float = math.inf
    sizes: PublishedColumn | None = None


@dataclass(frozen=True)
class AtMost:
    """A score of no row is above some percent (or a number, by its metric's unit), in the round that counts.

    beside: a score that is shown too and has no part in the verdict.
    """

    rows: tuple[At, ...]
    score: str
    percent: float
    tasks: tuple[str, ...] = ()
    beside: str = ""


@dataclass(frozen=True)
class Same:
    """A row and another one are the same run on every task: the scores and losses of every round, and all bytes."""

    rows: tuple[At, At]
    tasks: tuple[str, ...] = ()


Relation: TypeAlias = Better | AverageBetter | Reaches | CostBound | Sends | AtMost | Same


def rows_named(relation: Relation) -> Iterator[At]:
    """Every row that a relation names, including its target's baselines."""
    target: Target | None = getattr(relation, "target", None)
    since: tuple[At, ...] = getattr(relation, "since", None) or ()
    return chain(relation.rows, getattr(relation, "than", ()), target.baselines if target else (), since)


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, or a part of one, and the relations that it asserts.

    is_source: whether published values were derived from the sentence; they cannot confirm it and are left out.
    otherwise: other readings by name, which are judged and shown too but do not decide the verdict.
    caveats: scale -> what to know when reading the verdict at that scale.
    headline: the finding in words for the first page, where {value} is ours and {published} the paper's; "" for none.
    """

    id: str  # "1a": its number, and a letter where one sentence asserts several things
    quotation: str  # literal, short
    place: str  # "section IV-C"
    relations: tuple[Relation, ...]
    reading: str = field(kw_only=True, default="")  # how its words are read as numbers
    is_source: bool = field(kw_only=True, default=False)
    otherwise: Mapping[str, tuple[Relation, ...]] = field(kw_only=True, default_factory=dict)
    caveats: Mapping[str, str] = field(kw_only=True, default_factory=dict)
    headline: str = field(kw_only=True, default="")

    @property
    def every_relation(self) -> tuple[Relation, ...]:
        """The relations of all readings."""
        return (*self.relations, *(relation for other in self.otherwise.values() for relation in other))

    @property
    def number(self) -> int:
        """The number of the sentence."""
        return int(self.id.rstrip(ascii_lowercase))

    @property
    def benchmarks(self) -> frozenset[str]:
        """The ids of its benchmarks, which may be another paper's."""
        return frozenset(at.benchmark for relation in self.every_relation for at in rows_named(relation))


@dataclass(frozen=True)
class Decisive:
    """The comparisons that decide some claims by docs/protocol.md, fixed before their runs.

    claims: ids. steps: numbers of the campaign's steps that run them; nothing is looked at before all are finished.
    seeds: task -> the seeds that count there. best_of: the relations' rows are the one of these that scores best on
    validation data of the tuning seed.
    """

    claims: tuple[str, ...]
    relations: tuple[Better | AverageBetter, ...]
    steps: tuple[int, ...]
    seeds: Mapping[str, range]
    best_of: tuple[At, ...] = ()


@dataclass(frozen=True)
class Study:
    """A question that no paper asks: a comparison that was fixed before its runs, and what is shown next to it.

    Rows are named by their ids in the table of the primary comparison.

    Args:
        page: The document that reports it, from the project's folder.
        primary: The comparison that answers it.
        rows: Those whose scores are shown, with their names there. The first is the reference.
        secondary: A row and another one, whose difference is shown and decides nothing.
        controls: The same, on clients for which the effect has to vanish.
        control_steps: The campaign's steps that run the controls.
        control_seeds: Task -> the seeds that count there.
        earlier: Tables with runs that were looked at before, of the study and of its controls.
        earlier_seeds: Of those runs.
        earlier_rows: A row's id -> its id in those tables, where it is another one.
    """

    page: str
    primary: Decisive
    rows: Mapping[str, str]
    secondary: tuple[tuple[str, str], ...]
    controls: tuple[tuple[str, str], ...]
    control_steps: tuple[int, ...]
    control_seeds: Mapping[str, range]
    earlier: tuple[str, str]
    earlier_seeds: range
    earlier_rows: Mapping[str, str]


def rising(rows: tuple[At, ...], tasks: tuple[str, ...] = ()) -> tuple[Better, ...]:
    """Each row is better than the one before it."""
    return tuple(Better((high,), (low,), tasks=tasks) for low, high in pairwise(rows))


def hides_texts(attacks: Iterable[At]) -> AtMost:
    """No attack recovers more than 1 % of texts whole."""
    return AtMost(tuple(attacks), "test/text_recovery", percent=1.0, beside="test/token_recovery")
