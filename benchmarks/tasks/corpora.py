"""Texts without labels for masked language modelling: S2ORC's domains, for FedBFPT, and general text beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.errors import NoDataError, UserError
from benchmarks.tasks import words
from benchmarks.tasks.base import DataSource, Examples, Task, TaskData, Texts
from benchmarks.tasks.extracts import Notes, extract
from benchmarks.tasks.hub import stream_column
from benchmarks.tasks.passages import Found, find_passages
from benchmarks.tasks.s2orc import ENDINGS, FOLDER, metadata_files, papers
from benchmarks.tasks.sources import require_folder

FILES = "corpora"  # the folder of plain text files, one passage a line
LIMIT = 1_000_000  # passages taken from S2ORC's files or from the hub, where there are more
VALID = "valid"  # the evaluation on a corpus's official validation text
Read = Callable[[Notes], Iterator[str]]
GENERATED = (360, 40)  # passages, of the pool and of a validation text
GENERATED_SENTENCES = (2, 5)  # fewest and most of a passage
GENERATED_WORDS = (6, 12)  # of a sentence


@dataclass(frozen=True)
class Corpus:
    """A domain's text and where it comes from.

    file, valid_file: in the folder `corpora`; the latter is a validation text. field: of study, as S2ORC calls it; ""
    of text that is not from there. repository: on the hub, its parquet files as globs: `shards`, and `valid_shards`.
    headings: whether ` = Title = ` heads an article.
    """

    id: str
    name: str
    file: str
    repository: str
    revision: str | None
    shards: str
    field: str = ""
    valid_file: str = ""
    valid_shards: str = ""
    headings: bool = False


# The papers of S2ORC by field and year, whole and without labels (claran, "modular S2ORC"): the release itself is not
# on the hub, and what is there of its titles and abstracts has no fields. It came without tags, so no revision is
# pinned; the digest of the examples says what was read.
MODULAR = "claran/modular-s2orc-parquet"
WIKIPEDIA = Corpus(
    id="wikipedia",
    name="Wikipedia",
    file="wikipedia.train.txt",
    repository="Salesforce/wikitext",
    revision="b08601e04326c79dfdd32d625aee71d232d685c3",
    shards="wikitext-103-raw-v1/train-*.parquet",
    valid_file="wikipedia.valid.txt",
    valid_shards="wikitext-103-raw-v1/validation-*.parquet",
    headings=True,
)
CORPORA = (
    *(
        Corpus(name.replace(" ", "-"), name, f"{name.replace(' ', '_')}.txt", MODULAR, None, shards, field)
        for name, shards, field in (
            ("biology", "Biology,*/train-*.parquet", "Biology"),
            ("computer science", "ComputerScience,*/train-*.parquet", "Computer Science"),
            ("medicine", "Medicine,*/train-*.parquet", "Medicine"),
        )
    ),
    WIKIPEDIA,
)


def load(corpus: Corpus, sentences: bool, source: DataSource) -> TaskData:
    """A corpus's passages, or its sentences, without labels; nothing of the text is held.

    They come from a text file of one passage a line, `corpora/<domain>.txt`, else from the files of S2ORC's release in
    `s2orc/` (title and abstract of each paper of the field), else, without a folder, from the hub (the paragraphs of
    whole papers); of the latter two the first LIMIT passages. UserError where none of them is there, or bytes are no
    text.
    """
    lenient = source.lenient
    if source.folder is None:
        pool, origin = _from_hub(corpus, corpus.shards, sentences, source), corpus.repository
        valid = _from_hub(corpus, corpus.valid_shards, sentences, source) if corpus.valid_shards else None
        return _task_data(pool, valid, origin)
    require_folder(source.folder)
    looked = [folder / corpus.file for folder in (source.folder / FILES, source.folder)]
    for file in looked:
        if file.is_file():
            pool = find_passages(file, f"{FILES}/{file.name}", lenient, corpus.headings, sentences)
            other = file.parent / corpus.valid_file
            valid = (
                find_passages(other, f"{FILES}/{other.name}", lenient, corpus.headings, sentences)
                if corpus.valid_file and other.is_file()
                else None
            )
            read = (file, other) if valid else (file,)
            return _task_data(pool, valid, f"folder: {FILES}/{file.name}", read)
    release = source.folder / FOLDER
    files = metadata_files(release) if corpus.field and release.is_dir() else []
    if files:
        origin = f"folder: {FOLDER}, {len(files)} files, field {corpus.field}"
        return _task_data(_from_release(corpus, release, files, sentences, source), None, origin, tuple(files))
    beside = f", or S2ORC's metadata ({' or '.join('*' + ending for ending in ENDINGS)}) in {release}"
    raise NoDataError(
        f"no corpus of {corpus.name}: looked for {', '.join(map(str, looked))}{beside if corpus.field else ''}; put a "
        "text there, one passage a line, or leave DATA_DIR unset to read the Hugging Face hub"
    )


def _task_data(pool: Found, valid: Found | None, origin: str, files: tuple[Path, ...] = ()) -> TaskData:
    parts = [pool, valid] if valid else [pool]
    examples = [unlabelled(part.passages) for part in parts]
    return TaskData(
        pool=examples[0],
        origin=origin,
        central={VALID: examples[1]} if valid else {},
        skipped=tuple(row for part in parts for row in part.skipped),
        notes=pool.notes,
        files=files,
    )


def unlabelled(texts: Texts) -> Examples:
    """Texts without labels, as examples."""
    return Examples(texts, np.zeros(len(texts), dtype=np.int64))


def _from_release(corpus: Corpus, release: Path, files: Sequence[Path], sentences: bool, source: DataSource) -> Found:
    stamps = [(path.relative_to(release).as_posix(), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    key = {"s2orc": [list(stamp) for stamp in stamps], "field": corpus.field, "lenient": source.lenient}
    read = partial(papers, files, release, corpus.field, source.lenient)
    return _extracted(corpus, key, read, sentences, source, str(release))


def _from_hub(corpus: Corpus, shards: str, sentences: bool, source: DataSource) -> Found:
    def read(notes: Notes) -> Iterator[str]:
        skipped = notes.skipped if source.lenient else None
        for text in stream_column(corpus.repository, shards, corpus.revision, "text", skipped):
            yield from filter(str.strip, text.split("\n"))

    key = {"repository": corpus.repository, "revision": corpus.revision, "files": shards, "lenient": source.lenient}
    return _extracted(corpus, key, read, sentences, source, corpus.repository)


def _extracted(corpus: Corpus, key: object, read: Read, sentences: bool, source: DataSource, place: str) -> Found:
    found = extract(source.extracts, key, read, LIMIT)
    if found.file.stat().st_size == 0:
        raise UserError(f"{place}: expected passages of {corpus.name}, found none; get the files again")
    inside = find_passages(found.file, corpus.id, False, corpus.headings, sentences)
    return Found(inside.passages, found.notes + inside.notes, found.skipped)


def generate(corpus: Corpus, sentences: bool, seed: int) -> TaskData:
    """Passages in which a kind of word follows another, from a seed (>= 0).

    Each domain has its own order of the kinds, and prefers a quarter of the words of each.
    """
    rng = np.random.default_rng([seed, *f"corpus-{corpus.id}".encode()])
    valid = {VALID: generated_texts(corpus, GENERATED[1], sentences, rng)} if corpus.valid_file else {}
    pool = generated_texts(corpus, GENERATED[0], sentences, rng)
    return TaskData(pool=pool, origin=f"generated from seed {seed}", central=valid)


def generated_texts(corpus: Corpus, passages: int, sentences: bool, rng: np.random.Generator) -> Examples:
    """So many passages of a domain, or their sentences, without labels."""
    number = CORPORA.index(corpus)
    orders = ((0, 1, 2, 3), (3, 0, 2, 1), (1, 2, 3, 0), (0, 2, 3, 1))
    kinds = (words.ARTICLES, words.ADJECTIVES, words.NOUNS + words.OTHER_NOUNS, words.VERBS)
    own = [kind if len(kind) < len(CORPORA) ** 2 else kind[number :: len(CORPORA)] for kind in kinds]
    texts = []
    for _ in range(passages):
        found = []
        for _ in range(int(rng.integers(*GENERATED_SENTENCES, endpoint=True))):
            length = int(rng.integers(*GENERATED_WORDS, endpoint=True))
            chosen = [str(rng.choice(own[orders[number][place % len(kinds)]])) for place in range(length)]
            found.append(" ".join([*chosen, "."]))
        texts += [(sentence,) for sentence in found] if sentences else [(" ".join(found),)]
    return unlabelled(tuple(texts))


TASKS = tuple(
    Task(
        id=f"corpus-{corpus.id}{'-sentences' if sentences else ''}",
        name=f"Corpus: {corpus.name}{', sentences' if sentences else ''}",
        family="scientific",
        labels=None,
        metrics=("perplexity",),
        load=partial(load, corpus, sentences),
        generate=partial(generate, corpus, sentences),
        evaluations=("test", VALID) if corpus.valid_file else ("test",),
        objective="masked_lm",
        long_texts="cut" if sentences else "blocks",
    )
    for sentences in (False, True)
    for corpus in CORPORA
)
