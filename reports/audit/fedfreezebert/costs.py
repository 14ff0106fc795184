"""The gains in communication that the text states, from its own equations and from bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from benchmarks.spec import Benchmark
from reports.audit.checks import against_exact, listed
from reports.audit.fedfreezebert.names import COST_BASELINES, COSTED, COSTS
from reports.audit.finding import Finding, Numbers
from reports.layout import number
from reports.page import Request
from reports.printed_costs import MEGABYTE, places_of, printed_terms
from reports.views.costs.closed import closed_forms
from reports.views.costs.traffic import Traffic, derived_traffic

EQUATIONS = "Table 4 by the paper's equations"
BYTES = "Table 4 by exact bytes"


def _gain(numbers: Numbers, key: str, subject: str, row: str, base: str, exact: float, how: str) -> Finding:
    """A stated gain beside another source of it."""
    value = numbers.at(COSTS, row, f"gain_over_{base}")
    statement = f"{COSTED[row]} over {COST_BASELINES[base]}: the gain {key}"
    found = against_exact(
        f"gain {key}, {row}, {base}", subject, statement, value, Decimal(str(exact)), places_of(value), ("round",)
    )
    return replace(found, explanation=f"{found.explanation}; {how}")


def by_equations(numbers: Numbers, table4: Benchmark) -> Iterator[Finding]:
    """Equations 1 to 5 with the printed parameters, in the paper's units."""
    terms, forms = printed_terms(numbers, COSTS), table4.closed_forms
    cost = {row: forms[row].cost_gb(terms, table4.paper.gigabyte) for row in (*COSTED, *COST_BASELINES)}
    for row in COSTED:
        for base in COST_BASELINES:
            how = (
                f"{number(cost[base])} / {number(cost[row])} GB by equations {forms[base].equation} and "
                f"{forms[row].equation}"
            )
            yield _gain(numbers, "by equations", EQUATIONS, row, base, cost[base] / cost[row], how)


def by_bytes(numbers: Numbers, table4: Request) -> Iterator[Finding]:
    """The equations with every byte counted alike, and what really crosses the wire, with the encoder's own sizes."""
    closed = {found.row.id: found for found in closed_forms(table4)}
    traffic = derived_traffic(table4)
    for row in COSTED:
        units = closed[row].form.units
        mixed = "; the paper adds features in GB of 2^30 bytes to weights in GB of 1024 · 10^6" if units else ""
        for base in COST_BASELINES:
            how = f"equations {closed[base].form.equation} and {closed[row].form.equation}{mixed}"
            gain = closed[row].consistent_gains[base]
            yield _gain(numbers, "in consistent bytes", BYTES, row, base, gain, how)
        for base in COST_BASELINES:
            how = f"sent: {_sent(traffic[row])}"
            yield _gain(numbers, "on the wire", BYTES, row, base, traffic[row].gains[base], how)


def _sent(traffic: Traffic) -> str:
    """What a run sends, by kind, in MB."""
    return listed([f"{kind} {number(size / MEGABYTE)} MB" for kind, size in traffic.kinds.items() if size])
