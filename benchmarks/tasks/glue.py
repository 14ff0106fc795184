"""GLUE's nine tasks (Wang et al., 2019), with training and development sets merged as in FedSplitBERT §IV-B.

`<task>-central` keeps them apart: clients share the training set, and the development set is central.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.tasks.base import BySizes, DataSource, Task, TaskData, TextExamples, by_digest
from benchmarks.tasks.generated import generate_glue
from benchmarks.tasks.rows import TableReader
from benchmarks.tasks.sources import Files, Part

REPOSITORY = "nyu-mll/glue"
REVISION = "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"
SENTENCES = ("sentence1", "sentence2")
ENTAILMENT = ("entailment", "not_entailment")


@dataclass(frozen=True)
class Glue:
    """A task as GLUE's download, a clone of the hub's repository, and the hub provide it."""

    id: str  # begins with the hub's configuration
    name: str  # also the download's folder
    labels: tuple[str, ...] | None  # None: scores
    metrics: tuple[str, ...]
    texts: tuple[str, ...] = SENTENCES  # columns of the TSV files
    label: str = "label"
    codes: tuple[str, ...] = ("0", "1")  # how the TSV files write each label
    header: tuple[str, ...] = ()  # all columns, if the TSV files do not name them
    hub_texts: tuple[str, ...] = ()  # columns on the hub, if they differ
    parts: tuple[Part, ...] = (Part("train.tsv", "train"), Part("dev.tsv", "validation"))
    subset: int | None = None  # number of random examples in the pool, equal for every seed

    @property
    def configuration(self) -> str:
        """The hub's configuration."""
        return self.id.partition("-")[0]

    @property
    def files(self) -> Files:
        codes, names = (self.codes, self.labels) if self.labels else ((), ())
        hub = (*(self.hub_texts or self.texts), "label")
        return Files(
            self.name,
            self.parts,
            layouts=(
                *(f"{folder}{self.name}/{{file}}" for folder in ("glue_data/", "")),
                *(f"{folder}{self.configuration}/{{split}}-00000-of-00001.parquet" for folder in ("", "glue/")),
            ),
            wanted="GLUE's files",
            reader=TableReader(
                self.texts,
                self.label,
                codes,
                header=self.header,
                tabs=True,
                hub=hub,
                hub_names=names,
                scores=(0, 5),  # of STS-B
            ),
            repository=REPOSITORY,
            config=self.configuration,
            revision=REVISION,
            partial=True,
        )

    def load(self, source: DataSource) -> TaskData:
        """The task's examples, or a random subset of its pool."""
        data = self.files.load(source)
        if self.subset is None or len(data.pool) <= self.subset:
            return data
        rng = np.random.default_rng([0, *self.id.encode()])
        chosen = np.sort(rng.permutation(len(data.pool))[: self.subset])
        pool = TextExamples(tuple(data.pool.texts[index] for index in chosen), data.pool.labels[chosen])
        note = f"a random subset: {self.subset} of {len(data.pool)} training examples"
        return replace(data, pool=pool, notes=(*data.notes, note))

    def generate(self, seed: int) -> TaskData:
        """Generated examples; the next seed generates a central set."""
        data, other = (generate_glue(self.configuration, number) for number in (seed, seed + 1))
        names = [part.evaluation for part in self.parts if part.central]
        central = {name: other.held_out.get(name, other.pool) for name in names}
        held_out = {name: examples for name, examples in data.held_out.items() if name not in central}
        return replace(data, held_out=held_out, central=central)

    @property
    def task(self) -> Task:
        return Task(
            id=self.id,
            name=self.name,
            family="glue",
            labels=self.labels,
            metrics=self.metrics,
            load=self.load,
            find=self.files.find,
            generate=self.generate,
            evaluations=("test", *(part.evaluation for part in self.parts if part.evaluation not in ("", "test"))),
            objective="regression" if self.labels is None else "classification",
            genuine=GENUINE[self.configuration],
        )

    def central(self, **changes: Any) -> Glue:
        """The task with the development set as central test set; MNLI also has its mismatched one."""
        train, *dev = self.parts
        parts = (train, *(part._replace(evaluation=part.evaluation or "test", central=True) for part in dev))
        return replace(self, **{"id": f"{self.id}-central", "parts": parts, **changes})


