"""Sentences of FedSplitBERT's text about scores, held against the printed tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise

from reports.audit.checks import label, listed, margins, show
from reports.audit.fedsplitbert.names import ACCURACY, BASELINES, LAYERS, OURS, TASKS, TASKS_10
from reports.audit.finding import Finding, Numbers

MARGINS = "Margins over the best baseline"
LAYER = "Sentences on the critical layer"
TARGETS = "Targets of Figure 6 and Table VI"
NEARLY_4 = Decimal("3.5")
# Section IV-C's two bars for a margin: in an id, in words, as printed, and the least margin that meets it.
BARS = (
    ("positive", "better than every baseline on every score", "> 0", Decimal("0.01")),
    ("one point", "by at least 1 point on every score", "≥ 1", Decimal(1)),
)
TARGET_ACCURACY = {"rte": 64, "mrpc": 84, "wnli": 47, "qnli": 90}  # caption of Figure 6; MRPC's also Table VI's
NLI = ("mnli", "qnli", "wnli", "rte")

# What stands against the baselines: name, (table, row), the baselines' table, its tasks.
CONTENDERS = (
    *((f"{name}, 3 clients", ("Table III", row), "Table III", TASKS) for row, name in OURS.items()),
    ("FedSplitBERT at c = 6 (Table IV), 3 clients", ("Table IV", "c6"), "Table III", TASKS),
    *((f"{name}, 10 clients", ("Table V", row), "Table V", TASKS_10) for row, name in OURS.items()),
)


def _signed(points: dict[str, Decimal]) -> list[str]:
    return [f"{name} {show(value, sign='+')}" for name, value in points.items()]


def dataset_margins(numbers: Numbers) -> Iterator[Finding]:
    """Section IV-C: better than all baselines "on all datasets", by "at least 1% on single task"."""
    for name, row, table, tasks in CONTENDERS:
        points = margins(numbers, row, [(table, rival) for rival in BASELINES], tasks)
        least = show(min(points.values()), sign="+")
        for bar, words, text, wanted in BARS:
            low = {place: value for place, value in points.items() if value < wanted}
            yield Finding(
                f"margin, {', '.join(row)}, {bar}",
                MARGINS,
                f"{name}: {words}",
                text,
                f"{len(points) - len(low)} of {len(points)}, least {least}",
                not low,
                f"not on: {listed(_signed(low))}",
            )


def average_margins(numbers: Numbers) -> Iterator[Finding]:
    """Section IV-C: "an average score improvement of nearly 4%", with and without quantisation."""
    found: dict[str, list[Decimal]] = {}
    for table in ("Table III", "Table V"):
        best = max(numbers.at(table, row, "average") for row in BASELINES)
        found[table] = [numbers.at(table, row, "average") - best for row in OURS]
    parts = {**found, "Tables III and V together": [value for values in found.values() for value in values]}
    for place, values in parts.items():
        mean = sum(values, Decimal(0)) / len(values)
        yield Finding(
            f"average margin, {place}",
            MARGINS,
            f"{place}: the average improves by nearly 4 points",
            "nearly 4",
            show(mean),
            mean >= NEARLY_4,
            f"mean of {', '.join(show(value, sign='+') for value in values)} (without, with qat); 3.5 or more counts",
        )


def _by_score(numbers: Numbers, task: str) -> dict[str, dict[int, Decimal]]:
    """Name of column and score -> critical layer -> Table IV's number."""
    cells = {layer: numbers.scores("Table IV", row, task) for row, layer in LAYERS.items()}
    scores = list(cells[6])
    return {
        label(TASKS[task], score, scores): {layer: cells[layer][score] for layer in sorted(cells)} for score in scores
    }


def _at(layer: int, value: Decimal) -> str:
    return f"c = {layer} {show(value)}"


