"""ArSarcasm-v2 (Abu Farha, Zaghouani and Magdy, 2021): the sentiment of Arabic tweets, for FedFreezeBERT."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.tasks.base import Examples, Skipped, Task, TaskData
from benchmarks.tasks.generated import Recipe, classified
from benchmarks.tasks.hub import read_dataset
from benchmarks.tasks.readers import read_csv
from benchmarks.tasks.rows import class_label, to_examples
from benchmarks.tasks.sources import Files, Part, Place
from benchmarks.tasks.words import BLAME, HEDGING, NOUNS, PRAISE

if TYPE_CHECKING:
    from datasets import Dataset

FOLDER = "ArSarcasm-v2"  # as in the authors' repository, github.com/iabufarha/ArSarcasm-v2
PARTS = (Part("training_data.csv", "train"), Part("testing_data.csv", "test", "test", central=True))
# ARBML's copy: the authors have none of this version there. It came without tags, so no revision is pinned; the
# digest of the examples says whether they are the authors'.
REPOSITORY = "arbml/ArSarcasm_v2"
TEXTS, LABEL = ("tweet",), "sentiment"
LABELS = ("negative", "neutral", "positive")
PARSE = class_label({"NEG": 0, "NEU": 1, "POS": 2})
GENERATED = Recipe((0.37, 0.46, 0.17), (BLAME, HEDGING, PRAISE))  # the shares are those of the real training set
GENERATED_EXAMPLES = (240, 120)  # training, test


def _read_file(path: Path, place: Place, skipped: list[Skipped] | None) -> Examples:
    return to_examples(read_csv(path, TEXTS, LABEL), TEXTS, PARSE, *place, skipped, blank=True)


def _read_split(split: Dataset, place: Place, skipped: list[Skipped] | None) -> Examples:
    rows = read_dataset(split, place.path, TEXTS, LABEL, None)
    return to_examples(rows, TEXTS, PARSE, *place, skipped, blank=True)


def _notes(parts: list[Examples]) -> tuple[str, ...]:
    empty = sum(not text.strip() for examples in parts for (text,) in examples.texts)
    return (f"empty texts: {empty}",) if empty else ()


# Tweets are taken as they stand; an empty one is an example, and noted.
SOURCE = Files(
    FOLDER,
    PARTS,
    lambda folder: [[place / part.file for part in PARTS] for place in (folder / FOLDER, folder)],
    _read_file,
    _read_split,
    wanted=f"the authors' CSV files, {FOLDER}/{PARTS[0].file} and {PARTS[1].file}",
    repository=REPOSITORY,
    notes=_notes,
)


def generate(seed: int) -> TaskData:
    """Examples of the same schema with the real shares of the labels, from a seed (>= 0)."""
    rng = np.random.default_rng([seed, *b"arsarcasm"])
    pool, test = (classified(GENERATED, examples, NOUNS, rng) for examples in GENERATED_EXAMPLES)
    return TaskData(pool=pool, origin=f"generated from seed {seed}", central={"test": test})


def distinct_texts(data: TaskData) -> TaskData:
    """The training tweets alone, without labels, each that says something once: none held out is trained on too."""
    texts = tuple(dict.fromkeys(texts for texts in data.pool.texts if any(text.strip() for text in texts)))
    return replace(data, pool=Examples(texts, np.zeros(len(texts), dtype=np.int64)), central={})


TASKS = (
    Task(
        id="arsarcasm",
        name=FOLDER,
        family="arsarcasm",
        labels=LABELS,
        metrics=("f1_pn", "accuracy"),
        load=SOURCE.load,
        generate=generate,
    ),
    Task(
        id="arsarcasm-texts",
        name=f"{FOLDER}, the texts themselves",
        family="arsarcasm",
        labels=LABELS,
        metrics=("token_recovery", "text_recovery"),
        load=SOURCE.load,
        generate=generate,
        objective="token_recovery",
    ),
    Task(
        id="arsarcasm-masked",
        name=f"{FOLDER}, masked tokens of the training tweets",
        family="arsarcasm",
        labels=None,
        metrics=("perplexity",),
        load=lambda source: distinct_texts(SOURCE.load(source)),
        generate=lambda seed: distinct_texts(generate(seed)),
        objective="masked_lm",
    ),
)