MNLI = ("entailment", "neutral", "contradiction")
MNLI_PARTS = (
    Part("train.tsv", "train"),
    Part("dev_matched.tsv", "validation_matched"),
    Part("dev_mismatched.tsv", "validation_mismatched", evaluation="mismatched"),
)
# Digests of the published tasks' examples: merged, and with a central development set (SST-2: with a subset of the
# training set, and with all of it). Three tasks are recognised by size, as we had no complete copy.
GENUINE: Mapping[str, Callable[[TaskData], bool]] = {
    "cola": by_digest("b14449800f7fd418c4ae6dce10b0d49643137de5b8eb2606d215fdc9e374ba35"),
    "mrpc": by_digest(
        "9fbb44c64eca3a3f5fe57b84311b42ef537c274380f809435eee159ab5c361c7",
        "33d622cf71021cc05ecbecae2e84b579fbe626fd967559776a52e04d36b9de90",
    ),
    "rte": by_digest(
        "f6edb035869f9844932177462dc7c9fbb879c24ecc0fd9a9a5ef4214cf7947c1",
        "eefbaff2fd9244a37eac0e42f8710ade07b1d59c6b3004593da4f30572930b8a",
    ),
    "sst2": by_digest(
        "2117cb6ec23fec2effc4b6bd8a78b1cc891e8e584396ff824ddb0bf3c6f14425",
        "1ef4075ebc5fec2d2cf40cc58e7f91ca2a968a1c943a215f9c944d6ce54f8910",
        "fb4e9727c350a4d2fa83cd1d491f935d35bf7e30c4396eb8701518c6913f1330",
    ),
    "stsb": by_digest(
        "8b31f2fb9b81d16e2e6e4d64703b282bfcff3061fc8810f119a59f44c321d95b",
        "fa11c52e5b5cd3ba01cdf7069999e3d64e3f5b79b5684307bdcbe24330ca7de6",
    ),
    "wnli": by_digest("73964dcab12101aef58887bf0c784d0fe127957a9e67b58d7cbd245dfbd309a0"),
    "qqp": BySizes(({"pool": 363_846 + 40_430}, {"pool": 363_846, "test": 40_430})),
    "qnli": BySizes(({"pool": 104_743 + 5_463}, {"pool": 104_743, "test": 5_463})),
    "mnli": BySizes(
        ({"pool": 392_702 + 9_815, "mismatched": 9_832}, {"pool": 392_702, "test": 9_815, "mismatched": 9_832})
    ),
}
# Labels are in the hub's order. Two numbers in FedSplitBERT's Table III are F1 and accuracy.
GLUE = (
    Glue(
        id="cola",
        name="CoLA",
        labels=("unacceptable", "acceptable"),
        metrics=("matthews_correlation",),
        texts=("sentence",),
        header=("source", "label", "original_mark", "sentence"),
    ),
    Glue("sst2", "SST-2", ("negative", "positive"), ("accuracy", "f1"), texts=("sentence",)),
    Glue(
        id="mrpc",
        name="MRPC",
        labels=("not_equivalent", "equivalent"),
        metrics=("f1", "accuracy"),
        texts=("#1 String", "#2 String"),
        label="Quality",
        hub_texts=SENTENCES,
    ),
    Glue(
        id="qqp",
        name="QQP",
        labels=("not_duplicate", "duplicate"),
        metrics=("accuracy",),
        texts=("question1", "question2"),
        label="is_duplicate",
    ),
    Glue("stsb", "STS-B", None, ("pearson",), label="score"),
    Glue(
        id="mnli",
        name="MNLI",
        labels=MNLI,
        metrics=("accuracy",),
        label="gold_label",
        codes=MNLI,
        hub_texts=("premise", "hypothesis"),
        parts=MNLI_PARTS,
    ),
    Glue("rte", "RTE", ENTAILMENT, ("accuracy", "f1"), codes=ENTAILMENT),
    Glue("qnli", "QNLI", ENTAILMENT, ("accuracy",), texts=("question", "sentence"), codes=ENTAILMENT),
    Glue("wnli", "WNLI", ("not_entailment", "entailment"), ("accuracy",)),
)
# GLUE's test labels are secret, so the development set is central: in FedFreezeBERT's protocol with a subset of SST-2,
# as it computes all examples' features; in FedBERT's (section 4.2) with whole training sets.
CENTRAL_EXAMPLES = 3000
FINE_TUNED = ("rte", "mrpc", "mnli", "qnli", "qqp", "stsb")
_BY_ID = {glue.id: glue for glue in GLUE}
_CENTRAL = _BY_ID["sst2"].central(subset=CENTRAL_EXAMPLES).task
TASKS = (
    *(glue.task for glue in GLUE),
    _CENTRAL,
    replace(
        _CENTRAL,
        id="sst2-texts",
        name="SST-2, the texts themselves",
        metrics=("token_recovery", "text_recovery"),
        objective="token_recovery",
    ),
    *(_BY_ID[name].central().task for name in FINE_TUNED),
    _BY_ID["sst2"].central(id="sst2-whole-central").task,
)
