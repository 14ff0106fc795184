"""Charts as Vega-Lite's JSON with their data: the site's script draws them in the reader's light or dark colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from benchmarks.measures import Metric, metric
from benchmarks.run_config import JSON
from reports.evidence.records import Request
from reports.evidence.scores import known, scores_of
from reports.evidence.statistics import mean, sample_sd
from reports.pages.plots import colour_of

Chart = dict[str, JSON]


def fields(name: str, **more: Any) -> Any:
    """An encoding by a number."""
    return {"field": name, "type": "quantitative", "title": "", **more}


def layered(height: int, layers: Mapping[str, Any]) -> Chart:
    """A spec of layers. Each shows the values that have its name as a true field, and is left out without values."""
    shown = [
        {"transform": [{"filter": f"datum.{name}"}], "mark": mark, "encoding": encoding}
        for name, (mark, encoding) in layers.items()
    ]
    return {"height": height, "layer": shown, "usermeta": {"layers": list(layers)}}


COLOUR: Any = {"field": "method", "type": "nominal", "title": None, "legend": {"columns": 1, "labelLimit": 260}}
_ROUND = fields("round", title="round", axis={"tickMinStep": 1, "format": "d"})
_SCORE = fields("value", scale={"zero": False})
_LOW_TO_HIGH = {"y": {**_SCORE, "field": "low"}, "y2": {"field": "high"}, "color": COLOUR}
_LINE_TIP = [{"field": "method"}, {"field": "round"}, {"field": "runs"}, {"field": "value", "format": ".2f"}]
LINES = layered(  # scores after every round: a line a method, ± sd as a band
    280,
    {
        "spread": ({"type": "area", "opacity": 0.14}, {"x": _ROUND, **_LOW_TO_HIGH}),
        "ours": (
            {"type": "line", "point": {"size": 34}, "strokeWidth": 2},
            {"x": _ROUND, "y": _SCORE, "color": COLOUR, "tooltip": _LINE_TIP},
        ),
    },
)


def chart_of(
    spec: Chart, values: Sequence[Mapping[str, JSON]], panels: Sequence[tuple[str, str]] = (), **more: JSON
) -> Chart:
    """What the script needs: a spec without data, all values, and the panels that a reader may choose between.

    Args:
        spec: Of Vega-Lite.
        values: Of all panels.
        panels: A value's "panel" and its label; the first is shown first.
        more: titles: of panels; exponential: the panels with a logarithmic axis of scores.
    """
    colours = {value["method"]: colour_of(str(value["method"])) for value in values if "method" in value}
    choices = {"panel": list(map(list, panels))} if panels else {}
    return {"spec": spec, "values": list(values), "choices": choices, "colours": colours, **more}


def curves_chart(request: Request) -> Chart | None:
    """Scores after every round, a line a method: mean over seeds, ± sd as a band; None if nothing was run."""
    values: list[Chart] = []
    for row, column in product(request.rows, request.columns):
        records = request.records_of(row, column)
        if not records or max(len(record.rounds) for record in records) < 2:
            continue
        shorter = min(len(record.rounds) for record in records)
        shown = [seed[:shorter] for seed in scores_of(records, column.averaged).shown]
        for place, scores in enumerate(zip(*shown, strict=True), start=1):
            if defined := known(scores):
                centre, sd = mean(defined), sample_sd(defined)
                value = {"panel": column.name, "method": row.name, "round": place, "value": centre, "ours": True}
                own = spread(metric(column.averaged), centre, sd)
                values.append({**value, **own, "runs": len(defined), "spread": sd is not None})
    if not values:
        return None
    metrics = {column.name: metric(column.averaged) for column in request.columns}
    titles = {name: f"{own.label} ({own.unit})" if own.unit else own.label for name, own in metrics.items()}
    exponential = [name for name, own in metrics.items() if own.is_exponential]
    panels = [(name, name) for name in dict.fromkeys(str(value["panel"]) for value in values)]
    return chart_of(LINES, values, panels, titles=titles, exponential=exponential)


def spread(of: Metric, centre: float, sd: float | None) -> Chart:
    """A mean ± sd over seeds, within the range of its metric."""
    if sd is None:
        return {"low": None, "high": None}
    return {"low": max(centre - sd, of.limits[0]), "high": min(centre + sd, of.limits[1])}
