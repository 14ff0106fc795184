"""Judged claims as tables: Markdown, and the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markdown import Markdown

from benchmarks.claims import Claim
from reports.claims.judge import NOT_PUBLISHED, VERDICTS, Judgement, tally
from reports.evidence.inference import MOST_SEEDS
from reports.evidence.statistics import FEWEST_SEEDS
from reports.pages.render import escape, table_line

HEADERS = ("Claim", "Sentence", "Published numbers", "Result", "Evidence", "Effect, 90 % interval", "Detectable effect")
KEY = (
    "**How to read this table.** One line per claim of the paper, decided claims first. Result: the verdict of our "
    "runs or of arithmetic. Effect: the comparison closest to failing, with its 90 % interval; if one comparison is "
    "enough for the claim, the one closest to holding. Detectable effect: the distance from the criterion that these "
    "seeds detect with 80 % power; for a claim of similarity, the margin (±). Interpretation: a way to turn the "
    "sentence into a test; other interpretations are listed where their verdict differs."
)
_SAID = "Published numbers: whether the paper's own numbers agree with the sentence."
POOLED, BALANCED = "(pooled)", "(balanced)"  # in the labels of scores next to the judged one
# Whether an effect has a balanced score -> what the scores in brackets are.
EXTRA_SCORES = {
    True: "In brackets after an accuracy: the same difference on class-balanced test examples (balanced), and over all "
    "clients' examples together (pooled). For equally large clients, pooled accuracy is the mean over clients.",
    False: "In brackets after a correlation: the same difference in accuracy, and in the correlation over all clients' "
    "examples together (pooled). They may point in opposite directions. The correlation within each client ignores "
    "that labels are more common on some clients than on others. Accuracy and the pooled correlation reward a method "
    "that knows this.",
}
RULES = (
    "Sentences in quotation marks are the paper's. Others are our own questions, which the protocol states.",
    "Published numbers are judged by exact arithmetic on them, or on the paper's equations with its parameters.",
    "Runs are compared in pairs, seed by seed. The protocol fixes the scored round of its comparisons; all others are "
    "scored in the round that is best on validation data.",
    "Every test is one-sided at 5 %, so the 90 % interval shows both bounds. A claim with several comparisons is "
    "supported if all hold, and contradicted if one fails after Holm's correction. If one comparison is enough, the "
    "two rules are swapped.",
    "Scores count only on tasks that the encoder learns. Beating a baseline that did not learn is not evidence, unless "
    "the claim is about that failure. A task that three or more seeds show to be not testable is left out and named, "
    "if more than half of the tasks remain.",
    "Below the paper's scale, the target is the best round of the best baseline, seed by seed. A target that the "
    "per-client majority class reaches is vacuous.",
    "Prediction for another task: the interval for the true difference on a further task, if tasks vary as these do.",
    "Seeds that would decide: where the one-sided bound reaches the effect, if mean and standard deviation over "
    f"{FEWEST_SEEDS} or more seeds stay the same.",
)
RULE = " ".join(RULES)


def summary(judgements: Sequence[Judgement]) -> str:
    """How many claims got which verdict, on published numbers and on our records."""
    published = Counter(each.published_word for each in judgements)
    said = f"Published numbers: {', '.join(f'{n} {word}' for word, n in published.most_common())}. "
    counts = f"{said if set(published) != {NOT_PUBLISHED} else ''}Verdicts: {tally(judgements)}."
    beyond = sum(each.more.startswith(">") for each in judgements)
    more = f" would need more than {MOST_SEEDS} seeds if effects and standard deviations stay as observed."
    rest = f" {beyond} of the undecided claims{more}" if beyond else ""
    for is_fixed, rule in (
        (False, "Claims outside the protocol are scored at the round chosen on validation data"),
        (True, "Claims that the protocol fixes are scored as it says"),
    ):
        told = []
        for at in ("chosen", "last"):
            among = [each for each in judgements if each.is_fixed is is_fixed and each.n and at in each.at_rounds]
            others = [each.claim.id for each in among if each.is_other(each.at_rounds[at])]
            which = f"another verdict: {', '.join(others)}" if others else "no other verdict"
            told += [f"at the {at} round, {which}"] if among else []
        rest += f" {rule}; {'; '.join(told)}." if told else ""
    return f"{len(judgements)} claims. {counts}{rest}"


def anchor(claim: Claim) -> str:
    """The target of links to a claim in the Markdown page."""
    return f"claim-{claim.id}"


def _line(judgement: Judgement, has_published: bool) -> str:
    """One claim as a line of the table."""
    claim = judgement.claim
    cells = (
        (claim.sentence, claim.place),
        *([(judgement.published_word,)] if has_published else []),
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
    name = f'<a id="{anchor(claim)}"></a>{claim.id}'
    return table_line([name, *("<br>".join(map(escape, filter(None, cell))) for cell in cells)])


def claims_markdown(judgements: Sequence[Judgement], level: int = 3, docs: str = "") -> str:
    """The claims, all their numbers, how each is interpreted, and the rules; "" without claims.

    docs: the documents' folder, as links name it; "" for no links.
    """
    if not judgements:
        return ""
    has_published = any(each.published_word != NOT_PUBLISHED for each in judgements)
    headers = [header for header in HEADERS if has_published or header != "Published numbers"]
    ordered = sorted(judgements, key=lambda each: VERDICTS.index(each.word))
    table = [table_line(headers), table_line([":--"] * len(headers)), *(_line(each, has_published) for each in ordered)]
    numbers = [f"{each.claim.id}: {text}" for each in judgements for text in each.numbers]
    readings = [f"{each.claim.id}: {each.claim.reading}" for each in judgements if each.claim.reading]
    remarks = [f"{each.claim.id}: {each.remarks}" for each in judgements if each.remarks]
    explained = f"[docs/statistics.md]({docs}/statistics.md)" if docs else "docs/statistics.md"
    folded = {
        "Why claims are undecided, and exploratory runs": remarks,
        "All numbers": numbers,
        "How the claims are interpreted": readings,
        "Rules of the verdicts": RULES,
    }
    first = judgements[0]
    heading = f"{first.paper}: claims at the {first.scale.id} scale"
    key = f"{KEY} {_SAID}" if has_published else KEY
    parts = [f"{'#' * level} {escape(heading)}", summary(judgements), key, "\n".join(table)]
    beside = {BALANCED in each.effect for each in judgements if POOLED in each.effect}
    parts += [EXTRA_SCORES[kind] for kind in sorted(beside)]
    for title, texts in folded.items():
        if not texts:
            continue
        listed = "\n".join(f"- {escape(text)}" for text in texts)
        told = f"{explained} explains them.\n\n" if texts is RULES else ""
        parts.append(f"<details><summary>{title}</summary>\n\n{told}{listed}\n\n</details>")
    return "\n\n".join(parts) + "\n"


def print_claims(judgements: Sequence[Judgement]) -> None:
    """Print the same on the terminal."""
    text = claims_markdown(judgements).replace("<br>", " ")
    Console().print(Markdown(re.sub(r"<a id=.*?></a>", "", text)))
