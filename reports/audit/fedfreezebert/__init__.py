"""The audit of FedFreezeBERT: what its text states, held against itself, its equations and its model's shapes."""

from __future__ import annotations

from functools import partial

from reports.audit import sentences
from reports.audit.fedfreezebert import costs, gains, sizes, spread
from reports.audit.fedfreezebert.names import COST_BASELINES, COSTED
from reports.audit.finding import Check, Finding, audit
from reports.audit.material import Material


def findings(material: Material) -> tuple[Finding, ...]:
    """Hold the paper's stated numbers (its Tables 3 and 4 were not at hand) against each other.

    Asks for what the cells of Table 4 send; without it the findings by exact bytes are left out. ReportError where a
    stated value is missing.
    """
    table4 = material.request("fedfreezebert-table4", (*COSTED, *COST_BASELINES))
    checks: list[Check] = [
        gains.both_statements,
        spread.between_runs,
        spread.of_the_test_set,
        sizes.stated,
        sizes.aggregator,
        partial(costs.by_equations, table4=table4.benchmark),
        partial(
            sentences.in_print,
            claims=material.claims,
            published=material.published,
            benchmarks=material.benchmarks,
        ),
    ]
    if material.derive is not None:
        checks += [partial(sizes.by_shapes, table4=table4), partial(costs.by_bytes, table4=table4)]
    return audit(material.numbers, checks)
