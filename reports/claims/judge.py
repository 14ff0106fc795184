"""Claims, judged twice: on the paper's own published numbers, and on our records at one scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.claims import Claim, Relation, rows_named
from benchmarks.experiment import Benchmark, Scale
from benchmarks.results import RunResult
from reports.claims import wording
from reports.claims.cells import Runs, Tables
from reports.claims.deciding import Deciding
from reports.claims.hypothesis import State, Verdict, decide
from reports.claims.measured import MeasuredNumbers
from reports.claims.published import PublishedNumbers
from reports.claims.relations import hypotheses_of
from reports.evidence.published import Numbers
from reports.evidence.records import DEMO, PAPER

SUPPORTED, PARTLY, CONTRADICTED = "supported", "partly supported", "contradicted"
DEPENDS, SAME = "depends on the interpretation", "no difference"
VACUOUS, UNDECIDED, NOT_TESTABLE = wording.VACUOUS, "undecided", "not testable here"
# In the order of all pages: what readers should see first.
VERDICTS = (CONTRADICTED, PARTLY, DEPENDS, SUPPORTED, SAME, VACUOUS, UNDECIDED, NOT_TESTABLE)
ARITHMETIC = "arithmetic"  # the evidence of claims that need no run
CONSISTENT, INCONSISTENT, NOT_PUBLISHED = "consistent", "inconsistent", "not published for these rows"


def published_word(verdict: Verdict) -> str:
    """The verdict of a paper's own numbers on a claim."""
    return {State.YES: CONSISTENT, State.NO: INCONSISTENT}.get(verdict.state, NOT_PUBLISHED)


def measured_word(verdict: Verdict) -> str:
    """The verdict of runs, or of arithmetic on shapes, on one interpretation of a claim."""
    if verdict.is_tie:
        return SAME
    if verdict.state is State.NO:
        return PARTLY if verdict.of(State.YES) else CONTRADICTED
    if verdict.state is State.YES:
        return SUPPORTED
    if wording.is_vacuous(verdict):
        return VACUOUS
    return UNDECIDED if wording.is_testable(verdict) else NOT_TESTABLE


def counted(judgements: Iterable[Judgement]) -> dict[str, int]:
    """The number of claims with each verdict, without verdicts that no claim has."""
    verdicts = Counter(each.word for each in judgements)
    return {word: verdicts[word] for word in VERDICTS if verdicts[word]}


def scored_at(which: str) -> str:
    """A scored round in words."""
    return f"scored at the {which} round"


def tally(judgements: Iterable[Judgement]) -> str:
    """The number of claims with each verdict, as in "3 supported, 2 depending on the interpretation"."""
    after_number = {DEPENDS: "depending on the interpretation", VACUOUS: "with a vacuous target"}
    return ", ".join(f"{count} {after_number.get(word, word)}" for word, count in counted(judgements).items())


