"""Named entities in scientific text, for FedBFPT: JNLPBA (Collier and Kim, 2004) and SciERC (Luan et al., 2018)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.errors import UserError
from benchmarks.tasks.base import Examples, Skipped, Task, TaskData
from benchmarks.tasks.generated import tagged
from benchmarks.tasks.readers import BLANKS, read_lines
from benchmarks.tasks.rows import Row, RowError, sound_rows
from benchmarks.tasks.sources import OFFICIAL, Place, official

if TYPE_CHECKING:
    from datasets import Dataset

DOCUMENT = "-DOCSTART-"  # heads a document; no word
WORDS, TAGS = "tokens", "tags"  # columns of the hub's copy
GENERATED_EXAMPLES = (240, 80, 80)  # training, development, test
JNLPBA = ("DNA", "protein", "cell_type", "cell_line", "RNA")  # in the order of the hub's copy
SCIERC = ("Task", "Method", "Metric", "Material", "OtherScientificTerm", "Generic")


def iob2(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Tags in the order by which the metrics of entities know them: O, then B- and I- of each kind."""
    return ("O", *(f"{place}-{kind}" for kind in kinds for place in "BI"))


def read_columns(tags: tuple[str, ...], file: Path) -> Iterator[Row]:
    """The sentences of a UTF-8 file, a word a line: the word first, its tag last, an empty line behind each sentence.

    Columns stand between tabs, or blanks where the first word's line has no tab, and are as many as on that line.
    A row's texts are the words, its label their tags' ids; its line is that of its first word, or of its first fault.
    """
    separator, width = "", 0
    for filled, lines in groupby(read_lines(file), lambda line: bool(line[1].strip(BLANKS)) and not _is_heading(line)):
        if not filled:
            continue
        words: list[str] = []
        ids: list[int] = []
        begin, faults = 0, list[tuple[int, str]]()
        for number, text, fault in lines:
            begin = begin or number
            tabs = (separator or ("\t" if "\t" in text else " ")) == "\t"
            columns = text.split("\t") if tabs else [column for column in text.split(" ") if column]
            if not fault and (len(columns) < 2 or len(columns) != (width or len(columns))):
                fault = f"expected {width or 'a word and its tag in 2 or more'} columns, found {len(columns)}"
            elif not fault:
                separator, width = "\t" if tabs else " ", len(columns)
                fault = _fault(columns[0], columns[-1].strip(), tags)
            if fault:
                faults.append((number, fault))
            else:
                words.append(columns[0])
                ids.append(tags.index(columns[-1].strip()))
        yield Row(faults[0][0], fault=faults[0][1]) if faults else Row(begin, tuple(words), tuple(ids))


def _is_heading(line: tuple[int, str, str]) -> bool:
    return line[1].startswith(DOCUMENT)


def _fault(word: str, tag: str, tags: tuple[str, ...]) -> str:
    if not _is_word(word):
        return f"expected a word, found {word!a}"
    return "" if tag in tags else f"expected one of the tags {', '.join(tags)}, found {tag!r}"


def read_split(tags: tuple[str, ...], split: Dataset, place: str) -> Iterator[Row]:
    """The sentences of the hub's copy, whose tags are ids, or names, in the order of `tags`."""
    lacking = [column for column in (WORDS, TAGS) if column not in split.column_names]
    if lacking:
        raise UserError(
            f"{place}: expected the columns {WORDS}, {TAGS}, found {', '.join(split.column_names)}; get the data again"
        )
    named = getattr(getattr(split.features[TAGS], "feature", None), "names", None)
    if named is not None and tuple(named) != tags:
        raise UserError(f"{place}: expected the tags in the order {', '.join(tags)}, found {', '.join(named)}")
    for number, (words, ids) in enumerate(zip(split[WORDS][:], split[TAGS][:], strict=True), start=1):
        yield Row(number, tuple(words or ()), tuple(ids or ()))


