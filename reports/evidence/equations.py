"""A paper's closed forms of communication costs, with its printed parameters and with its encoder's sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

from benchmarks.costs import ClosedForm, ModelSizes, Terms
from benchmarks.experiment import Row
from reports.evidence.published import Numbers
from reports.evidence.published_files import read_published
from reports.evidence.records import Request
from reports.evidence.traffic import Cost, derived_cost, measured_cost

_WHOLE_MODEL = "pooled"  # the head of the whole model, SizeOf(BERT)


@dataclass(frozen=True)
class Equation:
    """One method's equation.

    Args:
        printed_gb: The cost with the printed parameters, as in the paper.
        printed_gains: Baseline's row id -> the ratio of such costs.
        consistent_bytes: The cost with the sizes of the paper's encoder, every byte counted alike; None if these
            are not derived.
        consistent_gains: Baseline's row id -> the ratio of such costs.
        published: Baseline's row id -> the gain as printed.
    """

    row: Row
    form: ClosedForm
    printed_gb: float
    printed_gains: Mapping[str, float]
    consistent_bytes: float | None
    consistent_gains: Mapping[str, float]
    published: Mapping[str, Decimal]


@dataclass(frozen=True)
class Costs:
    """Costs by equation, by the shapes of the paper's encoder, and by the records.

    The view's option `baselines` names the rows that gains refer to. ReportError if a record is damaged or a printed
    parameter is missing.
    """

    request: Request

    @cached_property
    def baselines(self) -> tuple[Row, ...]:
        return self.request.rows_named("baselines")

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers in the benchmark's published file."""
        return Numbers.of(read_published(self.request.benchmark.published_csv))

    @cached_property
    def terms(self) -> Terms:
        return self.numbers.terms(self.request.benchmark.place)

    @cached_property
    def sizes(self) -> dict[str, ModelSizes]:
        """Head -> sizes of the paper's encoder under it."""
        rows = (*self.request.benchmark.rows, self.baselines[0].changed({"head": _WHOLE_MODEL}))
        plans = {row.head: self.request.plan(row, texts=int(self.terms.n_s)) for row in rows}
        return {head: plan.sizes for head, plan in plans.items() if plan}

    def term_bytes(self, head: str) -> dict[str, int]:
        """A SizeOf term of the equations -> its bytes on the encoder's shapes, under a head."""
        sizes, whole = self.sizes[head], self.sizes[_WHOLE_MODEL].model_bytes
        return {"W_s": sizes.head_bytes, "BL": sizes.layer_bytes, "BE": sizes.embeddings_bytes, "BERT": whole}

    @cached_property
    def derived(self) -> dict[str, Cost]:
        costs = {row.id: self.derived_run(row) for row in self.request.benchmark.rows}
        return {name: cost for name, cost in costs.items() if cost is not None}

    def derived_run(self, row: Row) -> Cost | None:
        """All rounds of one row with the paper's encoder and its number of texts."""
        return derived_cost(self.request, row, int(self.terms.n_s))

    @cached_property
    def measured(self) -> dict[str, Cost]:
        """Measured costs of all rows, as gains need baselines that are not shown."""
        of, table, column = self.request, self.request.benchmark, self.request.columns[0]
        costs = {row.id: measured_cost(table, column, of.records_of(row, column), of.find) for row in table.rows}
        return {name: cost for name, cost in costs.items() if cost is not None}

    def gains(self, costs: Mapping[str, Cost]) -> dict[str, dict[str, float]]:
        """Row id -> baseline's row id -> its bytes over the row's in both directions, derived or measured."""
        bases = {base.id: costs[base.id].total_bytes for base in self.baselines if base.id in costs}
        return {
            name: {base: size / cost.total_bytes for base, size in bases.items()} if cost.total_bytes else {}
            for name, cost in costs.items()
        }

    @cached_property
    def equations(self) -> tuple[Equation, ...]:
        """The equations of the rows shown.

        The printed SizeOf(W_s) applies to the printed rows. Other rows use their own head's size, or are left out if
        it is not derived.
        """
        benchmark, numbers = self.request.benchmark, self.numbers
        forms, gigabyte, place = benchmark.closed_forms, benchmark.paper.gigabyte, benchmark.place

        def cost_gb(row: Row) -> float:
            terms = self.terms if row.printed else replace(self.terms, W_s=self.sizes[row.head].head_bytes)
            return forms[row.id].cost_gb(terms, gigabyte)

        def cost_bytes(row: Row) -> float:
            terms = replace(self.terms, dim_emb=self.sizes[row.head].width, **self.term_bytes(row.head))
            return forms[row.id].cost_bytes(terms)

        equations = []
        for row in (row for row in self.request.rows if row.id in forms and (row.printed or self.sizes)):
            gb, exact = cost_gb(row), cost_bytes(row) if self.sizes else None
            gains = {base.id: cost_gb(base) / gb for base in self.baselines}
            exact_gains = {base.id: cost_bytes(base) / exact for base in self.baselines} if exact else {}
            places = {base.id: (place, row.id, f"gain_over_{base.id}", "") for base in self.baselines}
            published = {name: numbers.values[at] for name, at in places.items() if at in numbers.values}
            equations.append(Equation(row, forms[row.id], gb, gains, exact, exact_gains, published))
        return tuple(equations)
