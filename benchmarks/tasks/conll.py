"""Named entities in scientific text, for FedBFPT: JNLPBA (Collier and Kim, 2004) and SciERC (Luan et al., 2018)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.tasks.base import Examples, Task
from benchmarks.tasks.generated import generated_data, tagged
from benchmarks.tasks.rows import BLANKS, Malformed, Place, Row, RowError, read_lines, read_split, sound_rows
from benchmarks.tasks.sources import OFFICIAL, Files

if TYPE_CHECKING:
    from datasets import Dataset

DOCUMENT = "-DOCSTART-"  # opens a document; it is not a word
GENERATED_EXAMPLES = {"pool": 240, "validation": 80, "test": 80}


def iob2(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Tags in the order that the metrics of entities expect: O, then B- and I- of each kind."""
    return ("O", *(f"{position}-{kind}" for kind in kinds for position in "BI"))


def read_columns(tags: Sequence[str], file: Path) -> Iterator[Row]:
    """The sentences of a UTF-8 file, a word a line: the word first, its tag last, an empty line after each sentence.

    Columns are separated by tabs, or by blanks if the file's first word has no tab on its line; all lines have as many.
    A row's texts are the words and its label their tags; its line is that of its first word, or of its first fault.
    """
    separator, width = "", 0
    for is_sentence, lines in groupby(read_lines(file), _has_word):
        if not is_sentence:
            continue
        words: list[tuple[str, ...]] = []
        row: Row | None = None
        for number, text, fault in lines:
            separator = separator or ("\t" if "\t" in text else " ")
            columns = [column for column in text.split(separator) if column or separator == "\t"]
            width = width or (len(columns) if len(columns) > 1 and not fault else 0)
            if not fault and len(columns) != width:
                fault = f"expected {width or 'a word and its tag in 2 or more'} columns, found {len(columns)}"
            elif not fault and not _is_word(columns[0]):
                fault = f"expected a word, found {columns[0]!a}"
            elif not fault and columns[-1].strip() not in tags:
                fault = f"expected one of the tags {', '.join(tags)}, found {columns[-1].strip()!r}"
            words.append((columns[0], columns[-1].strip()))
            if row is None or (fault and not row.fault):
                row = Row(number, fault=fault)
        assert row is not None
        texts, labels = zip(*words, strict=True)
        yield row if row.fault else row._replace(texts=texts, label=labels)


def _has_word(line: tuple[int, str, str]) -> bool:
    return bool(line[1].strip(BLANKS)) and not line[1].startswith(DOCUMENT)


def _read_split(tags: tuple[str, ...], split: Dataset, place: str) -> Iterator[Row]:
    """The sentences of the hub's copy, whose tags are ids in the order of `tags`."""
    for row in read_split(split, place, ("tokens",), "tags", names=tags):
        names = [tags[tag] if isinstance(tag, int) and 0 <= tag < len(tags) else tag for tag in row.label or ()]
        yield row._replace(texts=tuple(row.texts[0] or ()), label=tuple(names))


def _examples(tags: Sequence[str], rows: Iterator[Row], place: Place, malformed: Malformed) -> Examples:
    """The sentences as examples; one malformed word makes its sentence malformed."""

    def tag_ids(row: Row) -> tuple[int, ...]:
        if len(row.texts) != len(row.label) or not row.texts:
            raise RowError(f"expected words and as many tags, found {len(row.texts)} words and {len(row.label)} tags")
        for word, tag in zip(row.texts, row.label, strict=True):
            if not _is_word(word):
                raise RowError(f"expected a word, found {word!a}")
            if tag not in tags:
                raise RowError(f"expected one of the tags {', '.join(tags)}, found {tag!r}")
        return tuple(map(tags.index, row.label))

    sentences = list(sound_rows(rows, tag_ids, place, malformed))
    labels = np.zeros(len(sentences), dtype=np.int64)
    return Examples(tuple(row.texts for row, _ in sentences), labels, tuple(ids for _, ids in sentences))


def _is_word(word: Any) -> bool:
    """Whether BERT's tokenizer keeps any character of a word; if it keeps none, the word's tag is lost."""
    return isinstance(word, str) and any(
        mark.isprintable() and mark not in " \ufffd" and not unicodedata.category(mark).startswith("M") for mark in word
    )


def _notes(parts: list[Examples]) -> tuple[str, ...]:
    """How many entities begin with I-, which is not IOB2; they count as entities, as conlleval counts them."""
    strays = [sum(map(_strays, examples.tags or ())) for examples in parts]
    counts = ", ".join(f"{count} in {part.file}" for part, count in zip(OFFICIAL, strays, strict=True) if count)
    return (f"entities that begin with I-: {counts}",) if counts else ()


def _strays(tags: tuple[int, ...]) -> int:
    """The number of I- tags after O or a tag of another kind; see `iob2` for the ids."""
    pairs = zip((0, *tags), tags, strict=False)
    return sum(tag > 0 and tag % 2 == 0 and before not in (tag, tag - 1) for before, tag in pairs)


def _task(name: str, kinds: tuple[str, ...], page: str, hub: str = "", revision: str | None = None) -> Task:
    tags, task_id = iob2(kinds), name.lower()
    files = Files(
        name,
        OFFICIAL,
        layouts=(f"{name}/{{file}}",),
        wanted=f"the files of {page}, {name} with train.txt, dev.txt and test.txt",
        read_file=partial(read_columns, tags),
        read_split=partial(_read_split, tags),
        examples=partial(_examples, tags),
        repository=hub,
        revision=revision,
        notes=_notes,
    )
    return Task(
        id=task_id,
        name=name,
        family="scientific",
        labels=None,
        metrics=("entity_f1", "entity_f1_concatenated"),
        load=files.load,
        generate=partial(generated_data, task_id, partial(tagged, len(kinds)), GENERATED_EXAMPLES),
        evaluations=("test", "validation"),
        objective="token_classification",
        tags=tags,
        # So every word is tagged and scored: entities in a text that is cut would be missing from the score. An entity
        # across the end of a block counts as two, in predictions and in references.
        long_texts="blocks",
    )


TASKS = (
    # Not jnlpba/jnlpba: by its card it has twice the shared task's 18546 and 3856 sentences, and no development set.
    # This copy has the official test set, and a development set drawn from the training set (1927 sentences). Its
    # loading script is not run: the hub's own conversion is read.
    _task(
        "JNLPBA",
        ("DNA", "protein", "cell_type", "cell_line", "RNA"),  # in the order of the hub's copy
        "github.com/allenai/scibert (data/ner/JNLPBA)",
        hub="tner/bionlp2004",
        revision="refs/convert/parquet",
    ),
    _task(
        "SciERC",
        ("Task", "Method", "Metric", "Material", "OtherScientificTerm", "Generic"),
        "github.com/Hanzhouu/FedBFPT (data/ner/SciERC)",
    ),
)
