"""Whether "the 0.66% is a relevant improvement": against the runs' spread, and against the finite test set."""

from __future__ import annotations

import math
from collections.abc import Iterator

from reports.audit.checks import digits
from reports.audit.fedfreezebert.names import SPLIT, SPLIT_HSUM, TASK, TEXT, f1, gain_percent
from reports.audit.finding import Finding, Numbers
from reports.claims.estimate import NORMAL_975
from reports.layout import number
from reports.statistics import welch_test

SPREAD = "The relevant improvement"
LEVEL = 0.05


def _difference(numbers: Numbers) -> float:
    """FedSplitBERT with H-SUM less FedSplitBERT, in points: the stated gain of a derived score."""
    return float(f1(numbers, SPLIT_HSUM) - f1(numbers, SPLIT))


def between_runs(numbers: Numbers) -> Iterator[Finding]:
    """Welch's t test on the stated deviations."""
    sds, runs = (
        [float(numbers.at(TEXT, row, TASK, f"stated/{what}")) for row in (SPLIT_HSUM, SPLIT)] for what in ("sd", "runs")
    )
    t, freedom, p = welch_test(_difference(numbers), sds, runs)
    gain = digits(gain_percent(numbers, SPLIT_HSUM, SPLIT))
    yield Finding(
        "relevant, runs",
        SPREAD,
        f"FedSplitBERT gains {gain} % by H-SUM, more than runs differ by chance",
        f"sd {sds[1]:g} and {sds[0]:g} over {runs[0]:g} runs",
        f"t = {number(t)}, p = {number(p, places=4)}",
        p < LEVEL,
        f"Welch's t test of {number(_difference(numbers), '+')} points, {number(freedom)} degrees of freedom, "
        f"two-sided at {LEVEL:g}; scores derived from the text, sd read as points",
    )


def of_the_test_set(numbers: Numbers) -> Iterator[Finding]:
    """What another draw of test tweets would change, as a plain estimate."""
    tweets = 1000 * float(numbers.at(TEXT, "test", TASK, "stated/thousand_tweets"))
    shares = [float(f1(numbers, row)) / 100 for row in (SPLIT, SPLIT_HSUM)]
    errors = [100 * math.sqrt(share * (1 - share) / tweets) for share in shares]
    half = NORMAL_975 * math.hypot(*errors)
    difference = _difference(numbers)
    yield Finding(
        "relevant, test set",
        SPREAD,
        "the gain is more than the test set's own sampling error",
        f"{number(difference, '+')} points",
        f"± {number(half)} points",
        abs(difference) > half,
        f"{NORMAL_975} × √2 × {number(errors[0])}, the standard error of a share of {tweets:.0f} tweets: a plain "
        "estimate, as if F1^PN were such a share and both models erred apart from each other. On the same tweets it is "
        "less, by an agreement that is not printed; five runs on one test set do not show it",
    )
