"""Claims, judged twice: on the paper's own printed numbers, and on our records at one scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.claims import Claim
from benchmarks.experiment import Benchmark, Scale
from benchmarks.results import RunResult
from reports.claims import wording
from reports.claims.cells import Runs, Tables
from reports.claims.decide import Part, State, decision, parts_of
from reports.claims.in_print import InPrint
from reports.claims.in_records import InRecords
from reports.claims.wording import Closed, Opinion
from reports.evidence.published import Numbers
from reports.evidence.records import DEMO, Derive, DeriveClient

# In the order of State: yes, no, undecided, not judged, missing.
PRINT_WORDS = dict(
    zip(State, ("holds", "does not hold", "not printed", "not printed", "not printed"), strict=True),
)
RECORD_WORDS = dict(zip(State, ("supported", "contradicted", "undecided", "not judged", "not run"), strict=True))
DERIVED_WORDS = {State.YES: "holds by derivation", State.NO: "fails by derivation"}
LEFT_OPEN = tuple(RECORD_WORDS[state] for state in (State.UNDECIDED, State.NOT_JUDGED, State.MISSING))


def opinion(parts: list[Part], words: Mapping[State, str]) -> Opinion:
    """Judge parts of which all are asserted."""
    found = decision(parts)
    return Opinion(found, DERIVED_WORDS[found.state] if found.by_derivation else words[found.state])


@dataclass(frozen=True)
class Judgement:
    """A claim with its two verdicts, and their numbers in words.

    in_print: "holds", "does not hold" or "not printed". ours: "supported" or "contradicted" by evidence, "holds" or
    "fails by derivation", "undecided", "not judged" (before any run, where all of its columns are shut) or "not run".
    effect: the number that decides, or keeps it from being decided, with its interval; closed: columns of which nothing
    is judged, and why; still: what else keeps it open; seen: the smallest effect that so many seeds would decide; more:
    how many seeds would decide the effect of an open claim at its spread, or "> 100".
    without: the columns that its verdict says nothing of, as none of their records can.
    otherwise: another reading's name -> its two verdicts and numbers. stand_ins: tasks that were judged in place of
    others that have no records, in words. at_last: our verdict where the last round's scores count; "" where they do.
    """

    claim: Claim
    paper: str
    scale: Scale
    in_print: str
    in_print_numbers: str
    ours: str
    ours_numbers: str
    effect: str = ""
    n: str = ""
    closed: tuple[Closed, ...] = ()
    still: str = ""
    seen: str = ""
    more: str = ""
    without: str = ""
    otherwise: Mapping[str, tuple[str, str, str, str]] = field(default_factory=dict)
    stand_ins: tuple[str, ...] = ()
    at_last: str = ""

    @property
    def verdict(self) -> str:
        """Ours, with what it says nothing of."""
        return f"{self.ours} {self.without}".strip()

    @property
    def caveat(self) -> str:
        """What a reader of the verdict has to know at this scale."""
        judged_on = f"judged on {', '.join(self.stand_ins)}" if self.stand_ins else ""
        return "; ".join(filter(None, (judged_on, self.claim.caveats.get(self.scale.id, ""))))

    @property
    def elsewhere(self) -> str:
        """The other readings of a decided claim that end otherwise, and of an open one those that are decided."""
        readings = {f"read as {name}": ours for name, (_, _, ours, _) in self.otherwise.items()}
        readings["scored at the last round"] = self.at_last
        return "; ".join(f"{name}: {ours}" for name, ours in readings.items() if self._is_other(ours))

    @property
    def hangs_on_round(self) -> bool:
        """Whether the last round's scores decide otherwise than those of the round chosen on validation data."""
        return self._is_other(self.at_last)

    def _is_other(self, verdict: str) -> bool:
        return verdict not in ("", self.ours) and not {verdict, self.ours} <= set(LEFT_OPEN)

    @property
    def why(self) -> str:
        """What keeps a claim open, and what it is decided without."""
        return self._why({})

    @property
    def remarks(self) -> str:
        """What keeps a claim open, the distance that its seeds would have seen, how many would decide, and the rest."""
        return self.told({})

    def told(self, marks: Mapping[str, str]) -> str:
        """The remarks. marks: of reasons for which columns are not judged that are told elsewhere."""
        sees = "would have seen" if self.ours in LEFT_OPEN else "sees"
        seen = f"{sees} {self.seen}" if self.seen else ""
        more = f"{self.more} seeds would decide this comparison at its effect and spread" if self.more else ""
        return "; ".join(filter(None, (self._why(marks), self.caveat, seen, more, self.elsewhere)))

    def _why(self, marks: Mapping[str, str]) -> str:
        return "; ".join(filter(None, (*(columns.text(marks) for columns in self.closed), self.still)))