def middle_layers(numbers: Numbers) -> Iterator[Finding]:
    """Section IV-C: c from 6 to 8 is better than c < 6 and c = 12 on CoLA, MRPC, STS-B and QQP."""
    for task in ("cola", "mrpc", "stsb", "qqp"):
        against = []
        for name, values in _by_score(numbers, task).items():
            against += [
                f"{name}: {_at(other, values[other])} ≥ {_at(middle, values[middle])}"
                for middle in (6, 8)
                for other in (0, 4, 12)
                if values[other] >= values[middle]
            ]
        yield _sentence(f"middle layers, {task}", f"{TASKS[task]}: c = 6 and 8 beat c = 0, 4 and 12", against)


def higher_layers(numbers: Numbers) -> Iterator[Finding]:
    """Section IV-C: for language inference a higher c does better; c = 12 is FedAvg and is left out."""
    for task in NLI:
        against = []
        for name, values in _by_score(numbers, task).items():
            steps = [layer for layer in values if layer != 12]
            against += [
                f"{name}: {_at(low, values[low])} ≥ {_at(high, values[high])}"
                for low, high in pairwise(steps)
                if values[low] >= values[high]
            ]
        yield _sentence(f"higher layers, {task}", f"{TASKS[task]}: the score rises with c from 0 to 10", against)


def no_layer(numbers: Numbers) -> Iterator[Finding]:
    """Section IV-C: c = 0 is the worst of the FedSplitBERT settings, and sometimes worse than FedAvg."""
    against, worse = [], []
    for task in TASKS:
        for name, values in _by_score(numbers, task).items():
            lower = [layer for layer in (4, 6, 8, 10) if values[layer] <= values[0]]
            against += [f"{name}: {_at(layer, values[layer])} ≤ {_at(0, values[0])}" for layer in lower]
            worse += [name] if values[0] < values[12] else []
    yield _sentence("worst layer", "c = 0 is the worst of c = 0, 4, 6, 8, 10 on every score", against)
    yield Finding(
        "c = 0 below FedAvg",
        LAYER,
        "Section IV-C: c = 0 is sometimes worse than FedAvg",
        "sometimes",
        f"on {len(worse)} scores",
        bool(worse),
        listed(worse),
    )


def _sentence(key: str, statement: str, against: Sequence[str]) -> Finding:
    """A sentence about every pair of settings, with the pairs of numbers that contradict it."""
    return Finding(
        key,
        LAYER,
        f"Section IV-C: {statement}",
        "always",
        "always" if not against else "but once" if len(against) == 1 else f"but {len(against)} times",
        not against,
        f"except: {listed(against)}",
    )


def quantised_best(numbers: Numbers) -> Iterator[Finding]:
    """Section IV-C: with quantisation the best on MRPC and QNLI with 10 clients and on STS-B with 3."""
    places = (("Table V", "mrpc", ACCURACY), ("Table V", "qnli", ACCURACY), ("Table III", "stsb", "test/pearson"))
    for table, task, score in places:
        own, other = (numbers.at(table, row, task, score) for row in ("fedsplitbert-qat", "fedsplitbert"))
        best = max(other, *(numbers.at(table, row, task, score) for row in BASELINES))
        yield Finding(
            f"qat best, {table}, {task}",
            MARGINS,
            f"Section IV-C: with qat the best on {TASKS[task]} in {table}",
            show(own),
            show(best),
            own > best,
            "recomputed: the best of the other methods",
        )


def targets(numbers: Numbers) -> Iterator[Finding]:
    """Figure 6 and Table VI give every method a cost to a target accuracy, so each must have reached it."""
    methods = {**BASELINES, "fedsplitbert": OURS["fedsplitbert"]}
    for task, target in TARGET_ACCURACY.items():
        scores = {name: numbers.at("Table III", row, task, ACCURACY) for row, name in methods.items()}
        below = [f"{name} {show(value)}" for name, value in scores.items() if value < target]
        table = " Table VI counts FedAvg's and FedProx's cost to this target." if task == "mrpc" else ""
        yield Finding(
            f"target, {task}",
            TARGETS,
            f"{TASKS[task]}: every method's accuracy in Table III is at the target or above",
            f"{target} %",
            f"{len(scores) - len(below)} of {len(scores)} methods",
            not below,
            f"below: {listed(below)}.{table} An earlier round may have scored higher than the printed one.",
        )
