"""Claims as data: a paper's sentences, and the relations between runs that they assert."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise, product
from string import ascii_lowercase
from typing import Any, Literal, TypeAlias

P_VALUE = "t_test/p_value"  # the score name for published p-values
MAJORITY = "local-majority"  # in any table, the row that predicts each client's majority class


@dataclass(frozen=True)
class At:
    """A row of a benchmark; published: the row with the paper's numbers, if it differs."""

    benchmark: str
    row: str
    published: str = ""


@dataclass(frozen=True)
class PublishedColumn:
    """A published column that has no scores, such as costs in the paper's unit: "Table VI", "cost_gb"."""

    table: str
    column: str


@dataclass(frozen=True)
class Target:
    """A score to reach.

    Args:
        percent: Task -> the paper's target, used at paper scale; other scales use a baseline's best score after any
            round, per seed. A target that the local majority reaches is no evidence.
        baselines: The baselines' rows. A limit in bytes scales with the first one's bytes per round.
        only_published: Whether only the paper's target counts.
    """

    percent: Mapping[str, float]
    baselines: tuple[At, ...]
    score: str = "test/accuracy"
    only_published: bool = False


@dataclass(frozen=True)
class Better:
    """Every row is better than every rival on every task and score, in the round that counts.

    Args:
        by: The smallest gain, in the metric's unit, or in percent of the rival if `relative`. 0 is any gain; a negative
            value is the largest allowed loss.
        most: The largest gain ("a little"), in the same unit.
        tasks: () for all tasks that both tables have.
        scores: () for all scores that both tables have.
        measure: "score", training "loss" (lower is better), or "rounds" until the target (fewer are better).
        some: Whether one comparison is enough ("sometimes").
        target: For "rounds"; None for a rival's best score after any round.
        over_failed: Whether a rival that has learned nothing counts, because the claim is that it fails.
        since: A reference row per side, such as one before training, over which gains count (percent if `relative`).
            Unless `over_failed`, both must have learned something.
        p_values: Where the paper publishes p-values for these comparisons, with the score P_VALUE. Published rows pass
            its t test if p > 0.05. A large p is no evidence for equality, so runs are judged by the difference and only
            show p.
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
    """A row is within `within` points (percent if `relative`) of another, which may have learned nothing."""
    return Better((row,), (other,), -within, within, tasks, over_failed=True, **fields)


@dataclass(frozen=True)
class AverageBetter:
    """A table's average is better than every rival's by at least `by` and at most `most` points.

    Several rows in a table count as their mean, several tables as the mean of these. A row's rivals are those in its
    table, or all if its table has none.

    Args:
        over_failed: As in Better.
        tasks: () for all tasks of the table.
        scores: A task's first one in this list counts; () for the averaged one.
    """

    rows: tuple[At, ...]
    than: tuple[At, ...]
    by: float
    most: float = math.inf
    over_failed: bool = False
    tasks: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()

    def choices(self) -> Iterator[Mapping[str, At]]:
        """Every choice of one rival per table (benchmark id); one choice has the best rival of each."""
        tables = tuple(dict.fromkeys(row.benchmark for row in self.rows))
        rivals = [tuple(at for at in self.than if at.benchmark == name) or self.than for name in tables]
        return (dict(zip(tables, chosen, strict=True)) for chosen in product(*rivals))


@dataclass(frozen=True)
class Reaches:
    """Every row reaches the target on every task: within a number of rounds, within uploaded bytes, or at all.

    costs, sizes: the published bytes until the target, and per round. For another encoder, sizes scale the limit.
    """

    rows: tuple[At, ...]
    target: Target
    within_rounds: int | None = None
    below_bytes: float | None = None
    costs: PublishedColumn | None = None
    sizes: PublishedColumn | None = None


@dataclass(frozen=True)
class CostBound:
    """Every rival costs `least` to `most` times as much as every row.

    A table that starts from earlier runs includes their cost, with its encoder.

    Args:
        of: The cost. "round" and "run" are bytes in the directions of the paper's convention, "flops" those of training
            on a text; all follow from the shapes of the paper's encoder at every scale. "form" is the closed form of a
            round after the first. "seconds" of a round's training and the computed "time" of a run on typical networks
            and devices decide nothing.
        share: Whether the bounds are instead a row's cost in percent of a rival's.
        target: If given, the cost is the uploaded bytes until a row reaches it.
        places: The decimals to which the paper rounds; None for exact bounds.
        costs: Where the paper has that cost.
        texts: The number of all clients' texts, if bytes depend on it.
        terms: Values of the closed form's terms ({"h": 0}: without the head).
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
        """The bounded quotient of two costs."""
        above, below = (100 * row, than) if self.share else (than, row)
        return above / below if below else math.inf


@dataclass(frozen=True)
class Sends:
    """The given rounds of every row send `least` to `most` bytes, by the shapes of the paper's encoder.

    sizes: where the paper has the bytes per round.
    """

    rows: tuple[At, ...]
    tasks: tuple[str, ...]
    rounds: int
    least: float
    most: float = math.inf
    sizes: PublishedColumn | None = None


