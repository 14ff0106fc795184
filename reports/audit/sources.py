"""Unpublished numbers for audits: sizes and costs by shapes, closed forms, labels of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TypeVar

from benchmarks.claims import Claim
from benchmarks.dry_run.shapes import derive_client
from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.audit.arithmetic import Series, Value
from reports.evidence.caching import once
from reports.evidence.equations import Costs
from reports.evidence.labels import Range, label1_ranges
from reports.evidence.published import Numbers
from reports.evidence.records import PAPER, Request, request_for
from reports.evidence.traffic import derived_cost

SOURCES = (
    *("shapes", "round bytes", "client", "labels"),
    *("equation", "equation gain", "wire gain", "wire kinds", "term"),
)
Fact = TypeVar("Fact")


class NotAvailableError(Exception):
    """A number that needs missing records, or that shapes do not determine; its statement is left out."""


def _available(value: Fact | None) -> Fact:
    if value is None:
        raise NotAvailableError
    return value


def _decimal(value: float) -> Decimal:
    return Decimal(str(value))


@dataclass(frozen=True)
class PaperFacts:
    """The inputs of an audit: a paper's numbers and claims, and records. Each source of other numbers is a method.

    published, benchmarks: by id, of this paper and of others in its claims.
    """

    paper: str
    published: Mapping[str, Numbers]
    benchmarks: Mapping[str, Benchmark]
    claims: tuple[Claim, ...] = ()
    records: tuple[RunResult, ...] = ()

    @property
    def numbers(self) -> Numbers:
        return self.published[self.paper]

    def number(self, source: str, *arguments: str) -> Value:
        """The number or numbers of one of SOURCES, whose address names the method and its arguments."""
        value: Value = getattr(self, source.replace(" ", "_"))(*arguments)
        return value

    def shapes(self, benchmark: str, row: str, part: str, scale_of: str) -> Decimal:
        """Bytes of a part of another benchmark's encoder at the paper's scale."""
        table, scale = self.benchmarks[benchmark], self.benchmarks[scale_of].scale(PAPER)
        plan = self._request(benchmark).plan(table.row(row), scale)
        return Decimal(getattr(_available(plan).sizes, part))

    def round_bytes(self, benchmark: str, row: str) -> Decimal:
        """Bytes of one round by shapes, in the directions that the paper counts."""
        request = self._request(benchmark, row)
        return _decimal(int(_available(derived_cost(request, request.rows[0])).round_bytes))

    def client(self, benchmark: str, rows: str, quantity: str) -> Value:
        """A quantity of ClientCosts, of one row or of several."""
        table, values = self.benchmarks[benchmark], Series()
        for row in rows.split(", "):
            costs = _available(derive_client(table.cell(table.row(row), table.columns[0], table.scale(PAPER), 0)))
            values["", row, ""] = _decimal(getattr(costs, quantity))
        return values if len(values) > 1 else next(iter(values.values()))

    @cached_property
    def _label_ranges(self) -> Mapping[str, Range]:
        return label1_ranges(self.records)

    def labels(self, task: str, bound: str) -> Decimal:
        """Percent of label 1 in the real data of the records: "low" or "high" bound."""
        return _decimal(_available(self._label_ranges.get(task))[("low", "high").index(bound)])

    def equation(self, benchmark: str, row: str) -> Decimal:
        """Cost of a row by its closed form with the published parameters, in the paper's GB."""
        table = self.benchmarks[benchmark]
        terms = self.numbers.terms(table.place)
        return _decimal(table.closed_forms[row].cost_gb(terms, table.paper.gigabyte))

    def _request(self, benchmark: str, *rows: str) -> Request:
        whole = self.benchmarks[benchmark]
        table = replace(whole, rows=tuple(row for row in whole.rows if not rows or row.id in rows))
        return request_for(table, table.scale(PAPER), ())

    @once
    def _derived(self, benchmark: str) -> Costs:
        return Costs(self._request(benchmark))

    def equation_gain(self, benchmark: str, row: str, baseline: str) -> Decimal:
        """Gain by closed forms with sizes by shapes, every byte counted alike."""
        closed = {equation.row.id: equation for equation in self._derived(benchmark).equations}
        return _decimal(closed[row].consistent_gains[baseline])

    def wire_gain(self, benchmark: str, row: str, baseline: str) -> Decimal:
        """Gain by all bytes that are sent in both directions."""
        costs = self._derived(benchmark)
        return _decimal(costs.gains(costs.derived)[row][baseline])

    def wire_kinds(self, benchmark: str, row: str) -> Series:
        """Bytes that are sent, by kind of payload."""
        kinds = self._derived(benchmark).derived[row].kinds
        return {("", kind, ""): _decimal(size) for kind, size in kinds.items() if size}

    def term(self, benchmark: str, head: str, name: str) -> Decimal:
        """Bytes of a term of the closed forms, by shapes."""
        return Decimal(self._derived(benchmark).term_bytes(head)[name])