def judge_in_print(claim: Claim, published: Mapping[str, Numbers], benchmarks: Mapping[str, Benchmark]) -> Opinion:
    """What printed numbers say of a claim; those that were derived from its own words are left out.

    published: a paper's id -> its numbers; benchmarks: by id. Of every paper that the claim speaks of.
    """
    if claim.is_source:
        published = {paper: numbers.printed for paper, numbers in published.items()}
    found = opinion(parts_of(claim.relations, InPrint(Tables(benchmarks), published)), PRINT_WORDS)
    return replace(found, note="what is derived from this very sentence is left out") if claim.is_source else found


def judge(
    paper: str,
    claims: Sequence[Claim],
    published: Mapping[str, Numbers],
    records: Iterable[RunResult],
    benchmarks: Mapping[str, Benchmark],
    scale: Scale,
    derive: Callable[[Benchmark], Derive] | None = None,
    derive_client: DeriveClient | None = None,
) -> tuple[Judgement, ...]:
    """Judge a paper's claims in print and on the records of a scale; none at the demo scale, whose data are generated.

    paper: its name. published: a paper's id -> its numbers. benchmarks: by id. Of all papers that the claims speak of;
    ReportError where a benchmark or one of its rows is missing. derive: what a benchmark's rounds send; without it,
    bytes of rounds and runs are those of the scale's records. derive_client: what one client's training costs.
    """
    if scale.id == DEMO:
        return ()
    source = InRecords(Runs.of_all(benchmarks, scale, records), published, derive, derive_client)
    last = _at_last_round(source)
    judged = []
    for claim in claims:
        in_print, parts = judge_in_print(claim, published, benchmarks), parts_of(claim.relations, source)
        ours = opinion(parts, RECORD_WORDS)
        tasks = [task for case in ours.known for task in case.tasks]
        partial, stand_ins = source.runs.partial(tasks), source.runs.stand_ins(tasks)
        judged.append(
            Judgement(
                claim,
                paper,
                scale,
                in_print.verdict,
                wording.printed_numbers(in_print),
                ours.verdict,
                wording.record_numbers(ours, partial),
                wording.effect(ours),
                wording.seeds(ours),
                wording.closed(ours),
                wording.still_open(ours),
                wording.could_see(ours),
                wording.seeds_to_decide(ours),
                wording.without(ours),
                dict(_otherwise(claim, source, published, benchmarks)),
                tuple(stand_ins),
                opinion(parts_of(claim.relations, last), RECORD_WORDS).verdict if last else "",
            )
        )
    return tuple(judged)


def _at_last_round(source: InRecords) -> InRecords | None:
    """The records as if no round was chosen; None where none was."""
    if not any(record.chosen_by for record in source.runs.records):
        return None
    last = tuple(record.at_last_round() for record in source.runs.records)
    return replace(source, runs=replace(source.runs, records=last))


def _otherwise(
    claim: Claim, source: InRecords, published: Mapping[str, Numbers], benchmarks: Mapping[str, Benchmark]
) -> Iterable[tuple[str, tuple[str, str, str, str]]]:
    """The other readings of a claim, each judged as a claim of its own."""
    for name, relations in claim.otherwise.items():
        in_print = judge_in_print(replace(claim, relations=relations), published, benchmarks)
        ours = opinion(parts_of(relations, source), RECORD_WORDS)
        yield name, (in_print.verdict, wording.printed_numbers(in_print), ours.verdict, wording.record_numbers(ours))
