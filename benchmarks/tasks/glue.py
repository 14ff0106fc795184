"""GLUE's nine tasks (Wang et al., 2019), training and development sets merged as in FedSplitBERT §IV-B.

Besides, `<task>-central`: the training set alone is shared out, the development set is central.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.tasks.base import DataSource, Examples, Skipped, Task, TaskData
from benchmarks.tasks.generated import generate
from benchmarks.tasks.hub import load_parquet, read_dataset
from benchmarks.tasks.readers import read_tsv
from benchmarks.tasks.rows import ParseLabel, class_label, score_label, to_examples
from benchmarks.tasks.sources import Files, Part, Place

if TYPE_CHECKING:
    from datasets import Dataset

REPOSITORY = "nyu-mll/glue"
REVISION = "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"
SENTENCES = ("sentence1", "sentence2")
ENTAILMENT = ("entailment", "not_entailment")


@dataclass(frozen=True)
class Glue:
    """Where the examples of a task stand, in the download and in the hub's repository."""

    id: str  # begins with the hub's configuration
    name: str  # also the download's folder
    labels: tuple[str, ...] | None
    metrics: tuple[str, ...]
    texts: tuple[str, ...] = SENTENCES  # columns of the TSV files
    label: str = "label"
    codes: tuple[str, ...] = ("0", "1")  # what the TSV files hold for each label
    header: tuple[str, ...] | None = None  # all columns, where the TSV files do not name them
    hub_texts: tuple[str, ...] = SENTENCES
    parts: tuple[Part, ...] = (Part("train.tsv", "train"), Part("dev.tsv", "validation"))
    subset: int | None = None  # of the pool: so many random examples, always the same, where there are more

    @property
    def configuration(self) -> str:
        """The hub's configuration."""
        return self.id.partition("-")[0]

    def layouts(self, folder: Path) -> list[list[Path]]:
        """`glue_data/MRPC/train.tsv` or `MRPC/train.tsv`; of a clone of the hub's repository, also under `glue/`."""
        downloads = (folder / "glue_data" / self.name, folder / self.name)
        clones = (folder / self.configuration, folder / "glue" / self.configuration)
        return [
            *([place / part.file for part in self.parts] for place in downloads),
            *([place / f"{part.split}-00000-of-00001.parquet" for part in self.parts] for place in clones),
        ]

    def read_file(self, path: Path, place: Place, skipped: list[Skipped] | None) -> Examples:
        """The examples of a TSV file of the download, or of a parquet file of a clone."""
        if path.suffix != ".tsv":
            return self.read_split(load_parquet(path), place, skipped)
        rows = read_tsv(path, self.texts, self.label, self.header)
        return to_examples(rows, self.texts, self._parser(self.codes), *place, skipped)

    def read_split(self, split: Dataset, place: Place, skipped: list[Skipped] | None) -> Examples:
        """The examples of a split of the hub."""
        rows = read_dataset(split, place.path, self.hub_texts, "label", self.labels)
        return to_examples(rows, self.texts, self._parser(range(len(self.labels or ()))), *place, skipped)

    def _parser(self, codes: Iterable[Any]) -> ParseLabel:
        """What makes a label of a field: one of the codes, or STS-B's score."""
        if self.labels is None:
            return score_label(0, 5)
        return class_label({code: label for label, code in enumerate(codes)})


def load(glue: Glue, source: DataSource) -> TaskData:
    """The examples of a task, or a random subset of its pool."""
    files = Files(
        glue.name,
        glue.parts,
        glue.layouts,
        glue.read_file,
        glue.read_split,
        wanted="GLUE's files",
        repository=REPOSITORY,
        config=glue.configuration,
        revision=REVISION,
        partial=True,
    )
    data = files.load(source)
    if glue.subset is None or len(data.pool) <= glue.subset:
        return data
    rng = np.random.default_rng([0, *glue.id.encode()])
    chosen = np.sort(rng.permutation(len(data.pool))[: glue.subset])
    pool = Examples(tuple(data.pool.texts[index] for index in chosen), data.pool.labels[chosen])
    note = f"a random subset: {glue.subset} of {len(data.pool)} training examples"
    return replace(data, pool=pool, notes=(*data.notes, note))


