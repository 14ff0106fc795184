"""From comparisons to the verdict on a claim, so that at most LEVEL of the verdicts on true or false claims are wrong.

What asserts several comparisons at once is supported where each of them is, on its own (intersection-union): of a
false one some comparison is false, and that one is found to hold by chance no more often than LEVEL. It is
contradicted where one of them is after Holm's correction for their number. Where one comparison is enough ("some
times"), the two change places. Numbers without noise decide as they are, and are not counted by the correction.

Columns that cannot be judged at a scale are left out, and named, where most of a claim's columns are left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from benchmarks.claims import Better, Relation
from reports.claims.asked import Derivation, are_most, is_noisy
from reports.claims.cases import Case, Source, cases
from reports.evidence.inference import LEVEL, holm


class State(Enum):
    """What is known of a statement."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"
    NOT_JUDGED = "not judged"  # there are numbers, and nothing may be concluded from them
    MISSING = "missing"  # neither run nor printed


@dataclass(frozen=True)
class Part:
    """What a claim asserts as one: a comparison, or several of which one is enough."""

    cases: tuple[Case, ...]

    @property
    def _judged(self) -> list[Case]:
        return [case for case in self.cases if case.judged is not None]

    @property
    def best(self) -> Case:
        """The comparison that speaks most for it."""
        known = self._judged or [case for case in self.cases if case.why_not] or self.cases
        return max(known, key=lambda case: case.margin if math.isfinite(case.margin) else -math.inf)

    @property
    def is_judged(self) -> bool:
        """Whether something is known of one of its comparisons."""
        return bool(self._judged)

    @property
    def is_noisy(self) -> bool:
        return any(is_noisy(case.judged) for case in self._judged if case.judged is not None)

    def only(self, settled: bool) -> Part:
        """Its comparisons that cannot be judged, and that is settled, or the others."""
        return Part(tuple(case for case in self.cases if case.is_settled is settled))

    @property
    def holds(self) -> float:
        """The p-value of evidence for it: that of its best comparison, corrected for their number."""
        chances = [_holds(case) for case in self._judged]
        noisy = sum(is_noisy(case.judged) for case in self._judged if case.judged is not None)
        return min(1.0, max(1, noisy) * min(chances, default=1.0))

    @property
    def fails(self) -> tuple[float, ...]:
        """The p-values of evidence against it, one for each way in which it may fail: all of its comparisons do."""
        if len(self.cases) == 1 and self.is_judged:
            return _against(self.cases[0])
        if len(self._judged) < len(self.cases):
            return (1.0,)  # another comparison may hold
        return (max(map(_fails, self.cases)),)


def _holds(case: Case) -> float:
    """The p-value of evidence for one comparison; where it means something only beside others, of all together."""
    own = 1.0 if case.judged is None else case.asked.holds(case.judged)
    return max([own, *map(_holds, case.leads)])


def _fails(case: Case) -> float:
    """The p-value of evidence against one comparison by itself, corrected for its sides."""
    found = _against(case)
    return min(1.0, len(found) * min(found))


def _against(case: Case) -> tuple[float, ...]:
    return (1.0,) if case.judged is None else case.asked.fails(case.judged)


@dataclass(frozen=True)
class Decision:
    """The verdict on a claim, and how each comparison fell.

    cases: in the claim's order, each with its state: YES where it holds on its own, NO where it decides against the
    claim (where one is enough: where it fails on its own). Of several parts with several comparisons each, the best
    comparison of each stands for it. some: whether one comparison is enough for the whole claim. tests: how many ways
    to fail Holm's correction counts. left_out: those that cannot be judged and are not asked for.
    """

    state: State
    cases: tuple[tuple[Case, State], ...]
    some: bool = False
    by_derivation: bool = False
    tests: int = 0
    left_out: tuple[Case, ...] = ()

    def of(self, state: State) -> list[Case]:
        return [case for case, own in self.cases if own is state]


def decide(relations: Iterable[Relation], source: Source) -> Decision:
    """Judge relations of which all are asserted."""
    return decision(parts_of(relations, source))


def parts_of(relations: Iterable[Relation], source: Source) -> list[Part]:
    """What relations assert, with what a source knows of it."""
    return [part for relation in relations for part in _parts(relation, source)]


def decision(every: list[Part]) -> Decision:
    """The verdict on parts of which all are asserted."""
    some = len(every) == 1 and len(every[0].cases) > 1
    parts, closed = _judgeable(every)
    left_out = tuple(case for part in closed for case in part.cases)
    rejected = _rejected(parts)
    if some:
        fallen = [(case, _state_of(case, _holds(case), _fails(case) <= LEVEL)) for case in parts[0].cases]
    else:
        fallen = [(part.best, _state_of(part.best, part.holds, part in rejected)) for part in parts]
    state = _together(parts, bool(rejected))
    deciding = [case for part in (rejected if state is State.NO else parts) for case in part.cases]
    derived = bool(deciding) and all(isinstance(case.estimate, Derivation) for case in deciding)
    tests = sum(len(part.fails) for part in parts if part.is_judged and part.is_noisy)
    fallen += [(case, State.NOT_JUDGED) for case in (left_out if some else [part.best for part in closed])]
    return Decision(state, tuple(fallen), some, derived and state in (State.YES, State.NO), tests, left_out)


def _judgeable(parts: list[Part]) -> tuple[list[Part], list[Part]]:
    """The parts without what cannot be judged, and the rest of them; all, where few columns would be left."""
    kept, closed = ([part.only(one) for part in parts if part.only(one).cases] for one in (False, True))
    columns = [{(case.place, case.tasks) for part in some for case in part.cases} for some in (kept, parts)]
    return (kept, closed) if are_most(*columns) else (parts, [])


def _one_is_enough(relation: Relation) -> bool:
    return isinstance(relation, Better) and relation.some


def _parts(relation: Relation, source: Source) -> Iterator[Part]:
    found = tuple(cases(relation, source))
    if found:
        yield from [Part(found)] if _one_is_enough(relation) else [Part((case,)) for case in found]


def _rejected(parts: Sequence[Part]) -> list[Part]:
    """The parts that speak against a claim which asserts all: exact ones, and noisy ones by Holm."""
    exact = [part for part in parts if part.is_judged and not part.is_noisy and min(part.fails) == 0]
    noisy = [(chance, part) for part in parts if part.is_judged and part.is_noisy for chance in part.fails]
    found = holm([chance for chance, _ in noisy])
    return exact + [part for (_, part), is_rejected in zip(noisy, found, strict=True) if is_rejected]


def _together(parts: Sequence[Part], is_rejected: bool) -> State:
    if is_rejected:
        return State.NO
    if not any(part.is_judged for part in parts):
        cases = [case for part in parts for case in part.cases]
        is_settled = bool(cases) and all(case.why_not for case in cases)
        return State.NOT_JUDGED if is_settled or any(case.why_not and case.is_run for case in cases) else State.MISSING
    return State.YES if all(part.is_judged and part.holds <= LEVEL for part in parts) else State.UNDECIDED


def _state_of(case: Case, holds: float, fails: bool) -> State:
    if case.why_not:
        return State.NOT_JUDGED
    if case.judged is None:
        return State.MISSING
    if holds <= LEVEL:
        return State.YES
    return State.NO if fails else State.UNDECIDED
