"""The audit of FedSplitBERT: what its Tables I to VI imply, against what they and the text say.

Table VI counts one direction, summed over its three clients, in GB of 10^9 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import chain

from benchmarks.spec import Column
from reports import ReportError
from reports.audit.checks import (
    Finding,
    Material,
    against_exact,
    average_finding,
    differing,
    digits,
    listed,
    sentences,
    show,
    uneven_sums,
)
from reports.evidence.labels import label1_ranges
from reports.evidence.published import Numbers, PrintedCost, as_decimal
from reports.evidence.scores import score_label
from reports.evidence.traffic import Sent, derived_cost, gain_over

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
MAJORITY = "Majority-class baseline"
TABLES = {"Table I": 3, "Table II": 10}  # table -> clients
LABEL_1, LABEL_0 = "share/label1", "share/label0"
# Section IV-A: the scores of STS-B's three clients lie in these ranges.
STSB_RANGES = ((Decimal("0.0"), Decimal("2.0")), (Decimal("2.0"), Decimal("3.6")), (Decimal("3.6"), Decimal("5.0")))
PRINTED = "Table VI by its own numbers"
EXACT = "Table VI by exact bytes"
ROWS = {row: name for row, name in METHODS.items() if row != "fedprox"} | {"fedavg": "FedAvg/FedProx"}
DERIVABLE = ("fedavg", "fedsplitbert", "fedsplitbert-qat")  # the rows whose bytes follow from the model
GIGABYTE = Decimal(10**9)
_UNKNOWN = "FedAdam's size is not derivable: it sends the tensors that FedAvg sends"


def findings(material: Material) -> tuple[Finding, ...]:
    """Hold the paper's printed values (Tables I to VI, what is stated of Figure 6) against each other and its text.

    Asks for the records' labels on MRPC, CoLA and QQP (a task without them is not judged), and for the bytes of a
    round of Table VI's rows (without them the findings by exact bytes are left out). ReportError where a printed value
    is missing.
    """
    columns = {column.task: column for column in material.benchmarks["fedsplitbert-table3"].columns}
    numbers = material.numbers
    found = [
        *(averages(numbers), chosen_layers(numbers, columns), text_layer(numbers), sums(numbers), stsb_means(numbers)),
        *(label_order(numbers, label1_ranges(material.records)), local_majority(numbers), rounds(numbers)),
        *(gains(numbers), fedadam_size(numbers), megabits(numbers), sentences(material)),
    ]
    table6 = material.request("fedsplitbert-table6", DERIVABLE)
    costs = {row.id: derived_cost(table6, row) for row in table6.rows}
    if sizes := {row: int(cost.round_bytes) for row, cost in costs.items() if cost is not None}:
        found.append(exact_bytes(numbers, sizes))
    return tuple(chain.from_iterable(found))


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
        stated = f"mean {show(first)} / {show(second)}"
        how = "label 1 if its mean over the clients and its share of the data lie on one side of one half"
        yield Finding(f"label order, {task}", LABELS, statement, stated, data, agrees, how)


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
            clients, own = f"{TASKS[task]}, {TABLES[labels]} clients", accuracy["FedSplitBERT"]
            statement = f"{clients}: FedSplitBERT beats the most frequent label of each client"
            how = f"accuracy by {labels} alone; not above it: {listed(below)}"
            key = f"majority, {scores}, {task}"
            headline = (scores, task) == ("Table III", "mnli")
            yield Finding(key, MAJORITY, statement, show(own), show(majority), own > majority, how, headline)


def _row(numbers: Numbers, row: str) -> PrintedCost:
    return numbers.cost("Table VI", row)


def rounds(numbers: Numbers) -> Iterator[Finding]:
    """A cost is a size times a whole number of rounds, which the paper does not print."""
    for row, name in ROWS.items():
        implied = _row(numbers, row).rounds
        statement = f"{name}: the cost is a whole number of rounds"
        stated = f"{digits(_row(numbers, row).cost_gb)} GB"
        given = f"{digits(as_decimal(implied))} × {digits(_row(numbers, row).size_gb)} GB"
        how = "size as printed, so the cost carries its rounding"
        yield Finding(f"rounds, {row}", PRINTED, statement, stated, given, implied.denominator == 1, how)


def gains(numbers: Numbers) -> Iterator[Finding]:
    """A gain is FedAvg's cost over the row's, both as printed; FedAdam's rests on a size that cannot be derived."""
    for row, name in ROWS.items():
        exact = _row(numbers, "fedavg").cost_gb / _row(numbers, row).cost_gb
        gain = _row(numbers, row).gain
        statement = f"{name}: the gain is the ratio of the printed costs"
        found = against_exact(f"gain, {row}", PRINTED, statement, gain, exact, 1, ("round",))
        if row == "fedadam" and found.agrees:
            found = replace(found, agrees=None, explanation=f"{found.explanation}; {_UNKNOWN}")
        yield found


