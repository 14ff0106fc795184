"""Relative gains that the text states twice: over a baseline from P-SUM's score, and from H-SUM's."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from reports.audit.checks import digits, show
from reports.audit.fedfreezebert.names import BASELINES, CENTRALISED, f1, gain_percent
from reports.audit.finding import Finding, Numbers
from reports.printed_costs import places_of

GAINS = "Relative gains of Table 3"


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
        yield Finding(
            f"gains, {baseline}",
            GAINS,
            f"{' and '.join(CENTRALISED.values())} give one value of {name}",
            stated,
            " and ".join(_from_to(*implied) for implied in ranges.values()),
            low <= high,
            f"values over which {' and '.join(show(f1(numbers, row)) for row in CENTRALISED)} are so much higher, "
            f"rounded; common to both: {common}",
        )
