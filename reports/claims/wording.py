"""What was found of a claim, in words: which numbers decide, how many there are, and what keeps it undecided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.claims.asked import Counted
from reports.claims.cases import Case
from reports.claims.decide import Decision, State
from reports.evidence.inference import LEVEL, smallest_effect
from reports.evidence.sample_size import FEWEST_SEEDS, MOST_SEEDS, seeds_needed
from reports.evidence.statistics import Estimate
from reports.pages.text import number

LISTED = 3  # comparisons that a table shows of a claim
_FELL = {
    State.YES: "for",
    State.NO: "against",
    State.UNDECIDED: "undecided",
    State.NOT_JUDGED: "not judged",
}


@dataclass(frozen=True)
class Opinion:
    """What one source of numbers says of a claim."""

    decision: Decision
    verdict: str
    note: str = ""  # what was not used

    @property
    def state(self) -> State:
        return self.decision.state

    @property
    def some(self) -> bool:
        """Whether one comparison is enough."""
        return self.decision.some

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(case for case, _ in self.decision.cases)

    @property
    def known(self) -> tuple[Case, ...]:
        """The cases with numbers, those that speak most against the claim (or for it, if one is enough) first.

        What decides, or keeps the claim from being decided, stands before what does not.
        """
        states = (State.YES, State.UNDECIDED, State.NO) if self.some else (State.NO, State.UNDECIDED, State.YES)
        order = {state: place for place, state in enumerate((*states, State.NOT_JUDGED))}
        found = [(order[state], case) for case, state in self.decision.cases if state in order and case.is_run]
        by_margin = sorted(found, key=lambda entry: entry[1].margin, reverse=self.some)
        return tuple(case for _, case in sorted(by_margin, key=lambda entry: entry[0]))

    def count(self, state: State) -> int:
        return len(self.decision.of(state))


@dataclass(frozen=True)
class Closed:
    """Columns that a claim is judged without, or that keep it from being judged, and why. what: "left out"."""

    columns: tuple[str, ...]
    what: str
    reason: str

    def text(self, marks: Mapping[str, str]) -> str:
        """In words. marks: of reasons that are told elsewhere."""
        said = f"{', '.join(self.columns)} {self.what}"
        return f"{said}{marks[self.reason]}" if self.reason in marks else f"{said}: {self.reason}"


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
    shown = [case for case in known if case in found.decision.of(deciding)]
    word = ("on" if found.some else "not") if shown else ("most" if found.some else "least")
    text = listed(shown[:most] or known[:1], found.cases)
    more = f"; {len(shown) - most} more" if most is not None and len(shown) > most else ""
    return f"{found.count(State.YES)} of {len(known)} hold{lacking}; {word}: {text}{more}{note}"


def seeds(found: Opinion) -> str:
    """How many seeds stand behind the numbers: "5", or "2–5"; nothing where there are none."""
    numbers = sorted({case.estimate.n for case in found.known if case.estimate is not None})
    if not numbers:
        return ""
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"


def record_numbers(found: Opinion, partial: Iterable[str] = ()) -> str:
    """How many comparisons were run with how many seeds, how they fell, and the ones that speak most against."""
    known = found.known
    if not known:
        return "not run"
    parts = [f"n = {seeds(found)}"]
    if len(found.cases) > 1:
        fell = Counter(state for case, state in found.decision.cases if case.is_run)
        counts = ", ".join(f"{fell[state]} {word}" for state, word in _FELL.items() if fell[state])
        parts.append(f"{len(known)} of {len(found.cases)} run: {counts}")
    label = "" if len(found.cases) == 1 else "most: " if found.some else "least: "
    parts.append(label + listed(known[:LISTED], found.cases))
    lacking = ", ".join(dict.fromkeys(partial))
    if lacking:
        parts.append(f"partial data: {lacking}")
    return "; ".join(parts)


def effect(found: Opinion) -> str:
    """The number that decides, or keeps the claim from being decided, with its interval."""
    return listed(found.known[:1], found.cases)


def could_see(found: Opinion) -> str:
    """The smallest effect that this number's seeds decide four of five times, where they show an error."""
    if found.state not in (State.UNDECIDED, State.YES, State.NO) or not found.known:
        return ""
    case = found.known[0]
    least = None if case.judged is None else smallest_effect(case.judged)
    return "" if least is None else f"{number(least)}{case.asked.unit}"


def seeds_to_decide(found: Opinion) -> str:
    """The number of seeds that would decide an open claim's effect at its spread, or "> 100".

    "" where it is unknown, or where as many were run, so that other comparisons keep the claim open.
    """
    judged = found.known[0].judged if found.state is State.UNDECIDED and found.known else None
    if judged is None or not judged.components or judged.n < FEWEST_SEEDS:
        return ""
    n = seeds_needed(judged, found.known[0].margin)
    return f"> {MOST_SEEDS}" if n is None else str(n) if n > judged.n else ""


def closed(found: Opinion) -> tuple[Closed, ...]:
    """The columns that a claim is decided without, and those that keep it open; none before any run."""
    if found.state is State.MISSING:
        return ()
    left_out = found.decision.left_out
    lacking = _columns(left_out, "left out")
    if found.state not in (State.YES, State.NO):
        lacking += _columns((case for case in found.cases if case not in left_out), "not judged")
    return tuple(lacking)


def still_open(found: Opinion) -> str:
    """How the comparisons of an open claim fell; nothing before any run."""
    is_open = found.state in (State.UNDECIDED, State.NOT_JUDGED) and found.known
    return "; ".join(_fallen(found)) if is_open else ""


def without(found: Opinion) -> str:
    """The columns that a verdict says nothing of, in words."""
    if not (found.state is State.YES or (found.state is State.NO and found.some)):
        return ""
    names = dict.fromkeys(name for case in found.decision.left_out for name, _ in case.why_not)
    return f"without {', '.join(names)}" if names else ""


def _columns(found: Iterable[Case], what: str) -> list[Closed]:
    """Why columns are not judged, one a reason."""
    columns: dict[str, list[str]] = {}
    for name, reason in dict.fromkeys(entry for case in found for entry in case.why_not):
        columns.setdefault(reason, []).append(name)
    return [Closed(tuple(names), what, reason) for reason, names in columns.items()]


def _fallen(found: Opinion) -> list[str]:
    every, undecided = len(found.cases), found.decision.of(State.UNDECIDED)
    kinds = [_kind(case, found.decision.tests) for case in undecided]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    fell = [f"{found.count(state)} of {every} {_FELL[state]}" for state in (State.YES, State.NO) if found.count(state)]
    texts = [f"{count} of {every} {kind}" if every > 1 else kind for kind, count in counts.items()]
    lacking = found.count(State.MISSING)
    return fell + texts + ([f"{lacking} of {every} not run"] if lacking else [])


def _kind(case: Case, tests: int) -> str:
    """Why one comparison is open."""
    known = case.judged or Estimate(None)
    if known.value is None:
        return "undefined"
    if isinstance(known, Counted) and known.interval is None:
        return f"in whole rounds, of which {known.needed} seeds are needed"
    if known.interval is None:
        return "with one seed, which shows no error" if known.n == 1 else "not complete"
    if min(case.asked.fails(known)) <= LEVEL:
        return f"against by itself, not after Holm's correction for {tests}"
    if case.leads and case.asked.holds(known) <= LEVEL:
        leads = "; ".join(lead.text for lead in case.leads)
        return f"{case.asked.text.strip()}, which proves nothing unless this is {case.leads[0].asked.text}: {leads}"
    return f"on both sides of {case.asked.text.strip()}"
