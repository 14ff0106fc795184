"""The audit of FedSplitBERT: what its Tables I to VI imply, against what they and the text say."""

from __future__ import annotations

from functools import partial

from reports.audit import sentences
from reports.audit.fedsplitbert import labels, scores, traffic
from reports.audit.finding import Check, Finding, audit
from reports.audit.material import Material
from reports.page import Request
from reports.views.labels.bounds import label1_ranges


def findings(material: Material) -> tuple[Finding, ...]:
    """Hold the paper's printed values (Tables I to VI, what is stated of Figure 6) against each other and its text.

    Asks for the records' labels on MRPC, CoLA and QQP (a task without them is not judged), and for the bytes of a
    round of Table VI's rows (without them the findings by exact bytes are left out). ReportError where a printed value
    is missing.
    """
    checks: list[Check] = [
        scores.averages,
        scores.chosen_layers,
        scores.text_layer,
        labels.sums,
        labels.stsb_means,
        partial(labels.label_order, label1_percent=label1_ranges(material.records)),
        labels.local_majority,
        traffic.rounds,
        traffic.gains,
        traffic.fedadam_size,
        traffic.megabits,
        partial(
            sentences.in_print,
            claims=material.claims,
            published=material.published,
            benchmarks=material.benchmarks,
        ),
    ]
    if sizes := _round_bytes(material.request("fedsplitbert-table6", traffic.DERIVABLE)):
        checks.append(partial(traffic.exact_bytes, round_bytes=sizes))
    return audit(material.numbers, checks)


def _round_bytes(table6: Request) -> dict[str, int]:
    """Row -> bytes of a round in one direction, of every row that shapes give; none where nobody derives them."""
    if table6.derive is None:
        return {}
    plans = {row.id: table6.derive(row, table6.columns[0], table6.scale) for row in table6.rows}
    return {row: plan.up_bytes for row, plan in plans.items() if plan is not None}
