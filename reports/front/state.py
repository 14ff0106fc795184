"""The state of each paper's reproduction, and the most important findings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from benchmarks.experiment import Benchmark
from benchmarks.publication import Deviation, Paper
from reports.audit.statements import Finding
from reports.claims.judge import (
    ARITHMETIC,
    CONSISTENT,
    CONTRADICTED,
    DEPENDS,
    INCONSISTENT,
    SAME,
    SUPPORTED,
    Judgement,
    measured_word,
    scored_at,
    tally,
)
from reports.evidence.inference import CONFIDENCE
from reports.evidence.records import DEMO, PAPER
from reports.pages.render import escape, table_line
from reports.pages.text import in_brackets, number

HEADERS = ("Paper", "Cells run", "Claims", "Published numbers that were checked")
FOR, AGAINST = (SUPPORTED, CONSISTENT), (CONTRADICTED, INCONSISTENT)
MEASURED = "measured"  # the verdict on a study: no paper claims anything about it
MOST = 2  # findings of one paper on the first page
OURS, THEIRS = "Our own", "The paper's"  # claims, at the start of a sentence
ENCODERS = {DEMO: "tiny encoders on generated data", PAPER: "the papers' encoders"}
SMALL = "small encoders on real data"  # at other scales
_SAYS = {DEPENDS: DEPENDS, SAME: "compares two rows that are one run"}  # for other verdicts: "is contradicted"
_POINTS = re.compile(r"(?<![\w-])[+−]?\d+(?:\.\d+)?(?: %| points?|-fold)")  # a sentence's headline number
_INTERVAL, _SEEDS = re.compile(r"\[[^\]]+\]"), re.compile(r"n = \d+(?:(?:–| to )\d+)?")  # of an evidence's text


@dataclass(frozen=True)
class Standing:
    """The state of one paper's reproduction at a scale.

    Args:
        page: Link to its own page.
        cells: Table's id and place -> its cells, and whether each was run: the paper's columns, or all of a study's.
        studies: The results of tables that are in no paper.
        additions: Our columns in the paper's tables, with the number of finished cells.
    """

    paper: Paper
    page: str
    cells: Mapping[tuple[str, str], Mapping[str, bool]]
    judgements: Sequence[Judgement]
    findings: Sequence[Finding]
    studies: Sequence[Headline] = ()
    additions: Mapping[str, int] = field(default_factory=dict)

    @property
    def counted(self) -> tuple[int, int]:
        """The numbers of finished cells and of all cells."""
        return distinct(self.cells.values())


def distinct(tables: Iterable[Mapping[str, bool]]) -> tuple[int, int]:
    """The numbers of finished cells and of all cells; a cell that several tables show counts once."""
    cells = {key: is_run for table in tables for key, is_run in table.items()}
    return sum(cells.values()), len(cells)


@dataclass(frozen=True)
class Headline:
    """A finding for the first page.

    Args:
        summary: The finding, for readers who do not know the paper.
        about: The claim's quotation, or the check's statement.
        numbers: The evidence.
        claim: The id of its claim, check or study (its table); the other two are "".
        page: The document that reports it, if it has one, relative to the project's folder.
        is_planned: Whether the protocol described it before its runs.
        says: Of a claim: its verdict as a sentence, with {} for its link.
        test: Of a study: the result of the test that the protocol fixed, as a sentence.
    """

    summary: str
    about: str
    verdict: str
    numbers: str
    claim: str = ""
    check: str = ""
    study: str = ""
    page: str = ""
    is_planned: bool = False
    says: str = ""
    test: str = ""


def deviations_of(tables: Iterable[Benchmark]) -> dict[Deviation, list[str]]:
    """All deviations of some tables, each once, with its places."""
    places: dict[Deviation, dict[str, None]] = {}
    for table in tables:
        for deviation in table.deviations:
            places.setdefault(deviation, {})[table.place] = None
    return {deviation: list(names) for deviation, names in places.items()}


def coverage(
    standings: Iterable[Standing], at_paper: tuple[int, int], scale: str, fresh: tuple[int, int] = (0, 0)
) -> str:
    """What has been run, in one sentence.

    Args:
        standings: Of all papers.
        at_paper: Cells run with the papers' encoders, and all of these.
        scale: Of the standings.
        fresh: Finished runs of the evidence campaign in no table, and all of these.
    """
    every = list(standings)
    run, of = (sum(pair) for pair in zip(*(each.counted for each in every), strict=True))
    cells = f"{run} of {of} cells (method × task) of the papers' tables and figures, and of our studies,"
    text = f"{cells} have at least one finished seed, with {ENCODERS.get(scale, SMALL)}."
    if scale != PAPER:
        runs = f"{at_paper[0]} of {at_paper[1]} cells" if at_paper[0] else "No run yet"
        text += f" {runs} with the papers' encoders."
    if fresh[0]:
        runs = f"{fresh[1]} runs that are not yet in any table; {fresh[0]} are finished"
        text += f" The evidence campaign (docs/protocol.md) adds {runs}."
    added = [(f"{each.paper.name} on {name}", count) for each in every for name, count in each.additions.items()]
    if listed := ", ".join(f"{place} ({count})" for place, count in added if count):
        text += f" Not counted: columns that the papers do not have, with their finished cells: {listed}."
    return text


def front_markdown(standings: Sequence[Standing], run: str, scale: str, picture: str = "") -> str:
    """The first page's state: the finished runs, the figure, the findings, and a line per paper."""
    lines = [table_line(HEADERS), table_line([":--"] * len(HEADERS)), *map(_line, standings)]
    if len(standings) > 1:
        lines.append(_total(standings))
    pairs = [(standing, each) for standing in standings for each in islice(headlines(standing), MOST)]
    pairs.sort(key=lambda pair: _order(pair[1]))
    bullets = [_bullet(standing, each, scale) for standing, each in pairs]
    key = f"n = seeds; brackets = {CONFIDENCE} intervals; {scale} = {ENCODERS.get(scale, SMALL)}."
    parts = [f"**What has been run.** {run}", picture]
    if bullets:
        parts += ["## What was found", f"{key} Numbers and tests: linked pages.", "\n".join(bullets)]
    return "\n\n".join(filter(None, (*parts, "\n".join(lines))))


