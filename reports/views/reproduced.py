"""Whether a score is the printed one again: a rule on the interval of our mean."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from benchmarks.experiment import Scale
from benchmarks.results import RunResult
from reports.evidence.inference import LEVEL, moved, similar
from reports.evidence.published import places_of
from reports.evidence.records import PAPER
from reports.evidence.statistics import Estimate

REPRODUCED, UNDECIDED, NOT_REPRODUCED = "reproduced", "undecided", "not reproduced"
NOT_COMPARABLE = "not comparable"
# How far from the printed value a reproduction may lie: points of scores in percent, a share of plain ones. Where a
# paper rounds more coarsely, half of its last digit. A choice, for which docs/statistics.md gives the reasons.
MARGIN_POINTS, MARGIN_SHARE = 1.0, 0.01
RULE = (
    f"Verdict, by two one-sided tests at {100 * LEVEL:g} % (docs/statistics.md): {REPRODUCED}: all between our bounds "
    f"lies within ± {MARGIN_POINTS:g} point of the reported value (plain numbers: ± {100 * MARGIN_SHARE:g} % of it; "
    f"half of its last digit where that is more); {NOT_REPRODUCED}: all lies outside; {UNDECIDED}: otherwise, with "
    f"the margin that so many seeds with this spread would mostly have shown; {NOT_COMPARABLE}: partial data, another "
    "encoder or changed settings."
)


def is_comparable(scale: Scale, records: Sequence[RunResult]) -> bool:
    """Whether records may be held against print: paper scale, as defined, on whole data without skipped rows."""
    if scale.id != PAPER or scale.changed:
        return False
    data = [record.inputs["data"] for record in records]
    return not any(entry.get("notes") or entry.get("skipped") for entry in data)


def margin_of(published: float, unit: str = "%") -> float:
    """How far from a printed value a score may lie to be a reproduction of it, in its unit."""
    last_digit = float(Decimal(1).scaleb(-places_of(Decimal(str(published))))) / 2
    return max(MARGIN_POINTS if unit == "%" else MARGIN_SHARE * abs(published), last_digit)


def verdict(found: Estimate, published: float | None, comparable: bool, unit: str = "%") -> str | None:
    """The verdict on one score, by RULE; None where nothing was printed or run. All numbers in the metric's unit."""
    if found.value is None or published is None:
        return None
    if not comparable:
        return NOT_COMPARABLE
    answer = similar(moved(found, -published), margin_of(published, unit))
    return UNDECIDED if answer is None else REPRODUCED if answer else NOT_REPRODUCED
