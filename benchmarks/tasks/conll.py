"""Named entities in scientific text, for FedBFPT: JNLPBA (Collier and Kim, 2004) and SciERC (Luan et al., 2018)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.tasks.base import BySizes, Task, TaskData, TextExamples, by_digest
from benchmarks.tasks.generated import generated_data, tagged
from benchmarks.tasks.rows import BLANKS, Location, Log, RawRow, RowError, read_columns, read_lines, sound_rows
from benchmarks.tasks.sources import OFFICIAL, official

if TYPE_CHECKING:
    from datasets import Dataset

DOCUMENTS = ("-DOCSTART-", "###MEDLINE:")  # begin a document; not words
GENERATED_EXAMPLES = {"pool": 240, "validation": 80, "test": 80}


def iob2(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Tags in the order of the entity metrics: O, then B- and I- of each type."""
    return ("O", *(f"{position}-{kind}" for kind in kinds for position in "BI"))


@dataclass(frozen=True)
class SentenceReader:
    """Files of sentences: one word per line, with its tag in the last column; empty lines end sentences.

    Tabs separate columns, or spaces if the first word's line has no tab; all lines have equally many columns.
    """

    tags: tuple[str, ...]

    def read_file(self, file: Path) -> Iterator[RawRow]:
        """The sentences of a UTF-8 file; a row's line number is its first word's, or its first fault's."""
        separator, width = "", 0
        for is_sentence, lines in groupby(read_lines(file), _has_word):
            if not is_sentence:
                continue
            sentence: list[str] = []
            tags: list[str] = []
            rows: list[RawRow] = []
            for number, text, fault in lines:
                separator = separator or ("\t" if "\t" in text else " ")
                columns = [column for column in text.split(separator) if column or separator == "\t"]
                word, tag = columns[0], columns[-1].strip()
                width = width or (len(columns) if len(columns) > 1 and not fault else 0)
                if not fault and len(columns) != width:
                    fault = f"expected {width or 'a word and its tag in 2 or more'} columns, found {len(columns)}"
                sentence.append(word)
                tags.append(tag)
                rows.append(RawRow(number, fault=fault or self._fault(word, tag)))
            yield next((row for row in rows if row.fault), rows[0]._replace(texts=tuple(sentence), label=tuple(tags)))

    def _fault(self, word: Any, tag: Any) -> str:
        if not _is_word(word):
            return f"expected a word, found {word!a}"
        return "" if tag in self.tags else f"expected one of the tags {', '.join(self.tags)}, found {tag!r}"

    def read_split(self, split: Dataset, place: str) -> Iterator[RawRow]:
        """The sentences of the hub's copy, with tag ids in the order of `tags`. place: for error messages."""
        for row in read_columns(split, place, ("tokens", "tags"), self.tags):
            ids = [self.tags[tag] if tag in range(len(self.tags)) else tag for tag in row.label or ()]
            yield row._replace(texts=tuple(row.texts[0] or ()), label=tuple(ids))

    def examples(self, rows: Iterable[RawRow], location: Location, log: Log) -> TextExamples:
        """The sentences as examples; one malformed word makes its sentence malformed."""
        sentences = list(sound_rows(rows, self._tag_ids, location, log))
        labels = np.zeros(len(sentences), dtype=np.int64)
        return TextExamples(tuple(row.texts for row, _ in sentences), labels, tuple(ids for _, ids in sentences))

    def _tag_ids(self, row: RawRow) -> tuple[int, ...]:
        if len(row.texts) != len(row.label) or not row.texts:
            raise RowError(f"expected words and as many tags, found {len(row.texts)} words and {len(row.label)} tags")
        if fault := next(filter(None, map(self._fault, row.texts, row.label)), ""):
            raise RowError(fault)
        return tuple(map(self.tags.index, row.label))


def _has_word(line: tuple[int, str, str]) -> bool:
    return bool(line[1].strip(BLANKS)) and not line[1].startswith(DOCUMENTS)


def _is_word(word: Any) -> bool:
    """Whether BERT's tokenizer keeps a character of a word; otherwise the word's tag would be lost."""
    return isinstance(word, str) and any(
        mark.isprintable() and mark not in " \ufffd" and not unicodedata.category(mark).startswith("M") for mark in word
    )


def _notes(parts: list[TextExamples]) -> tuple[str, ...]:
    """The number of entities that begin with I-, against IOB2; they count as entities, as in conlleval."""
    strays = [sum(map(_strays, examples.tags or ())) for examples in parts]
    counts = ", ".join(f"{count} in {part.file}" for part, count in zip(OFFICIAL, strays, strict=True) if count)
    return (f"entities that begin with I-: {counts}",) if counts else ()


def _strays(tags: tuple[int, ...]) -> int:
    """The number of I- tags after O or another type's tag; see `iob2` for the ids."""
    pairs = zip((0, *tags), tags, strict=False)
    return sum(tag > 0 and tag % 2 == 0 and before not in (tag, tag - 1) for before, tag in pairs)


def _task(
    name: str,
    kinds: tuple[str, ...],
    page: str,
    genuine: Callable[[TaskData], bool],
    repository: str = "",
    revision: str | None = None,
) -> Task:
    reader, task_id = SentenceReader(iob2(kinds)), name.lower()
    files = official(name, (name,), page, reader, repository=repository, revision=revision, notes=_notes)
    return Task(
        id=task_id,
        name=name,
        family="scientific",
        labels=None,
        metrics=("entity_f1", "entity_f1_concatenated"),
        load=files.load,
        find=files.find,
        generate=partial(generated_data, task_id, partial(tagged, len(kinds)), GENERATED_EXAMPLES),
        evaluations=("test", "validation"),
        objective="token_classification",
        tags=reader.tags,
        # Blocks, so that every word is scored: truncation would drop entities. An entity across two blocks counts
        # as two, in predictions and references.
        long_texts="blocks",
        genuine=genuine,
    )


JNLPBA = ("DNA", "protein", "cell_type", "cell_line", "RNA")  # in the hub copy's order
SCIERC = ("Task", "Method", "Metric", "Material", "OtherScientificTerm", "Generic")
# Sentences in SciBERT's copy, and in the hub's, which has another development set.
JNLPBA_SIZES = BySizes(
    ({"pool": 16_807, "validation": 1_739, "test": 3_856}, {"pool": 16_619, "validation": 1_927, "test": 3_856})
)
SCIERC_FILES = by_digest("c1823fc4e0f5ecc5a98098a5045e8b0eeda14dddf921f6cd654c872b9e8f6334")
TASKS = (
    # Not jnlpba/jnlpba: its card states twice the shared task's 18546 and 3856 sentences, and no development set.
    # This copy has the official test set, and a development set from the training set (1927 sentences). We read the
    # hub's conversion, without running the loading script.
    _task(
        "JNLPBA",
        JNLPBA,
        "github.com/allenai/scibert (data/ner/JNLPBA)",
        JNLPBA_SIZES,
        "tner/bionlp2004",
        "refs/convert/parquet",
    ),
    _task("SciERC", SCIERC, "github.com/Hanzhouu/FedBFPT (data/ner/SciERC)", SCIERC_FILES),
)
