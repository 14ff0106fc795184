"""GLUE's nine tasks (Wang et al., 2019), training and development sets merged as in FedSplitBERT §IV-B.

Besides, `<task>-central`: the training set alone is shared out, the development set is central.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.errors import UserError
from benchmarks.tasks.base import DataSource, Examples, Skipped, Task, TaskData
from benchmarks.tasks.generated import generate
from benchmarks.tasks.hub import load_config, load_parquet, read_dataset
from benchmarks.tasks.rows import ParseLabel, Row, class_label, score_label, to_examples
from benchmarks.tasks.tsv import read_tsv

REPOSITORY = "nyu-mll/glue"
REVISION = "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"
SENTENCES = ("sentence1", "sentence2")
ENTAILMENT = ("entailment", "not_entailment")


@dataclass(frozen=True)
class Part:
    """A part of a task: a TSV file of the download, a split of the hub."""

    file: str
    split: str
    evaluation: str = ""  # empty: a part of the pool
    central: bool = False  # scored whole by everyone, not shared out


@dataclass(frozen=True)
class Glue:
    """Where the examples of a task stand, in the download and in the hub's repository."""

    id: str  # also the hub's configuration, unless that is named
    name: str  # also the download's folder
    labels: tuple[str, ...] | None
    metrics: tuple[str, ...]
    texts: tuple[str, ...] = SENTENCES  # columns of the TSV files
    label: str = "label"
    codes: tuple[str, ...] = ("0", "1")  # what the TSV files hold for each label
    header: tuple[str, ...] | None = None  # all columns, where the TSV files do not name them
    hub_texts: tuple[str, ...] = SENTENCES
    parts: tuple[Part, ...] = (Part("train.tsv", "train"), Part("dev.tsv", "validation"))
    config: str = ""
    subset: int | None = None  # of the pool: so many random examples, always the same, where there are more

    @property
    def configuration(self) -> str:
        """The hub's configuration."""
        return self.config or self.id

    def parser(self, codes: Iterable[Any]) -> ParseLabel:
        """What makes a label of a field: one of the codes, or STS-B's score."""
        if self.labels is None:
            return score_label(0, 5)
        return class_label({code: label for label, code in enumerate(codes)})


class Piece(NamedTuple):
    """A part as a source gives it, not yet checked. place and name: the file for the user and for records."""

    part: Part
    rows: Iterator[Row]
    parse_label: ParseLabel
    place: str
    name: str


def load(glue: Glue, source: DataSource) -> TaskData:
    """The examples of a task: the same from each of three places.

    They are a folder in the download's layout (`glue_data/MRPC/train.tsv` or `MRPC/train.tsv`), a folder in
    the layout of the hub's repository (`mrpc/train-00000-of-00001.parquet`, also under `glue/`), and the hub.
    A missing part and a malformed row are UserErrors; a lenient source notes the one and skips the other.
    """
    if source.folder is None:
        splits = load_config(REPOSITORY, glue.configuration, REVISION)
        origin = f"{REPOSITORY}@{REVISION}, {glue.configuration}"
        return _assemble(glue, _hub_pieces(glue, splits), origin, source.lenient)
    paths = _find(glue, source.folder)
    missing = ", ".join(path.name for _, path in paths if not path.is_file())
    if missing and not source.lenient:
        raise UserError(
            f"{paths[0][1].parent}: {glue.name} lacks {missing}; add what is missing, "
            "or accept a partial dataset with --lenient"
        )
    pieces = [_file_piece(glue, part, path) for part, path in paths if path.is_file()]
    origin = "folder: " + ", ".join(piece.name for piece in pieces)
    return _assemble(glue, pieces, origin, source.lenient, (f"partial: {missing} not found",) if missing else ())


def _assemble(glue: Glue, pieces: Iterable[Piece], origin: str, lenient: bool, notes: tuple[str, ...] = ()) -> TaskData:
    skipped: list[Skipped] = []
    pool: list[Examples] = []
    held_out: dict[str, Examples] = {}
    central: dict[str, Examples] = {}
    for piece in pieces:
        examples = to_examples(
            piece.rows, glue.texts, piece.parse_label, piece.place, piece.name, skipped if lenient else None
        )
        if piece.part.evaluation:
            (central if piece.part.central else held_out)[piece.part.evaluation] = examples
        else:
            pool.append(examples)
    merged = Examples(
        texts=tuple(texts for examples in pool for texts in examples.texts),
        labels=np.concatenate([examples.labels for examples in pool]),
    )
    if glue.subset is not None and len(merged) > glue.subset:
        notes = (*notes, f"a random subset: {glue.subset} of {len(merged)} training examples")
        merged = _part(merged, glue.subset, np.random.default_rng([0, *glue.id.encode()]))
    return TaskData(merged, origin, held_out, central, tuple(skipped), notes)


def _part(examples: Examples, size: int, rng: np.random.Generator) -> Examples:
    """So many random examples, in their order."""
    chosen = np.sort(rng.permutation(len(examples))[:size])
    return Examples(tuple(examples.texts[index] for index in chosen), examples.labels[chosen])


def _find(glue: Glue, folder: Path) -> list[tuple[Part, Path]]:
    """The path of each part, in the first layout that holds a part of the pool."""
    if not folder.is_dir():
        raise UserError(f"the data directory {folder} is no folder; set DATA_DIR to the folder that holds the data")
    downloads = (folder / "glue_data" / glue.name, folder / glue.name)
    clones = (folder / glue.configuration, folder / "glue" / glue.configuration)
    layouts = [[(part, place / part.file) for part in glue.parts] for place in downloads]
    layouts += [[(part, place / f"{part.split}-00000-of-00001.parquet") for part in glue.parts] for place in clones]
    for paths in layouts:
        if any(path.is_file() for part, path in paths if not part.evaluation):
            return paths
    looked_for = ", ".join(str(path) for paths in layouts for part, path in paths if not part.evaluation)
    raise UserError(
        f"no data of {glue.name}: looked for {looked_for}; put GLUE's files there, "
        "or leave DATA_DIR unset to load them from the Hugging Face hub"
    )


def _file_piece(glue: Glue, part: Part, path: Path) -> Piece:
    name = f"{path.parent.name}/{path.name}"
    if path.suffix == ".tsv":
        rows = read_tsv(path, glue.texts, glue.label, glue.header)
        return Piece(part, rows, glue.parser(glue.codes), str(path), name)
    return _hub_piece(glue, part, load_parquet(path), str(path), name)


def _hub_pieces(glue: Glue, splits: Any) -> Iterator[Piece]:
    for part in glue.parts:
        name = f"{REPOSITORY}/{glue.configuration}/{part.split}"
        if part.split not in splits:
            raise UserError(f"{name}: expected this split, found {', '.join(splits)}; set DATA_DIR to a folder of GLUE")
        yield _hub_piece(glue, part, splits[part.split], name, name)


def _hub_piece(glue: Glue, part: Part, split: Any, place: str, name: str) -> Piece:
    rows = read_dataset(split, place, glue.hub_texts, "label", glue.labels)
    return Piece(part, rows, glue.parser(range(len(glue.labels or ()))), place, name)


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
    parts = (train, *(replace(part, evaluation=part.evaluation or "test", central=True) for part in dev))
    return replace(glue, id=f"{glue.id}-central", config=glue.id, parts=parts, **changes)


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
