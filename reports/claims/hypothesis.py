"""From comparisons to the verdict on a claim, so that at most LEVEL of the verdicts on true or false claims are wrong.

A claim that asserts several comparisons is supported if each comparison is supported on its own (intersection-union
test): a false claim has a false comparison, and chance supports that one with probability LEVEL at most. The claim is
contradicted if one comparison is, after Holm's correction for their number. If one comparison is enough ("sometimes"),
the two rules are swapped. Numbers without noise decide directly, and the correction does not count them.

Columns that cannot be judged at a scale are left out and named, if more than half of a claim's columns remain.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from reports.claims.criterion import Criterion, Evidence
from reports.evidence.inference import LEVEL, holm


class State(Enum):
    """The state of a statement."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"
    NOT_JUDGED = "not judged"  # there are numbers, but they are no evidence
    MISSING = "missing"  # neither run nor published


@dataclass(frozen=True)
class Assertion:
    """One comparison: its place, its rows, its criterion and its evidence.

    Args:
        place: "Table III".
        evidence: None if neither run nor published.
        leads: For "similar" relations, the reference row against rows without a treatment. Similarity to a reference is
            evidence only if the reference is better than those rows.
        runs: The quantity and the two runs that are compared; equal if two tables have the same runs.
        rows: "A − B" for scores of two rows, which are averaged over tasks.
    """

    place: str
    tasks: tuple[str, ...]
    name: str
    criterion: Criterion
    evidence: Evidence | None = None
    leads: tuple[Assertion, ...] = ()
    runs: tuple[str, ...] = ()
    rows: str = ""

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Columns with the reason why the number is no evidence; empty if it is evidence, or if there is no number."""
        return self.evidence.reasons if self.evidence else ()

    @property
    def is_settled(self) -> bool:
        return bool(self.evidence and self.evidence.is_settled)

    @property
    def is_run(self) -> bool:
        """Whether it has a number."""
        evidence = self.evidence
        return evidence is not None and not (evidence.reasons and (evidence.value, evidence.n) == (None, 0))

    @property
    def judged(self) -> Evidence | None:
        """The number, if it is evidence."""
        return None if self.reasons else self.evidence

    @property
    def margin(self) -> float:
        value = self.evidence.value if self.evidence else None
        return math.inf if value is None else self.criterion.margin(value)

    @property
    def p_for(self) -> float:
        """The p-value of evidence for it, together with its leads."""
        p_value = self.criterion.p_for(self.judged) if self.judged else 1.0
        return max([p_value, *(lead.p_for for lead in self.leads)])

    @property
    def p_against(self) -> tuple[float, ...]:
        """The p-values of evidence against it, one per side."""
        return self.criterion.p_against(self.judged) if self.judged else (1.0,)

    @property
    def text(self) -> str:
        if self.evidence is None or self.evidence.value is None:
            return f"{self.name}: {'not run' if self.evidence is None else 'undefined'}"
        interval = self.evidence.interval
        is_wide = interval is not None and interval[0] < interval[1]
        text = self.criterion.told(self.evidence.value, interval if is_wide else None)
        between = ": " if self.criterion.words else " "
        return f"{self.name}{between}{text}" + (f" ({self.evidence.note})" if self.evidence.note else "")


@dataclass(frozen=True)
class Hypothesis:
    """One assertion of a claim: a comparison, or alternatives: one suffices."""

    comparisons: tuple[Assertion, ...]

    @property
    def _evidence(self) -> list[Evidence]:
        return [one.judged for one in self.comparisons if one.judged is not None]

    @property
    def is_judged(self) -> bool:
        return bool(self._evidence)

    @property
    def is_noisy(self) -> bool:
        return any(one.is_noisy for one in self._evidence)

    @property
    def best(self) -> Assertion:
        """The comparison that supports it most."""
        judged = [one for one in self.comparisons if one.judged is not None]
        candidates = judged or [one for one in self.comparisons if one.reasons] or self.comparisons
        return max(candidates, key=lambda one: one.margin if math.isfinite(one.margin) else -math.inf)

    def only(self, settled: bool) -> Hypothesis:
        """Its comparisons that are settled as not testable, or the others."""
        return Hypothesis(tuple(one for one in self.comparisons if one.is_settled is settled))

    @property
    def p_for(self) -> float:
        """The p-value of evidence for it: that of its best comparison, corrected for their number."""
        chances = [one.p_for for one in self.comparisons if one.judged is not None]
        noisy = sum(one.is_noisy for one in self._evidence)
        return min(1.0, max(1, noisy) * min(chances, default=1.0))

    @property
    def p_against(self) -> tuple[float, ...]:
        """The p-values of evidence against it, one for each way in which it may fail: all of its comparisons do."""
        if len(self.comparisons) == 1 and self.is_judged:
            return self.comparisons[0].p_against
        if len(self._evidence) < len(self.comparisons):
            return (1.0,)  # another comparison may hold
        by_comparison = [one.p_against for one in self.comparisons]
        return (max(min(1.0, len(chances) * min(chances)) for chances in by_comparison),)


@dataclass(frozen=True)
class Verdict:
    """The verdict on hypotheses that are all asserted, with each comparison's state.

    Args:
        comparisons: In the claim's order, each with its state: YES if it holds on its own, NO if it decides against the
            claim. Where one is enough: YES if it holds after Holm's correction, NO if it fails on its own. Of several
            hypotheses with several comparisons each, the best comparison of each counts.
        some: One comparison is enough for the whole claim.
        is_derived: All deciding numbers follow from shapes, without noise.
        tests: The number of ways to fail that Holm's correction counts.
        left_out: Comparisons that cannot be judged and are not needed.
        missing: If runs of the protocol are missing: the finished ones, such as "21 of 36".
    """

    state: State
    comparisons: tuple[tuple[Assertion, State], ...]
    some: bool = False
    is_derived: bool = False
    tests: int = 0
    left_out: tuple[Assertion, ...] = ()
    missing: str = ""

    def of(self, state: State) -> list[Assertion]:
        return [comparison for comparison, each in self.comparisons if each is state]

    @property
    def columns(self) -> dict[tuple[str, tuple[str, ...]], State]:
        """A table's column -> its state, by all comparisons there: YES if each holds, NO if one is against."""
        columns: dict[tuple[str, tuple[str, ...]], set[State]] = {}
        for one, state in self.comparisons:
            columns.setdefault((one.place, one.tasks), set()).add(state)
        return {
            column: State.NO if State.NO in states else states.pop() if len(states) == 1 else State.UNDECIDED
            for column, states in columns.items()
        }

    @property
    def is_tie(self) -> bool:
        """Whether the claim fails because every number is exact and on its bound, as if two rows are one run."""
        every = [one for one, _ in self.comparisons]
        return self.state is State.NO and all(
            one.judged is not None and not one.judged.is_noisy and one.margin == 0 for one in every
        )

    @property
    def is_decided(self) -> bool:
        return self.state in (State.YES, State.NO)

    @property
    def shown(self) -> tuple[Assertion, ...]:
        """The comparisons with numbers, most decisive first.

        Comparisons that decide the claim, or leave it open, come first: those against it, or those for it if one is
        enough.
        """
        states = (State.YES, State.UNDECIDED, State.NO) if self.some else (State.NO, State.UNDECIDED, State.YES)
        order = {state: place for place, state in enumerate((*states, State.NOT_JUDGED))}
        runs = [(order[state], one) for one, state in self.comparisons if state in order and one.is_run]
        by_margin = sorted(runs, key=lambda entry: entry[1].margin, reverse=self.some)
        return tuple(one for _, one in sorted(by_margin, key=lambda entry: entry[0]))


