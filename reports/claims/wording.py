"""A verdict as text: the deciding numbers, the number of seeds, and why a claim is open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from reports.claims.criterion import Evidence, seeds_for_sign_test
from reports.claims.estimates import PAPERS_TARGET
from reports.claims.hypothesis import Assertion, State, Verdict
from reports.evidence import gate
from reports.evidence.inference import (
    LEVEL,
    MOST_SEEDS,
    another,
    average_of,
    seeds_needed,
    similar,
    smallest_effect,
    smallest_margin,
)
from reports.evidence.statistics import FEWEST_SEEDS, Estimate
from reports.pages.text import in_brackets, with_interval

LISTED = 3  # comparisons that a table shows of a claim
VACUOUS = "vacuous target"
TOO_FEW, NOT_RUN, NOT_TUNED = "too few seeds", "not run", "not tuned yet"
BASELINE_FAILED, LEAK, UNKNOWN = "baseline failed", "test data leak", "validity check not passed yet"
OPEN = (TOO_FEW, NOT_RUN, NOT_TUNED, UNKNOWN)  # more runs would remove these reasons
# Beginnings of reasons not to judge a column -> the reason in a few words; any other is that a baseline failed.
_IN_SHORT = {
    gate.NO_ERROR.partition(",")[0]: TOO_FEW,
    gate.NOT_RUN: NOT_RUN,
    gate.NOT_TUNED: NOT_TUNED,
    "its test examples": LEAK,
    gate.UNKNOWN: UNKNOWN,
    gate.SHOWN_NOT: gate.SHOWN_NOT,
    PAPERS_TARGET: VACUOUS,
    "not tuned": NOT_TUNED,
    "target not checked": NOT_RUN,
    "vacuous target": VACUOUS,
    "no target at this scale": "no target at this scale",
    "as tuned": "one round above the limit",
    "sends nothing": "sends nothing as tuned",
    "times": "times are not comparable",
}


def _listed(shown: Sequence[Assertion], verdict: Verdict) -> str:
    """Comparisons as text, with their table if the claim is about several tables."""
    several = len({one.place for one, _ in verdict.comparisons}) > 1
    return "; ".join(f"{one.place}: {one.text}" if several else one.text for one in shown)


def numbers(verdict: Verdict, most: int | None = LISTED) -> str:
    """The number of comparisons that hold, and the deciding ones. most: how many are listed; None: all."""
    shown, every = verdict.shown, len(verdict.comparisons)
    if not shown:
        return "no numbers"
    if every == 1:
        return shown[0].text
    missing = f"; {every - len(shown)} more have no number" if len(shown) < every else ""
    deciding = [one for one in shown if one in verdict.of(State.YES if verdict.some else State.NO)]
    word = ("holding" if verdict.some else "failing") if deciding else ("strongest" if verdict.some else "weakest")
    more = f"; {len(deciding) - most} more" if most is not None and len(deciding) > most else ""
    text = _listed(deciding[:most] or shown[:1], verdict)
    return f"{len(verdict.of(State.YES))} of {len(shown)} comparisons hold{missing}; {word}: {text}{more}"


def seeds(verdict: Verdict) -> str:
    """The number of seeds behind the numbers: "5", or "2–5"; "" without numbers."""
    counts = sorted({one.evidence.n for one in verdict.shown if one.evidence is not None and one.evidence.n})
    return "–".join(map(str, dict.fromkeys((*counts[:1], *counts[-1:]))))


def effect(verdict: Verdict) -> str:
    """The deciding number with its interval, or the number that leaves the claim open."""
    return _listed(verdict.shown[:1], verdict)


def counts(verdict: Verdict) -> str:
    """The number of tasks on which a claim about all tasks holds, and fails; for one task, the number of comparisons.

    "" if one comparison is enough, or if there is only one.
    """
    columns = verdict.columns
    states = list(columns.values()) if len(columns) > 1 else [state for _, state in verdict.comparisons]
    if verdict.some or len(states) < 2:
        return ""
    what = "comparisons" if len(columns) == 1 else "tasks" if len({place for place, _ in columns}) == 1 else "columns"
    return f"{states.count(State.YES)} of {len(states)} {what} for, {states.count(State.NO)} against"


def over_tasks(verdict: Verdict) -> str:
    """The mean difference of two rows over tasks, and the prediction interval for another task.

    If there are several rivals: the closest one among those with the most tasks. "" below three tasks with an interval.
    """
    by_rows: dict[str, dict[tuple[str, ...], Estimate]] = {}
    replaced = ""
    for one, _ in verdict.comparisons:
        if one.rows and one.judged is not None and one.judged.interval is not None:
            replaced = " (accuracy in place of correlations)" if one.judged.in_mean else replaced
            by_rows.setdefault(one.rows, {}).setdefault(one.tasks, one.judged.in_mean or one.judged)
    averages = []
    for rows, each in by_rows.items():
        whole, beyond = average_of(list(each.values())), another(list(each.values()))
        if whole.value is not None and whole.interval is not None and beyond is not None:
            mean = with_interval(whole.value, whole.interval, "+")
            next_task = f"prediction for another task {in_brackets(beyond, '+')}"
            text = f"mean of {len(each)} tasks{replaced} {mean}, {next_task} ({rows})"
            averages.append((-len(each), whole.value, text))
    return min(averages)[-1] if averages else ""


def smallest_seen(verdict: Verdict) -> str:
    """The smallest effect that the seeds behind this number detect with 80 % power; "" without an error.

    For a claim that two rows are similar: the margin within which such seeds show equal rows.
    """
    shown = verdict.shown[0] if verdict.shown else None
    if shown is None or shown.evidence is None:
        return ""
    is_margin = len(shown.criterion.sides) == 2
    least = (smallest_margin if is_margin else smallest_effect)(shown.evidence)
    return "" if not least else f"{'± ' if is_margin else ''}{shown.criterion.shown(least)}{shown.criterion.unit}"


def seeds_to_decide(verdict: Verdict) -> str:
    """The number of seeds that would decide an open claim, given its effect and spread, or "> 100".

    "" if it is unknown, or if that many were run, so that other comparisons leave the claim open.
    """
    judged = verdict.shown[0].judged if verdict.state is State.UNDECIDED and verdict.shown else None
    if judged is None or not judged.components or judged.n < FEWEST_SEEDS:
        return ""
    n = seeds_needed(judged, verdict.shown[0].margin)
    return f"> {MOST_SEEDS}" if n is None else str(n) if n > judged.n else ""


def outlook(verdict: Verdict) -> str:
    """What more seeds would do to an open claim, given its effect and spread; "" if that is unknown."""
    n = seeds_to_decide(verdict)
    if not n:
        return ""
    count = f"more than {MOST_SEEDS}" if n.startswith(">") else f"about {n}"
    would = f"would {'contradict' if verdict.shown[0].margin < 0 else 'support'} the claim"
    return f"{count} seeds with this standard deviation {would} if the effect stays as observed"


def equality(verdict: Verdict) -> str:
    """That the rows of an open claim have equal scores within a margin; "" if the interval does not show it."""
    shown = verdict.shown[0] if verdict.state is State.UNDECIDED and verdict.shown else None
    if shown is None or shown.criterion.equal is None or shown.evidence is None:
        return ""
    rows, margin = shown.rows.replace(" − ", " and ") or "the two", shown.criterion.equal
    return f"{rows} are equal within {margin:g} point" if similar(shown.evidence, margin) else ""


def without(verdict: Verdict) -> str:
    """The columns that a verdict leaves out, as text."""
    if not (verdict.state is State.YES or (verdict.state is State.NO and verdict.some)):
        return ""
    names = dict.fromkeys(name for one in verdict.left_out for name, _ in one.reasons)
    return f"without {', '.join(names)}" if names else ""


def why(verdict: Verdict) -> str:
    """Why a claim is open, and which columns are left out; "" before any run."""
    if verdict.state is State.MISSING:
        return ""
    parts = _reasons(verdict.left_out, "left out")
    if not verdict.is_decided:
        others = [one for one, _ in verdict.comparisons if one not in verdict.left_out]
        parts += [*_reasons(others, "not testable"), *(_open(verdict) if verdict.shown else ())]
    return "; ".join(parts)


def full_reasons(verdict: Verdict) -> list[str]:
    """Why columns are not testable, with all numbers."""
    every = [*verdict.left_out, *(one for one, _ in verdict.comparisons)]
    reasons = dict.fromkeys(reason for one in every for reason in one.reasons)
    return [f"{name} {'undecided' if _in_short(why) in OPEN else 'not testable'}: {why}" for name, why in reasons]


def short_reason(verdict: Verdict) -> str:
    """Why a claim is open, in about five words; a reason that more runs would not remove goes first."""
    if verdict.state is State.MISSING:
        return f"{NOT_RUN} yet, {verdict.missing}" if verdict.missing else NOT_RUN
    if verdict.state is State.NOT_JUDGED:
        reasons = [_in_short(reason) for one, _ in verdict.comparisons for _, reason in one.reasons]
        return next((reason for reason in reasons if reason not in OPEN), reasons[0])
    reasons = [_short(_open_reason(one, verdict.tests)) for one in verdict.of(State.UNDECIDED)]
    return next(iter(reasons), "not all of it run" if verdict.of(State.MISSING) else "columns not testable here")


def vacuous(verdict: Verdict) -> str:
    """What already reaches the paper's vacuous target."""
    return full_reasons(verdict)[0].partition(f"{PAPERS_TARGET}: ")[2]


