"""Label distributions as a table, and in long form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pandas as pd

from benchmarks.spec import JSON, Column
from reports.layout import NOT_RUN, NOTHING, Grid, Group, Line, number
from reports.page import Request
from reports.statistics import printed
from reports.views.labels.distribution import SORTED, Distribution, Part, Value, labels_of

WHOLE = "all"  # stands for every client together
FIELDS = [
    *["benchmark", "place", "scale", "scale_label", "client", "column", "task", "score", "label", "status"],
    *["requested", "obtained", "published", "difference", "lowest", "highest", "examples", "train", "test"],
    *["available", "data_low", "data_high"],
]
_COUNTS = ["examples", "train", "test", "available"]


def columns_shown(request: Request, found: Mapping[str, Distribution]) -> tuple[Column, ...]:
    """The columns to draw: those that were run, or all where none was."""
    return tuple(column for column in request.columns if column.task in found) or request.columns


def clients_of(request: Request) -> int:
    """Number of clients, by the definition."""
    return max(
        request.benchmark.cell(row, column, request.scale, 0).clients
        for row in request.rows
        for column in request.columns
    )


def _short(value: float | None) -> str:
    """A number as a paper prints it: up to two decimals, none that say nothing."""
    return NOTHING if value is None else f"{printed(value).normalize():f}"


def _joined(values: Sequence[Value], text: Callable[[Value], str]) -> str:
    """The texts of a client's values as the paper prints them, a/b; one dash where there is none at all."""
    texts = [text(value) for value in values]
    return NOTHING if set(texts) == {NOTHING} else "/".join(texts)


def _requested(entry: Distribution, part: Part) -> str:
    """Shares, or a place in the order of scores."""
    if entry.scheme == SORTED:
        return f"part {part.number} of {len(entry.parts)}"
    return _joined(part.values, lambda value: _short(value.requested))


def _obtained(_: Distribution, part: Part) -> str:
    """Shares, or the mean score with the lowest and highest."""
    text = _joined(part.values, lambda value: number(value.obtained))
    return text if part.score_range is None else f"{text} ({'–'.join(map(_short, part.score_range))})"


def _published(_: Distribution, part: Part) -> str:
    """What the paper prints: shares as short as there, mean scores with two decimals."""
    text = _short if part.score_range is None else number
    return _joined(part.values, lambda value: text(value.published))


def _difference(_: Distribution, part: Part) -> str:
    """Obtained - published."""
    return _joined(part.values, lambda value: number(value.difference, "+"))


def _examples(_: Distribution, part: Part) -> str:
    """Training and test part."""
    return f"{part.train} + {part.test}" if part.test else str(part.train)


def _client_lines(place: int, entries: Sequence[Distribution | None]) -> Iterator[Line]:
    """One client's lines."""
    known = [entry.parts[place] for entry in entries if entry is not None]

    def line(
        label: str, text: Callable[[Distribution, Part], str], missing: str = NOTHING, is_main: bool = False
    ) -> Line:
        cells = (missing if entry is None else text(entry, entry.parts[place]) for entry in entries)
        return Line(label, tuple(cells), is_main)

    yield line("requested", _requested)
    yield line("obtained", _obtained, NOT_RUN, is_main=True)
    if any(value.published is not None for part in known for value in part.values):
        yield line("published", _published)
        yield line("difference", _difference)
    yield line("train + test", _examples)


def _whole_lines(entries: Sequence[Distribution | None]) -> Iterator[Line]:
    """What holds for all clients together."""

    def line(label: str, text: Callable[[Distribution], str]) -> Line:
        return Line(label, tuple(NOTHING if entry is None else text(entry) for entry in entries))

    def first_in_data(entry: Distribution) -> str:
        return f"{'–'.join(dict.fromkeys(map(number, entry.data_ranges[0])))}" if entry.data_ranges else NOTHING

    yield line("mean over clients", lambda entry: "/".join(map(number, entry.means)))
    yield line("first label in the data, between", first_in_data)
    yield line("examples in the data", lambda entry: str(entry.available))
    yield line("used", lambda entry: str(entry.used))
    yield line("unused", lambda entry: f"{entry.unused} ({number(100 * entry.unused / entry.available)} %)")


def _header(request: Request, column: Column) -> tuple[str, ...]:
    """The task, and what its numbers are."""
    names = [name for _, name in labels_of(request, column)]
    return (column.name, "/".join(names) or "mean score")


def distribution_grid(request: Request, found: Mapping[str, Distribution]) -> Grid:
    """Groups are clients, columns tasks: requested, obtained, published; last what holds for all together."""
    columns = columns_shown(request, found)
    entries = [found.get(column.task) for column in columns]
    groups = [Group(str(place + 1), tuple(_client_lines(place, entries))) for place in range(clients_of(request))]
    if found:
        groups.append(Group(WHOLE, tuple(_whole_lines(entries))))
    headers = tuple(_header(request, column) for column in columns)
    return Grid(f"{request.heading}: label distributions", headers, tuple(groups), stub="Client")


def _part_lines(entry: Distribution) -> Iterator[dict[str, JSON]]:
    """A line a client and label, and one a label for all clients together."""
    for part in entry.parts:
        low, high = part.score_range or (None, None)
        for value in part.values:
            yield {
                "client": str(part.number),
                "score": value.score,
                "label": value.name,
                "requested": value.requested,
                "obtained": value.obtained,
                "published": value.published,
                "difference": value.difference,
                "lowest": low,
                "highest": high,
                "examples": part.size,
                "train": part.train,
                "test": part.test,
            }
    for place, value in enumerate(entry.parts[0].values):
        data_low, data_high = entry.data_ranges[place] if entry.data_ranges else (None, None)
        yield {
            "client": WHOLE,
            "score": value.score,
            "label": value.name,
            "obtained": entry.means[place],
            "examples": entry.used,
            "available": entry.available,
            "data_low": data_low,
            "data_high": data_high,
        }


def frame(request: Request, found: Mapping[str, Distribution]) -> pd.DataFrame:
    """The distributions as a data frame of FIELDS: shares in percent; client "all" holds means over clients."""
    lines: list[dict[str, JSON]] = []
    for column in request.columns:
        common = {
            "benchmark": request.benchmark.id,
            "place": request.benchmark.place,
            "scale": request.scale.id,
            "scale_label": request.scale.label,
            "column": column.task,
            "task": column.name,
        }
        entry = found.get(column.task)
        if entry is None:
            lines.append(common | {"status": NOT_RUN})
        else:
            lines += [common | {"status": "run"} | line for line in _part_lines(entry)]
    return pd.DataFrame(lines, columns=FIELDS).astype(dict.fromkeys(_COUNTS, "Int64"))