def _line(standing: Standing) -> str:
    run, of = standing.counted
    name = f"[{standing.paper.name}]({standing.page})"
    claims = tally(standing.judgements) + questions(standing.judgements)
    return table_line([name, f"{run} of {of}", claims, _checks(standing.findings)])


def questions(judgements: Iterable[Judgement]) -> str:
    """Which claims no paper makes, as an addition to a count."""
    ids = [each.claim.id for each in judgements if each.claim.is_question]
    return f"; our own questions: {', '.join(ids)}" if ids else ""


def _total(standings: Sequence[Standing]) -> str:
    """The sums of all papers' lines."""
    run, of = (sum(pair) for pair in zip(*(each.counted for each in standings), strict=True))
    judgements = [judgement for each in standings for judgement in each.judgements]
    findings = [finding for each in standings for finding in each.findings]
    counts = f"{len(judgements)} claims: {tally(judgements)}" if judgements else ""
    return table_line(["All", f"{run} of {of}", counts, _checks(findings)])


def _checks(findings: Sequence[Finding]) -> str:
    agreeing = Counter(finding.agrees for finding in findings)
    return f"{agreeing[True]} consistent, {agreeing[False]} inconsistent" if findings else "–"


def _order(headline: Headline) -> tuple[bool, ...]:
    """Studies with a document, other studies of the protocol, our own questions, contradictions by runs, by numbers."""
    is_claim, is_against = bool(headline.claim), headline.verdict.startswith(CONTRADICTED)
    return (
        not (headline.page and headline.is_planned),
        not headline.is_planned,
        not (is_claim and headline.says.startswith(OURS)),
        not (is_claim and is_against and not headline.verdict.endswith(ARITHMETIC)),
        not (is_claim and is_against),
    )


