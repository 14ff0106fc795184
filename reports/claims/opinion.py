"""A verdict on a claim, with the numbers that it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.claims import Better, Claim, Relation
from reports.claims.case import Case, State, every, some
from reports.claims.relations import Source, cases

PRINT_WORDS = {
    State.YES: "holds",
    State.NO: "does not hold",
    State.UNDECIDED: "not printed",
    State.MISSING: "not printed",
}
RECORD_WORDS = {
    State.YES: "supported",
    State.NO: "contradicted",
    State.UNDECIDED: "inconclusive",
    State.MISSING: "not run",
}
LISTED = 3  # comparisons that a table shows of a claim


@dataclass(frozen=True)
class Opinion:
    """What one source of numbers says of a claim."""

    state: State
    verdict: str
    cases: tuple[Case, ...]
    some: bool = False  # one case is enough
    note: str = ""  # what was not used

    @property
    def known(self) -> tuple[Case, ...]:
        """The cases with numbers, those that speak most against the claim (or for it, if one is enough) first."""
        found = [case for case in self.cases if case.state != State.MISSING]
        return tuple(sorted(found, key=lambda case: case.margin, reverse=self.some))

    def count(self, state: State) -> int:
        """How many cases are in a state."""
        return sum(case.state == state for case in self.cases)


def opinion(claim: Claim, source: Source, words: Mapping[State, str]) -> Opinion:
    """Judge every relation of a claim; all of them are asserted."""
    states: list[State] = []
    found: list[Case] = []
    for relation in claim.relations:
        own = tuple(cases(relation, source))
        states.append((some if _one_is_enough(relation) else every)(case.state for case in own))
        found += own
    state = every(states)
    return Opinion(state, words[state], tuple(found), all(map(_one_is_enough, claim.relations)))


def _one_is_enough(relation: Relation) -> bool:
    return isinstance(relation, Better) and relation.some


def listed(shown: Sequence[Case], within: Sequence[Case]) -> str:
    """Comparisons in words, with their table where the claim is about several."""
    several = len({case.place for case in within}) > 1
    return "; ".join(f"{case.place}: {case.text}" if several else case.text for case in shown)


def printed_numbers(found: Opinion, most: int | None = LISTED) -> str:
    """How many printed comparisons hold, and the ones that decide."""
    known = found.known
    note = f"; {found.note}" if found.note else ""
    if not known:
        return f"no numbers{note}"
    if len(found.cases) == 1:
        return known[0].text + note
    lacking = f", {len(found.cases) - len(known)} not printed" if len(known) < len(found.cases) else ""
    deciding = State.YES if found.some else State.NO
    shown = [case for case in known if case.state == deciding]
    word = ("on" if found.some else "not") if shown else ("most" if found.some else "least")
    text = listed(shown[:most] or known[:1], found.cases)
    more = f"; {len(shown) - most} more" if most is not None and len(shown) > most else ""
    return f"{found.count(State.YES)} of {len(known)} hold{lacking}; {word}: {text}{more}{note}"


def record_numbers(found: Opinion, partial: Iterable[str] = ()) -> str:
    """How many comparisons were run with how many seeds, how they fell, and the ones that speak most against."""
    known = found.known
    if not known:
        return "not run"
    seeds = sorted({case.estimate.n for case in known if case.estimate is not None})
    n = f"n = {seeds[0]}" if len(seeds) == 1 else f"n = {seeds[0]}–{seeds[-1]}"
    parts = [n]
    if len(found.cases) > 1:
        fell = {State.YES: "for", State.NO: "against", State.UNDECIDED: "undecided"}
        counts = ", ".join(f"{found.count(state)} {word}" for state, word in fell.items() if found.count(state))
        parts.append(f"{len(known)} of {len(found.cases)} run: {counts}")
    label = "" if len(found.cases) == 1 else "most: " if found.some else "least: "
    parts.append(label + listed(known[:LISTED], found.cases))
    lacking = ", ".join(dict.fromkeys(partial))
    if lacking:
        parts.append(f"partial data: {lacking}")
    return "; ".join(parts)
