"""Unlabelled texts for language modelling: S2ORC's domains, for FedBFPT, and Wikipedia, for FedBFPT and FedBERT."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from benchmarks.errors import NoDataError, UserError
from benchmarks.run_config import VALIDATION
from benchmarks.tasks.base import BySizes, DataSource, Task, TaskData
from benchmarks.tasks.generated import ADJECTIVES, ARTICLES, NOUNS, OTHER_NOUNS, VERBS
from benchmarks.tasks.passages import Text, first_lines, load_texts, stamp, text_of_file, text_of_hub, unlabelled
from benchmarks.tasks.rows import Location, Log
from benchmarks.tasks.sources import require_folder
from fedsim.files import open_file

LIMIT = 1_000_000  # most passages from S2ORC's files or the hub
TEST, VALID = "test", "valid"  # evaluations on a corpus's official texts
GENERATED = (360, 40)  # passages in the pool and in a validation text
GENERATED_SENTENCES = (2, 5)  # fewest and most per passage
GENERATED_WORDS = (6, 12)  # per sentence
ORDERS = ((0, 1, 2, 3), (3, 0, 2, 1), (1, 2, 3, 0), (0, 2, 3, 1))  # of parts of speech in generated text, by domain


@dataclass(frozen=True)
class Corpus:
    """A domain's text and its sources.

    Args:
        name: The domain's name.
        places: Candidates in the data directory, in order of preference: the training text, then official test or
            validation texts.
        evaluations: Names of the central sets from the latter texts.
        repository: The repository on the hub.
        revision: The repository's revision; None if it has no tags: then the examples' digest identifies the text.
        shards: Globs for the repository's parquet files, one per text.
        field: S2ORC's field of study; "" for other text.
        kind: The division of the text; see `load_texts`.
        limit: The most passages from the hub's text; None for all, one per row.
    """

    name: str
    places: tuple[tuple[str, ...], ...]
    repository: str
    revision: str | None
    shards: tuple[str, ...]
    evaluations: tuple[str, ...] = ()
    field: str = ""
    kind: Literal["passages", "sentences", "articles"] = "passages"
    limit: int | None = LIMIT

    def load(self, source: DataSource) -> TaskData:
        """Load the unlabelled texts, without holding them in memory.

        They come from text files in the data directory, else from S2ORC's release files in `s2orc/` (title and abstract
        of each paper in the field), or, without a folder, from the hub.
        """
        if source.folder is None:
            texts = [text_of_hub(self.repository, self.revision, each, self.limit) for each in self.shards]
            return self._load(texts, source, f"{self.repository}{f'@{self.revision}' if self.revision else ''}")
        files, is_release = self.find(source)
        folder = require_folder(source)
        if is_release:
            release = folder / "s2orc"
            stamps = [stamp(path, path.relative_to(release).as_posix()) for path in files]
            text = Text(
                f"{release}, {self.name}",
                ["s2orc", stamps, self.field, LIMIT],
                lambda log: first_lines(papers(files, release, self.field, log), LIMIT, log),
            )
            return self._load([text], source, f"folder: s2orc, {len(files)} files, field {self.field}", files)
        names = [f"{file.parent.name}/{file.name}" for file in files]
        texts = [text_of_file(file, name) for file, name in zip(files, names, strict=True)]
        data = self._load(texts, source, f"folder: {', '.join(names)}", files)
        is_small = files[0].parent.name.startswith("wikitext-2")
        return replace(data, notes=("partial: WikiText-2",)) if is_small else data

    def find(self, source: DataSource) -> tuple[list[Path], bool]:
        """The text's files in a data directory, training text first, and whether they are S2ORC metadata."""
        if source.folder is None:
            return [], False
        folder = require_folder(source)
        places = [[folder / name for name in place] for place in self.places]
        train, *others = next((place for place in places if place[0].is_file()), places[0])
        if train.is_file():
            files = [train, *filter(Path.is_file, others)]
            if self.kind == "articles" and len(files) == 1:
                tests = ", ".join(map(str, others))
                raise UserError(f"{train}: expected a test text next to it, found none of {tests}")
            return files, False
        if self.field and (metadata := metadata_files(folder / "s2orc")):
            return metadata, True
        other = ", or S2ORC's metadata (*.jsonl or *.jsonl.gz) in s2orc" if self.field else ""
        form = "one passage per line"
        if self.kind == "articles":
            form = 'with a line such as " = Title = " before each article'
        names = ", ".join(place[0] for place in self.places)
        raise NoDataError(
            f"no text of {self.name}: looked in {folder}/ for {names}{other}; put a text there, {form}, or leave "
            "DATA_DIR unset to read the Hugging Face hub"
        )

    def _load(self, texts: list[Text], source: DataSource, origin: str, files: Sequence[Path] = ()) -> TaskData:
        return load_texts(texts, self.kind, source, origin, files, self.evaluations, self.name == WIKIPEDIA.name)

    def generate(self, seed: int) -> TaskData:
        """Passages with a fixed order of parts of speech, from a seed (>= 0).

        Each domain has a different order, and prefers a quarter of the words of each part of speech.
        """
        articles = self.kind == "articles"
        rng = np.random.default_rng([seed, *(b"wikitext" if articles else f"corpus-{self.id}".encode())])
        sizes = dict.fromkeys(self.evaluations[:1], GENERATED[1])
        sizes = {"pool": GENERATED[0], **sizes} if articles else {**sizes, "pool": GENERATED[0]}
        parts = {name: unlabelled(tuple(self._generated(count, rng))) for name, count in sizes.items()}
        return TaskData(pool=parts.pop("pool"), origin=f"generated from seed {seed}", central=parts)

    def _generated(self, passages: int, rng: np.random.Generator) -> Iterator[tuple[str]]:
        number = [corpus.name for corpus in CORPORA].index(self.name)
        parts = (ARTICLES, ADJECTIVES, NOUNS + OTHER_NOUNS, VERBS)
        preferred = [part if len(part) < len(CORPORA) ** 2 else part[number :: len(CORPORA)] for part in parts]
        for _ in range(passages):
            passage = []
            for _ in range(int(rng.integers(*GENERATED_SENTENCES, endpoint=True))):
                length = int(rng.integers(*GENERATED_WORDS, endpoint=True))
                chosen = [str(rng.choice(preferred[ORDERS[number][place % len(parts)]])) for place in range(length)]
                passage.append(" ".join([*chosen, "."]))
            yield from [(sentence,) for sentence in passage] if self.kind == "sentences" else [(" ".join(passage),)]

    @property
    def id(self) -> str:
        """The domain's name in task ids."""
        return self.name.lower().replace(" ", "-")

    @property
    def task(self) -> Task:
        """The task: masked language modelling on passages or sentences."""
        sentences = self.kind == "sentences"
        return Task(
            id=f"corpus-{self.id}{'-sentences' if sentences else ''}",
            name=f"Corpus: {self.name}{', sentences' if sentences else ''}",
            family="scientific",
            labels=None,
            metrics=("perplexity",),
            load=self.load,
            find=self.find,
            generate=self.generate,
            evaluations=("test", *self.evaluations),
            objective="masked_lm",
            long_texts="cut" if sentences else "blocks",
            genuine=_is_whole_domain if self.field else None,
        )


