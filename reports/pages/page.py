"""A page: what one benchmark shows at one scale, whatever its view: tables, notes, the long form, a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.experiment import Column, Row
from benchmarks.run_config import JSON
from reports.evidence.records import Request

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Line:
    """One line of a method: what its numbers are, and one text a column."""

    label: str
    cells: tuple[str, ...]
    is_main: bool = False


@dataclass(frozen=True)
class Group:
    """The lines of one method."""

    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Grid:
    """A table: a title, headers of one or more lines each, and a group of lines a method (or what `stub` names).

    signs: of each column's scores, between slashes, 1 where more is better and -1 where less is; () where none is best.
    """

    title: str
    headers: tuple[tuple[str, ...], ...]
    groups: tuple[Group, ...]
    stub: str = "Method"  # heads the names of the groups
    signs: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Page:
    """What answers a request: tables, notes under them, the numbers in long form, and a figure if there is one.

    ranks: whether it is about the methods' scores, so that one of them is the best. finding: what was measured and its
    numbers, where the view has such for the first page.
    """

    request: Request
    grids: tuple[Grid, ...]
    notes: tuple[str, ...]
    frame: Callable[[], pd.DataFrame]
    figure: Callable[[], Figure] | None = None
    ranks: bool = True
    finding: tuple[str, str] | None = None

    @property
    def run(self) -> int:
        """Cells with a record, of `cells`."""
        return sum(selection.is_run for selection in self.request.selections.values())

    @property
    def cells(self) -> int:
        return len(self.request.selections)

    @property
    def csv(self) -> str:
        return str(self.frame().to_csv(index=False, lineterminator="\n"))


KEYS = ("benchmark", "place", "scale", "scale_label", "row", "method", "printed", "column", "task")


def keys_of(request: Request, row: Row | None = None, column: Column | None = None) -> dict[str, JSON]:
    """What a line of the long form says of its table, row and column, by KEYS."""
    benchmark, scale = request.benchmark, request.scale
    keys: dict[str, JSON] = {"benchmark": benchmark.id, "place": benchmark.place}
    columns = request.columns if column is None else (column,)
    keys |= {"scale": scale.id, "scale_label": benchmark.label(scale, columns)}
    if row is not None:
        keys |= {"row": row.id, "method": row.name, "printed": row.printed}
    if column is not None:
        keys |= {"column": column.task, "task": column.name}
    return keys


def long_form(
    lines: Iterable[Mapping[str, JSON]], fields: Sequence[str], types: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Lines as a data frame of these fields. types: a pandas type, such as Int64 -> the fields that have it."""
    import pandas as pd

    table = pd.DataFrame(list(lines), columns=list(fields))
    return table.astype({name: kind for kind, names in types.items() for name in names})
