"""ArSarcasm-v2 (Abu Farha, Zaghouani and Magdy, 2021): the sentiment of Arabic tweets, for FedFreezeBERT."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.errors import UserError
from benchmarks.tasks.base import DataSource, Examples, Skipped, Task, TaskData
from benchmarks.tasks.csv_files import read_csv
from benchmarks.tasks.generated import Recipe, classified
from benchmarks.tasks.hub import load_config, read_dataset
from benchmarks.tasks.rows import Row, class_label, to_examples
from benchmarks.tasks.words import BLAME, HEDGING, NOUNS, PRAISE

FOLDER = "ArSarcasm-v2"  # as in the authors' repository, github.com/iabufarha/ArSarcasm-v2
FILES = ("training_data.csv", "testing_data.csv")
# ARBML's copy: the authors have none of this version there. It came without tags, so no revision is pinned; the
# digest of the examples says whether they are the authors'.
REPOSITORY = "arbml/ArSarcasm_v2"
SPLITS = ("train", "test")
TEXTS, LABEL = ("tweet",), "sentiment"
LABELS = ("negative", "neutral", "positive")
CODES = ("NEG", "NEU", "POS")
GENERATED = Recipe((0.37, 0.46, 0.17), (BLAME, HEDGING, PRAISE))  # the shares are those of the real training set
GENERATED_EXAMPLES = (240, 120)  # training, test


class Piece(NamedTuple):
    """A file or split as a source gives it, not yet checked. place and name: it for the user and for records."""

    rows: Iterable[Row]
    place: str
    name: str


def load(source: DataSource) -> TaskData:
    """The tweets: the training set is the pool, the official test set is central.

    They come from a folder that holds the authors' CSV files (`ArSarcasm-v2/training_data.csv`, or directly), else
    from the hub. A missing file is a UserError, a malformed row too unless the source is lenient. Tweets are taken
    as they stand; an empty one is an example, and noted.
    """
    if source.folder is None:
        splits = load_config(REPOSITORY, "default", None)
        missing = [split for split in SPLITS if split not in splits]
        if missing:
            raise UserError(
                f"{REPOSITORY}: expected the splits {', '.join(SPLITS)}, found {', '.join(splits)}; "
                f"set DATA_DIR to a folder that holds {FOLDER}/{FILES[0]} and {FILES[1]}"
            )
        names = [f"{REPOSITORY}/{split}" for split in SPLITS]
        pieces = [
            Piece(read_dataset(splits[split], name, TEXTS, LABEL, None), name, name)
            for split, name in zip(SPLITS, names, strict=True)
        ]
        return _assemble(pieces, REPOSITORY, source.lenient)
    pieces = [Piece(read_csv(path, TEXTS, LABEL), str(path), f"{FOLDER}/{path.name}") for path in _find(source.folder)]
    return _assemble(pieces, "folder: " + ", ".join(piece.name for piece in pieces), source.lenient)


def _assemble(pieces: Iterable[Piece], origin: str, lenient: bool) -> TaskData:
    skipped: list[Skipped] = []
    parse = class_label({code: label for label, code in enumerate(CODES)})
    pool, test = (
        to_examples(rows, TEXTS, parse, place, name, skipped if lenient else None, blank=True)
        for rows, place, name in pieces
    )
    empty = sum(not text.strip() for examples in (pool, test) for (text,) in examples.texts)
    notes = (f"empty texts: {empty}",) if empty else ()
    return TaskData(pool=pool, origin=origin, central={"test": test}, skipped=tuple(skipped), notes=notes)


def _find(folder: Path) -> list[Path]:
    """The training and the test file."""
    if not folder.is_dir():
        raise UserError(f"the data directory {folder} is no folder; set DATA_DIR to the folder that holds the data")
    layouts = [[place / file for file in FILES] for place in (folder / FOLDER, folder)]
    for paths in layouts:
        missing = [path.name for path in paths if not path.is_file()]
        if not missing:
            return paths
        if len(missing) < len(paths):
            raise UserError(
                f"{paths[0].parent}: {FOLDER} lacks {missing[0]}; add it: the training set is shared out, "
                "and every method is scored on the test set"
            )
    raise UserError(
        f"no data of {FOLDER}: looked for {', '.join(str(path) for paths in layouts for path in paths)}; put the "
        "authors' CSV files there, or leave DATA_DIR unset to load them from the Hugging Face hub"
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
        load=load,
        generate=generate,
    ),
    Task(
        id="arsarcasm-texts",
        name=f"{FOLDER}, the texts themselves",
        family="arsarcasm",
        labels=LABELS,
        metrics=("token_recovery", "text_recovery"),
        load=load,
        generate=generate,
        objective="token_recovery",
    ),
    Task(
        id="arsarcasm-masked",
        name=f"{FOLDER}, masked tokens of the training tweets",
        family="arsarcasm",
        labels=None,
        metrics=("perplexity",),
        load=lambda source: distinct_texts(load(source)),
        generate=lambda seed: distinct_texts(generate(seed)),
        objective="masked_lm",
    ),
)
