"""A comparison whose rows are crossed: which row is which method and variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.spec import Column, Row
from reports.comparison import CellResult, Comparison, compare
from reports.layout import DAGGER
from reports.page import Request


@dataclass(frozen=True)
class Method:
    """A line of the table: variant -> row; a reference has no variants, and one row for all of them."""

    name: str
    rows: Mapping[str, Row]
    is_reference: bool = False

    @property
    def label(self) -> str:
        """Its name, with a dagger where the paper prints no row of it."""
        return self.name if any(row.printed for row in self.rows.values()) else f"{self.name} {DAGGER}"


@dataclass(frozen=True)
class Crossed:
    """The comparison without an average, and the methods and variants that it shows, in the table's order.

    variant: what the variants are.
    """

    comparison: Comparison
    variant: str
    variants: tuple[str, ...]
    methods: tuple[Method, ...]

    def cells(self, method: Method, column: Column) -> list[CellResult | None]:
        """A method's results on a task, one a variant; None where the table has no such row."""
        rows = [method.rows.get(variant) for variant in self.variants]
        return [None if row is None else self.comparison.cell(row, column) for row in rows]


def join(request: Request) -> Crossed:
    """Records and published values by method and variant; a request for a part leaves out empty lines and columns."""
    options = request.benchmark.view.options
    placed: Mapping[str, Mapping[str, str]] = options["methods"]
    asked = {row.id: row for row in request.rows}
    names = dict.fromkeys(variant for rows in placed.values() for variant in rows)
    methods = [
        Method(name, {variant: asked[row_id] for variant, row_id in rows.items() if row_id in asked})
        for name, rows in placed.items()
    ]
    methods = [method for method in methods if method.rows]
    crossed = {row_id for rows in placed.values() for row_id in rows.values()}
    # A table of references alone still has the columns for which they hold.
    variants = [name for name in names if any(name in method.rows for method in methods)] or list(names)
    references = [
        Method(row.name, dict.fromkeys(variants, row), is_reference=True)
        for row in request.rows
        if row.id not in crossed
    ]
    return Crossed(
        replace(compare(request), averages=()), str(options["variant"]), tuple(variants), (*references, *methods)
    )
