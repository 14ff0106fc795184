"""Claims, judged twice, on the paper's own printed numbers and on our records at one scale, and written down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from benchmarks.claims import Better, Claim, Relation
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark, Scale
from reports.claims.cases import Case, Source, State, cases, every
from reports.claims.cells import Runs, Tables
from reports.claims.in_print import InPrint
from reports.claims.in_records import InRecords
from reports.evidence.published import Numbers
from reports.evidence.records import DEMO, Derive
from reports.evidence.statistics import RESAMPLES
from reports.pages.render import escape

# In the order of State: yes, no, undecided, missing.
PRINT_WORDS = dict(zip(State, ("holds", "does not hold", "not printed", "not printed"), strict=True))
RECORD_WORDS = dict(zip(State, ("supported", "contradicted", "inconclusive", "not run"), strict=True))
LISTED = 3  # comparisons that a table shows of a claim
HEADERS = ("Claim", "The paper says", "Place", "In print", "Ours", "Numbers")
RULE = (
    "Rule. In print: exact arithmetic on the printed numbers, or on the paper's equations of a run's bytes with its "
    "printed parameters; not printed where one that the claim needs is missing. Numbers that follow from the text "
    "alone are named as derived from prose, and left out for the very sentence that they follow from. Ours: "
    "differences are paired by seed, A − B is A less B; the interval of one comparison, in square brackets, is the "
    "wider of the 95 % Student t interval over seeds and ± 1.96 × the test sets' sampling error of the difference "
    "(root of the two scores' squared errors: conservative, as the test sets are shared). One seed has no interval, "
    "so the comparison is undecided however large it is. Ratios: geometric means, intervals of logarithms. Averages "
    f"over a table's tasks: stratified bootstrap over seeds within each row and task ({RESAMPLES} resamples, a fixed "
    "generator seed; the wider of it and the sampling error), which needs every task with two seeds or more. Bytes "
    "of a round and equality of runs are exact: one seed decides; bytes of a whole run are those that the real "
    "channel carries for the paper's own encoder, by its shapes, beside those of our runs. A claim of several "
    "comparisons is supported when all are run and lie wholly on its side, contradicted when at least one lies "
    "wholly on the other side (no correction for their number), not run when none was run, otherwise inconclusive. "
    "Similar is an equivalence: supported when the interval lies within the margin, contradicted when wholly "
    "outside; at most so much likewise. Targets: at the paper scale the printed one; elsewhere what FedAvg scores "
    "after its last round, mean over seeds; a run that never reaches it is censored, its bytes a lower bound. "
    "Rounds are whole numbers: seeds that agree give an interval without width."
)


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


def _cells(judgement: Judgement) -> tuple[str, ...]:
    claim, verdicts = judgement.claim, (judgement.in_print, judgement.ours)
    numbers = f"print: {judgement.in_print_numbers}", f"ours: {judgement.ours_numbers}"
    return (claim.id, f"“{claim.quotation}”", claim.place, *verdicts, *numbers)


def _heading(judgements: Sequence[Judgement]) -> str:
    first = judgements[0]
    return f"{first.paper}, claims · scale {first.scale.id}: {first.scale.label}"


def summary(judgements: Sequence[Judgement]) -> str:
    """How many claims got which verdict, in print and in our records."""
    verdicts = {
        "in print": [found.in_print for found in judgements],
        "in our records": [found.ours for found in judgements],
    }
    counts = {where: Counter(found).most_common() for where, found in verdicts.items()}
    parts = (f"{where} {', '.join(f'{n} {verdict}' for verdict, n in found)}" for where, found in counts.items())
    return f"{len(judgements)} claims: {'; '.join(parts)}."


def _markdown(judgements: Sequence[Judgement], level: int, headers: Sequence[str], rest: Sequence[str]) -> str:
    """A table of the claims under a heading of that level, and what comes after it; empty without claims."""
    if not judgements:
        return ""
    lines = [f"| {' | '.join(headers)} |", f"|{' :-- |' * len(headers)}"]
    for judgement in judgements:
        *cells, in_print, ours = map(escape, _cells(judgement))
        lines.append(f"| {' | '.join([*cells, f'{in_print}<br>{ours}'][: len(headers)])} |")
    heading = f"{'#' * level} {escape(_heading(judgements))}"
    return "\n\n".join([heading, summary(judgements), "\n".join(lines), *rest]) + "\n"


def claims_markdown(judgements: Sequence[Judgement], level: int = 3) -> str:
    """The claims with their numbers, how each is read, and the rule; empty without claims."""
    readings = [f"{found.claim.id}: {found.claim.reading}" for found in judgements if found.claim.reading]
    listed = "\n".join(f"- {escape(text)}" for text in [*readings, RULE])
    rest = f"<details><summary>How the claims are read and judged</summary>\n\n{listed}\n\n</details>"
    return _markdown(judgements, level, HEADERS, [rest])


def verdicts_markdown(judgements: Sequence[Judgement], level: int = 3) -> str:
    """The claims with their two verdicts alone; empty without claims."""
    return _markdown(judgements, level, HEADERS[:5], [])


def print_claims(judgements: Sequence[Judgement], console: Console | None = None) -> None:
    """Print the claims, one after the other, and how they are judged; nothing without claims."""
    if not judgements:
        return
    console = console or Console()
    console.print(Text(_heading(judgements), style="bold"))
    for judgement in judgements:
        claim_id, quotation, place, in_print, ours, *numbers = _cells(judgement)
        console.print(Text(f"\n{claim_id}  {quotation} ({place})"))
        console.print(Text(f"in print: {in_print}; ours: {ours}", style="bold"))
        for text in numbers:
            console.print(Text(text, style="dim"))
    console.print(Text(f"\n{RULE}"))
    console.print(Text(summary(judgements), style="bold"))
