"""Rows of any source become examples here, so that the same faults are found in all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from benchmarks.errors import UserError
from benchmarks.tasks.base import Examples, Skipped

Label = int | float
ParseLabel = Callable[[Any], Label]
T = TypeVar("T")
NO_TEXT = re.compile("\0|([\ud800-\udfff])")  # JSON may hold either; a file of passages holds neither


class Row(NamedTuple):
    """One row of a file: its texts and its label as they stand there, or what is wrong with it."""

    line: int  # from 1
    texts: tuple[Any, ...] = ()
    label: Any = None
    fault: str = ""


class RowError(ValueError):
    """Why a row cannot be an example."""


def text_fault(text: str) -> str:
    """Why a string cannot stand in a file of passages; "" where it can."""
    if not (found := NO_TEXT.search(text)):
        return ""
    return f"expected text, found {'half of a surrogate pair, which is no character' if found[1] else 'U+0000'}"


def class_label(ids: dict[Any, int]) -> ParseLabel:
    """A parser of class labels: what the file holds -> label id."""

    def parse(value: Any) -> int:
        if value not in ids:
            raise RowError(f"expected one of the labels {', '.join(map(str, ids))}, found {value!r}")
        return ids[value]

    return parse


def score_label(low: float, high: float) -> ParseLabel:
    """A parser of scores from low to high."""

    def parse(value: Any) -> float:
        try:
            score = float(value)
        except (TypeError, ValueError):
            score = np.nan
        if not low <= score <= high:
            raise RowError(f"expected a score from {low:g} to {high:g}, found {value!r}")
        return float(np.float32(score))  # the hub keeps scores in single precision

    return parse


def sound_rows(
    rows: Iterable[Row], check: Callable[[Row], T], place: str, name: str, skipped: list[Skipped] | None
) -> Iterator[tuple[Row, T]]:
    """The rows that pass a check, each with what the check makes of it; one that has a fault or raises RowError fails.

    place: the file as the user can find it, for errors. name: the file as records call it. skipped: takes up malformed
    rows; None where each is a UserError. No sound row at all is a UserError.
    """
    found = 0
    for row in rows:
        try:
            if row.fault:
                raise RowError(row.fault)
            made = check(row)
        except RowError as error:
            if skipped is None:
                raise UserError(
                    f"{place}:{row.line}: {error}; mend the row, or skip malformed rows with --lenient"
                ) from None
            skipped.append(Skipped(file=name, line=row.line, reason=str(error)))
        else:
            found += 1
            yield row, made
    if not found:
        raise UserError(f"{place}: expected at least one example, found none; get the file again")


def to_examples(
    rows: Iterable[Row],
    columns: tuple[str, ...],
    parse_label: ParseLabel,
    place: str,
    name: str,
    skipped: list[Skipped] | None,
    blank: bool = False,
) -> Examples:
    """The rows as examples, in their order.

    columns: names of the text columns, for messages. place, name, skipped: as `sound_rows` has them.
    blank: whether a text may be empty.
    """

    def check(row: Row) -> Label:
        for column, text in zip(columns, row.texts, strict=True):
            if not isinstance(text, str) or not (blank or text.strip()):
                raise RowError(f"expected a text in column {column!r}, found {text!r}")
        return parse_label(row.label)

    found = list(sound_rows(rows, check, place, name, skipped))
    return Examples(texts=tuple(row.texts for row, _ in found), labels=np.array([label for _, label in found]))