def is_vacuous(verdict: Verdict) -> bool:
    """Whether predicting a single class reaches the paper's target in every comparison of the claim."""
    by_comparison = [[reason for _, reason in one.reasons] for one, _ in verdict.comparisons]
    is_each = all(reasons and all(why.startswith(PAPERS_TARGET) for why in reasons) for reasons in by_comparison)
    return bool(by_comparison) and is_each


def is_testable(verdict: Verdict) -> bool:
    """Whether more runs would decide the claim."""
    return verdict.state is not State.NOT_JUDGED or short_reason(verdict) in OPEN


def _in_short(reason: str) -> str:
    return next((short for start, short in _IN_SHORT.items() if reason.startswith(start)), BASELINE_FAILED)


def _reasons(comparisons: Iterable[Assertion], what: str) -> list[str]:
    """Why columns are not judged: one short text per reason."""
    columns: dict[str, list[str]] = {}
    for name, reason in dict.fromkeys((name, _short(reason)) for one in comparisons for name, reason in one.reasons):
        columns.setdefault(reason, []).append(name)
    states = {reason: "undecided" if _in_short(reason) in OPEN else what for reason in columns}
    return [f"{', '.join(names)} {states[reason]}: {reason}" for reason, names in columns.items()]


def _short(reason: str) -> str:
    """A reason without its numbers, which follow a colon."""
    return reason.partition(":")[0].partition(", as ")[0]


