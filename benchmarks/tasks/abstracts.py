"""Sentences of medical abstracts by their rhetorical role, for FedBFPT.

PubMed 20k RCT (Dernoncourt and Lee, 2017), and NICTA-PIBOSO (Kim et al., 2011), which has the same format.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.tasks.base import Task
from benchmarks.tasks.generated import Recipe, classified, generated_data
from benchmarks.tasks.rows import BLANKS, Row, class_label, read_lines, read_split, to_examples
from benchmarks.tasks.sources import OFFICIAL, Files
from benchmarks.tasks.words import AGREEING, BLAME, CORRECT, HEDGING, INCORRECT, NOUNS, OPPOSING, PRAISE

if TYPE_CHECKING:
    from datasets import Dataset

GENERATED_EXAMPLES = {"pool": 480, "validation": 120, "test": 120}
MARKERS = (BLAME, HEDGING, PRAISE, CORRECT, AGREEING, OPPOSING, INCORRECT)


def read_abstracts(file: Path) -> Iterator[Row]:
    """The sentences of a UTF-8 file: a label, a tab and a sentence a line.

    A line "###…" opens an abstract, an empty one closes it; both are ignored. Labels are returned in lower case, because
    copies of PubMed RCT differ in it.
    """
    for number, line, fault in read_lines(file):
        if not line.strip(BLANKS) or line.startswith("###"):
            continue
        label, *sentences = line.split("\t")
        if not fault and len(sentences) != 1:
            fault = f"expected a label, a tab and a sentence, found {1 + len(sentences)} columns"
        yield Row(number, tuple(sentences), label.lower(), fault)


def _read_split(split: Dataset, place: str) -> Iterator[Row]:
    for row in read_split(split, place, ("text",), "label"):
        yield row._replace(label=row.label.lower() if isinstance(row.label, str) else row.label)


def _task(
    task_id: str, shares: dict[str, float], name: str, folders: tuple[str, ...], page: str, hub: str = ""
) -> Task:
    """A task. shares: label -> its share of the generated examples; folders, page: where its files lie, and whence."""
    labels = tuple(shares)
    recipe = Recipe(tuple(shares.values()), MARKERS[: len(labels)])
    files = Files(
        name,
        OFFICIAL,
        layouts=tuple(f"{folder}/{{file}}" for folder in folders),
        wanted=f"the files of {page}, {folders[0]} with train.txt, dev.txt and test.txt",
        read_file=read_abstracts,
        read_split=_read_split,
        examples=partial(to_examples, columns=("text",), parse_label=class_label(labels)),
        repository=hub,
    )
    return Task(
        id=task_id,
        name=name,
        family="scientific",
        labels=labels,
        metrics=("accuracy",),
        load=files.load,
        generate=partial(generated_data, task_id, partial(classified, recipe, nouns=NOUNS), GENERATED_EXAMPLES),
        evaluations=("test", "validation"),
    )


TASKS = (
    _task(
        "rct20k",
        {"background": 0.12, "objective": 0.08, "methods": 0.33, "results": 0.32, "conclusions": 0.15},
        "PubMed 20k RCT",
        ("RCT-20k", "PubMed_20k_RCT", "pubmed-rct/PubMed_20k_RCT"),
        "github.com/Franck-Dernoncourt/pubmed-rct",
        hub="armanc/pubmed-rct20k",
    ),
    _task(
        "nicta-piboso",  # the shares are those of the real training set
        {
            "population": 0.07,
            "intervention": 0.04,
            "background": 0.26,
            "outcome": 0.46,
            "study design": 0.01,
            "other": 0.16,
        },
        "NICTA-PIBOSO",
        ("nicta_piboso",),
        "github.com/jind11/HSLN-Joint-Sentence-Classification",
    ),
)
