"""FedSplitBERT's tables of labels and scores: sums, averages, shared rows, and what the most frequent label scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from benchmarks.spec import Column
from reports.audit.checks import Finding, average_finding, differing, listed, show, uneven_sums
from reports.evidence.published import Numbers
from reports.evidence.scores import score_label

_NAMES = ("MRPC", "CoLA", "SST-2", "QQP", "MNLI", "RTE", "QNLI", "WNLI", "STS-B")
TASKS = {name.replace("-", "").lower(): name for name in _NAMES}
TASKS_10 = {task: TASKS[task] for task in ("mrpc", "sst2", "qqp", "qnli")}  # Table V: 10 clients
METHODS = {"fedavg": "FedAvg", "fedprox": "FedProx", "fedadam": "FedAdam", "fedsplitbert": "FedSplitBERT"}
METHODS["fedsplitbert-qat"] = "FedSplitBERT + qat"
LAYERS = {f"c{layer}": layer for layer in (12, 10, 8, 6, 4, 0)}  # Table IV: row id -> critical layer
ACCURACY = "test/accuracy"
# Tables III and IV: the score of each task that enters the average.
HEADLINE = dict.fromkeys(TASKS, ACCURACY)
HEADLINE |= {"mrpc": "test/f1", "cola": "test/matthews_correlation", "stsb": "test/pearson"}
SHARED = "Rows that Tables III and IV share"
TEXT_LAYER = 6  # section IV-C: "FedSplitBERT and FedSplitBERT+qat (c = 6)"
LABELS = "Label tables"
MAJORITY = "Local majority"
TABLES = {"Table I": 3, "Table II": 10}  # table -> clients
LABEL_1, LABEL_0 = "share/label1", "share/label0"
# Section IV-A: the scores of STS-B's three clients lie in these ranges.
STSB_RANGES = ((Decimal("0.0"), Decimal("2.0")), (Decimal("2.0"), Decimal("3.6")), (Decimal("3.6"), Decimal("5.0")))


def averages(numbers: Numbers) -> Iterator[Finding]:
    """Every average: one number a task; truncated in Tables III and IV, either way in Table V."""
    layers = {row: f"c = {layer}" for row, layer in LAYERS.items()}
    for table, rows in (("Table III", METHODS), ("Table IV", layers)):
        for row in rows.items():
            yield average_finding(numbers, table, row, tuple(HEADLINE.items()), ("truncate",))
    for row in METHODS.items():
        yield average_finding(numbers, "Table V", row, [(task, ACCURACY) for task in TASKS_10], ("round", "truncate"))


def printed_layers(numbers: Numbers, task: str) -> tuple[int, ...]:
    """The critical layers of Table IV whose numbers are those of Table III's FedSplitBERT on a task."""
    rows = {task: TASKS[task]}
    own = ("Table III", "fedsplitbert")
    return tuple(layer for row, layer in LAYERS.items() if not differing(numbers, own, ("Table IV", row), rows)[1])


def _best_layers(numbers: Numbers, task: str) -> dict[str, list[int]]:
    scores = {layer: numbers.scores("Table IV", row, task) for row, layer in LAYERS.items()}
    best = {}
    for score in numbers.scores("Table IV", "c6", task):
        top = max(values[score] for values in scores.values())
        best[score] = [layer for layer, values in scores.items() if values[score] == top]
    return best


def _layers(layers: Sequence[int]) -> str:
    return f"c = {' and '.join(map(str, layers))}" if layers else "no c"


def chosen_layers(numbers: Numbers, columns: Mapping[str, Column]) -> Iterator[Finding]:
    """Cell by cell, the c of Table IV that Table III's FedSplitBERT row took, and whether it is the best one.

    columns: task -> Table III's column, which names its scores.
    """
    for task, name in TASKS.items():
        layers, best = printed_layers(numbers, task), _best_layers(numbers, task)
        own = numbers.scores("Table III", "fedsplitbert", task)
        tops = [f"best by {score_label(columns[task], score)}: {_layers(top)}" for score, top in best.items()]
        statement = f"{name}: Table III's FedSplitBERT is the best c of Table IV"
        stated = "/".join(map(show, own.values()))
        agrees = len(layers) == 1 and layers[0] in best[HEADLINE[task]]
        yield Finding(f"chosen layer, {task}", SHARED, statement, stated, _layers(layers), agrees, listed(tops))


def text_layer(numbers: Numbers) -> Iterator[Finding]:
    """Section IV-C names c = 6 for the row."""
    chosen = [printed_layers(numbers, task) for task in TASKS]
    row = show(numbers.at("Table III", "fedsplitbert", "average"))
    text = show(numbers.at("Table IV", f"c{TEXT_LAYER}", "average"))
    statement = "Section IV-C: Table III's FedSplitBERT has c = 6"
    given = ", ".join("/".join(map(str, layers)) or "none" for layers in chosen)
    agrees = all(layers == (TEXT_LAYER,) for layers in chosen)
    how = f"c task by task in the table's order; Table IV's average at c = 6 is {text}, the row's {row}"
    yield Finding("layer in the text", SHARED, statement, f"c = {TEXT_LAYER}", given, agrees, how)


def _clients(table: str) -> list[str]:
    return [f"client{number}" for number in range(1, TABLES[table] + 1)]


def sums(numbers: Numbers) -> Iterator[Finding]:
    """The shares of a client's labels sum to 100 percent."""
    for table in TABLES:
        rows, uneven = uneven_sums(numbers, table, "share/", 100, TASKS)
        statement = f"{table}: the labels of each client and task sum to 100 %"
        given = f"{rows - len(uneven)} sum to 100"
        how = f"others: {listed(uneven)}"
        yield Finding(f"label sums, {table}", LABELS, statement, f"{rows} distributions", given, not uneven, how)


def stsb_means(numbers: Numbers) -> Iterator[Finding]:
    """Table I's mean scores lie in the ranges of the text."""
    means = [numbers.at("Table I", client, "stsb", "mean_score") for client in _clients("Table I")]
    inside = [low <= mean <= high for mean, (low, high) in zip(means, STSB_RANGES, strict=True)]
    statement = "Section IV-A: STS-B's clients hold the scores 0–2.0, 2.0–3.6, 3.6–5.0"
    given = f"{sum(inside)} of {len(inside)} means inside"
    yield Finding("stsb means", LABELS, statement, ", ".join(show(mean) for mean in means), given, all(inside))


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
        statement = f"{TASKS[task]}: Table I's first number is label 1"
        how = "label 1 if its mean over the clients and its share of the data lie on one side of one half"
        yield Finding(
            f"label order, {task}", LABELS, statement, f"mean {show(first)} / {show(second)}", data, agrees, how
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
