"""Claims, judged twice: on the paper's own printed numbers, and on our records at one scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.claims import Better, Claim, Relation
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark, Scale
from reports.claims.cases import Case, Source, State, cases, every
from reports.claims.cells import Runs, Tables
from reports.claims.in_print import InPrint
from reports.claims.in_records import InRecords
from reports.evidence.published import Numbers
from reports.evidence.records import DEMO, Derive

# In the order of State: yes, no, undecided, missing.
PRINT_WORDS = dict(zip(State, ("holds", "does not hold", "not printed", "not printed"), strict=True))
RECORD_WORDS = dict(zip(State, ("supported", "contradicted", "inconclusive", "not run"), strict=True))
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
        return sum(case.state == state for case in self.cases)


def opinion(claim: Claim, source: Source, words: Mapping[State, str]) -> Opinion:
    """Judge every relation of a claim; all of them are asserted."""
    states: list[State] = []
    found: list[Case] = []
    for relation in claim.relations:
        own = tuple(cases(relation, source))
        deciding = State.YES if _one_is_enough(relation) else State.NO
        states.append(every((case.state for case in own), deciding))
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


@dataclass(frozen=True)
class Judgement:
    """A claim with its two verdicts.

    in_print: "holds", "does not hold" or "not printed"; ours: "supported", "contradicted", "inconclusive" or
    "not run". Each with its numbers in words.
    """

    claim: Claim
    paper: str
    scale: Scale
    in_print: str
    in_print_numbers: str
    ours: str
    ours_numbers: str


def judge_in_print(claim: Claim, published: Mapping[str, Numbers], benchmarks: Mapping[str, Benchmark]) -> Opinion:
    """What printed numbers say of a claim; those that were derived from its own words are left out.

    published: a paper's id -> its numbers; benchmarks: by id. Of every paper that the claim speaks of.
    """
    if not claim.is_source:
        return opinion(claim, InPrint(Tables(benchmarks), published), PRINT_WORDS)
    printed = {paper: numbers.printed for paper, numbers in published.items()}
    found = opinion(claim, InPrint(Tables(benchmarks), printed), PRINT_WORDS)
    return replace(found, note="what is derived from this very sentence is left out")


def judge(
    paper: str,
    claims: Sequence[Claim],
    published: Mapping[str, Numbers],
    records: Iterable[RunRecord],
    benchmarks: Mapping[str, Benchmark],
    scale: Scale,
    derive: Callable[[Benchmark], Derive] | None = None,
) -> tuple[Judgement, ...]:
    """Judge a paper's claims in print and on the records of a scale; none at the demo scale, whose data are generated.

    paper: its name. published: a paper's id -> its numbers. benchmarks: by id. Of all papers that the claims speak of;
    ReportError where a benchmark or one of its rows is missing. derive: what a benchmark's rounds send; without it,
    bytes of whole runs are those of the scale's records.
    """
    if scale.id == DEMO:
        return ()
    source = InRecords(Runs(Tables(benchmarks), scale, tuple(records)), published, derive)
    judged = []
    for claim in claims:
        in_print = judge_in_print(claim, published, benchmarks)
        ours = opinion(claim, source, RECORD_WORDS)
        partial = source.runs.partial(task for case in ours.known for task in case.tasks)
        ours_numbers = record_numbers(ours, partial)
        judged.append(
            Judgement(claim, paper, scale, in_print.verdict, printed_numbers(in_print), ours.verdict, ours_numbers)
        )
    return tuple(judged)
