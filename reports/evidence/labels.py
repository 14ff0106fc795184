"""The share of a label in a task's data, from the partition reports of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchmarks.results import RunResult
from benchmarks.run_config import JSON

Range = tuple[float, float]


def label_range(report: Mapping[str, JSON], label: int) -> Range:
    """The smallest and largest possible percentage of a label: no unused example has it, or all have it."""
    place = report["label_ids"].index(label)
    used = sum(counts[place] for counts in report["obtained_counts"])
    return 100 * used / report["n_examples"], 100 * (used + report["unused"]) / report["n_examples"]


def label1_ranges(records: Iterable[RunResult]) -> dict[str, Range]:
    """Task -> percent of label 1 in the real data of the task's newest record, at least and at most.

    The range uses all partitions of these data. Tasks with scores or generated data are left out.
    """
    newest: dict[str, str] = {}
    ranges: dict[str, Range] = {}
    for record in sorted(records, key=lambda record: record.finished, reverse=True):
        task, digest = record.cell.task, record.inputs["data"]["digest"]
        is_real = record.cell.source != "generated" and newest.setdefault(task, digest) == digest
        if is_real and 1 in (record.partition["label_ids"] or ()):
            low, high = label_range(record.partition, 1)
            least, most = ranges.get(task, (low, high))
            ranges[task] = (max(low, least), min(high, most))
    return ranges