@dataclass(frozen=True)
class Judgement:
    """A claim with its two verdicts.

    Args:
        otherwise: Another interpretation's name -> its two verdicts, published and measured.
        at_rounds: Another scored round, "chosen" or "last" -> the verdict on its scores, which decides nothing.
        exploratory: If the protocol's comparisons decide: the verdict on exploratory runs, which decides nothing.
        is_fixed: Whether the protocol's comparisons decide it.
        partial: Names of tasks with partly missing data.
        stand_ins: Tasks that were judged in place of others without records, in words.
        judged_on: The ids of the tables whose runs decide the claim.
    """

    claim: Claim
    paper: str
    scale: Scale
    published: Verdict
    measured: Verdict
    otherwise: Mapping[str, tuple[Verdict, Verdict]] = field(default_factory=dict)
    at_rounds: Mapping[str, Verdict] = field(default_factory=dict)
    exploratory: Verdict | None = None
    is_fixed: bool = False
    partial: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    judged_on: frozenset[str] = frozenset()

    @property
    def word(self) -> str:
        """Our verdict. Interpretations that disagree on a decided claim count unless the protocol fixed its own."""
        readings = [] if self.is_fixed else [ours.state for _, ours in self.otherwise.values()]
        if self.measured.is_decided and any(state is not self.measured.state for state in readings):
            return DEPENDS
        return measured_word(self.measured)

    @property
    def published_word(self) -> str:
        return published_word(self.published)

    @property
    def verdict(self) -> str:
        """The result with the evidence of a decided one."""
        return f"{self.result}; {self.evidence}" if self.measured.is_decided else self.result

    @property
    def result(self) -> str:
        """The verdict with k of m and the columns left out, or why the claim is open."""
        measured, word = self.measured, self.word
        if word == VACUOUS:
            return f"{word}: {wording.vacuous(measured)}"
        if not measured.is_decided:
            is_over = self.is_whole and word == UNDECIDED
            return f"{word} after all planned seeds" if is_over else f"{word}: {wording.short_reason(measured)}"
        if word == PARTLY:
            word = f"{word} ({wording.counts(measured)})"
        return " ".join(filter(None, (word, wording.without(measured))))

    @property
    def is_whole(self) -> bool:
        """Whether the protocol decides it, and all planned runs are finished."""
        return self.is_fixed and not self.measured.missing

    @property
    def counts(self) -> str:
        """The numbers of tasks for and against; "" if the result has them, or if no task is judged."""
        is_told = self.word == PARTLY or len(self.seen.columns) < 2
        return "" if is_told or self.seen.state in (State.NOT_JUDGED, State.MISSING) else wording.counts(self.seen)

    @property
    def seen(self) -> Verdict:
        """The verdict with the numbers shown: that of exploratory runs while runs of the protocol are missing."""
        return self.exploratory if self.exploratory is not None and self.measured.missing else self.measured

    @property
    def evidence(self) -> str:
        """The kind of evidence behind the numbers."""
        shown = [one.evidence for one in self.seen.shown if one.evidence is not None]
        if self.measured.is_derived or (shown and all(one.is_derived for one in shown)):
            return ARITHMETIC
        if not self.n:
            return "computed" if any(one.value is not None for one in shown) else "no run yet"
        if self.measured.missing:
            return f"exploratory runs before the protocol (n = {self.n})"
        return f"run at {'paper' if self.scale.id == PAPER else 'reduced'} scale (n = {self.n})"

    @property
    def effect(self) -> str:
        return wording.effect(self.seen)

    @property
    def caveat(self) -> str:
        """A caution for readers of the result at this scale."""
        return self.claim.caveats.get(self.scale.id, "")

    @property
    def over_tasks(self) -> str:
        return wording.over_tasks(self.seen)

    @property
    def smallest(self) -> str:
        """The smallest effect that these seeds would see."""
        return wording.smallest_seen(self.seen)

    @property
    def n(self) -> str:
        return wording.seeds(self.seen)

    @property
    def more(self) -> str:
        return wording.seeds_to_decide(self.measured)

    @property
    def numbers(self) -> list[str]:
        """All numbers of the claim and of its other interpretations, and why columns are not testable."""
        note = self.claim.left_out
        partial = f"; partial data: {', '.join(self.partial)}" if self.partial else ""
        measured = f"{wording.numbers(self.measured)}{partial}"
        texts = [f"published: {wording.numbers(self.published)}{note}; measured: {measured}"]
        for name, (theirs, ours) in self.otherwise.items():
            word = published_word(theirs)
            published = "" if word == NOT_PUBLISHED else f"published {word} ({wording.numbers(theirs)}{note}); "
            measured = f"measured {measured_word(ours)} ({wording.numbers(ours)})"
            texts.append(f"interpreted as “{name}”: {published}{measured}")
        for which, ours in self.at_rounds.items() if self.is_fixed else ():
            texts.append(f"{scored_at(which)}: {measured_word(ours)} ({wording.numbers(ours)})")
        return [*texts, *wording.full_reasons(self.measured)]

    @property
    def readings(self) -> list[tuple[str, str, str]]:
        """The name, verdict and different effect of each interpretation that decides the claim in another way.

        The first is the page's own, if the verdict depends on the interpretation.
        """
        readings = {f"interpreted as “{name}”": ours for name, (_, ours) in self.otherwise.items()}
        readings |= {scored_at(which): ours for which, ours in self.at_rounds.items()}
        told = [("our interpretation", measured_word(self.measured), "")] if self.word == DEPENDS else []
        for name, ours in ((name, ours) for name, ours in readings.items() if self.is_other(ours)):
            effect = wording.effect(ours)
            told.append((name, measured_word(ours), f" ({effect})" if effect not in ("", self.effect) else ""))
        return told

    @property
    def elsewhere(self) -> str:
        """The interpretations with their verdicts and effects, in words."""
        return "; ".join(f"{name}: {word}{effect}" for name, word, effect in self.readings)

    def is_other(self, other: Verdict | None) -> bool:
        """Whether another interpretation, if there is one, decides the claim in another way."""
        if other is not None and self.is_fixed and other.state is State.MISSING:  # its runs are no part of the protocol
            return False
        is_decided = other is not None and (other.is_decided or self.measured.is_decided)
        return is_decided and other is not None and measured_word(other) != measured_word(self.measured)

    @property
    def remarks(self) -> str:
        """What keeps the claim open, tasks in place of others, seeds that would decide, exploratory runs."""
        judged_on = f"judged on {', '.join(self.stand_ins)}" if self.stand_ins else ""
        more, earlier = wording.outlook(self.measured), ""
        if self.exploratory is not None and self.exploratory.shown:
            shown = f"{measured_word(self.exploratory)} ({wording.numbers(self.exploratory)})"
            earlier = f"exploratory runs before the protocol: {shown}"
        why, equal = wording.why(self.measured), wording.equality(self.measured)
        if self.is_whole:  # no further seed is planned
            why = why.replace(f"{wording.TOO_FEW}: ", "")
        return "; ".join(filter(None, (why, judged_on, equal, more, earlier)))


