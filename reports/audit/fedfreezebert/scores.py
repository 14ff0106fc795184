"""What FedFreezeBERT's text states of its scores: gains over two baselines, and whether one is relevant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

from reports.audit.checks import Finding, digits, show
from reports.evidence.published import Numbers, places_of
from reports.evidence.statistics import NORMAL_975, welch_test
from reports.pages.text import number

TEXT, SCORES = "Text", "Table 3"  # "Text": stated there, and of no table
TASK, F1 = "arsarcasm", "test/f1_pn"

CENTRALISED = {"c-psum": "C-FedFreezeBERT with P-SUM", "c-hsum": "C-FedFreezeBERT with H-SUM"}
BASELINES = {  # with the ordinary aggregator
    "fedavg-ordinary": "FedAvg/FedProx",
    "central-ordinary": "central training",
    "fedsplitbert-ordinary": "FedSplitBERT",
}
SPLIT, SPLIT_HSUM = "fedsplitbert-ordinary", "fedsplitbert-hsum"
GAINS = "Relative gains of Table 3"
SPREAD = "The relevant improvement"
LEVEL = 0.05


def f1(numbers: Numbers, row: str) -> Decimal:
    """F1^PN of a row of Table 3, in percent."""
    return numbers.at(SCORES, row, TASK, F1)


def gain_percent(numbers: Numbers, row: str, over: str) -> Decimal:
    """By how many percent a row is above a baseline, as the text states."""
    return numbers.at(TEXT, row, over, "stated/percent_over")


def _implied(numbers: Numbers, row: str, baseline: str) -> tuple[Decimal, Decimal]:
    """The least and the largest score of the baseline over which the row's gain rounds to the stated one."""
    gain = gain_percent(numbers, row, baseline)
    half = Decimal(1).scaleb(-places_of(gain)) / 2
    low, high = (f1(numbers, row) / (1 + (gain + end) / 100) for end in (half, -half))
    return low, high


def _from_to(low: Decimal, high: Decimal) -> str:
    return f"{show(low, 3)} to {show(high, 3)}"


def both_statements(numbers: Numbers) -> Iterator[Finding]:
    """Both gains over a baseline have to give one value of it."""
    for baseline, name in BASELINES.items():
        ranges = {row: _implied(numbers, row, baseline) for row in CENTRALISED}
        low, high = max(low for low, _ in ranges.values()), min(high for _, high in ranges.values())
        stated = " and ".join(f"{digits(gain_percent(numbers, row, baseline))} %" for row in CENTRALISED)
        common = _from_to(low, high) if low <= high else "none"
        statement = f"{' and '.join(CENTRALISED.values())} give one value of {name}"
        given = " and ".join(_from_to(*implied) for implied in ranges.values())
        how = (
            f"values over which {' and '.join(show(f1(numbers, row)) for row in CENTRALISED)} are so much higher, "
            f"rounded; common to both: {common}"
        )
        yield Finding(f"gains, {baseline}", GAINS, statement, stated, given, low <= high, how)


def _difference(numbers: Numbers) -> float:
    return float(f1(numbers, SPLIT_HSUM) - f1(numbers, SPLIT))


def between_runs(numbers: Numbers) -> Iterator[Finding]:
    """Welch's t test on the stated deviations."""
    sds, runs = (
        [float(numbers.at(TEXT, row, TASK, f"stated/{what}")) for row in (SPLIT_HSUM, SPLIT)] for what in ("sd", "runs")
    )
    t, freedom, p = welch_test(_difference(numbers), sds, runs)
    gain = digits(gain_percent(numbers, SPLIT_HSUM, SPLIT))
    statement = f"FedSplitBERT gains {gain} % by H-SUM, more than runs differ by chance"
    stated = f"sd {sds[1]:g} and {sds[0]:g} over {runs[0]:g} runs"
    how = (
        f"Welch's t test of {number(_difference(numbers), '+')} points, {number(freedom)} degrees of freedom, "
        f"two-sided at {LEVEL:g}; scores derived from the text, sd read as points"
    )
    given = f"t = {number(t)}, p = {number(p, places=4)}"
    yield Finding("relevant, runs", SPREAD, statement, stated, given, p < LEVEL, how)


def of_the_test_set(numbers: Numbers) -> Iterator[Finding]:
    """What another draw of test tweets would change, as a plain estimate."""
    tweets = 1000 * float(numbers.at(TEXT, "test", TASK, "stated/thousand_tweets"))
    shares = [float(f1(numbers, row)) / 100 for row in (SPLIT, SPLIT_HSUM)]
    errors = [100 * math.sqrt(share * (1 - share) / tweets) for share in shares]
    half = NORMAL_975 * math.hypot(*errors)
    difference = _difference(numbers)
    statement = "the gain is more than the test set's own sampling error"
    stated = f"{number(difference, '+')} points"
    how = (
        f"{NORMAL_975} × √2 × {number(errors[0])}, the standard error of a share of {tweets:.0f} tweets: a plain "
        "estimate, as if F1^PN were such a share and both models erred apart from each other. On the same tweets it is "
        "less, by an agreement that is not printed; five runs on one test set do not show it"
    )
    given, agrees = f"± {number(half)} points", abs(difference) > half
    yield Finding("relevant, test set", SPREAD, statement, stated, given, agrees, how)
