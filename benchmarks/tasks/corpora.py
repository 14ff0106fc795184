"""Texts without labels for masked language modelling: S2ORC's domains, for FedBFPT, and general text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.errors import NoDataError
from benchmarks.tasks import words
from benchmarks.tasks.base import DataSource, Examples, Task, TaskData
from benchmarks.tasks.passages import Text, first_lines, load_texts, stamp, text_of_file, text_of_hub, unlabelled
from benchmarks.tasks.s2orc import ENDINGS, FOLDER, metadata_files, papers
from benchmarks.tasks.sources import require_folder

FILES = "corpora"  # the folder of plain text files, one passage a line
LIMIT = 1_000_000  # passages that are taken of S2ORC's files or of the hub
VALID = "valid"  # the evaluation on a corpus's official validation text
GENERATED = (360, 40)  # passages, of the pool and of a validation text
GENERATED_SENTENCES = (2, 5)  # fewest and most of a passage
GENERATED_WORDS = (6, 12)  # of a sentence


@dataclass(frozen=True)
class Corpus:
    """A domain's text and where it comes from.

    file, valid_file: in the folder `corpora`; the latter is a validation text. repository: on the hub, with the globs
    `shards` and `valid_shards` of its parquet files. field: of study, as S2ORC calls it; "" for other text. headings:
    whether ` = Title = ` heads an article.
    """

    name: str
    file: str
    repository: str
    revision: str | None
    shards: str
    field: str = ""
    valid_file: str = ""
    valid_shards: str = ""
    headings: bool = False

    @property
    def id(self) -> str:
        """As ids of tasks name it."""
        return self.name.lower().replace(" ", "-")


# The papers of S2ORC by field and year, whole and without labels (claran, "modular S2ORC"): the release itself is not
# on the hub, and its titles and abstracts there have no fields. The copy has no tags, so no revision is pinned; the
# digest of the examples says what was read.
MODULAR = "claran/modular-s2orc-parquet"
WIKIPEDIA = Corpus(
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
    Corpus("biology", "biology.txt", MODULAR, None, "Biology,*/train-*.parquet", "Biology"),
    Corpus(
        "computer science",
        "computer_science.txt",
        MODULAR,
        None,
        "ComputerScience,*/train-*.parquet",
        "Computer Science",
    ),
    Corpus("medicine", "medicine.txt", MODULAR, None, "Medicine,*/train-*.parquet", "Medicine"),
    WIKIPEDIA,
)


def load(corpus: Corpus, sentences: bool, source: DataSource) -> TaskData:
    """A corpus's passages, or its sentences, without labels; the text is not held in memory.

    They come from a text file of one passage a line, `corpora/<domain>.txt`, else from the files of S2ORC's release in
    `s2orc/` (title and abstract of each paper of the field), else, without a folder, from the hub (the paragraphs of
    whole papers). From the latter two LIMIT passages are taken.
    """
    files, texts, origin = _texts(corpus, source)
    kind: Literal["passages", "sentences"] = "sentences" if sentences else "passages"
    return load_texts(texts, kind, source, origin, files, (VALID,), corpus.headings)


def _texts(corpus: Corpus, source: DataSource) -> tuple[tuple[Path, ...], list[Text], str]:
    """The files of the data directory, the texts, a validation text last, and their origin in words."""
    if source.folder is None:
        shards = filter(None, (corpus.shards, corpus.valid_shards))
        texts = [text_of_hub(corpus.repository, corpus.revision, files, LIMIT) for files in shards]
        return (), texts, corpus.repository
    require_folder(source.folder)
    candidates = [folder / corpus.file for folder in (source.folder / FILES, source.folder)]
    for file in filter(Path.is_file, candidates):
        files = tuple(filter(Path.is_file, (file, file.parent / corpus.valid_file)))
        return files, [text_of_file(each, f"{FILES}/{each.name}") for each in files], f"folder: {FILES}/{file.name}"
    release = source.folder / FOLDER
    if corpus.field and (papers_files := metadata_files(release)):
        stamps = [stamp(path, path.relative_to(release).as_posix()) for path in papers_files]
        text = Text(
            f"{release}, {corpus.name}",
            ["s2orc", stamps, corpus.field, LIMIT],
            lambda log: first_lines(papers(papers_files, release, corpus.field, log), LIMIT, log),
        )
        return tuple(papers_files), [text], f"folder: {FOLDER}, {len(papers_files)} files, field {corpus.field}"
    metadata = f", or S2ORC's metadata ({' or '.join('*' + ending for ending in ENDINGS)}) in {release}"
    raise NoDataError(
        f"no corpus of {corpus.name}: looked for {', '.join(map(str, candidates))}{metadata if corpus.field else ''}; "
        "put a text there, one passage a line, or leave DATA_DIR unset to read the Hugging Face hub"
    )


def generate(corpus: Corpus, sentences: bool, seed: int) -> TaskData:
    """Passages in which one part of speech follows another, from a seed (>= 0).

    Each domain has its own order of the parts of speech, and prefers a quarter of the words of each.
    """
    rng = np.random.default_rng([seed, *f"corpus-{corpus.id}".encode()])
    valid = {VALID: generated_texts(corpus, GENERATED[1], sentences, rng)} if corpus.valid_file else {}
    pool = generated_texts(corpus, GENERATED[0], sentences, rng)
    return TaskData(pool=pool, origin=f"generated from seed {seed}", central=valid)


def generated_texts(corpus: Corpus, passages: int, sentences: bool, rng: np.random.Generator) -> Examples:
    """So many passages of a domain, or their sentences, without labels."""
    number = CORPORA.index(corpus)
    order = ((0, 1, 2, 3), (3, 0, 2, 1), (1, 2, 3, 0), (0, 2, 3, 1))[number]
    parts = (words.ARTICLES, words.ADJECTIVES, words.NOUNS + words.OTHER_NOUNS, words.VERBS)
    preferred = [part if len(part) < len(CORPORA) ** 2 else part[number :: len(CORPORA)] for part in parts]
    texts = []
    for _ in range(passages):
        passage = []
        for _ in range(int(rng.integers(*GENERATED_SENTENCES, endpoint=True))):
            length = int(rng.integers(*GENERATED_WORDS, endpoint=True))
            chosen = [str(rng.choice(preferred[order[place % len(parts)]])) for place in range(length)]
            passage.append(" ".join([*chosen, "."]))
        texts += [(sentence,) for sentence in passage] if sentences else [(" ".join(passage),)]
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
