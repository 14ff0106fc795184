"""Labels: what each client holds of a task, out of one record, beside what was requested and what is printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.experiment import Column
from benchmarks.results import RunResult
from benchmarks.run_config import JSON, VALIDATION
from reports import ReportError
from reports.evidence.published import published_for
from reports.evidence.records import Request
from reports.evidence.statistics import mean, printed

Range = tuple[float, float]
Labels = Sequence[tuple[int, str]]  # (id, name), in the order of print
_Printed = Mapping[tuple[str, str, str], float]
MEAN_SCORE = "mean_score"
SORTED = "sorted-by-score"


@dataclass(frozen=True)
class Value:
    """One number of a client: a label's share in percent, or the mean score in the data's own unit."""

    score: str  # as the published values name it: "share/label1", "mean_score"
    name: str
    obtained: float
    requested: float | None = None
    published: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours - published, of the two as printed to two decimals."""
        return None if self.published is None else float(printed(self.obtained) - printed(self.published))


@dataclass(frozen=True)
class Part:
    """One client's examples of a task. score_range: lowest and highest score, where the task has scores."""

    number: int  # from 1, as in print
    values: tuple[Value, ...]
    train: int
    validation: int
    test: int
    score_range: Range | None = None
    test_gap: float | None = None  # see `_test_gap`

    @property
    def size(self) -> int:
        return self.train + self.validation + self.test


@dataclass(frozen=True)
class Distribution:
    """A task shared out. data_ranges: each label's percentage in the whole data, at least and at most."""

    column: Column
    scheme: str
    parts: tuple[Part, ...]
    available: int
    data_ranges: tuple[Range, ...]  # in the order of the values; empty where the task has scores

    @property
    def used(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def unused(self) -> int:
        return self.available - self.used

    @property
    def means(self) -> tuple[float, ...]:
        by_value = zip(*(part.values for part in self.parts), strict=True)
        return tuple(mean([value.obtained for value in values]) for values in by_value)


def label_range(report: Mapping[str, JSON], label: int) -> Range:
    """Percent of the data that have a label, at least and at most: none or all of the unused examples have it."""
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


@dataclass(frozen=True)
class Shared:
    """Task -> what its clients hold, by the record of the lowest seed; a task without a record is left out."""

    request: Request
    by_task: Mapping[str, Distribution]

    @property
    def columns_shown(self) -> tuple[Column, ...]:
        return tuple(column for column in self.request.columns if column.task in self.by_task) or self.request.columns

    @property
    def clients(self) -> int:
        benchmark, scale = self.request.benchmark, self.request.scale
        pairs = ((row, column) for row in self.request.rows for column in self.request.columns)
        return max(benchmark.cell(row, column, scale, 0).clients for row, column in pairs)


def shared(request: Request) -> Shared:
    """What every client holds of each task, beside what was requested and printed."""
    published = {place: entry.value for place, entry in published_for(request).items()}
    by_task = {
        column.task: distribution(records[0], column, labels_of(request, column), published)
        for column in request.columns
        if (records := records_of(request, column))
    }
    return Shared(request, by_task)


def distribution(record: RunResult, column: Column, labels: Labels, published: _Printed) -> Distribution:
    """What a record's clients hold; ReportError where it does not say so, or holds other labels than those named."""
    report = record.partition
    try:
        if {label for label, _ in labels} != set(report["label_ids"] or ()):
            raise ValueError(f"labels {report['label_ids']}")
        parts = []
        for client, n_test in enumerate(record.own_examples(column.evaluation)):
            values = _values(report, client, column, labels, published)
            scores = None if report["scores"] is None else report["scores"][client]
            score_range = None if scores is None else (scores[0], scores[2])
            gap = _test_gap(record, client, column.evaluation, n_test)
            held = record.clients[client]
            sizes = held["train"], held.get(VALIDATION, 0), n_test
            parts.append(Part(client + 1, values, *sizes, score_range, gap))
        ranges = () if report["scores"] is not None else tuple(label_range(report, label) for label, _ in labels)
        return Distribution(column, report["scheme"], tuple(parts), report["n_examples"], ranges)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ReportError(
            f"record {record.file_name}: expected a partition report with the labels "
            f"{[label for label, _ in labels]} of {column.task}, found another one ({type(error).__name__}: {error}). "
            "Move the record away to compute the cell again."
        ) from None


def _values(
    report: Mapping[str, JSON], client: int, column: Column, labels: Labels, published: _Printed
) -> tuple[Value, ...]:
    row = f"client{client + 1}"
    if report["scores"] is not None:
        printed_mean = published.get((row, column.task, MEAN_SCORE))
        return (Value(MEAN_SCORE, "mean score", report["scores"][client][1], None, printed_mean),)
    counts, requested = report["obtained_counts"][client], report["requested_shares"]
    values = []
    for label, name in labels:
        place, score = report["label_ids"].index(label), f"share/label{label}"
        wanted = None if requested is None else 100 * requested[client][place]
        share, known = 100 * counts[place] / sum(counts), published.get((row, column.task, score))
        values.append(Value(score, name, share, wanted, known))
    return tuple(values)


def _test_gap(record: RunResult, client: int, evaluation: str, n_test: int) -> float | None:
    """Examples by which a client's test part misses the client's own share of its most frequent label.

    No record counts labels part by part. But the local majority answers one label, so its accuracy is that label's
    share of the test part. None for other methods, without a test part, and for tasks without accuracy.
    """
    if record.cell.algorithm != "local_majority":
        return None
    accuracy = record.rounds[-1].client_scores[client][evaluation].get("accuracy")
    if accuracy is None or not n_test:
        return None
    counts = record.partition["obtained_counts"][client]
    # Where two labels are as frequent, either may be the training part's most frequent one.
    frequent = [count for count in counts if count >= max(counts) - 2]
    return min(abs(n_test * (float(accuracy) - count / sum(counts))) for count in frequent)


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
