"""FedSplitBERT's label tables, and the score that they alone give to each client's most frequent label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from reports.audit.checks import listed, show, uneven_sums
from reports.audit.fedsplitbert.names import ACCURACY, METHODS, TASKS, TASKS_10
from reports.audit.finding import Finding, Numbers

LABELS = "Label tables"
MAJORITY = "Local majority"
TABLES = {"Table I": 3, "Table II": 10}  # table -> clients
LABEL_1, LABEL_0 = "share/label1", "share/label0"
# Section IV-A: the scores of STS-B's three clients lie in these ranges.
STSB_RANGES = ((Decimal("0.0"), Decimal("2.0")), (Decimal("2.0"), Decimal("3.6")), (Decimal("3.6"), Decimal("5.0")))


def _clients(table: str) -> list[str]:
    return [f"client{number}" for number in range(1, TABLES[table] + 1)]


def sums(numbers: Numbers) -> Iterator[Finding]:
    """The shares of a client's labels sum to 100 percent."""
    for table in TABLES:
        rows, uneven = uneven_sums(numbers, table, "share/", 100, TASKS)
        yield Finding(
            f"label sums, {table}",
            LABELS,
            f"{table}: the labels of each client and task sum to 100 %",
            f"{rows} distributions",
            f"{rows - len(uneven)} sum to 100",
            not uneven,
            f"others: {listed(uneven)}",
        )


def stsb_means(numbers: Numbers) -> Iterator[Finding]:
    """Table I's mean scores lie in the ranges of the text."""
    means = [numbers.at("Table I", client, "stsb", "mean_score") for client in _clients("Table I")]
    inside = [low <= mean <= high for mean, (low, high) in zip(means, STSB_RANGES, strict=True)]
    yield Finding(
        "stsb means",
        LABELS,
        "Section IV-A: STS-B's clients hold the scores 0–2.0, 2.0–3.6, 3.6–5.0",
        ", ".join(show(mean) for mean in means),
        f"{sum(inside)} of {len(inside)} means inside",
        all(inside),
    )


def label_order(numbers: Numbers, label1_percent: Mapping[str, tuple[float, float]]) -> Iterator[Finding]:
    """Which label Table I's first number is, by the means over its (equally large) clients.

    label1_percent: task -> bounds of the percent of label 1 in the data, where they are at hand.
    """
    for task in ("mrpc", "cola", "qqp"):  # elsewhere both labels have the same mean, or there are three
        first, second = (
            sum((numbers.at("Table I", client, task, score) for client in _clients("Table I")), Decimal(0)) / 3
            for score in (LABEL_1, LABEL_0)
        )
        agrees, data = None, "data not at hand"
        if task in label1_percent:
            low, high = (Decimal(str(bound)) for bound in label1_percent[task])
            data = f"data {show(low)} to {show(high)} / {show(100 - high)} to {show(100 - low)}"
            if high < 50 or low > 50:
                agrees = (first > 50) == (low > 50)
        yield Finding(
            f"label order, {task}",
            LABELS,
            f"{TASKS[task]}: Table I's first number is label 1",
            f"mean {show(first)} / {show(second)}",
            data,
            agrees,
            "label 1 if its mean over the clients and its share of the data lie on one side of one half",
        )


def _majority(numbers: Numbers, table: str, task: str) -> Decimal:
    """Mean over clients of the most frequent label's percentage; a client's shares are scaled to sum to 100."""
    shares = [list(numbers.scores(table, client, task).values()) for client in _clients(table)]
    return sum((100 * max(client) / sum(client) for client in shares), Decimal(0)) / len(shares)


def local_majority(numbers: Numbers) -> Iterator[Finding]:
    """Answering each client's most frequent label: the accuracy that a personalised method has to beat."""
    tasks_3 = [task for task in TASKS if task not in ("cola", "stsb")]  # those scored by accuracy
    for scores, labels, tasks in (("Table III", "Table I", tasks_3), ("Table V", "Table II", list(TASKS_10))):
        for task in tasks:
            majority = _majority(numbers, labels, task)
            accuracy = {name: numbers.at(scores, row, task, ACCURACY) for row, name in METHODS.items()}
            below = [f"{name} {show(value)}" for name, value in accuracy.items() if value <= majority]
            yield Finding(
                f"local majority, {scores}, {task}",
                MAJORITY,
                f"{TASKS[task]}, {TABLES[labels]} clients: FedSplitBERT beats the most frequent label of each client",
                show(accuracy["FedSplitBERT"]),
                show(majority),
                accuracy["FedSplitBERT"] > majority,
                f"accuracy by {labels} alone; not above it: {listed(below)}",
            )