def _bullet(standing: Standing, headline: Headline, scale: str) -> str:
    """A finding in Markdown: its sentence with its number in bold, the number's interval and seeds, and a link."""
    folder = f"{standing.page.rpartition('/')[0]}/pages"
    shown, link = [headline.numbers], f"[Consistency of the published numbers]({folder}/consistency.md)"
    if not headline.check:
        found = (pattern.search(headline.numbers) for pattern in (_INTERVAL, _SEEDS))
        is_derived = headline.verdict.endswith(ARITHMETIC)
        shown = [*(each[0] for each in found if each), ARITHMETIC if is_derived else scale]
        shown += ["exploratory"] if headline.study and not headline.is_planned else []
        link = f"[Study]({headline.page or f'{folder}/{headline.study}.md'})"
    if headline.claim:
        link = headline.says.format(f"[claim {headline.claim}]({folder}/claims.md#claim-{headline.claim})")
    evidence = f" ({escape(', '.join(shown))})"
    first, last = ("", evidence) if headline.check else (evidence, "")  # next to the number, unless it has both numbers
    sentence, count = _POINTS.subn(lambda found: f"**{found[0]}**{first}", escape(headline.summary), count=1)
    test = f" {escape(headline.test)}." if headline.test else ""
    return f"- {sentence}{last if count else evidence}.{test} {link}."


def headlines(standing: Standing) -> Iterator[Headline]:
    """Studies of the protocol, decided claims and checks with a headline, and other studies."""
    yield from (study for study in standing.studies if study.is_planned)
    for judged in standing.judgements:
        if judged.claim.headline and judged.measured.is_decided:
            summary, numbers = _rendered(judged)
            says = f"{OURS if judged.claim.is_question else THEIRS} {{}} {_SAYS.get(judged.word, f'is {judged.word}')}"
            others = [(which, ours) for which, ours in judged.at_rounds.items() if judged.is_other(ours)]
            if others:
                says += f" ({'; '.join(f'{measured_word(ours)} if {scored_at(which)}' for which, ours in others)})"
            about, verdict = judged.claim.quotation, judged.verdict
            yield Headline(summary, about, verdict, numbers, claim=judged.claim.id, says=says)
    for finding in standing.findings:
        if finding.headline and finding.agrees is not None:
            summary = finding.headline.format(published=finding.printed, recomputed=finding.recomputed)
            given = f"published {finding.printed}, recomputed {finding.recomputed}"
            yield Headline(summary, finding.statement, finding.verdict, given, check=finding.id)
    yield from (study for study in standing.studies if not study.is_planned)


def _rendered(judged: Judgement) -> tuple[str, str]:
    """A claim's headline with its numbers: {value} is the deciding number here, {published} the published one."""
    ours, theirs = ([one.evidence for one in verdict.shown[:1]] for verdict in (judged.measured, judged.published))
    sides = {"value": ours, "published": theirs}
    values = {name: side[0].value for name, side in sides.items() if side and side[0]}
    interval = ours[0].interval if ours[0] and not ours[0].is_derived else None
    is_wide = len(set(map(number, interval or ()))) > 1  # not if every run has the same score
    about = [f"{CONFIDENCE} interval {in_brackets(interval)}"] if is_wide else []
    about += [f"n = {judged.n}"] if judged.n and not judged.measured.is_derived else []
    others = () if judged.word == DEPENDS else judged.readings  # the linked page lists all interpretations
    readings = [f"{name}: {word}" for name, word, _ in others]
    headline = re.sub(r"(?<!\w)-(?=\d)", "−", judged.claim.headline.format(**values))
    return headline, "; ".join([*about, *readings])
