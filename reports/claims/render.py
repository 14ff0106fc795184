"""Judged claims as GitHub Markdown and on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from reports.claims.judge import Judgement
from reports.evidence.statistics import RESAMPLES
from reports.pages.render import escape

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