def _generate(glue: Glue, seed: int) -> TaskData:
    """Generated examples; where a set is central, its counterpart of the next seed for that."""
    made, other = (generate(glue.configuration, number) for number in (seed, seed + 1))
    central = {part.evaluation: other.held_out.get(part.evaluation, other.pool) for part in glue.parts if part.central}
    held_out = {name: examples for name, examples in made.held_out.items() if name not in central}
    return replace(made, held_out=held_out, central=central)


def _task(glue: Glue) -> Task:
    held_out = tuple(part.evaluation for part in glue.parts if part.evaluation not in ("", "test"))
    return Task(
        id=glue.id,
        name=glue.name,
        family="glue",
        labels=glue.labels,
        metrics=glue.metrics,
        load=partial(load, glue),
        generate=partial(_generate, glue),
        evaluations=("test", *held_out),
        objective="regression" if glue.labels is None else "classification",
    )


# Labels are in the hub's order. Where FedSplitBERT's Table III prints two numbers, they are F1 and accuracy.
GLUE = (
    Glue(
        id="cola",
        name="CoLA",
        labels=("unacceptable", "acceptable"),
        metrics=("matthews_correlation",),
        texts=("sentence",),
        header=("source", "label", "original_mark", "sentence"),
        hub_texts=("sentence",),
    ),
    Glue(
        id="sst2",
        name="SST-2",
        labels=("negative", "positive"),
        metrics=("accuracy", "f1"),
        texts=("sentence",),
        hub_texts=("sentence",),
    ),
    Glue(
        id="mrpc",
        name="MRPC",
        labels=("not_equivalent", "equivalent"),
        metrics=("f1", "accuracy"),
        texts=("#1 String", "#2 String"),
        label="Quality",
    ),
    Glue(
        id="qqp",
        name="QQP",
        labels=("not_duplicate", "duplicate"),
        metrics=("accuracy",),
        texts=("question1", "question2"),
        label="is_duplicate",
        hub_texts=("question1", "question2"),
    ),
    Glue(id="stsb", name="STS-B", labels=None, metrics=("pearson",), label="score"),
    Glue(
        id="mnli",
        name="MNLI",
        labels=("entailment", "neutral", "contradiction"),
        metrics=("accuracy",),
        label="gold_label",
        codes=("entailment", "neutral", "contradiction"),
        hub_texts=("premise", "hypothesis"),
        parts=(
            Part("train.tsv", "train"),
            Part("dev_matched.tsv", "validation_matched"),
            Part("dev_mismatched.tsv", "validation_mismatched", evaluation="mismatched"),
        ),
    ),
    Glue(id="rte", name="RTE", labels=ENTAILMENT, metrics=("accuracy", "f1"), codes=ENTAILMENT),
    Glue(
        id="qnli",
        name="QNLI",
        labels=ENTAILMENT,
        metrics=("accuracy",),
        texts=("question", "sentence"),
        codes=ENTAILMENT,
        hub_texts=("question", "sentence"),
    ),
    Glue(id="wnli", name="WNLI", labels=("not_entailment", "entailment"), metrics=("accuracy",)),
)
# GLUE keeps its test labels, so the development set is central: by FedFreezeBERT's protocol on a subset of SST-2, as
# features are computed of all examples; by FedBERT's (section 4.2) beside whole training sets.
CENTRAL_EXAMPLES = 3000
FINE_TUNED = ("rte", "mrpc", "mnli", "qnli", "qqp", "stsb")


def _central(glue: Glue, **changes: Any) -> Glue:
    """The task with the development set as its test set, on which all are scored; MNLI's mismatched one beside it."""
    train, *dev = glue.parts
    parts = (train, *(part._replace(evaluation=part.evaluation or "test", central=True) for part in dev))
    return replace(glue, id=f"{glue.id}-central", parts=parts, **changes)


_BY_ID = {glue.id: glue for glue in GLUE}
_CENTRAL = _task(_central(_BY_ID["sst2"], subset=CENTRAL_EXAMPLES))
SST2_TEXTS = replace(
    _CENTRAL,
    id="sst2-texts",
    name="SST-2, the texts themselves",
    metrics=("token_recovery", "text_recovery"),
    objective="token_recovery",
)
SST2_WHOLE = replace(_central(_BY_ID["sst2"]), id="sst2-whole-central")
TASKS = (
    *(_task(glue) for glue in GLUE),
    _CENTRAL,
    SST2_TEXTS,
    *(_task(_central(_BY_ID[name])) for name in FINE_TUNED),
    _task(SST2_WHOLE),
)
