"""What a paper prints of a method's communication: a round's size, the cost until a target, and the gain."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from reports.audit.finding import Numbers


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


def as_decimal(value: Fraction) -> Decimal:
    """A ratio in the arithmetic of printed digits, to 28 of them."""
    return Decimal(value.numerator) / Decimal(value.denominator)
