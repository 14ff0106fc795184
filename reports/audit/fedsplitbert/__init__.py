"""The audit of FedSplitBERT: what its Tables I to VI imply, against what they and the text say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from benchmarks.claims import Claim
from benchmarks.spec import Benchmark, Published
from reports.audit import sentences
from reports.audit.fedsplitbert import labels, scores, traffic
from reports.audit.finding import Check, Finding, audit


def audit_paper(
    published: Iterable[Published],
    round_bytes: Mapping[str, int] | None = None,
    label1_percent: Mapping[str, tuple[float, float]] | None = None,
    claims: Sequence[Claim] = (),
    benchmarks: Mapping[str, Benchmark] = MappingProxyType({}),
) -> tuple[Finding, ...]:
    """Hold the paper's printed values (Tables I to VI, what is stated of Figure 6) against each other and its text.

    round_bytes: bytes of a round in one direction, three clients together, for the rows "fedavg", "fedsplitbert"
    (c = 6) and "fedsplitbert-qat" of Table VI on MRPC; without them the findings by exact bytes are left out.
    label1_percent: task -> bounds of the percent of label 1 in train and dev, for MRPC, CoLA, QQP;
    a task without them is not judged.
    claims: the sentences of the text, judged in print; benchmarks: by id, those that the claims name.
    ReportError where a printed value or a row's bytes are missing.
    """
    checks: list[Check] = [
        scores.averages,
        scores.chosen_layers,
        scores.text_layer,
        labels.sums,
        labels.stsb_means,
        partial(labels.label_order, label1_percent=label1_percent or {}),
        labels.local_majority,
        traffic.rounds,
        traffic.gains,
        traffic.fedadam_size,
        traffic.megabits,
        partial(sentences.in_print, claims=claims, benchmarks=benchmarks),
    ]
    if round_bytes is not None:
        checks.append(partial(traffic.exact_bytes, round_bytes=round_bytes))
    return audit(published, checks)