def _open(verdict: Verdict) -> list[str]:
    """The numbers of an open claim's open comparisons by reason."""
    every = len(verdict.comparisons)
    reasons = Counter(_open_reason(one, verdict.tests) for one in verdict.of(State.UNDECIDED))
    if missing := len(verdict.of(State.MISSING)):
        reasons[NOT_RUN] += missing
    return [f"{reason} ({count} of {every} comparisons)" if every > 1 else reason for reason, count in reasons.items()]


def _open_reason(one: Assertion, tests: int) -> str:
    judged = one.judged or Evidence(None)
    if judged.value is None:
        return "undefined"
    if judged.interval is None and judged.bounds:
        return f"{TOO_FEW}: whole rounds need {seeds_for_sign_test(judged.ratio)}"
    if judged.interval is None:
        return f"{TOO_FEW}: one shows no error" if judged.n == 1 else "not all of it run"
    if min(one.criterion.p_against(judged)) <= LEVEL:
        return f"{TOO_FEW}: contradicted without Holm's correction for {tests} comparisons, not with it"
    if one.p_for <= LEVEL:
        return f"{TOO_FEW}: supported without Holm's correction, not with it"
    if one.leads and one.criterion.p_for(judged) <= LEVEL:
        leads = "; ".join(lead.text for lead in one.leads)
        lead = f"this has to be {one.leads[0].criterion.text}: {leads}"
        return f"reference not shown to have learned: {lead}"
    where = "both inside and outside" if len(one.criterion.sides) == 2 else "on both sides of"
    return f"{TOO_FEW}: the interval contains values {where} the criterion ({one.criterion.text})"
