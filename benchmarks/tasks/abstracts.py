"""Sentences of medical abstracts by the part that they play, for FedBFPT.

PubMed 20k RCT (Dernoncourt and Lee, 2017), and NICTA-PIBOSO (Kim et al., 2011), which has the same format.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.tasks.base import Examples, Skipped, Task, TaskData
from benchmarks.tasks.generated import Recipe, classified
from benchmarks.tasks.hub import read_dataset
from benchmarks.tasks.readers import BLANKS, read_lines
from benchmarks.tasks.rows import Row, class_label, to_examples
from benchmarks.tasks.sources import Place, official
from benchmarks.tasks.words import AGREEING, BLAME, CORRECT, HEDGING, INCORRECT, NOUNS, OPPOSING, PRAISE

if TYPE_CHECKING:
    from datasets import Dataset

TEXTS, LABEL = ("text",), "label"  # of the hub's copy
RCT = ("background", "objective", "methods", "results", "conclusions")
PIBOSO = ("population", "intervention", "background", "outcome", "study design", "other")
GENERATED_EXAMPLES = (480, 120, 120)  # training, development, test
MARKERS = (BLAME, HEDGING, PRAISE, CORRECT, AGREEING, OPPOSING, INCORRECT)


def read_abstracts(file: Path) -> Iterator[Row]:
    """The sentences of a UTF-8 file: a label, a tab and a sentence a line.

    A line "###…" heads an abstract, an empty one ends it; both are passed over, and so is a byte-order mark. Labels are
    taken in lower case: copies of PubMed RCT differ in it.
    """
    for number, line, fault in read_lines(file):
        if not line.strip(BLANKS) or line.startswith("###"):
            continue
        label, *sentences = line.split("\t")
        if not fault and len(sentences) != 1:
            fault = f"expected a label, a tab and a sentence, found {1 + len(sentences)} columns"
        yield Row(number, tuple(sentences), label.lower(), fault)


def read_split(split: Dataset, place: str) -> Iterator[Row]:
    """The sentences of the hub's copy, whose labels are names, or ids of names."""
    names = getattr(split.features.get(LABEL), "names", None)
    for row in read_dataset(split, place, TEXTS, LABEL, None):
        label = names[row.label] if names and isinstance(row.label, int) and 0 <= row.label < len(names) else row.label
        yield row._replace(label=label.lower() if isinstance(label, str) else label)


def generate(task_id: str, shares: tuple[float, ...], seed: int) -> TaskData:
    """Examples of a task's schema with these shares of the labels, from a seed (>= 0)."""
    rng = np.random.default_rng([seed, *task_id.encode()])
    recipe = Recipe(shares, MARKERS[: len(shares)])
    pool, dev, test = (classified(recipe, examples, NOUNS, rng) for examples in GENERATED_EXAMPLES)
    return TaskData(pool=pool, origin=f"generated from seed {seed}", central={"validation": dev, "test": test})


def _task(
    task_id: str, labels: tuple[str, ...], shares: tuple[float, ...], name: str, folders: tuple[str, ...], **fields: str
) -> Task:
    parse = class_label({label: number for number, label in enumerate(labels)})

    def examples(rows: Iterator[Row], place: Place, skipped: list[Skipped] | None) -> Examples:
        return to_examples(rows, TEXTS, parse, *place, skipped)

    source = official(
        name,
        folders,
        read_file=lambda path, place, skipped: examples(read_abstracts(path), place, skipped),
        read_split=lambda split, place, skipped: examples(read_split(split, place.path), place, skipped),
        **fields,
    )
    return Task(
        id=task_id,
        name=name,
        family="scientific",
        labels=labels,
        metrics=("accuracy",),
        load=source.load,
        generate=partial(generate, task_id, shares),
        evaluations=("test", "validation"),
    )


TASKS = (
    _task(
        "rct20k",
        RCT,
        (0.12, 0.08, 0.33, 0.32, 0.15),
        "PubMed 20k RCT",
        ("RCT-20k", "PubMed_20k_RCT", "pubmed-rct/PubMed_20k_RCT"),
        published="github.com/Franck-Dernoncourt/pubmed-rct",
        repository="armanc/pubmed-rct20k",  # No revision is pinned: the digest of the examples says what was read.
    ),
    _task(
        "nicta-piboso",
        PIBOSO,
        (0.07, 0.04, 0.26, 0.46, 0.01, 0.16),  # of the real training set
        "NICTA-PIBOSO",
        ("nicta_piboso",),
        published="github.com/jind11/HSLN-Joint-Sentence-Classification",
    ),
)
