"""Sentences of medical abstracts by their rhetorical role, for FedBFPT.

PubMed 20k RCT (Dernoncourt and Lee, 2017), and NICTA-PIBOSO (Kim et al., 2011), which has the same format: a label, a
tab and a sentence a line, and a line "###…" before each abstract.
"""

from __future__ import annotations

from functools import partial

from benchmarks.tasks.base import Task
from benchmarks.tasks.generated import Recipe, classified, generated_data
from benchmarks.tasks.rows import Table
from benchmarks.tasks.sources import Files, official
from benchmarks.tasks.words import AGREEING, BLAME, CORRECT, HEDGING, INCORRECT, NOUNS, OPPOSING, PRAISE

GENERATED_EXAMPLES = {"pool": 480, "validation": 120, "test": 120}
MARKERS = (BLAME, HEDGING, PRAISE, CORRECT, AGREEING, OPPOSING, INCORRECT)
RCT = {"background": 0.12, "objective": 0.08, "methods": 0.33, "results": 0.32, "conclusions": 0.15}
PIBOSO = {"population": 0.07, "intervention": 0.04, "background": 0.26, "outcome": 0.46, "study design": 0.01}
PIBOSO |= {"other": 0.16}  # as in the real training set


def _task(task_id: str, shares: dict[str, float], files: Files) -> Task:
    """A task. shares: label -> its share of the generated examples."""
    recipe = Recipe(tuple(shares.values()), MARKERS[: len(shares)])
    return Task(
        id=task_id,
        name=files.name,
        family="scientific",
        labels=tuple(shares),
        metrics=("accuracy",),
        load=files.load,
        generate=partial(generated_data, task_id, partial(classified, recipe, nouns=NOUNS), GENERATED_EXAMPLES),
        evaluations=("test", "validation"),
    )


def _table(labels: dict[str, float]) -> Table:
    """Copies of PubMed RCT differ in the case of their labels."""
    return Table(("text",), "label", tuple(labels), header=("label", "text"), tabs=True, comment="###", any_case=True)


TASKS = (
    _task(
        "rct20k",
        RCT,
        official(
            "PubMed 20k RCT",
            ("RCT-20k", "PubMed_20k_RCT", "pubmed-rct/PubMed_20k_RCT"),
            "github.com/Franck-Dernoncourt/pubmed-rct",
            _table(RCT),
            repository="armanc/pubmed-rct20k",
        ),
    ),
    _task(
        "nicta-piboso",
        PIBOSO,
        official(
            "NICTA-PIBOSO",
            ("nicta_piboso",),
            "github.com/jind11/HSLN-Joint-Sentence-Classification",
            _table(PIBOSO),
        ),
    ),
)