def judge_published(
    claim: Claim,
    published: Mapping[str, Numbers],
    benchmarks: Mapping[str, Benchmark],
    relations: Iterable[Relation] | None = None,
) -> Verdict:
    """What published numbers say about a claim; those that were derived from its own words are left out.

    published, benchmarks: by id, for every paper that the claim speaks of. relations: another interpretation.
    """
    if claim.not_judged or claim.is_source:
        published = {paper: Numbers({}) if claim.not_judged else each.printed for paper, each in published.items()}
    source = PublishedNumbers(Tables(benchmarks), published)
    return decide(hypotheses_of(claim.relations if relations is None else relations, source))


def judge(
    paper: str,
    claims: Sequence[Claim],
    published: Mapping[str, Numbers],
    records: Iterable[RunResult],
    benchmarks: Mapping[str, Benchmark],
    scale: Scale,
    deciding: Mapping[str, Deciding] | None = None,
) -> tuple[Judgement, ...]:
    """Judge a paper's claims on published numbers and on the records of a scale.

    Args:
        paper: Its name.
        claims: Its claims.
        published: Paper id -> its numbers, for every paper that the claims speak of.
        records: Of any scale.
        benchmarks: The same papers' benchmarks by id.
        scale: The one to judge.
        deciding: Claim id -> the comparisons that decide it in place of the claim's own.

    Returns:
        A judgement for each claim; () at the demo scale, whose data are generated.

    Raises:
        ReportError: A benchmark or one of its rows is missing.
    """
    if scale.id == DEMO:
        return ()
    source = MeasuredNumbers(Runs.of_all(benchmarks, scale, records), published)
    last = None  # the records as if no round had been chosen, if one was
    if any(record.chosen_by for record in source.runs.records):
        at_last_round = tuple(record.at_last_round() for record in source.runs.records)
        last = replace(source, runs=replace(source.runs, records=at_last_round))

    def both(claim: Claim, relations: Iterable[Relation], fixed: Deciding | None) -> tuple[Verdict, Verdict]:
        ours = fixed.reading(relations, source) if fixed else decide(hypotheses_of(relations, source))
        return judge_published(claim, published, benchmarks, relations), ours

    judged = []
    for claim in claims:
        fixed, theirs = (deciding or {}).get(claim.id), judge_published(claim, published, benchmarks)
        others = {name: both(claim, relations, fixed) for name, relations in claim.otherwise.items()}
        if fixed:  # the protocol fixed the interpretation and the round that counts
            ours = fixed.on_earlier(claim.relations, source)
            judgement = Judgement(
                *(claim, paper, scale, theirs, fixed.verdict, others),
                at_rounds=fixed.at_rounds,
                exploratory=None if ours.state is State.MISSING else ours,
                is_fixed=True,
                judged_on=frozenset(at.benchmark for relation in fixed.relations for at in rows_named(relation)),
            )
        else:
            ours = decide(hypotheses_of(claim.relations, source))
            tasks = [task for one in ours.shown for task in one.tasks]
            judgement = Judgement(
                *(claim, paper, scale, theirs, ours, others),
                at_rounds={"last": decide(hypotheses_of(claim.relations, last))} if last else {},
                partial=tuple(source.runs.partial(tasks)),
                stand_ins=tuple(source.runs.stand_ins(tasks)),
                judged_on=frozenset(claim.benchmarks),
            )
        judged.append(judgement)
    return tuple(judged)
