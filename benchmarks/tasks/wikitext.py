"""Wikipedia by articles, for language models: WikiText-103 (Merity et al., 2017), on which FedBERT pre-trains.

What stands in for it at small scale is other text of Wikipedia, in the same form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.errors import NoDataError, UserError
from benchmarks.run_config import VALIDATION
from benchmarks.tasks.base import DataSource, Task, TaskData
from benchmarks.tasks.corpora import FILES, GENERATED, WIKIPEDIA, generated_texts, unlabelled
from benchmarks.tasks.extracts import Notes, extract
from benchmarks.tasks.hub import stream_column
from benchmarks.tasks.passages import Found, find_articles
from benchmarks.tasks.sources import require_folder

TEST = "test"
SPLITS = ("train", "valid", "test")
SHARDS = {
    "train": WIKIPEDIA.shards,
    "valid": WIKIPEDIA.valid_shards,
    "test": WIKIPEDIA.valid_shards.replace("validation", "test"),
}
ENDINGS = (".raw", ".tokens")  # the whole text before the one in which rare words are <unk>
FOLDERS = ("wikitext-103-raw", "wikitext-103", "wikitext-2-raw", "wikitext-2")
SMALL = "wikitext-2"
LINES = 10**7  # of a split on the hub, where there are more: all have fewer


def load(source: DataSource) -> TaskData:
    """The articles, without labels and not yet read: those of the training text as the pool, the others central.

    Official test and validation text are the central sets "test" and "validation"; where there is one of the two
    alone, it is "test". They come from a folder as WikiText is downloaded, `wikitext-103-raw/wiki.train.raw` or
    `wikitext-103/wiki.train.tokens` (WikiText-2's too, which the notes then say), else from `wikipedia.train.txt` and
    `wikipedia.valid.txt` in `corpora`, else, without a folder, from the hub. UserError where there are none.
    """
    if source.folder is None:
        found = {split: _from_hub(split, source) for split in SPLITS}
        return _task_data(found, f"{WIKIPEDIA.repository}@{WIKIPEDIA.revision}, wikitext-103-raw-v1")
    require_folder(source.folder)
    for files in _places(source.folder):
        if files["train"].is_file():
            here = {split: file for split, file in files.items() if file.is_file()}
            names = {split: f"{file.parent.name}/{file.name}" for split, file in here.items()}
            found = {split: find_articles(file, names[split], source.lenient) for split, file in here.items()}
            if len(found) == 1:
                others = ", ".join(str(file) for split, file in files.items() if split != "train")
                raise UserError(f"{files['train']}: expected a text to be scored on beside it, found none of {others}")
            small = files["train"].parent.name.startswith(SMALL)
            data = _task_data(found, f"folder: {', '.join(names.values())}")
            return replace(data, files=tuple(here.values()), notes=("partial: WikiText-2",) if small else ())
    looked_for = ", ".join(str(files["train"]) for files in _places(source.folder))
    raise NoDataError(
        f"no articles of Wikipedia: looked for {looked_for}; put WikiText-103 there, or another text whose articles "
        'are headed by lines as " = Title = ", or leave DATA_DIR unset to read the Hugging Face hub'
    )


def _places(folder: Path) -> Iterator[dict[str, Path]]:
    """Where each split's text may be, the best place first."""
    for name in FOLDERS:
        for ending in ENDINGS:
            yield {split: folder / name / f"wiki.{split}{ending}" for split in SPLITS}
    for place in (folder / FILES, folder):
        yield {"train": place / WIKIPEDIA.file, "valid": place / WIKIPEDIA.valid_file}


def _task_data(found: dict[str, Found], origin: str) -> TaskData:
    examples = {split: unlabelled(part.passages) for split, part in found.items()}
    held_out = [examples[split] for split in ("test", "valid") if split in examples]
    return TaskData(
        pool=examples["train"],
        origin=origin,
        central=dict(zip((TEST, VALIDATION), held_out, strict=False)),
        skipped=tuple(row for part in found.values() for row in part.skipped),
    )


def _from_hub(split: str, source: DataSource) -> Found:
    def read(notes: Notes) -> Iterator[str]:
        skipped = notes.skipped if source.lenient else None
        return stream_column(WIKIPEDIA.repository, SHARDS[split], WIKIPEDIA.revision, "text", skipped)

    key = {"repository": WIKIPEDIA.repository, "revision": WIKIPEDIA.revision, "files": SHARDS[split], "lines": True}
    written = extract(source.extracts, key | {"lenient": source.lenient}, read, LINES, empty=True)
    found = find_articles(written.file, f"wikitext-{split}", False)
    return replace(found, notes=written.notes, skipped=written.skipped)


def generate(seed: int) -> TaskData:
    """Articles of a few sentences each, in which a kind of word follows another, from a seed (>= 0)."""
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
