"""Bytes on the wire as bars: what our records sent, and what the paper's own encoder sends beside its equations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks.costs import byte_unit
from reports.evidence.equations import Costs
from reports.evidence.traffic import Cost
from reports.pages.plots import DIAMOND, beside, digits, finish, lengths_along, methods_down, new_figure, variant_fill
from reports.pages.text import NOT_RUN, dagger_note, human_bytes, row_name
from reports.views.costs import DEPENDS, KINDS

_ROOM = 1.75  # length of the axis over the longest bar's, for the texts
_INCHES, _BAR_INCHES = 10.5, 0.36
_DRAWN = ("parameters", "features")  # masks and labels are too few bytes to be seen
_EQUATION: Any = DIAMOND | {"markersize": 6, "clip_on": False}  # those at zero too


def _draw(axes: Axes, found: Costs, costs: Mapping[str, Cost], equations: Mapping[str, float], unknown: str) -> None:
    rows, gigabyte, gains = found.request.rows, found.request.benchmark.paper.gigabyte, found.gains(costs)
    methods_down(axes, [row_name(row) for row in rows])
    axes.tick_params(axis="x", labelsize=8)
    largest = max((cost.total_bytes for cost in costs.values()), default=0)
    unit, name = byte_unit(largest, gigabyte)
    axes.set_xlabel(f"{name}, all rounds, both directions", fontsize=9)
    sums = (cost.total_bytes / unit for cost in costs.values())
    start = lengths_along(axes, [*sums, *(size / unit for size in equations.values())], _ROOM)
    for place, row in enumerate(rows):
        cost, left = costs.get(row.id), 0.0
        if cost is not None:
            for shade, kind in enumerate(_DRAWN):
                end = left + cost.kinds.get(kind, 0) / unit
                begin = max(left, start)
                axes.barh(place, max(end - begin, 0.0), 0.62, begin, **variant_fill(shade, row.name))
                left = end
        if row.id in equations:
            axes.plot([equations[row.id] / unit], [place], **_EQUATION)
            left = max(left, equations[row.id] / unit)
        text = unknown
        if cost is not None:
            over = " and ".join(f"{digits(float(gain))}×" for gain in gains[row.id].values())
            text = ", ".join(filter(None, (human_bytes(cost.total_bytes, gigabyte), over)))
        beside(axes, text, max(left, start), place, points=9)


def _caption(found: Costs) -> str:
    gains = " and ".join(row.name for row in found.baselines)
    text = (
        f"Bars: bytes of all clients, without the one-time model distribution ({', '.join(KINDS.values())}; masks and "
        f"labels are too few to be seen). Beside them: the sum and its gains over {gains}. "
    )
    if found.derived:
        text += "On a logarithmic axis the ends of bars count. "
        text += "Derived: the channel on the encoder's shapes; diamonds: the paper's equations in consistent bytes. "
    return text.strip() + dagger_note(found.request.rows)


def plot(found: Costs) -> Figure:
    """Measured at the left, derived for the paper's own encoder at the right where that is known."""
    request = found.request
    figure = new_figure(_INCHES, 1.6 + _BAR_INCHES * len(request.rows))
    panels = figure.subplots(1, 2 if found.derived else 1, squeeze=False, sharey=True).flat
    _draw(panels[0], found, found.measured, {}, NOT_RUN)
    panels[0].set_title(f"measured, {request.scale.backbone}", fontsize=10)
    handles: list[Any] = [Patch(label=KINDS[kind], **variant_fill(shade)) for shade, kind in enumerate(_DRAWN)]
    if found.derived:
        exact = {closed.row.id: closed.consistent_bytes for closed in found.closed}
        equations = {name: size for name, size in exact.items() if size is not None}
        _draw(panels[1], found, found.derived, equations, DEPENDS)
        panels[1].set_title(f"derived, {request.paper_scale.backbone}", fontsize=10)
        handles.append(Line2D([], [], label="the paper's equation", **_EQUATION))
    return finish(figure, request.heading, handles, _caption(found))