def _is_whole_domain(data: TaskData) -> bool:
    """Whether a text has as many passages as a domain takes; every S2ORC field has more papers."""
    return len(data.pool) >= LIMIT


# ---- S2ORC (Lo et al. 2020), its last static release: https://github.com/allenai/s2orc, data/v2020-07-05 --------


class S2orcPaper(BaseModel):
    """The used fields of a metadata line; structured abstracts have `:::` for line ends."""

    model_config = ConfigDict(strict=True)
    title: str
    abstract: str | None
    mag_field_of_study: list[str] | None

    @property
    def text(self) -> str:
        """Title and abstract; "" without an abstract."""
        title, abstract = self.title.strip(), (self.abstract or "").replace(":::", " ").strip()
        stop = "" if not title or title.endswith((".", "!", "?")) else "."
        return " ".join(f"{title}{stop} {abstract}".split()) if abstract else ""


def metadata_files(folder: Path) -> list[Path]:
    """The metadata files in a folder and below, ordered by number; not `pdf_parses`, the full texts."""
    files = [path for path in folder.rglob("*.jsonl*") if path.name.endswith((".jsonl", ".jsonl.gz"))]
    parts = {path: re.split("([0-9]+)", str(path)) for path in files if "pdf_parses" not in str(path)}
    return sorted(parts, key=lambda path: [int(part) if part.isdigit() else part for part in parts[path]])