def _examples(tags: tuple[str, ...], rows: Iterator[Row], place: Place, skipped: list[Skipped] | None) -> Examples:
    """The sentences as examples; one with a malformed row is malformed as a whole."""
    sound = list(sound_rows(rows, partial(_tag_ids, len(tags)), *place, skipped))
    texts, ids = tuple(row.texts for row, _ in sound), tuple(row_ids for _, row_ids in sound)
    return Examples(texts, np.zeros(len(texts), dtype=np.int64), ids)


def _tag_ids(known: int, row: Row) -> tuple[int, ...]:
    """A sentence's tags; RowError where they are none of its words, or a word is none that a tokenizer would keep."""
    if len(row.texts) != len(row.label) or not row.texts:
        raise RowError(f"expected words and as many tags, found {len(row.texts)} words and {len(row.label)} tags")
    for word in row.texts:
        if not _is_word(word):
            raise RowError(f"expected a word, found {word!a}")
    for tag in row.label:
        if not isinstance(tag, int) or not 0 <= tag < known:
            raise RowError(f"expected tags from 0 to {known - 1}, found {tag!r}")
    return tuple(row.label)


def _is_word(word: Any) -> bool:
    """Whether something is left of a word without the marks that BERT's tokenizer drops, and with them its tag."""
    return isinstance(word, str) and any(
        mark.isprintable() and mark not in " \ufffd" and not unicodedata.category(mark).startswith("M") for mark in word
    )


def _notes(parts: list[Examples]) -> tuple[str, ...]:
    """How many entities begin with I-, which is no IOB2: they are counted as entities, as conlleval does."""
    strays = [sum(map(_strays, examples.tags or ())) for examples in parts]
    if not any(strays):
        return ()
    counted = ", ".join(f"{count} in {part.file}" for part, count in zip(OFFICIAL, strays, strict=True) if count)
    return (f"entities that begin with I-: {counted}",)


def _strays(tags: tuple[int, ...]) -> int:
    """I- tags behind a tag of another kind, or of none; see `iob2` for the ids."""
    pairs = zip((0, *tags), tags, strict=False)
    return sum(tag > 0 and tag % 2 == 0 and before not in (tag, tag - 1) for before, tag in pairs)


def generate(task_id: str, kinds: int, seed: int) -> TaskData:
    """Sentences of a task's schema, from a seed (>= 0)."""
    rng = np.random.default_rng([seed, *task_id.encode()])
    pool, dev, test = (tagged(kinds, sentences, rng) for sentences in GENERATED_EXAMPLES)
    return TaskData(pool=pool, origin=f"generated from seed {seed}", central={"validation": dev, "test": test})


def _task(name: str, kinds: tuple[str, ...], published: str, repository: str, revision: str | None) -> Task:
    tags, task_id = iob2(kinds), name.lower()
    source = official(
        name,
        (name,),
        published,
        read_file=lambda path, place, skipped: _examples(tags, read_columns(tags, path), place, skipped),
        read_split=lambda split, place, skipped: _examples(tags, read_split(tags, split, place.path), place, skipped),
        repository=repository,
        revision=revision,
        notes=_notes,
    )
    return Task(
        id=task_id,
        name=name,
        family="scientific",
        labels=None,
        metrics=("entity_f1", "entity_f1_concatenated"),
        load=source.load,
        generate=partial(generate, task_id, len(kinds)),
        evaluations=("test", "validation"),
        objective="token_classification",
        tags=tags,
        # So every word is tagged and scored. What is cut would be lost to the score, entities that were missed too; an
        # entity across the end of a block counts as two, in the answer as in the truth.
        long_texts="blocks",
    )


TASKS = (
    # Not jnlpba/jnlpba: by its card it has twice the shared task's 18546 and 3856 sentences, and no development set.
    # This copy has the official test set, and a development set drawn from the training set (1927 sentences). Its
    # loading script is not run: the hub's own conversion is read.
    _task("JNLPBA", JNLPBA, "github.com/allenai/scibert (data/ner/JNLPBA)", "tner/bionlp2004", "refs/convert/parquet"),
    _task("SciERC", SCIERC, "github.com/Hanzhouu/FedBFPT (data/ner/SciERC)", "", None),
)
