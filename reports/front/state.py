"""How far every paper is reproduced, in a line each, and the findings that a reader should not miss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.publication import Paper
from reports.audit.checks import Finding
from reports.claims.judge import Judgement
from reports.pages.render import escape, table_line

HEADERS = (
    "Paper",
    "Cells run, by table or figure",
    "Claims: for, against, open",
    "Consistency of the published numbers: consistent, inconsistent",
)
FOR, AGAINST = ("supported", "holds by derivation"), ("contradicted", "fails by derivation")
MEASURED = "measured"  # what is said of a study: no paper claims anything of it
MOST = 7  # findings on the first page


@dataclass(frozen=True)
class Standing:
    """How far one paper is reproduced at a scale.

    page: link to its own page. cells: where in the paper -> cells run, and all of them, of each table and figure.
    studies: what tables that are in no paper found.
    """

    paper: Paper
    page: str
    cells: Mapping[str, tuple[int, int]]
    judgements: Sequence[Judgement]
    findings: Sequence[Finding]
    studies: Sequence[Headline] = ()


@dataclass(frozen=True)
class Headline:
    """What a reader should not miss: a claim's words or a check's statement, what became of it, and the numbers.

    claim, check, study: the id of the one that it is, of a study that of its table; note: how it was made.
    """

    said: str
    verdict: str
    numbers: str
    claim: str = ""
    check: str = ""
    note: str = ""
    study: str = ""


def front_markdown(standings: Sequence[Standing], scale: str) -> str:
    """The matrix and the headlines, under the scale's name, which stands wherever its results do."""
    lines = [table_line(HEADERS), table_line([":--"] * len(HEADERS)), *map(_line, standings)]
    found = [line for standing in standings for line in _headlines(standing)][:MOST]
    parts = [
        f"Scale `{scale}` (docs/usage.md says what its numbers mean):",
        "\n".join(lines),
        "What was found:",
        "\n".join(f"- {line}" for line in found),
    ]
    return "\n\n".join(parts[: 4 if found else 2])


def claims_counted(judgements: Sequence[Judgement]) -> tuple[int, int, int]:
    """How many claims are decided for, against, and not."""
    verdicts = Counter(found.ours for found in judgements)
    decided = [sum(verdicts[one] for one in known) for known in (FOR, AGAINST)]
    return decided[0], decided[1], len(judgements) - sum(decided)


def _line(standing: Standing) -> str:
    agreeing = Counter(found.agrees for found in standing.findings)
    cells = " · ".join(f"{escape(place)} {run}/{of}" for place, (run, of) in standing.cells.items())
    counts = claims_counted(standing.judgements)
    checks = f"{agreeing[True]}, {agreeing[False]}" if standing.findings else "–"
    return table_line([f"[{standing.paper.name}]({standing.page})", cells, ", ".join(map(str, counts)), checks])


def _headlines(standing: Standing) -> Iterator[str]:
    """The headlines in Markdown."""
    paper = f"[{standing.paper.name}]({standing.page})"
    for found in headlines(standing):
        said = f"“{escape(found.said)}”" if found.claim else f"{escape(found.said)}:"
        note = f"claim {found.claim}" if found.claim else escape(found.note)
        between = ":" if found.claim else ";"
        yield f"{paper}: {said} **{found.verdict}**{between} {escape(found.numbers)} ({note})"


def headlines(standing: Standing) -> Iterator[Headline]:
    """Claims and checks that their definitions call headlines, where something is decided about them, and studies."""
    for judged in standing.judgements:
        if judged.claim.headline and judged.ours in (*FOR, *AGAINST):
            numbers = "; ".join(filter(None, (judged.effect or judged.ours_numbers, judged.elsewhere)))
            yield Headline(judged.claim.quotation, judged.verdict, numbers, claim=judged.claim.id)
    for found in standing.findings:
        if found.headline and found.agrees is not None:
            given = f"published {found.printed}, recomputed {found.recomputed}"
            yield Headline(found.statement, found.verdict, given, note=found.explanation, check=found.id)
    yield from standing.studies
