"""Judged claims as tables: Markdown, and the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from reports.claims.judge import Judgement
from reports.evidence.sample_size import FEWEST_SEEDS, MOST_SEEDS
from reports.pages.render import escape, table_line

HEADERS = (
    "Claim",
    "The paper says",
    "Reported",
    "Reproduced",
    "Effect, 90 % interval (the tests' bounds), n",
    "Why it is open; the smallest effect seen",
)
RULE = (
    "Rule (docs/statistics.md says why). Reported: exact arithmetic on the printed numbers, or on the paper's "
    "equations with its printed parameters. Reproduced: differences A − B are paired by seed, in the round that is "
    "best on validation data (the last one where none is held back); every test is one-sided at 5 %, so an interval of "
    "90 % shows both bounds. Scores: corrected resampled t, or the bootstrap where seeds share a test set, two "
    "seeds at least; rounds, and bytes until a target: sign test, five at least, seven where seeds redraw the "
    "split, and ties decide nothing. A claim of several comparisons is supported where each one is, and "
    "contradicted where one is after Holm's correction for their number; where one is enough, the reverse. Similar: "
    "two one-sided tests; to be near a row says something where that row leads those that do nothing by more than the "
    "margin. Averages: above every rival, task by task. A target off the paper's scale is, seed by "
    "seed, the best round of the best baseline; where the majority-class baseline meets a target, nothing is judged. "
    "Scores are evidence only where the encoder learns the task: on all clients' test examples together, centralised "
    "training beats a linear model and the majority-class baseline of all; and to beat a row that does not beat that "
    "baseline itself proves nothing, unless its failing is what is claimed. Columns that cannot be judged at a scale, "
    "by three seeds or more, are left out, and named, where most of a claim's columns are left. What follows from "
    "shapes, or from what a method is, holds or fails by derivation. Would have seen, or sees: the distance from what "
    "is asked that these seeds decide four times of five. Seeds that would decide: those whose one-sided bound reaches "
    f"the effect shown, if its mean and its spread over {FEWEST_SEEDS} seeds or more stayed as they are."
)


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _shared(judgements: Sequence[Judgement]) -> dict[str, str]:
    """The mark of each reason for which columns of several claims are not judged: told once, below."""
    counts = Counter(reason for found in judgements for reason in {columns.reason for columns in found.closed})
    told = dict.fromkeys(columns.reason for found in judgements for columns in found.closed)
    several = [reason for reason in told if counts[reason] > 1]
    return {reason: str(place).translate(_RAISED) for place, reason in enumerate(several, 1)}


def _notes(judgements: Sequence[Judgement], marks: Mapping[str, str]) -> list[str]:
    """What the marks say, with the columns that it is said of."""
    every = [columns for found in judgements for columns in found.closed]
    of = {
        reason: dict.fromkeys(name for own in every if own.reason == reason for name in own.columns) for reason in marks
    }
    return [f"{mark} {', '.join(of[reason])}: {reason}." for reason, mark in marks.items()]


def _cells(judgement: Judgement, marks: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Each cell's lines: few columns, so that a page holds them."""
    claim, n = judgement.claim, f"n = {judgement.n}" if judgement.n else ""
    verdicts = (judgement.in_print,), (judgement.verdict,)
    said = (f"“{claim.quotation}”", claim.place)
    return ((claim.id,), said, *verdicts, (judgement.effect, n), (judgement.told(marks),))


def _numbers(judgement: Judgement) -> Iterator[str]:
    """All numbers of a claim, and of its other readings."""
    yield f"reported: {judgement.in_print_numbers}; reproduced: {judgement.ours_numbers}"
    for name, (in_print, its, ours, own) in judgement.otherwise.items():
        yield f"read as {name}: reported {in_print} ({its}); reproduced {ours} ({own})"


def _heading(judgements: Sequence[Judgement]) -> str:
    first = judgements[0]
    return f"{first.paper}, claims · scale {first.scale.id}: {first.scale.label}"


def summary(judgements: Sequence[Judgement]) -> str:
    """How many claims got which verdict, in print and in our records."""
    verdicts = {
        "as reported": [found.in_print for found in judgements],
        "reproduced": [found.ours for found in judgements],
    }
    counts = {where: Counter(found).most_common() for where, found in verdicts.items()}
    parts = (f"{where} {', '.join(f'{n} {verdict}' for verdict, n in found)}" for where, found in counts.items())
    beyond = sum(found.more.startswith(">") for found in judgements)
    rest = f" At their effects and spreads, {beyond} of these need more than {MOST_SEEDS} seeds." if beyond else ""
    return f"{len(judgements)} claims: {'; '.join(parts)}.{rest}{_at_last_round(judgements)}"


def _at_last_round(judgements: Sequence[Judgement]) -> str:
    """Whether verdicts hang on the round that is scored; empty where no round is chosen."""
    if not any(found.at_last for found in judgements):
        return ""
    others = [found.claim.id for found in judgements if found.hangs_on_round]
    found = f"these are decided otherwise: {', '.join(others)}" if others else "none is decided otherwise"
    return f" Scored at the last round in place of the one best on validation data, {found}."


def _markdown(judgements: Sequence[Judgement], level: int, rest: Sequence[str]) -> str:
    """A table of the claims under a heading of that level, and what comes after it; empty without claims."""
    if not judgements:
        return ""
    marks = _shared(judgements)
    lines = [table_line(HEADERS), table_line([":--"] * len(HEADERS))]
    cells = (["<br>".join(map(escape, filter(None, cell))) for cell in _cells(found, marks)] for found in judgements)
    lines += map(table_line, cells)
    heading = f"{'#' * level} {escape(_heading(judgements))}"
    notes = map(escape, _notes(judgements, marks))
    return "\n\n".join([heading, summary(judgements), "\n".join(lines), *notes, *rest]) + "\n"


def _folded(title: str, texts: Sequence[str]) -> str:
    listed = "\n".join(f"- {escape(text)}" for text in texts)
    return f"<details><summary>{title}</summary>\n\n{listed}\n\n</details>"


def claims_markdown(judgements: Sequence[Judgement], level: int = 3) -> str:
    """The claims, all their numbers, how each is read, and the rule; empty without claims."""
    numbers = [f"{found.claim.id}: {text}" for found in judgements for text in _numbers(found)]
    readings = [f"{found.claim.id}: {found.claim.reading}" for found in judgements if found.claim.reading]
    rest = [_folded("All numbers", numbers), _folded("How the claims are read and judged", [*readings, RULE])]
    return _markdown(judgements, level, rest)


def print_claims(judgements: Sequence[Judgement], console: Console | None = None) -> None:
    """Print the claims, one after the other, and how they are judged; nothing without claims."""
    if not judgements:
        return
    console, marks = console or Console(), _shared(judgements)
    console.print(Text(_heading(judgements), style="bold"))
    for judgement in judgements:
        claim = judgement.claim
        console.print(Text(f"\n{claim.id}  “{claim.quotation}” ({claim.place})"))
        console.print(Text(f"reported: {judgement.in_print}; reproduced: {judgement.verdict}", style="bold"))
        if remarks := judgement.told(marks):
            console.print(Text(remarks))
        for text in _numbers(judgement):
            console.print(Text(text, style="dim"))
    if marks:
        console.print(Text("\n".join(["", *_notes(judgements, marks)])))
    console.print(Text(f"\n{RULE}"))
    console.print(Text(summary(judgements), style="bold"))