def fedadam_size(numbers: Numbers) -> Iterator[Finding]:
    """FedAdam's 1.7 GB a round."""
    size, fedavg = _row(numbers, "fedadam").size_gb, _row(numbers, "fedavg").size_gb
    statement = "FedAdam: the size of a round is FedAvg's"
    agrees = True if size == fedavg else None
    how = f"{show(size / fedavg)} times FedAvg's; {_UNKNOWN}"
    yield Finding("size, fedadam", PRINTED, statement, f"{digits(size)} GB", f"{digits(fedavg)} GB", agrees, how)


def megabits(numbers: Numbers) -> Iterator[Finding]:
    """Section IV-C on RTE: "3 communication rounds which costs nearly 1000 MBits", baselines "at least 5000 MBits"."""
    nearly = numbers.at("Figure 6", "fedsplitbert", "rte", "stated/megabytes_nearly")
    at_least = numbers.at("Figure 6", "fedavg", "rte", "stated/megabytes_at_least")
    size, fedavg = (1000 * _row(numbers, row).size_gb for row in ("fedsplitbert", "fedavg"))  # MB
    three = 3 * size
    statement = f"Section IV-C: three rounds of FedSplitBERT on RTE cost nearly {digits(nearly)} (read as MB)"
    agrees = abs(three - nearly) <= nearly / 10
    how = f"within 10 %; at c = 4, two thirds of the layers, {digits(three * 4 / 6)}"
    yield Finding("rte three rounds", PRINTED, statement, digits(nearly), f"{digits(three)} at c = 6", agrees, how)
    statement = f"Section IV-C and Figures 5, 6: {digits(at_least)} MBits hold at least one round of FedAvg"
    stated, given = f"{digits(at_least)} Mbit", f"{digits(8 * fedavg)} Mbit a round"
    how = f"read as megabytes, five rounds are {digits(5 * fedavg)} MB"
    yield Finding("megabits", PRINTED, statement, stated, given, 8 * fedavg <= at_least, how)


def exact_bytes(numbers: Numbers, round_bytes: Mapping[str, int]) -> Iterator[Finding]:
    """Table VI from the bytes that one round sends in one direction, all three clients together.

    round_bytes: row id -> bytes, for "fedavg", "fedsplitbert" (c = 6) and "fedsplitbert-qat"; ReportError without one.
    """
    missing = [row for row in DERIVABLE if not round_bytes.get(row)]
    if missing:
        raise ReportError(f"audit: expected bytes of a round for {', '.join(DERIVABLE)}, found none for {missing[0]}.")
    exact = {row: round_bytes[row] / GIGABYTE for row in DERIVABLE}
    for row in DERIVABLE:
        statement = f"{ROWS[row]}: size of a round in GB, one direction"
        size = _row(numbers, row).size_gb
        yield against_exact(f"exact size, {row}", EXACT, statement, size, exact[row], 2, ("round",))
    both = 2 * exact["fedavg"]
    caption = "Caption: the size covers uplink and downlink (FedAvg)"
    found = against_exact("both directions", EXACT, caption, _row(numbers, "fedavg").size_gb, both, 2, ("round",))
    yield replace(found, explanation=f"{found.explanation}; the printed size is one direction")
    for row in DERIVABLE:
        cost = as_decimal(_row(numbers, row).rounds) * exact[row]
        statement = f"{ROWS[row]}: cost in GB, exact size × rounds"
        yield against_exact(f"exact cost, {row}", EXACT, statement, _row(numbers, row).cost_gb, cost, 2, ("round",))
    for row in DERIVABLE[1:]:
        yield _exact_gain(numbers, row, round_bytes)


def _exact_gain(numbers: Numbers, row: str, round_bytes: Mapping[str, int]) -> Finding:
    baseline, method = (_sent(numbers, name, round_bytes) for name in ("fedavg", row))
    exact = gain_over(baseline, method)
    assert exact is not None, "both send something"
    gain = _row(numbers, row).gain
    statement = f"{ROWS[row]}: the gain by exact sizes"
    found = against_exact(f"exact gain, {row}", EXACT, statement, gain, as_decimal(exact.total), 1, ("round",))
    layers, fewer_rounds, precision = map(as_decimal, (exact.layers, exact.rounds, exact.precision))
    product = f"{show(layers)} (layers) × {digits(fewer_rounds)} (rounds) × {digits(precision)} (precision)"
    return replace(found, printed=digits(gain), recomputed=show(as_decimal(exact.total)), explanation=product)


def _sent(numbers: Numbers, row: str, round_bytes: Mapping[str, int]) -> Sent:
    """What a row sends until the target; its numbers as bytes in fp32, which quantised FedSplitBERT shares."""
    needed = _row(numbers, row).rounds
    in_fp32 = round_bytes["fedsplitbert" if row == "fedsplitbert-qat" else row]
    return Sent(needed, needed * in_fp32, needed * round_bytes[row])
