"""The view of a table of label distributions: what each client was to hold of a task, and what it got.

Option: labels, task -> its labels in the order of the paper as (id, name); a task with scores has none. The numbers
come from any record's partition report, so the benchmark's row is one that costs nothing; its scores are not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks.experiment import Column
from benchmarks.run_config import JSON
from reports.evidence.labels import client_lines, label_range, labels_of, largest_seed_gap, records_of
from reports.evidence.published import published_for
from reports.evidence.records import DEMO, Request
from reports.evidence.statistics import mean, printed
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.plots import DIAMOND, fill, finish, panels_of, say_not_run, tidy
from reports.pages.text import NOT_RUN, NOTHING, data_notes, joined, number, scale_note

WHOLE = "all"  # stands for every client together
RANKS = False
FIELDS = [
    *(*KEYS[:4], "client", *KEYS[7:], "score", "label", "status", "requested", "obtained", "published", "difference"),
    *("lowest", "highest", "examples", "train", "validation", "test", "available", "data_low", "data_high"),
]
_BAR = 0.74  # of the distance between two clients
_REQUESTED: Any = {"color": "black", "linewidth": 2}
_PUBLISHED: Any = DIAMOND | {"markersize": 4.5}
Lines = list[dict[str, JSON]]


@dataclass(frozen=True)
class LabelShares:
    """Task -> lines by client and label, from the record of the lowest seed; a task without a record is left out.

    The last lines of a task are those of all clients together: means over clients, and the label's percentage in the
    whole data, at least and at most.
    """

    request: Request

    @cached_property
    def by_task(self) -> dict[str, Lines]:
        published = {place: entry.value for place, entry in published_for(self.request).items()}
        found = {}
        for column in self.request.columns:
            records = records_of(self.request, column)
            if records:
                report, labels = records[0].partition, labels_of(self.request, column)
                lines = client_lines(records[0], column, labels, published)
                clients = lines[:: max(1, len(labels))]
                whole = {"client": WHOLE, "examples": sum(line["examples"] for line in clients)}
                whole["available"] = report["n_examples"]
                for place, line in enumerate(lines[: max(1, len(labels))]):
                    values = [own["obtained"] for own in lines if own["score"] == line["score"]]
                    low, high = label_range(report, labels[place][0]) if labels else (None, None)
                    about = {"obtained": mean(values), "data_low": low, "data_high": high}
                    lines.append(whole | {"score": line["score"], "label": line["label"]} | about)
                found[column.task] = lines
        return found

    def of(self, column: Column, client: str) -> Lines:
        return [line for line in self.by_task.get(column.task, []) if line["client"] == client]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column in self.request.columns if column.task in self.by_task) or self.request.columns

    @cached_property
    def clients(self) -> list[str]:
        cells = product(self.request.rows, self.request.columns)
        scale = self.request.scale
        most = max(self.request.benchmark.cell(row, column, scale, 0).clients for row, column in cells)
        return [str(client + 1) for client in range(most)]


join = LabelShares


def notes(found: LabelShares) -> Iterator[str]:
    """Every note under the tables."""
    request = found.request
    if request.scale.id == DEMO:
        yield scale_note(request)
    else:
        yield f"Scale {request.scale.id}: {request.label}. The numbers do not depend on the encoder."
    yield (
        "Obtained: all parts of each client together; shares in percent, in the order of the paper (each column's "
        "header); of scores the mean (lowest–highest). Difference: obtained - reported, in points. In the data, "
        "between: the first label's percentage if none or all of the unused examples have it."
    )
    for column in request.columns:
        records = records_of(request, column)
        if len(records) > 1:
            gap = largest_seed_gap(records)
            others = f"differ by up to {gap:g} in a client's label count or mean score" if gap else "are the same"
            seeds = ", ".join(str(record.cell.seed) for record in records[1:])
            yield f"{column.name}: seed {records[0].cell.seed} shown; seeds {seeds} {others}."
    yield from data_notes(request)


def _short(value: float | None) -> str:
    return NOTHING if value is None else f"{printed(value).normalize():f}"


def _client_texts(lines: Lines, clients: int, held: Sequence[str]) -> dict[str, str]:
    """A client's lines: shares, or a place in the order of scores and the mean score with the lowest and highest."""
    if not lines:
        return {}
    is_scores, first = "lowest" in lines[0], lines[0]
    requested = f"part {first['client']} of {clients}" if is_scores else joined(_short(at["requested"]) for at in lines)
    span = f" ({_short(first['lowest'])}–{_short(first['highest'])})" if is_scores else ""
    text = number if is_scores else _short
    return {
        "requested": requested,
        "obtained": joined(number(line["obtained"]) for line in lines) + span,
        "reported": joined(text(line["published"]) for line in lines),
        "difference": joined(number(line["difference"], "+") for line in lines),
        " + ".join(held): " + ".join(str(first[part]) for part in held),
    }


