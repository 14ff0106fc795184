"""What a paper prints of a method's communication: a round's size, the cost until a target, and the gain."""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction

from benchmarks.costs import Terms
from reports.audit.finding import Numbers
from reports.statistics import printed

PARAMETERS = "parameters"  # the row at which a table publishes them
MEGABYTE = 10**6


@dataclass(frozen=True)
class PrintedCost:
    """One row, in the paper's GB, as the decimals that were printed."""

    size_gb: Decimal
    cost_gb: Decimal
    gain: Decimal

    @property
    def rounds(self) -> Fraction:
        """The rounds that a cost implies, where the paper prints none."""
        return Fraction(self.cost_gb) / Fraction(self.size_gb)


def printed_cost(numbers: Numbers, table: str, row: str) -> PrintedCost:
    """A row of a table of sizes, costs and gains; ReportError where one of them is not published."""
    return PrintedCost(
        numbers.at(table, row, "parameter_gb"), numbers.at(table, row, "cost_gb"), numbers.at(table, row, "gain")
    )


def has_cost(numbers: Numbers, table: str, row: str) -> bool:
    """Whether a table prints that row's size."""
    return (table, row, "parameter_gb", "") in numbers.values


def has_terms(numbers: Numbers, table: str) -> bool:
    """Whether a table's equations have printed parameters."""
    return any(place[:2] == (table, PARAMETERS) for place in numbers.values)


def printed_terms(numbers: Numbers, table: str) -> Terms:
    """The printed parameters of a table's equations, megabytes as bytes; ReportError where one is not published."""

    def value(name: str) -> float:
        if (table, PARAMETERS, f"{name}_mb", "") in numbers.values:
            return float(numbers.at(table, PARAMETERS, f"{name}_mb") * MEGABYTE)
        return float(numbers.at(table, PARAMETERS, name))

    return Terms(**{term.name: value(term.name) for term in fields(Terms)})


def places_of(value: Decimal) -> int:
    """Decimals with which a number is printed; a CSV's floats keep no zeros at the end."""
    return max(0, -int(value.normalize().as_tuple().exponent))


def is_printed_as(value: Decimal, known: Decimal) -> bool:
    """Whether a number, rounded to the digits of a printed one, is that."""
    return printed(value, places=places_of(known)) == known


def as_decimal(value: Fraction) -> Decimal:
    """A ratio in the arithmetic of printed digits, to 28 of them."""
    return Decimal(value.numerator) / Decimal(value.denominator)
