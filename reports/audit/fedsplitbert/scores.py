"""FedSplitBERT's tables of scores: their averages, and the rows that Tables III and IV share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports.audit.checks import average_finding, differing, listed, show
from reports.audit.fedsplitbert.names import ACCURACY, HEADLINE, LAYERS, METHODS, TASKS, TASKS_10
from reports.audit.finding import Finding, Numbers
from reports.layout import score_label

SHARED = "Rows that Tables III and IV share"
TEXT_LAYER = 6  # section IV-C: "FedSplitBERT and FedSplitBERT+qat (c = 6)"


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
    """Score -> the critical layers at which Table IV prints its highest value."""
    scores = {layer: numbers.scores("Table IV", row, task) for row, layer in LAYERS.items()}
    best = {}
    for score in numbers.scores("Table IV", "c6", task):
        top = max(values[score] for values in scores.values())
        best[score] = [layer for layer, values in scores.items() if values[score] == top]
    return best


def _layers(layers: Sequence[int]) -> str:
    return f"c = {' and '.join(map(str, layers))}" if layers else "no c"


def chosen_layers(numbers: Numbers) -> Iterator[Finding]:
    """Cell by cell, the c of Table IV that Table III's FedSplitBERT row took, and whether it is the best one."""
    for task, name in TASKS.items():
        layers, best = printed_layers(numbers, task), _best_layers(numbers, task)
        own = numbers.scores("Table III", "fedsplitbert", task)
        tops = [f"best by {score_label(score)}: {_layers(top)}" for score, top in best.items()]
        yield Finding(
            f"chosen layer, {task}",
            SHARED,
            f"{name}: Table III's FedSplitBERT is the best c of Table IV",
            "/".join(map(show, own.values())),
            _layers(layers),
            len(layers) == 1 and layers[0] in best[HEADLINE[task]],
            listed(tops),
        )


def text_layer(numbers: Numbers) -> Iterator[Finding]:
    """Section IV-C names c = 6 for the row."""
    chosen = [printed_layers(numbers, task) for task in TASKS]
    row = show(numbers.at("Table III", "fedsplitbert", "average"))
    text = show(numbers.at("Table IV", f"c{TEXT_LAYER}", "average"))
    yield Finding(
        "layer in the text",
        SHARED,
        "Section IV-C: Table III's FedSplitBERT has c = 6",
        f"c = {TEXT_LAYER}",
        ", ".join("/".join(map(str, layers)) or "none" for layers in chosen),
        all(layers == (TEXT_LAYER,) for layers in chosen),
        f"c task by task in the table's order; Table IV's average at c = 6 is {text}, the row's {row}",
    )
