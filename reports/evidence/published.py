"""The numbers that papers publish: printed, or derived from printed ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction

from benchmarks.costs import Terms
from benchmarks.experiment import Scale
from benchmarks.publication import Published
from benchmarks.results import RunResult
from reports import ReportError
from reports.evidence.inference import LEVEL, moved, similar
from reports.evidence.published_files import PARAMETERS, Place, read_published
from reports.evidence.records import DEMO, PAPER, Request, is_partial
from reports.evidence.statistics import Estimate, printed

MEGABYTE = 10**6
AS_PUBLISHED, DIFFERS = "as published", "differs"


def by_place(entries: Iterable[Published], table: str) -> dict[tuple[str, str, str], Published]:
    """(row, column, score) of one table -> published value."""
    return {(entry.row, entry.column, entry.score): entry for entry in entries if entry.table == table}


def published_for(request: Request, table: str = "") -> dict[tuple[str, str, str], Published]:
    """(row, column, score) -> published value, for a request's table or another one; {} at the demo scale."""
    entries = () if request.scale.id == DEMO else read_published(request.benchmark.published_csv)
    return by_place(entries, table or request.benchmark.place)


@dataclass(frozen=True)
class Numbers:
    """A paper's published numbers by place, as the decimals that were printed."""

    values: Mapping[Place, Decimal]
    derived: frozenset[Place] = frozenset()  # of numbers that are not printed but follow from the text

    @classmethod
    def of(cls, entries: Iterable[Published]) -> Numbers:
        """From published values, whose floats spell the printed digits."""
        places = {(e.table, e.row, e.column, e.score): e for e in entries}
        derived = frozenset(place for place, entry in places.items() if entry.derivation)
        return cls({place: Decimal(str(entry.value)) for place, entry in places.items()}, derived)

    @property
    def printed(self) -> Numbers:
        return Numbers({place: value for place, value in self.values.items() if place not in self.derived})

    def at(self, table: str, row: str, column: str, score: str = "") -> Decimal:
        """The number at a place; ReportError without one."""
        place = (table, row, column, score)
        if place not in self.values:
            raise ReportError(
                f"audit: expected a published value at {','.join(place)}, found none. Restore the published CSV files."
            )
        return self.values[place]

    def terms(self, table: str) -> Terms:
        """The printed parameters of a table's equations, megabytes as bytes; ReportError if one is missing."""

        def value(name: str) -> float:
            if (table, PARAMETERS, f"{name}_mb", "") in self.values:
                return float(self.at(table, PARAMETERS, f"{name}_mb") * MEGABYTE)
            return float(self.at(table, PARAMETERS, name))

        return Terms(**{term.name: value(term.name) for term in fields(Terms)})


def places_of(value: Decimal) -> int:
    """The number of printed decimals; floats from a CSV have no trailing zeros."""
    return max(0, -int(value.normalize().as_tuple().exponent))


def is_printed_as(value: Decimal, published: Decimal) -> bool:
    """Whether a number, rounded to a printed number's digits, equals it."""
    return printed(value, places=places_of(published)) == published


def as_decimal(value: Fraction) -> Decimal:
    """A ratio in decimal arithmetic with 28 digits."""
    return Decimal(value.numerator) / Decimal(value.denominator)


# ---- whether a score is the published one again -------------------------------------------------------------------

REPRODUCED, UNDECIDED, NOT_REPRODUCED = "reproduced", "undecided", "not reproduced"
NOT_COMPARABLE = "not comparable"
# The largest distance of a reproduction from the printed value: in points for percentages, a share for plain scores. If
# a paper rounds more coarsely, half of its last digit. This is a choice, explained in docs/statistics.md.
MARGIN_POINTS, MARGIN_SHARE = 1.0, 0.01
RULE = (
    f"Verdict, by two one-sided tests at {100 * LEVEL:g} % (docs/statistics.md): {REPRODUCED}: all between our bounds "
    f"lies within ± {MARGIN_POINTS:g} point of the reported value (plain numbers: ± {100 * MARGIN_SHARE:g} % of it; "
    f"half of its last digit where that is more); {NOT_REPRODUCED}: all lies outside; {UNDECIDED}: otherwise, with "
    f"the smallest margin that as many seeds with this spread show at a power of 80 %; {NOT_COMPARABLE}: partial or "
    "other data, another encoder or changed settings."
)


def is_comparable(scale: Scale, records: Sequence[RunResult]) -> bool:
    """Whether records are comparable with a paper: its scale, as defined, on complete data without skipped rows."""
    is_whole = not any(is_partial(record) or record.inputs["data"].get("skipped") for record in records)
    return scale.id == PAPER and not scale.changed and is_whole


def margin_of(published: float, unit: str = "%") -> float:
    """The largest distance between a score and a printed value that it reproduces, in its unit."""
    last_digit = float(Decimal(1).scaleb(-places_of(Decimal(str(published))))) / 2
    return max(MARGIN_POINTS if unit == "%" else MARGIN_SHARE * abs(published), last_digit)


def verdict(estimate: Estimate, published: float | None, comparable: bool, unit: str = "%") -> str | None:
    """The verdict on one score, by RULE; None if nothing was printed or run. All numbers are in the metric's unit."""
    if estimate.value is None or published is None:
        return None
    if not comparable:
        return NOT_COMPARABLE
    answer = similar(moved(estimate, -published), margin_of(published, unit))
    return UNDECIDED if answer is None else REPRODUCED if answer else NOT_REPRODUCED