@dataclass(frozen=True)
class AtMost:
    """No row's score exceeds the limit, in the metric's unit, in the round that counts.

    extra: a score that is also shown but does not count for the verdict.
    """

    rows: tuple[At, ...]
    score: str
    percent: float
    tasks: tuple[str, ...] = ()
    extra: str = ""


@dataclass(frozen=True)
class Same:
    """Two rows are the same run on every task: equal scores and losses in every round, and equal bytes."""

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

    Args:
        is_question: Whether the sentence is ours, because published numbers disagree on it.
        is_source: Whether published values were derived from the sentence; they cannot confirm it and are left out.
        not_judged: Why published numbers do not judge the sentence; "" if they may.
        otherwise: Name -> another reading, which is judged and shown but does not decide the verdict.
        caveats: Scale -> a caveat for the verdict at that scale.
        headline: The finding for the first page; {value} is our number, {published} the paper's; may be "".
    """

    id: str  # "1a": its number, and a letter if the sentence asserts several things
    quotation: str  # literal, short
    place: str  # "section IV-C"
    relations: tuple[Relation, ...]
    reading: str = field(kw_only=True, default="")  # how the sentence translates to numbers
    is_question: bool = field(kw_only=True, default=False)
    is_source: bool = field(kw_only=True, default=False)
    not_judged: str = field(kw_only=True, default="")
    otherwise: Mapping[str, tuple[Relation, ...]] = field(kw_only=True, default_factory=dict)
    caveats: Mapping[str, str] = field(kw_only=True, default_factory=dict)
    headline: str = field(kw_only=True, default="")

    @property
    def sentence(self) -> str:
        """The quotation in quotation marks; a sentence of ours without them."""
        return self.quotation if self.is_question else f"“{self.quotation}”"

    @property
    def left_out(self) -> str:
        """Which published numbers are left out, as an addition to a sentence."""
        why = self.not_judged and f" ({self.not_judged})"
        return "; numbers derived from this sentence are left out" if self.is_source else why

    @property
    def every_relation(self) -> tuple[Relation, ...]:
        """The relations of all readings."""
        return (*self.relations, *(relation for other in self.otherwise.values() for relation in other))

    @property
    def number(self) -> int:
        """The sentence's number."""
        return int(self.id.rstrip(ascii_lowercase))

    @property
    def benchmarks(self) -> frozenset[str]:
        """The ids of its benchmarks, which may belong to another paper."""
        return frozenset(at.benchmark for relation in self.every_relation for at in rows_named(relation))


@dataclass(frozen=True)
class Decisive:
    """The comparisons that decide claims by docs/protocol.md, fixed before their runs.

    Args:
        claims: The claims' ids.
        steps: The numbers of the campaign's steps that run them; results stay unread until all are finished.
        seeds: Task -> the seeds that count.
        best_of: Rows; the one with the best score on the tuning seed's validation data is the relations' row.
        instead: A row of the paper's tables, as the claims name it -> the row that the steps run in its place.
    """

    claims: tuple[str, ...]
    relations: tuple[Better | AverageBetter, ...]
    steps: tuple[int, ...]
    seeds: Mapping[str, range]
    best_of: tuple[At, ...] = ()
    instead: Mapping[At, At] = field(default_factory=dict)


@dataclass(frozen=True)
class Control:
    """Comparisons on other clients, or with another encoder, than a study's.

    Args:
        title: What differs from the study.
        table: The id of the campaign's table.
        pairs: Pairs of rows.
        steps: The campaign's steps that run them.
        seeds: Task -> the seeds that count.
        earlier: A table with runs that were read before; "" for none.
        within: The margin of "equal", in points.
    """

    title: str
    table: str
    pairs: tuple[tuple[str, str], ...]
    steps: tuple[int, ...]
    seeds: Mapping[str, range]
    earlier: str = ""
    within: float = 1.0


@dataclass(frozen=True)
class Study:
    """A question that no paper asks: a comparison that was fixed before its runs, and further numbers to show.

    Rows have the ids of the primary comparison's table.

    Args:
        page: The document that reports it, relative to the project's folder.
        primary: The comparison that answers the question.
        headline: The primary comparison for the first page; {compared} is such as "1.0 points better".
        rows: Row id -> name, for the scores to show. The first row is the reference.
        secondary: Pairs of rows, whose difference is shown and decides nothing.
        controls: Comparisons on other clients.
        earlier: The table with runs that were read before.
        earlier_seeds: The seeds of those runs.
        earlier_rows: Row id -> its id in that table, if it differs.
    """

    page: str
    primary: Decisive
    headline: str
    rows: Mapping[str, str]
    secondary: tuple[tuple[str, str], ...]
    controls: tuple[Control, ...]
    earlier: str
    earlier_seeds: range
    earlier_rows: Mapping[str, str]


def rising(rows: tuple[At, ...], tasks: tuple[str, ...] = ()) -> tuple[Better, ...]:
    """Each row is better than the one before it."""
    return tuple(Better((high,), (low,), tasks=tasks) for low, high in pairwise(rows))


def hides_texts(attacks: Iterable[At]) -> AtMost:
    """No attack recovers more than 1 % of whole texts."""
    return AtMost(tuple(attacks), "test/text_recovery", percent=1.0, extra="test/token_recovery")
