"""Controls for the label-prior study: three clients with equal label distributions that differ otherwise.

Either their sources differ, or a fifth of one client's labels is flipped (docs/protocol.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.corrections import PRIOR, without_training
from benchmarks.errors import UserError
from benchmarks.experiment import Column, Row, Scale
from benchmarks.fedsplitbert import paper
from benchmarks.fedsplitbert.campaign.evidence import BENCHMARK as EVIDENCE
from benchmarks.publication import deviations
from benchmarks.run_config import RunConfig
from benchmarks.tasks import DataSource, Task, TaskData, TextExamples, task

SOURCES = ("mrpc", "qqp", "qnli")  # text pairs with two labels
LIKE = "sst2"  # split and scored like SST-2 at the lite scale
PER_LABEL, GENERATED = 800, 30  # examples per label and client
FLIPPED = 0.2

Load = Callable[[str], TaskData]


def _balanced(name: str, pool: TextExamples, per_label: int, rng: np.random.Generator) -> np.ndarray:
    """Positions of random examples from the pool, equally many per label."""
    fewest = int(np.bincount(pool.labels, minlength=2).min())
    if fewest < per_label:
        raise UserError(f"{name}: expected at least {per_label} examples per label, found {fewest}; use all its files")
    each = [rng.permutation(np.flatnonzero(pool.labels == label))[:per_label] for label in (0, 1)]
    return np.sort(np.concatenate(each))


def _joined(parts: Sequence[TextExamples], data: Sequence[TaskData], note: str) -> TaskData:
    pool = TextExamples(
        tuple(texts for part in parts for texts in part.texts), np.concatenate([part.labels for part in parts])
    )
    origin = "; ".join(dict.fromkeys(each.origin for each in data))
    notes = dict.fromkeys(note for each in data for note in each.notes)
    return TaskData(pool, origin, notes=(*notes, note), files=tuple(file for each in data for file in each.files))


def _part(pool: TextExamples, chosen: np.ndarray) -> TextExamples:
    return TextExamples(tuple(pool.texts[place] for place in chosen), pool.labels[chosen])


def _mixed(load: Load, per_label: int) -> TaskData:
    """Examples of three tasks in sequence, with equal label distributions."""
    rng = np.random.default_rng([0, *b"mixed-pairs"])
    data = [load(source) for source in SOURCES]
    parts = [
        _part(each.pool, _balanced(name, each.pool, per_label, rng)) for name, each in zip(SOURCES, data, strict=True)
    ]
    return _joined(parts, data, f"{2 * per_label} random examples of each of {', '.join(SOURCES)}")


def _flipped(load: Load, per_label: int) -> TaskData:
    """SST-2's examples for three clients with equal label distributions; a fifth of the first's labels is flipped."""
    rng, data = np.random.default_rng([0, *b"flipped"]), load(LIKE)
    chosen = _balanced(LIKE, data.pool, 3 * per_label, rng)
    by_label = [rng.permutation(chosen[data.pool.labels[chosen] == label]).reshape(3, -1) for label in (0, 1)]
    parts = [_part(data.pool, np.concatenate(each)) for each in zip(*by_label, strict=True)]
    labels = parts[0].labels.copy()
    for label in (0, 1):
        places = np.flatnonzero(parts[0].labels == label)
        labels[rng.choice(places, round(FLIPPED * len(places)), replace=False)] = 1 - label
    parts[0] = replace(parts[0], labels=labels)
    return _joined(parts, [data], f"{FLIPPED:.0%} of each label of the first {2 * per_label} examples is flipped")


def _generated(name: str, seed: int) -> TaskData:
    generate = task(name).generate
    assert generate
    return generate(seed)


def _task(
    id: str, name: str, labels: tuple[str, str], sources: Sequence[str], made_of: Callable[[Load, int], TaskData]
) -> Task:
    """A task with examples of other tasks. made_of: how to load one of these, examples per label and client -> data."""

    def find(source: DataSource) -> None:
        for each in sources:
            if look := task(each).find:
                look(source)

    return Task(
        id,
        name,
        "glue",
        labels,
        ("accuracy",),
        load=lambda source: made_of(lambda each: task(each).load(source), PER_LABEL),
        find=find,
        generate=lambda seed: made_of(lambda each: _generated(each, seed), GENERATED),
    )


TASKS = (
    _task("mixed-pairs", "MRPC, QQP and QNLI, one a client", ("0", "1"), SOURCES, _mixed),
    _task("sst2-flipped", "SST-2, labels of one client flipped", ("negative", "positive"), (LIKE,), _flipped),
)


def _base(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """SST-2's base configuration, with this task's examples split in three, in the data's order."""
    like = replace(column, task=LIKE)
    run = paper.base_cell(row, like, scale, seed)
    return replace(run, task=column.task, partition={"scheme": "in-order"}, grouped=False)


_C6 = EVIDENCE.row("c6")
BENCHMARK = replace(
    EVIDENCE,
    id="fedsplitbert-controls",
    place="controls",
    title="FedAvg and personalised rows where 3 clients have equal label distributions; not in the paper",
    rows=(EVIDENCE.row("fedavg"), _C6, EVIDENCE.row("fedavg-finetuned")),
    columns=tuple(
        Column(each.id, each.name, ("test/accuracy",), "test/accuracy", scales=("demo", "lite")) for each in TASKS
    ),
    base=_base,
    without_training=tuple(each for row in (paper.FEDAVG, _C6) for each in without_training(row, PRIOR)),
    deviations=(
        *EVIDENCE.deviations,
        *deviations(f"""
- controls: Each client has {2 * PER_LABEL} examples, equally many per label. In the first column each client has
  another task's examples. In the second all are SST-2's, and {FLIPPED:.0%} of each of the first client's labels are
  flipped, for training and testing, which does not change the best predictions.
"""),
    ),
)
