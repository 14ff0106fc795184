"""The audit of FedFreezeBERT: what its text states, held against itself, its equations and its model's shapes."""

from __future__ import annotations

from functools import partial

from reports.audit.checks import Check, Finding, Material, audit, sentences
from reports.audit.fedfreezebert import costs, scores
from reports.evidence.equations import Costs


def findings(material: Material) -> tuple[Finding, ...]:
    """Hold the paper's stated numbers (its Tables 3 and 4 were not at hand) against each other.

    Asks for what the cells of Table 4 send; without it the findings by exact bytes are left out. ReportError where a
    stated value is missing.
    """
    table4 = material.request("fedfreezebert-table4", (*costs.COSTED, *costs.COST_BASELINES))
    checks: list[Check] = [
        scores.both_statements,
        scores.between_runs,
        scores.of_the_test_set,
        costs.stated,
        costs.aggregator,
        partial(costs.by_equations, table4=table4.benchmark),
        partial(sentences, material=material),
    ]
    if material.derive is not None:
        derived = Costs(table4)
        checks += [partial(costs.by_shapes, table4=derived), partial(costs.by_bytes, table4=derived)]
    return audit(material.numbers, checks)
