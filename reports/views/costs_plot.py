"""Bytes on the wire as bars: what our records sent, and what the paper's own encoder sends beside its equations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reports.evidence.equations import Costs
from reports.evidence.traffic import Cost
from reports.pages.plots import DIAMOND, beside, fill, finish, methods_down, new_figure
from reports.pages.text import NOT_RUN, dagger_note, human_bytes, number, row_name
from reports.views.costs import DEPENDS, KINDS

_ROOM = 1.75  # length of the axis over the longest bar's, for the texts
_INCHES, _BAR_INCHES = 10.5, 0.36
_STYLES: dict[str, Any] = {  # masks and labels are too few bytes to be seen
    kind: fill(place) for place, kind in enumerate(("parameters", "features"))
}
_EQUATION: Any = DIAMOND | {"markersize": 6, "clip_on": False}  # those at zero too


def _draw(axes: Axes, found: Costs, costs: Mapping[str, Cost], equations: Mapping[str, float], unknown: str) -> None:
    rows, gigabyte, gains = found.request.rows, found.request.benchmark.paper.gigabyte, found.gains(costs)
    methods_down(axes, [row_name(row) for row in rows])
    axes.tick_params(axis="x", labelsize=8)
    largest = max((cost.total_bytes for cost in costs.values()), default=0)
    unit, name = (gigabyte, "GB") if largest >= gigabyte / 10 else (10**6, "MB")
    axes.set_xlabel(f"{name}, all rounds, both directions", fontsize=9)
    for place, row in enumerate(rows):
        cost, left = costs.get(row.id), 0.0
        if cost is not None:
            for kind, style in _STYLES.items():
                width = cost.kinds.get(kind, 0) / unit
                axes.barh(place, width, 0.62, left, **style)
                left += width
        if row.id in equations:
            axes.plot([equations[row.id] / unit], [place], **_EQUATION)
            left = max(left, equations[row.id] / unit)
        text = unknown
        if cost is not None:
            over = " and ".join(f"{number(gain)}×" for gain in gains[row.id].values())
            text = ", ".join(filter(None, (human_bytes(cost.total_bytes, gigabyte), over)))
        beside(axes, text, left, place, points=9)
    axes.set_xlim(0, _ROOM * max(largest, *equations.values(), 0) / unit or 1.0)


def _caption(found: Costs) -> str:
    gains = " and ".join(row.name for row in found.baselines)
    text = (
        f"Bars: bytes of all clients, without the one-time model distribution ({', '.join(KINDS.values())}; masks and "
        f"labels are too few to be seen). Beside them: the sum and its gains over {gains}. "
    )
    if found.derived:
        text += "Derived: the channel on the encoder's shapes; diamonds: the paper's equations in consistent bytes. "
    return text.strip() + dagger_note(found.request.rows)


def plot(found: Costs) -> Figure:
    """Measured at the left, derived for the paper's own encoder at the right where that is known."""
    request = found.request
    figure = new_figure(_INCHES, 1.6 + _BAR_INCHES * len(request.rows))
    panels = figure.subplots(1, 2 if found.derived else 1, squeeze=False, sharey=True).flat
    _draw(panels[0], found, found.measured, {}, NOT_RUN)
    panels[0].set_title(f"measured, {request.scale.backbone}", fontsize=10)
    handles: list[Any] = [Patch(label=KINDS[kind], **style) for kind, style in _STYLES.items()]
    if found.derived:
        exact = {closed.row.id: closed.consistent_bytes for closed in found.closed}
        equations = {name: size for name, size in exact.items() if size is not None}
        _draw(panels[1], found, found.derived, equations, DEPENDS)
        panels[1].set_title(f"derived, {request.paper_scale.backbone}", fontsize=10)
        handles.append(Line2D([], [], label="the paper's equation", **_EQUATION))
    return finish(figure, request.heading, handles, _caption(found))
