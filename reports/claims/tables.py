"""Judged claims as tables: Markdown, and the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markdown import Markdown

from reports.claims.judge import Judgement, tally
from reports.evidence.inference import MOST_SEEDS
from reports.evidence.statistics import FEWEST_SEEDS
from reports.pages.render import escape, table_line

HEADERS = (
    "Claim",
    "Sentence",
    "Published numbers",
    "Result",
    "Evidence",
    "Effect, 90 % interval",
    "Detectable effect",
)
POOLED, INDEPENDENT = "(pooled)", "(independent)"  # in the labels of scores next to the judged one
# Whether an effect has an independent score -> what the scores in brackets are.
EXTRA_SCORES = {
    True: "In brackets after an accuracy: the same difference on test examples with even labels (independent), "
    "and over all clients' examples together (pooled). For equally large clients, pooled accuracy is the "
    "mean over clients.",
    False: "In brackets after a correlation: the same difference in accuracy, and in the correlation over all clients' "
    "examples together (pooled). They may point in opposite directions. The correlation within each client ignores "
    "that labels are more common on some clients than on others. Accuracy and the pooled correlation reward a method "
    "that knows this.",
}
RULE = (
    "Rule (explained in docs/statistics.md). Sentences in quotation marks are the paper's; others are our questions, "
    "which the protocol states. Published numbers: exact arithmetic on them, or on the paper's equations "
    "with its published parameters. Verdict: differences A − B are paired by seed. Comparisons that docs/protocol.md "
    "fixes are scored by its rule, all others in the round that is best on validation data. Every test is one-sided "
    "at 5 %, so an interval of 90 % shows both bounds. A claim with several comparisons is supported if all hold, and "
    "contradicted if one fails after Holm's correction. If one comparison is enough for the claim, one that holds "
    "after the correction supports it, and it is contradicted if all fail. Scores are evidence "
    "only if the encoder learns the task. Beating or equalling a row that has learned nothing proves nothing, unless "
    "the claim is about that failure. Below the paper's scale the target is, for each seed, the best round of the "
    "best baseline; a target that the majority-class baseline reaches is vacuous. A column that three or more seeds "
    "show to be not testable is left out and named, if more than half of the columns remain. Detectable effect: the "
    "distance from the criterion that these seeds, with their spread, decide four times out of five; for a claim that "
    "two rows are similar, its margin (±). Another task: the interval for the true difference on a further task, if "
    "tasks vary as these do. Seeds that would decide: the number at "
    f"which the one-sided bound reaches the effect shown, if mean and spread over {FEWEST_SEEDS} or more seeds stay "
    "the same."
)


def summary(judgements: Sequence[Judgement]) -> str:
    """How many claims got which verdict, on published numbers and on our records."""
    published = Counter(each.published_word for each in judgements).most_common()
    counts = f"Published numbers: {', '.join(f'{n} {word}' for word, n in published)}. Verdicts: {tally(judgements)}."
    beyond = sum(each.more.startswith(">") for each in judgements)
    rest = f" At their effects and spreads, {beyond} of these need more than {MOST_SEEDS} seeds." if beyond else ""
    if chosen := [each for each in judgements if each.at_last and each.n]:  # by runs
        others = [each.claim.id for each in chosen if each.is_other(each.at_last)]
        which = f"these get another verdict: {', '.join(others)}" if others else "no verdict changes"
        rest += f" If the last round is scored instead of the one chosen on validation data, {which}."
    return f"{len(judgements)} claims. {counts}{rest}"


def _line(judgement: Judgement) -> str:
    """One claim as a line of the table."""
    claim = judgement.claim
    cells = (
        (claim.id,),
        (claim.sentence, claim.place),
        (judgement.published_word,),
        (
            judgement.result,
            judgement.counts,
            judgement.caveat,
            *(f"{name}: {word}{effect}" for name, word, effect in judgement.readings),
        ),
        (judgement.evidence,),
        (judgement.effect, judgement.over_tasks),
        (judgement.smallest,),
    )
    return table_line("<br>".join(map(escape, filter(None, cell))) for cell in cells)


def claims_markdown(judgements: Sequence[Judgement], level: int = 3) -> str:
    """The claims, all their numbers, how each is read, and the rule; "" without claims."""
    if not judgements:
        return ""
    table = [table_line(HEADERS), table_line([":--"] * len(HEADERS)), *map(_line, judgements)]
    numbers = [f"{each.claim.id}: {text}" for each in judgements for text in each.numbers]
    readings = [f"{each.claim.id}: {each.claim.reading}" for each in judgements if each.claim.reading]
    remarks = [f"{each.claim.id}: {each.remarks}" for each in judgements if each.remarks]
    folded = {
        "Why claims are open": remarks,
        "All numbers": numbers,
        "How the claims are read and judged": [*readings, RULE],
    }
    first = judgements[0]
    heading = f"{first.paper}, claims · scale {first.scale.id}"
    parts = [f"{'#' * level} {escape(heading)}", summary(judgements), "\n".join(table)]
    beside = {INDEPENDENT in each.effect for each in judgements if POOLED in each.effect}
    parts += [EXTRA_SCORES[kind] for kind in sorted(beside)]
    for title, texts in folded.items():
        if not texts:
            continue
        listed = "\n".join(f"- {escape(text)}" for text in texts)
        parts.append(f"<details><summary>{title}</summary>\n\n{listed}\n\n</details>")
    return "\n\n".join(parts) + "\n"


def print_claims(judgements: Sequence[Judgement]) -> None:
    """Print the same on the terminal."""
    Console().print(Markdown(claims_markdown(judgements).replace("<br>", " ")))
