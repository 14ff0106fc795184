"""The audit of FedSplitBERT: what its Tables I to VI imply, against what they and the text say."""

from __future__ import annotations

from functools import partial

from reports.audit.checks import Check, Finding, Material, audit, sentences
from reports.audit.fedsplitbert import tables, traffic
from reports.evidence.labels import label1_ranges
from reports.evidence.traffic import derived_cost


def findings(material: Material) -> tuple[Finding, ...]:
    """Hold the paper's printed values (Tables I to VI, what is stated of Figure 6) against each other and its text.

    Asks for the records' labels on MRPC, CoLA and QQP (a task without them is not judged), and for the bytes of a
    round of Table VI's rows (without them the findings by exact bytes are left out). ReportError where a printed value
    is missing.
    """
    columns = {column.task: column for column in material.benchmarks["fedsplitbert-table3"].columns}
    checks: list[Check] = [
        tables.averages,
        partial(tables.chosen_layers, columns=columns),
        tables.text_layer,
        tables.sums,
        tables.stsb_means,
        partial(tables.label_order, label1_percent=label1_ranges(material.records)),
        tables.local_majority,
        traffic.rounds,
        traffic.gains,
        traffic.fedadam_size,
        traffic.megabits,
        partial(sentences, material=material),
    ]
    table6 = material.request("fedsplitbert-table6", traffic.DERIVABLE)
    costs = {row.id: derived_cost(table6, row) for row in table6.rows}
    if sizes := {row: int(cost.round_bytes) for row, cost in costs.items() if cost is not None}:
        checks.append(partial(traffic.exact_bytes, round_bytes=sizes))
    return audit(material.numbers, checks)
