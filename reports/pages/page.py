"""A page: what one benchmark shows at one scale, whatever its view, and how numbers are written on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.spec import JSON, Column, Row
from reports.evidence.records import Request
from reports.evidence.statistics import printed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

DAGGER = "†"  # marks a row that the paper does not print
DERIVED = "≈"  # marks what rests on a number that the paper does not print, but that follows from its text
NOTHING = "–"
NOT_RUN = "not run"
UNDEFINED = "undefined"


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
    """A table: a title, headers of one or more lines each, and a group of lines a method (or what `stub` names)."""

    title: str
    headers: tuple[tuple[str, ...], ...]
    groups: tuple[Group, ...]
    stub: str = "Method"  # heads the names of the groups


@dataclass(frozen=True)
class Page:
    """Tables, notes under them, the numbers in long form, and a figure where there is one to draw."""

    benchmark_id: str
    scale_id: str
    heading: str
    title: str
    run: int  # cells with a record, of `cells`
    cells: int
    grids: tuple[Grid, ...]
    notes: tuple[str, ...]
    frame: Callable[[], pd.DataFrame]
    figure: Callable[[], Figure] | None = None

    @property
    def csv(self) -> str:
        """The numbers as CSV."""
        return str(self.frame().to_csv(index=False, lineterminator="\n"))


def page_for(
    request: Request,
    grids: Iterable[Grid],
    notes: Iterable[str],
    frame: Callable[[], pd.DataFrame],
    figure: Callable[[], Figure] | None = None,
) -> Page:
    """The page that answers a request."""
    return Page(
        benchmark_id=request.benchmark.id,
        scale_id=request.scale.id,
        heading=request.heading,
        title=request.benchmark.title,
        run=sum(bool(selection.records) for selection in request.selections.values()),
        cells=len(request.selections),
        grids=tuple(grids),
        notes=tuple(notes),
        frame=frame,
        figure=figure,
    )


# ---- the long form -----------------------------------------------------------------------------------------------

KEYS = ("benchmark", "place", "scale", "scale_label", "row", "method", "printed", "column", "task")


def keys_of(request: Request, row: Row | None = None, column: Column | None = None) -> dict[str, JSON]:
    """What a line of the long form says of its table, row and column, by KEYS."""
    benchmark, scale = request.benchmark, request.scale
    keys: dict[str, JSON] = {"benchmark": benchmark.id, "place": benchmark.place}
    keys |= {"scale": scale.id, "scale_label": scale.label}
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


# ---- numbers as text ---------------------------------------------------------------------------------------------


def row_name(row: Row) -> str:
    """The method's name, with a dagger where the paper does not print it."""
    return row.name if row.printed else f"{row.name} {DAGGER}"


def marked(text: str, is_derived: bool) -> str:
    """A text that says where it rests on a derived number; a dash stays one."""
    return f"{DERIVED} {text}" if is_derived and text != NOTHING else text


def human_bytes(count: float, gigabyte: int = 10**9) -> str:
    """Bytes in readable units: from a tenth of one in the paper's GB, below that in decimal MB and kB."""
    if count >= gigabyte / 10:
        return f"{printed(count / gigabyte)} GB"
    if count >= 10**6:
        return f"{printed(count / 10**6)} MB"
    return f"{printed(count / 10**3)} kB" if count >= 10**3 else f"{count:.0f} B"


def human_seconds(seconds: float) -> str:
    """A duration in readable units."""
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.1f} s"


def number(value: float | None, sign: str = "", places: int = 2) -> str:
    """A number with so many decimals; a dash for none."""
    return NOTHING if value is None else f"{printed(value, places=places):{sign}}".replace("-", "−")


def interval_text(interval: tuple[float, float] | None) -> str:
    """An interval in square brackets; a dash for none."""
    return NOTHING if interval is None else f"[{number(interval[0])}, {number(interval[1])}]"


def joined(texts: Iterable[str]) -> str:
    """The texts of a cell's numbers as a paper prints them, a/b; one dash where there is none at all."""
    found = list(texts)
    return NOTHING if set(found) == {NOTHING} else "/".join(found)
