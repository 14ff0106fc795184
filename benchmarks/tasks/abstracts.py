"""Rhetorical roles of sentences in medical abstracts, for FedBFPT.

PubMed 20k RCT (Dernoncourt and Lee, 2017) and NICTA-PIBOSO (Kim et al., 2011), in one format: label, tab and sentence
per line, and a line "###…" before each abstract.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benchmarks.tasks import generated
from benchmarks.tasks.base import BySizes, Task
from benchmarks.tasks.rows import TableReader
from benchmarks.tasks.sources import official

GENERATED_EXAMPLES = {"pool": 480, "validation": 120, "test": 120}
MARKERS = (
    *(generated.BLAME, generated.HEDGING, generated.PRAISE, generated.CORRECT),
    *(generated.AGREEING, generated.OPPOSING),
)
# Label -> its share of the generated examples; NICTA-PIBOSO's are those of the real training set.
RCT = {"background": 0.12, "objective": 0.08, "methods": 0.33, "results": 0.32, "conclusions": 0.15}
PIBOSO = {"population": 0.07, "intervention": 0.04, "background": 0.26, "outcome": 0.46, "study design": 0.01}
PIBOSO |= {"other": 0.16}


def abstract_reader(labels: tuple[str, ...]) -> TableReader:
    """The reader for such files. Copies of PubMed RCT differ in the case of their labels."""
    return TableReader(("text",), "label", labels, header=("label", "text"), tabs=True, comment="###", any_case=True)


def _task(
    task_id: str,
    name: str,
    shares: dict[str, float],
    folders: tuple[str, ...],
    page: str,
    repository: str = "",
    sizes: Mapping[str, int] | None = None,
) -> Task:
    labels = tuple(shares)
    files = official(name, folders, page, abstract_reader(labels), repository=repository)
    make = partial(generated.classified, generated.Recipe(tuple(shares.values()), MARKERS), nouns=generated.NOUNS)
    return Task(
        id=task_id,
        name=name,
        family="scientific",
        labels=labels,
        metrics=("accuracy",),
        load=files.load,
        find=files.find,
        generate=partial(generated.generated_data, task_id, make, GENERATED_EXAMPLES),
        evaluations=("test", "validation"),
        genuine=BySizes((sizes,)) if sizes else None,
    )


RCT_FOLDERS = ("RCT-20k", "PubMed_20k_RCT", "pubmed-rct/PubMed_20k_RCT")
RCT_SIZES = {"pool": 180_040, "validation": 30_212, "test": 30_135}  # sentences (Dernoncourt and Lee 2017, table 1)
RCT_PAGE = "github.com/Franck-Dernoncourt/pubmed-rct"
PIBOSO_PAGE = "github.com/jind11/HSLN-Joint-Sentence-Classification"
TASKS = (
    _task("rct20k", "PubMed 20k RCT", RCT, RCT_FOLDERS, RCT_PAGE, "armanc/pubmed-rct20k", RCT_SIZES),
    _task("nicta-piboso", "NICTA-PIBOSO", PIBOSO, ("nicta_piboso",), PIBOSO_PAGE),
)