def papers(files: Sequence[Path], root: Path, field: str, log: Log) -> Iterator[str]:
    """Title and abstract of each paper in a field of study; papers without an abstract are only counted.

    root: records name files relative to it. If lenient, a damaged file is read up to the damage.
    """
    for path in files:
        location, number = Location(str(path), path.relative_to(root).as_posix()), 0
        try:
            with open_file(path) as plain, gzip.open(plain) if path.suffix == ".gz" else plain as lines:
                for number, line in enumerate(lines, start=1):
                    try:
                        paper = None if line.isspace() else S2orcPaper.model_validate_json(line)
                    except ValidationError as error:
                        fault = error.errors()[0]
                        name = f" in {fault['loc'][0]}" if fault["loc"] else ""
                        log.reject(location, number, f"expected a paper of S2ORC, found an error{name}: {fault['msg']}")
                        continue
                    if paper is None or field not in (paper.mag_field_of_study or ()):
                        continue
                    if "\0" in paper.text:
                        log.reject(location, number, "expected text, found U+0000")
                    elif paper.text:
                        yield paper.text
                    else:
                        log.counts["papers without an abstract, left out"] += 1
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            reason = f"expected a gzipped file, found one that ends or is damaged here ({error})"
            log.reject(location, number + 1, reason)


# ---- the corpora -------------------------------------------------------------------------------------------------


def _domain(field: str) -> Corpus:
    """The corpus of a field of S2ORC, unlabelled, from "modular S2ORC" by claran.

    The release is not on the hub, and its titles and abstracts there lack fields. The copy has no tags.
    """
    file = f"{field.lower().replace(' ', '_')}.txt"
    shards = f"{field.replace(' ', '')},*/train-*.parquet"
    places = ((f"corpora/{file}",), (file,))
    return Corpus(field.lower(), places, "claran/modular-s2orc-parquet", None, (shards,), field=field)


WIKIPEDIA_FILES = ("wikipedia.train.txt", "wikipedia.valid.txt")
WIKIPEDIA = Corpus(
    name="Wikipedia",
    places=(tuple(f"corpora/{file}" for file in WIKIPEDIA_FILES), WIKIPEDIA_FILES),
    repository="Salesforce/wikitext",
    revision="b08601e04326c79dfdd32d625aee71d232d685c3",
    shards=tuple(f"wikitext-103-raw-v1/{split}-*.parquet" for split in ("train", "validation")),
    evaluations=(VALID,),
)
# WikiText (Merity et al., 2017) by articles, for FedBERT's pre-training: the download, preferably the raw text without
# <unk> for rare words, or other Wikipedia text in the same form.
WIKITEXT = replace(
    WIKIPEDIA,
    places=(
        *(
            tuple(f"wikitext-{size}/wiki.{split}.{ending}" for split in ("train", "test", "valid"))
            for size in ("103-raw", "103", "2-raw", "2")
            for ending in ("raw", "tokens")
        ),
        *WIKIPEDIA.places,
    ),
    shards=tuple(f"wikitext-103-raw-v1/{split}-*.parquet" for split in ("train", "test", "validation")),
    evaluations=(TEST, VALIDATION),
    kind="articles",
    limit=None,
)
CORPORA = (*map(_domain, ("Biology", "Computer Science", "Medicine")), WIKIPEDIA)
ARTICLES_TASK = Task(
    id="wikitext",
    name="Wikipedia, articles",
    family="wikitext",
    labels=None,
    metrics=("perplexity",),
    load=WIKITEXT.load,
    find=WIKITEXT.find,
    generate=WIKITEXT.generate,
    evaluations=(TEST, VALIDATION),
    objective="masked_lm",
    long_texts="packed",
    # WikiText-103's articles (Merity et al. 2017, table 1), within a tolerance for headings inside texts.
    genuine=BySizes(({"pool": 28_475, TEST: 60, VALIDATION: 60},), tolerance=0.05),
)
TASKS = (
    *(corpus.task for corpus in CORPORA),
    *(replace(corpus, kind="sentences").task for corpus in CORPORA),
    ARTICLES_TASK,
    replace(ARTICLES_TASK, id="wikitext-causal", name="Wikipedia, next words", objective="causal_lm"),
)
