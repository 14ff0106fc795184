"""Whether a printed number was reproduced: one rule, for single scores, at the paper's own scale alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.record import RunRecord
from benchmarks.spec import Scale
from reports.evidence.records import PAPER
from reports.evidence.statistics import NORMAL_975

REPRODUCED, WITHIN, NOT_REPRODUCED = "reproduced", "within tolerance", "not reproduced"
NOT_COMPARABLE = "not comparable"
LEAST_SEEDS = 3  # below that, the t interval of a mean is too wide for "inside" to mean much
TOLERANCE_POINTS = 1.0  # of scores in percent; plain ones have none
RULE = (
    f"Verdict: {REPRODUCED}: {LEAST_SEEDS} seeds or more, and the published value lies in the 95 % t interval of our "
    f"mean; {WITHIN}: otherwise, if it is off by no more than {TOLERANCE_POINTS:g} point or {NORMAL_975} × √2 × the "
    f"test sets' sampling error, by which two runs differ by chance; {NOT_REPRODUCED}: otherwise; {NOT_COMPARABLE}: "
    "partial data, another encoder or changed settings."
)


def is_comparable(scale: Scale, records: Sequence[RunRecord]) -> bool:
    """Whether records may be held against print: paper scale, as defined, on whole data without skipped rows."""
    if scale.id != PAPER or scale.changed:
        return False
    data = [record.inputs["data"] for record in records]
    return not any(entry.get("notes") or entry.get("skipped") for entry in data)


def verdict(
    difference: float | None,
    seeds: int,
    interval: tuple[float, float] | None,
    published: float | None,
    sampling_error: float | None,
    comparable: bool,
    unit: str = "%",
) -> str | None:
    """The verdict on one score, by RULE; None where nothing was printed or run. All numbers in the metric's unit."""
    if difference is None or published is None:
        return None
    if not comparable:
        return NOT_COMPARABLE
    if seeds >= LEAST_SEEDS and interval is not None and interval[0] <= published <= interval[1]:
        return REPRODUCED
    chance = NORMAL_975 * math.sqrt(2) * (sampling_error or 0.0)
    tolerance = TOLERANCE_POINTS if unit == "%" else 0.0
    return WITHIN if abs(difference) <= max(tolerance, chance) else NOT_REPRODUCED
