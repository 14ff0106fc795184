"""How far every paper is reproduced, in a line each, and the findings that a reader should not miss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.publication import Paper
from reports.audit.statements import Finding
from reports.claims.judge import (
    CONSISTENT,
    CONTRADICTED,
    DEPENDS,
    INCONSISTENT,
    PARTLY,
    SUPPORTED,
    WORDS,
    Judgement,
)
from reports.pages.render import escape, table_line

HEADERS = (
    "Paper",
    "Cells run, by table or figure",
    "Claims",
    "Consistency of the published numbers: consistent, inconsistent",
)
FOR, AGAINST = (SUPPORTED, CONSISTENT), (CONTRADICTED, INCONSISTENT)
MEASURED = "measured"  # the verdict on a study: no paper claims anything about it
MOST = 7  # findings on the first page


@dataclass(frozen=True)
class Standing:
    """How far one paper is reproduced at a scale.

    Args:
        page: Link to its own page.
        cells: Table or figure -> cells run, and all of them.
        studies: What tables that are in no paper found.
    """

    paper: Paper
    page: str
    cells: Mapping[str, tuple[int, int]]
    judgements: Sequence[Judgement]
    findings: Sequence[Finding]
    studies: Sequence[Headline] = ()


@dataclass(frozen=True)
class Headline:
    """What a reader should not miss: a claim's quotation or a check's statement, the verdict, and the numbers.

    claim, check, study: the id of what it is about, for a study that of its table; note: how it was made.
    """

    said: str
    verdict: str
    numbers: str
    claim: str = ""
    check: str = ""
    note: str = ""
    study: str = ""


def front_markdown(standings: Sequence[Standing], scale: str) -> str:
    """The table of papers and the headlines, under the scale's name."""
    lines = [table_line(HEADERS), table_line([":--"] * len(HEADERS)), *map(_line, standings)]
    found = [line for standing in standings for line in _headlines(standing)][:MOST]
    parts = [f"Scale `{scale}` (docs/usage.md says what its numbers mean):", "\n".join(lines)]
    if found:
        parts += ["What was found:", "\n".join(f"- {line}" for line in found)]
    return "\n\n".join(parts)


def claims_counted(judgements: Iterable[Judgement]) -> dict[str, int]:
    """How many claims got each verdict, with zeros for the four main ones."""
    verdicts = Counter(each.word for each in judgements)
    return {word: verdicts[word] for word in WORDS if verdicts[word] or word not in (PARTLY, DEPENDS)}


def _line(standing: Standing) -> str:
    agreeing = Counter(found.agrees for found in standing.findings)
    cells = " · ".join(f"{escape(place)} {run}/{of}" for place, (run, of) in standing.cells.items())
    counts = ", ".join(f"{number} {word}" for word, number in claims_counted(standing.judgements).items())
    checks = f"{agreeing[True]}, {agreeing[False]}" if standing.findings else "–"
    return table_line([f"[{standing.paper.name}]({standing.page})", cells, counts, checks])


def _headlines(standing: Standing) -> Iterator[str]:
    """The headlines in Markdown."""
    paper = f"[{standing.paper.name}]({standing.page})"
    for found in headlines(standing):
        said = f"“{escape(found.said)}”" if found.claim else f"{escape(found.said)}:"
        note = f"claim {found.claim}" if found.claim else escape(found.note)
        between = ":" if found.claim else ";"
        yield f"{paper}: {said} **{found.verdict}**{between} {escape(found.numbers)} ({note})"


def headlines(standing: Standing) -> Iterator[Headline]:
    """Claims and checks that their definitions call headlines, if they are decided, and studies."""
    for judged in standing.judgements:
        if judged.claim.headline and judged.measured.is_decided:
            numbers = "; ".join(filter(None, (judged.effect, judged.elsewhere)))
            yield Headline(judged.claim.quotation, judged.verdict, numbers, claim=judged.claim.id)
    for found in standing.findings:
        if found.headline and found.agrees is not None:
            given = f"published {found.printed}, recomputed {found.recomputed}"
            yield Headline(found.statement, found.verdict, given, note=found.explanation, check=found.id)
    yield from standing.studies