def is_majority(some: Collection[object], every: Collection[object]) -> bool:
    """Whether some are more than half of all."""
    return 2 * len(some) > len(every)


def decide(every: Sequence[Hypothesis]) -> Verdict:
    """The verdict on hypotheses that are all asserted."""
    some = len(every) == 1 and len(every[0].comparisons) > 1
    hypotheses, closed = _judgeable(every)
    left_out = tuple(one for hypothesis in closed for one in hypothesis.comparisons)
    rejected = _rejected(hypotheses)
    if some:
        alternatives = hypotheses[0].comparisons
        held = _held(alternatives)
        fallen = [
            (one, _state_of(one, one in held, min(1.0, len(one.p_against) * min(one.p_against)) <= LEVEL))
            for one in alternatives
        ]
    else:
        fallen = [(each.best, _state_of(each.best, each.p_for <= LEVEL, each in rejected)) for each in hypotheses]
    state = _state(hypotheses, bool(rejected))
    deciding = [one for each in (rejected if state is State.NO else hypotheses) for one in each.comparisons]
    derived = bool(deciding) and all(one.evidence is not None and one.evidence.is_derived for one in deciding)
    tests = sum(len(each.p_against) for each in hypotheses if each.is_judged and each.is_noisy)
    fallen += [(one, State.NOT_JUDGED) for one in (left_out if some else [each.best for each in closed])]
    return Verdict(state, tuple(fallen), some, derived and state in (State.YES, State.NO), tests, left_out)


def _judgeable(every: Sequence[Hypothesis]) -> tuple[Sequence[Hypothesis], Sequence[Hypothesis]]:
    """The judgeable hypotheses, and the others; all of them, if few columns would remain."""
    kept, closed = ([each.only(one) for each in every if each.only(one).comparisons] for one in (False, True))
    columns = [{(one.place, one.tasks) for each in some for one in each.comparisons} for some in (kept, every)]
    return (kept, closed) if is_majority(*columns) else (every, [])


def _rejected(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The hypotheses that contradict a claim which asserts all: exact ones, and noisy ones by Holm."""
    judged = [each for each in hypotheses if each.is_judged]
    exact = [each for each in judged if not each.is_noisy and min(each.p_against) == 0]
    noisy = [(chance, each) for each in judged if each.is_noisy for chance in each.p_against]
    rejected = holm([chance for chance, _ in noisy])
    return exact + [each for (_, each), is_rejected in zip(noisy, rejected, strict=True) if is_rejected]


def _held(alternatives: Sequence[Assertion]) -> list[Assertion]:
    """The alternatives that hold: exact ones, and noisy ones by Holm."""
    judged = [(one, one.judged.is_noisy) for one in alternatives if one.judged is not None]
    noisy = [one for one, is_noisy in judged if is_noisy]
    held = [one for one, is_held in zip(noisy, holm([each.p_for for each in noisy]), strict=True) if is_held]
    return held + [one for one, is_noisy in judged if not is_noisy and one.p_for <= LEVEL]


def _state(hypotheses: Sequence[Hypothesis], is_rejected: bool) -> State:
    if is_rejected:
        return State.NO
    if not any(each.is_judged for each in hypotheses):
        every = [one for each in hypotheses for one in each.comparisons]
        is_closed = bool(every) and all(one.reasons for one in every)
        return State.NOT_JUDGED if is_closed or any(one.reasons and one.is_run for one in every) else State.MISSING
    return State.YES if all(each.is_judged and each.p_for <= LEVEL for each in hypotheses) else State.UNDECIDED


def _state_of(one: Assertion, is_held: bool, is_rejected: bool) -> State:
    if one.reasons:
        return State.NOT_JUDGED
    if one.judged is None:
        return State.MISSING
    if is_held:
        return State.YES
    return State.NO if is_rejected else State.UNDECIDED
