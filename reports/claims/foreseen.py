"""How many seeds would decide an open claim, if effects and what they vary by stayed as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from reports.claims.asked import Counted
from reports.claims.cases import Case
from reports.claims.decide import Part, State, decision
from reports.evidence.inference import estimate
from reports.evidence.statistics import Estimate, exact

STEPS = (5, 7, 10, 15, 20, 30, 50, 100)  # a spread that a few seeds show is known no better than that
_SIDES = {State.YES: "for", State.NO: "against"}
FEWEST = 3  # two seeds show no spread to speak of


@dataclass(frozen=True)
class Foreseen:
    """state: YES or NO; UNDECIDED where none of STEPS decides. if_rest: where what is not known agrees."""

    state: State
    seeds: int = STEPS[-1]
    if_rest: bool = False

    @property
    def is_out_of_reach(self) -> bool:
        return self.state is State.UNDECIDED

    @property
    def short(self) -> str:
        """How many seeds, for a column of a table; "?": if what is not known agrees."""
        if self.is_out_of_reach:
            return "none"
        return f"{self.seeds} {_SIDES[self.state]}{' ?' if self.if_rest else ''}"

    @property
    def text(self) -> str:
        """In words, of what was run: nothing is foreseen of the rest."""
        if self.is_out_of_reach:
            return f"by what was run, not even {STEPS[-1]} seeds would decide it"
        rest = ", if what is not known agrees" if self.if_rest else ""
        return f"at these effects {self.seeds} seeds would decide {_SIDES[self.state]} it{rest}"


def foreseen(parts: list[Part]) -> Foreseen | None:
    """The fewest of STEPS that decide; None of what is decided, or where nothing was judged yet."""
    if decision(parts).state is not State.UNDECIDED:
        return None
    is_some = len(parts) == 1 and len(parts[0].cases) > 1  # of which what is not known may be the one
    for if_rest in (False,) if is_some else (False, True):
        for seeds in STEPS:
            found = decision([_changed(part, partial(_case, seeds=seeds, if_rest=if_rest)) for part in parts])
            if found.state is not State.UNDECIDED:
                return Foreseen(found.state, seeds, if_rest)
    return Foreseen(State.UNDECIDED)


def _changed(part: Part, change: Callable[[Case], Case]) -> Part:
    return Part(tuple(map(change, part.cases)))


def _case(case: Case, seeds: int, if_rest: bool) -> Case:
    """The comparison as so many seeds would leave it; if_rest: as asked, where no error is known of it."""
    found, leads = case.judged, tuple(_case(lead, seeds, if_rest) for lead in case.leads)
    if found is None or not _is_known(found):
        return replace(case, estimate=exact(case.asked.example), leads=()) if if_rest and not case.is_settled else case
    return replace(case, estimate=_with_seeds(found, seeds), leads=leads)


def _with_seeds(found: Estimate, seeds: int) -> Estimate:
    if isinstance(found, Counted):
        return found.with_seeds(seeds)
    if found.value is None or not found.components:
        return found
    return estimate(found.value, [part.with_seeds(seeds, found.n) for part in found.components], seeds, found.note)


def _is_known(found: Estimate) -> bool:
    """Whether it is known how a number varies: exact ones do not."""
    if isinstance(found, Counted) or found.components:
        return found.n >= FEWEST
    return found.interval is not None
