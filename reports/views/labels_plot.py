"""Label distributions drawn: a panel a task, a stacked bar a client, marks where shares were requested."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reports.evidence.labels import Distribution, Shared, labels_of
from reports.pages.plots import DIAMOND, fill, finish, panels_of, say_not_run, tidy

_BAR = 0.74  # of the distance between two clients
_REQUESTED: Any = {"color": "black", "linewidth": 2}
_PUBLISHED: Any = DIAMOND | {"markersize": 4.5}
_RANGE_COLOUR = "0.8"  # scores are no labels


def _draw_shares(axes: Axes, entry: Distribution) -> None:
    """Stacked bars from the label printed first; a line across a bar where its part was to end."""
    for part in entry.parts:
        bottoms = [0.0, *accumulate(value.obtained for value in part.values)]
        for place, value in enumerate(part.values):
            axes.bar(part.number, value.obtained, _BAR, bottom=bottoms[place], **fill(place))
        ends = list(accumulate(value.requested or 0.0 for value in part.values))[:-1]
        if all(value.requested is not None for value in part.values):
            axes.hlines(ends, part.number - 0.46, part.number + 0.46, **_REQUESTED)
        if all(value.published is not None for value in part.values):
            published = list(accumulate(value.published or 0.0 for value in part.values))[:-1]
            axes.plot([part.number] * len(published), published, zorder=4, **_PUBLISHED)
    axes.set_ylim(0, 100)


def _draw_scores(axes: Axes, entry: Distribution) -> None:
    for part in entry.parts:
        (value,) = part.values
        low, high = part.score_range or (value.obtained, value.obtained)
        axes.bar(part.number, high - low, _BAR, bottom=low, color=_RANGE_COLOUR, edgecolor="black", linewidth=0.5)
        half = _BAR / 2
        axes.hlines(value.obtained, part.number - half, part.number + half, color="black", linewidth=1, linestyle="--")
        if value.published is not None:
            axes.plot(part.number, value.published, zorder=4, **_PUBLISHED)


def _handles(found: Shared) -> list[Any]:
    names: dict[int, dict[str, None]] = {}
    for column in found.columns_shown:
        for place, (_, name) in enumerate(labels_of(found.request, column)):
            names.setdefault(place, {})[name] = None
    handles: list[Any] = [Patch(label=" / ".join(known), **fill(place)) for place, known in names.items()]
    values = [value for entry in found.by_task.values() for part in entry.parts for value in part.values]
    if any(not entry.data_ranges for entry in found.by_task.values()):
        label = "scores, lowest to highest; dashes: mean"
        handles.append(Patch(facecolor=_RANGE_COLOUR, edgecolor="black", label=label))
    if any(value.requested is not None for value in values):
        handles.append(Line2D([], [], label="requested", **_REQUESTED))
    if any(value.published is not None for value in values):
        handles.append(Line2D([], [], label="reported", **_PUBLISHED))
    return handles


def plot(found: Shared) -> Figure:
    """A panel for each task that was run, or an empty one for each where none was."""
    columns, clients = found.columns_shown, found.clients
    figure, panels = panels_of(len(columns), 3, (3.3, 2.3), "client" if found.by_task else "", least=5.5, room=1.5)
    for axes, column in zip(panels, columns, strict=True):
        entry = found.by_task.get(column.task)
        axes.set_title(column.name, fontsize=10)
        tidy(axes)
        axes.tick_params(labelsize=8)
        axes.set_xlim(0.4, clients + 0.6)
        axes.set_xticks(range(1, clients + 1))
        if entry is None:
            say_not_run(axes)
            continue
        (_draw_shares if entry.data_ranges else _draw_scores)(axes, entry)
        axes.set_ylabel("share (%)" if entry.data_ranges else "score", fontsize=9)
    return finish(figure, found.request.heading, _handles(found), "Bars: obtained, training and test part together.")
