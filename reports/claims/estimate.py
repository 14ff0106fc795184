"""What is known of one number: its estimate, and the interval in which it lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.statistics import mean, root_mean_square, t_interval

NORMAL_975 = 1.96  # normal quantile, for sampling errors of test sets


@dataclass(frozen=True)
class Estimate:
    """A number over n seeds; value: None where it is undefined; interval: None where one seed gives none."""

    value: float | None
    interval: tuple[float, float] | None = None
    n: int = 0
    note: str = ""


def exact(value: float, n: int = 0, note: str = "") -> Estimate:
    """A number without noise: printed, or bytes."""
    return Estimate(value, (value, value), n, note)


def over_seeds(values: Sequence[float | None], errors: Sequence[float | None] = (0.0,), note: str = "") -> Estimate:
    """The mean over seeds, with the wider of the t interval over seeds and ± 1.96 × the test sets' sampling error.

    values: one a seed, paired differences where two methods are compared; None is left out.
    errors: sampling errors of the values; no interval where one is unknown, nor below two values.
    """
    known = [value for value in values if value is not None]
    if not known:
        return Estimate(None, None, 0, note)
    centre, interval = mean(known), t_interval(known)
    error = None if None in errors else root_mean_square([error for error in errors if error is not None])
    if interval is None or error is None:
        return Estimate(centre, None, len(known), note)
    half = max(interval[1] - centre, NORMAL_975 * error)
    return Estimate(centre, (centre - half, centre + half), len(known), note)


def ratio_over_seeds(ratios: Sequence[float], note: str = "") -> Estimate:
    """The geometric mean over seeds, with the t interval of the logarithms."""
    if any(not math.isfinite(ratio) or ratio <= 0 for ratio in ratios):
        return Estimate(None, None, len(ratios), note)  # nothing was sent
    logs = over_seeds([math.log(ratio) for ratio in ratios], note=note)
    if logs.value is None:
        return logs
    interval = None if logs.interval is None else (math.exp(logs.interval[0]), math.exp(logs.interval[1]))
    return Estimate(math.exp(logs.value), interval, logs.n, note)


def censored(estimate: Estimate, below: bool, above: bool) -> Estimate:
    """The estimate where some values are only bounds: below, the true one may be lower; above, higher."""
    if estimate.interval is None:
        return estimate
    low, high = estimate.interval
    return Estimate(
        estimate.value, (-math.inf if below else low, math.inf if above else high), estimate.n, estimate.note
    )