def _whole_texts(lines: Lines) -> dict[str, str]:
    if not lines:
        return {}
    first = lines[0]
    unused, ends = first["available"] - first["examples"], (first["data_low"], first["data_high"])
    return {
        "mean over clients": "/".join(number(line["obtained"]) for line in lines),
        "first label in the data, between": "–".join(dict.fromkeys(map(number, ends))),
        "examples in the data": str(first["available"]),
        "used": str(first["examples"]),
        "unused": f"{unused} ({number(100 * unused / first['available'])} %)",
    }


def grids(found: LabelShares) -> tuple[Grid, ...]:
    """Groups are clients, columns tasks: requested, obtained, published; last what holds for all together."""
    request, columns = found.request, found.columns
    groups = []
    for client in [*found.clients, *([WHOLE] if found.by_task else [])]:
        parts = [found.of(column, client) for column in columns]
        lines = [line for part in parts for line in part]
        if client == WHOLE:
            texts = [_whole_texts(part) for part in parts]
            labels = list(next(filter(None, texts)))
        else:
            held = ["train", *(name for name in ("validation", "test") if any(line[name] for line in lines))]
            texts = [_client_texts(part, len(found.clients), held) for part in parts]
            is_printed = any(line["published"] is not None for line in lines)
            labels = ["requested", "obtained", *(["reported", "difference"] if is_printed else []), " + ".join(held)]
        group = []
        for label in labels:
            missing = NOT_RUN if label == "obtained" else NOTHING
            group.append(Line(label, tuple(text.get(label, missing) for text in texts), label == "obtained"))
        groups.append(Group(client, tuple(group)))
    names = ("/".join(name for _, name in labels_of(request, column)) for column in columns)
    headers = tuple((column.name, name or "mean score") for column, name in zip(columns, names, strict=True))
    return (Grid(f"{request.heading}: label distributions", headers, tuple(groups), stub="Client"),)


def frame(found: LabelShares) -> pd.DataFrame:
    """The distributions as a data frame of FIELDS: shares in percent; client "all" holds means over clients."""
    lines: Lines = []
    for column in found.request.columns:
        common = keys_of(found.request, column=column)
        of_task = found.by_task.get(column.task)
        lines += [common | {"status": "run"} | line for line in of_task or ()]
        lines += [] if of_task else [common | {"status": NOT_RUN}]
    return long_form(lines, FIELDS, {"Int64": ("examples", "train", "validation", "test", "available")})


def _draw(axes: Axes, place: int, lines: Lines) -> None:
    """One client: stacked shares from the label printed first, with lines where they were to end; or scores."""
    bottom = wanted = known = 0.0
    for number_of, line in enumerate(lines):
        height = line["highest"] - line["lowest"] if "lowest" in line else line["obtained"]
        axes.bar(place, height, _BAR, bottom=line.get("lowest", bottom), **fill(number_of))
        wanted, known = wanted + (line.get("requested") or 0.0), known + (line["published"] or 0.0)
        bottom += line["obtained"]
        if "lowest" in line or number_of < len(lines) - 1:
            if line.get("requested") is not None:
                axes.hlines(wanted, place - 0.46, place + 0.46, **_REQUESTED)
            if line["published"] is not None:
                axes.plot(place, known, zorder=4, **_PUBLISHED)


def plot(found: LabelShares) -> Figure:
    """A panel for each task that was run, or an empty one for each where none was; a stacked bar a client."""
    figure, panels = panels_of(len(found.columns), 3, (3.3, 2.3), "client", least=5.5, room=1.5)
    names: dict[int, dict[str, None]] = {}
    for axes, column in zip(panels, found.columns, strict=True):
        axes.set_title(column.name, fontsize=10)
        tidy(axes)
        axes.tick_params(labelsize=8)
        axes.set_xlim(0.4, len(found.clients) + 0.6)
        axes.set_xticks(range(1, len(found.clients) + 1))
        for client in found.clients:
            _draw(axes, int(client), found.of(column, client))
        if column.task not in found.by_task:
            say_not_run(axes)
        labels = labels_of(found.request, column)
        for place, (_, name) in enumerate(labels):
            names.setdefault(place, {})[name] = None
        axes.set_ylabel("share (%)" if labels else "score, lowest to highest", fontsize=9)
        if labels:
            axes.set_ylim(0, 100)
    handles: list[Any] = [Patch(label=" / ".join(known), **fill(place)) for place, known in names.items()]
    handles += [Line2D([], [], label="requested", **_REQUESTED), Line2D([], [], label="reported", **_PUBLISHED)]
    return finish(figure, found.request.heading, handles, "Bars: obtained, training and test part together.")
