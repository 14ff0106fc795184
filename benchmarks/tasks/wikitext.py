"""Wikipedia by articles, for language models: WikiText-103 (Merity et al., 2017), on which FedBERT pre-trains.

At small scale other text of Wikipedia, in the same form, replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.errors import NoDataError, UserError
from benchmarks.run_config import VALIDATION
from benchmarks.tasks.base import DataSource, Task, TaskData
from benchmarks.tasks.corpora import FILES, GENERATED, WIKIPEDIA, generated_texts
from benchmarks.tasks.passages import load_texts, text_of_file, text_of_hub
from benchmarks.tasks.sources import require_folder

TEST = "test"
SPLITS = {"train": "train", "test": "test", "valid": "validation"}  # as files and as the hub's shards name them
ENDINGS = (".raw", ".tokens")  # the whole text, preferred to the one in which rare words are <unk>
FOLDERS = ("wikitext-103-raw", "wikitext-103", "wikitext-2-raw", "wikitext-2")


def load(source: DataSource) -> TaskData:
    """The articles, without labels: those of the training text as the pool, the others central.

    Official test and validation text are the central sets "test" and "validation"; the only one of the two is "test".
    They come from a folder as WikiText is downloaded, `wikitext-103-raw/wiki.train.raw` or
    `wikitext-103/wiki.train.tokens` (or WikiText-2's, which is noted), else from `wikipedia.train.txt` and
    `wikipedia.valid.txt` in `corpora`, else, without a folder, from the hub.
    """
    files: list[Path] = []
    if source.folder is None:
        shards = [WIKIPEDIA.shards.replace("train-", f"{name}-") for name in SPLITS.values()]
        texts = [text_of_hub(WIKIPEDIA.repository, WIKIPEDIA.revision, shard) for shard in shards]
        origin = f"{WIKIPEDIA.repository}@{WIKIPEDIA.revision}, wikitext-103-raw-v1"
    else:
        files = _files(source.folder)
        names = [f"{file.parent.name}/{file.name}" for file in files]
        texts = [text_of_file(file, name) for file, name in zip(files, names, strict=True)]
        origin = f"folder: {', '.join(names)}"
    data = load_texts(texts, "articles", source, origin, files, (TEST, VALIDATION))
    is_small = bool(files) and files[0].parent.name.startswith("wikitext-2")
    return replace(data, notes=("partial: WikiText-2",)) if is_small else data


def _files(folder: Path) -> list[Path]:
    """The files of the best place that has a training text, that one first."""
    require_folder(folder)
    places = list(_places(folder))
    train, *others = next((place for place in places if place[0].is_file()), places[0])
    if not train.is_file():
        raise NoDataError(
            f"no articles of Wikipedia: looked for {', '.join(str(place[0]) for place in places)}; put WikiText-103 "
            'there, or another text whose articles are headed by lines as " = Title = ", or leave DATA_DIR unset to '
            "read the Hugging Face hub"
        )
    if not any(file.is_file() for file in others):
        raise UserError(f"{train}: expected a test text next to it, found none of {', '.join(map(str, others))}")
    return [train, *filter(Path.is_file, others)]


def _places(folder: Path) -> Iterator[list[Path]]:
    """Where the texts may be, the best place first."""
    for name in FOLDERS:
        for ending in ENDINGS:
            yield [folder / name / f"wiki.{split}{ending}" for split in SPLITS]
    for place in (folder / FILES, folder):
        yield [place / WIKIPEDIA.file, place / WIKIPEDIA.valid_file]


def generate(seed: int) -> TaskData:
    """Articles of a few sentences each, from a seed (>= 0)."""
    rng = np.random.default_rng([seed, *b"wikitext"])
    pool, test = (generated_texts(WIKIPEDIA, count, False, rng) for count in GENERATED)
    return TaskData(pool=pool, origin=f"generated from seed {seed}", central={TEST: test})


_MASKED = Task(
    id="wikitext",
    name="Wikipedia, articles",
    family="wikitext",
    labels=None,
    metrics=("perplexity",),
    load=load,
    generate=generate,
    evaluations=(TEST, VALIDATION),
    objective="masked_lm",
    long_texts="packed",
)
TASKS = (_MASKED, replace(_MASKED, id="wikitext-causal", name="Wikipedia, next words", objective="causal_lm"))
