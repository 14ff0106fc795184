"""What each client holds of a task, from one record's partition report, with what was requested and what is printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from benchmarks.experiment import Column
from benchmarks.results import RunResult
from benchmarks.run_config import JSON, VALIDATION
from reports import ReportError
from reports.evidence.records import Request
from reports.evidence.statistics import printed

Range = tuple[float, float]
Labels = Sequence[tuple[int, str]]  # (id, name), in the order of the paper
MEAN_SCORE = "mean_score"


def label_range(report: Mapping[str, JSON], label: int) -> Range:
    """Percent of the data with a label, at least and at most: none or all of the unused examples have it."""
    place = report["label_ids"].index(label)
    used = sum(counts[place] for counts in report["obtained_counts"])
    return 100 * used / report["n_examples"], 100 * (used + report["unused"]) / report["n_examples"]


def records_of(request: Request, column: Column) -> tuple[RunResult, ...]:
    """A task's records in the order of seeds; each says what its clients hold."""
    found = (record for row in request.rows for record in request.records_of(row, column))
    return tuple(sorted(found, key=lambda record: record.cell.seed))


def labels_of(request: Request, column: Column) -> Labels:
    """A task's labels as the view's option `labels` names them; empty for a task with scores."""
    named: Mapping[str, Labels] = request.benchmark.view.options.get("labels", {})
    return named.get(column.task, ())


def client_lines(
    record: RunResult, column: Column, labels: Labels, published: Mapping[tuple[str, str, str], float]
) -> list[dict[str, JSON]]:
    """What a record's clients hold, a line for each client and label (or mean score), shares in percent.

    ReportError where the record does not say so, or holds other labels than those named.
    """
    report = record.partition
    try:
        if {label for label, _ in labels} != set(report["label_ids"] or ()):
            raise ValueError(f"labels {report['label_ids']}")
        lines = []
        for client, n_test in enumerate(record.own_examples(column.evaluation)):
            held = record.clients[client]
            common: dict[str, JSON] = {"client": str(client + 1), "train": held["train"]}
            common |= {"validation": held.get(VALIDATION, 0), "test": n_test}
            common["examples"] = sum(common[part] for part in ("train", "validation", "test"))
            for line in _values(report, client, labels):
                known = published.get((f"client{client + 1}", column.task, str(line["score"])))
                gap = None if known is None else float(printed(line["obtained"]) - printed(known))
                lines.append(common | line | {"published": known, "difference": gap})
        return lines
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ReportError(
            f"record {record.file_name}: expected a partition report with the labels "
            f"{[label for label, _ in labels]} of {column.task}, found another one ({type(error).__name__}: {error}). "
            "Move the record away to compute the cell again."
        ) from None


def _values(report: Mapping[str, JSON], client: int, labels: Labels) -> Iterator[dict[str, JSON]]:
    if report["scores"] is not None:
        low, centre, high = report["scores"][client]
        yield {"score": MEAN_SCORE, "label": "mean score", "obtained": centre, "lowest": low, "highest": high}
        return
    counts, requested = report["obtained_counts"][client], report["requested_shares"]
    for label, name in labels:
        place = report["label_ids"].index(label)
        wanted = None if requested is None else 100 * requested[client][place]
        share = 100 * counts[place] / sum(counts)
        yield {"score": f"share/label{label}", "label": name, "obtained": share, "requested": wanted}


def largest_seed_gap(records: Sequence[RunResult]) -> float:
    """Largest difference between seeds: of a client's label counts in examples, or of its mean score."""

    def numbers(record: RunResult) -> list[float]:
        report = record.partition
        rows: Iterable[Sequence[float]] = report["obtained_counts"] or [score[1:2] for score in report["scores"]]
        return [value for row in rows for value in row]

    return max(max(values) - min(values) for values in zip(*map(numbers, records), strict=True))


def label1_ranges(records: Iterable[RunResult]) -> dict[str, Range]:
    """Task -> percent of label 1 in the real data of the task's newest record, at least and at most.

    As narrow as all partitions of those data allow. Tasks with scores or generated data are left out.
    """
    newest: dict[str, str] = {}
    ranges: dict[str, Range] = {}
    for record in sorted(records, key=lambda record: record.finished, reverse=True):
        task, digest = record.cell.task, record.inputs["data"]["digest"]
        is_real = record.cell.source != "generated" and newest.setdefault(task, digest) == digest
        if is_real and 1 in (record.partition["label_ids"] or ()):
            low, high = label_range(record.partition, 1)
            known_low, known_high = ranges.get(task, (low, high))
            ranges[task] = (max(low, known_low), min(high, known_high))
    return ranges
