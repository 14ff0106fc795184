"""A page of one benchmark at one scale: tables, notes, the numbers in long form, a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from benchmarks.experiment import Column, Row
from benchmarks.publication import Deviation
from benchmarks.run_config import JSON
from reports.evidence.records import Request

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS = ("benchmark", "place", "scale", "scale_label", "row", "method", "printed", "column", "task")

_NAMES = {  # ids of deviations that are not words
    "bert": "BERT",
    "bitfit": "BitFit",
    "c-of-rte": "c of RTE",
    "cola": "CoLA",
    "diloco": "DiLoCo",
    "f1": "F1",
    "fed-sb": "Fed-SB",
    "fedadam": "FedAdam",
    "ia3": "(IA)³",
    "stsb": "STS-B",
    "subset-rct20k": "Subset of Rct-20k",
}

TYPES = {  # a pandas type that holds missing values -> fields of tables
    "Int64": (
        *("n_seeds", "n_reached", "n_gain", "n_beyond", "n_test", "round", "rounds", "seed"),
        *("examples", "train", "validation", "test", "available"),
    ),
    "Float64": ("value", "published"),
}


@dataclass(frozen=True)
class Line:
    """One line of a method: a label and one text per column.

    best: by column, the positions of the best numbers between slashes; () if no number is marked.
    """

    label: str
    cells: tuple[str, ...]
    is_main: bool = False
    best: tuple[tuple[bool, ...], ...] = ()

    def text(self, place: int, plain: Callable[[str], str], bold: Callable[[str], str]) -> str:
        """A cell's text with the best numbers marked as bold."""
        marks = self.best[place] if self.best else ()
        if not any(marks):
            return plain(self.cells[place])
        parts = zip(self.cells[place].split("/"), marks, strict=True)
        return "/".join(bold(plain(part)) if is_best else plain(part) for part, is_best in parts)


@dataclass(frozen=True)
class Group:
    """The lines of one method."""

    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Grid:
    """A table: a title, headers of one or more lines each, and a group of lines for each method.

    stub: the heading above the groups' names. is_whole: its columns are compared with each other, so it is never split.
    """

    title: str
    headers: tuple[tuple[str, ...], ...]
    groups: tuple[Group, ...]
    stub: str = "Method"
    is_whole: bool = False

    @property
    def lines(self) -> list[Line]:
        return [line for group in self.groups for line in group.lines]

    def widths(self) -> list[int]:
        """Characters of the widest text in each column."""
        texts = [[*header, *(line.cells[place] for line in self.lines)] for place, header in enumerate(self.headers)]
        return [max(map(len, column)) for column in texts]


@dataclass(frozen=True)
class Page:
    """Tables, the notes under them, the numbers in long form, and a figure if there is one.

    Args:
        ranks: Whether the page shows the methods' scores, so that one method is the best.
        finding: The result and its numbers, for the first page.
        conclusions: Sentences above the tables; one that starts with an empty line begins a paragraph.
    """

    request: Request
    grids: tuple[Grid, ...]
    notes: tuple[str, ...]
    frame: Callable[[], pd.DataFrame]
    figure: Callable[[], Figure] | None = None
    ranks: bool = True
    finding: tuple[str, str] | None = None
    conclusions: tuple[str, ...] = ()

    @property
    def run(self) -> int:
        """Cells with a record, in any column."""
        return self.request.cells_run(self.request.columns)[0]

    @property
    def csv(self) -> str:
        return str(self.frame().to_csv(index=False, lineterminator="\n"))


def deviation_name(id: str) -> str:
    """A deviation's heading: "client-size" -> "Client size"."""
    return _NAMES.get(id) or id.replace("-", " ").capitalize()


def deviation_note(deviation: Deviation) -> str:
    """A deviation as a note under a table."""
    return f"Deviation: {deviation_name(deviation.id)}. {deviation.text}"


def one_line(name: str, cells: Iterable[str], label: str = "") -> Group:
    """A group of one line."""
    return Group(name, (Line(label, tuple(cells)),))


def keys_of(request: Request, row: Row | None = None, column: Column | None = None) -> dict[str, JSON]:
    """The long form's fields for table, row and column, by KEYS."""
    benchmark, scale = request.benchmark, request.scale
    columns = request.columns if column is None else (column,)
    keys: dict[str, JSON] = {"benchmark": benchmark.id, "place": benchmark.place}
    keys |= {"scale": scale.id, "scale_label": benchmark.label(scale, columns)}
    if row is not None:
        keys |= {"row": row.id, "method": row.name, "printed": row.printed}
    if column is not None:
        keys |= {"column": column.task, "task": column.name}
    return keys


def long_form(lines: Iterable[Mapping[str, JSON]]) -> pd.DataFrame:
    """Lines as a data frame; the columns of TYPES have the same type in every table."""
    every = list(lines)
    table = pd.DataFrame(every, columns=None if every else list(KEYS))
    return table.astype({name: kind for kind, names in TYPES.items() for name in names if name in table})
