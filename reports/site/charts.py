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
from reports.pages.styles import colour_of
from reports.pages.text import human_bytes, number
from reports.site.addresses import cell_page
from reports.site.points import Point
from reports.site.profiles import Profiles

Chart = dict[str, JSON]
MEASURES = {
    "total": "uplink and downlink bytes, all rounds and clients",
    "up": "uplink bytes, all rounds and clients",
    "round": "uplink bytes per round, all clients",
}
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


def _field(name: str, **more: Any) -> Any:
    return {"field": name, "type": "quantitative", "title": "", **more}


def _layered(height: int, layers: Mapping[str, Any]) -> Chart:
    """A spec of layers. Each shows the values that have its name as a true field, and is left out without values."""
    shown = [
        {"transform": [{"filter": f"datum.{name}"}], "mark": mark, "encoding": encoding}
        for name, (mark, encoding) in layers.items()
    ]
    return {"height": height, "layer": shown, "usermeta": {"layers": list(layers)}}


_COLOUR: Any = {"field": "method", "type": "nominal", "title": None, "legend": {"columns": 1, "labelLimit": 260}}
_ROUND = _field("round", title="round", axis={"tickMinStep": 1, "format": "d"})
_SCORE = _field("value", scale={"zero": False})
_LOW_TO_HIGH = {"y": {**_SCORE, "field": "low"}, "y2": {"field": "high"}, "color": _COLOUR}
_LINE_TIP = [{"field": "method"}, {"field": "round"}, {"field": "runs"}, {"field": "value", "format": ".2f"}]
LINES = _layered(  # scores after every round: a line a method, ± sd as a band
    280,
    {
        "spread": ({"type": "area", "opacity": 0.14}, {"x": _ROUND, **_LOW_TO_HIGH}),
        "ours": (
            {"type": "line", "point": {"size": 34}, "strokeWidth": 2},
            {"x": _ROUND, "y": _SCORE, "color": _COLOUR, "tooltip": _LINE_TIP},
        ),
    },
)
_SEED_TIP = [{"field": "seed"}, {"field": "round"}, {"field": "value", "format": ".3f"}]
SEEDS = _layered(  # a record's scores after every round: its seed in colour, the others in grey
    260,
    {
        "other": (
            {"type": "line", "strokeWidth": 1.2, "opacity": 0.6, "color": "#999"},
            {"x": _ROUND, "y": _SCORE, "detail": {"field": "seed"}, "tooltip": _SEED_TIP},
        ),
        "own": (
            {"type": "line", "point": {"size": 40}, "strokeWidth": 2.4, "color": "#0072B2"},
            {"x": _ROUND, "y": _SCORE, "tooltip": _SEED_TIP},
        ),
    },
)


def _front_spec(papers: Sequence[str]) -> Chart:
    """Marks of score against bytes: hollow if published; steps join the best; dashed lines send nothing."""
    ticks = {
        "format": "~s",
        "labelExpr": "datum.label ? datum.label + 'B' : ''",
        "labelOverlap": True,
        "tickCount": 6,
    }
    x = _field("x", scale={"type": "log", "nice": False, "padding": 24}, axis=ticks)
    y = _field("value", scale={"zero": False, "padding": 16})
    tip = [{"field": name, "title": name} for name in ("method", "paper", "score", "bytes", "runs", "scale")]
    shapes = {"domain": list(papers), "range": list(_SHAPES[: len(papers)])}
    shape = {"field": "paper", "type": "nominal", "title": None, "scale": shapes, "legend": {}}
    marks = {"x": x, "y": y, "color": _COLOUR, "shape": shape, "tooltip": tip}
    point = {"type": "point", "opacity": 1, "size": 110, "strokeWidth": 2}
    dashed = {"condition": {"test": "datum.reported", "value": [3, 3]}, "value": [1, 0]}
    step = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.2, "opacity": 0.55, "color": "#888"}
    layers = {
        "front": (step, {"x": x, "y": y, "detail": {"field": "scale"}, "strokeDash": dashed}),
        "spread": ({"type": "rule", "strokeWidth": 2}, {"x": x, **_LOW_TO_HIGH, "y": {**y, "field": "low"}}),
        "printed": ({**point, "filled": False}, marks),
        "ours": ({**point, "filled": True, "cursor": "pointer"}, marks),
        "silent": (
            {"type": "rule", "strokeDash": [6, 4], "strokeWidth": 1.4},
            {"y": y, "color": _COLOUR, "tooltip": tip},
        ),
    }
    return _layered(340, layers)


def _chart(
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


def front_chart(points: Sequence[Point], labels: Mapping[str, str]) -> Chart:
    """Score against bytes: a panel a task, those that were run most often first. labels: of scales."""
    weights: dict[str, int] = {}
    for point in points:
        runs = 1 if point.is_reported else 100 * point.n
        weights[_panel(point)] = weights.get(_panel(point), 0) + runs * (point.total_bytes > 0)
    points = [point for point in points if weights[_panel(point)]]  # no method sends anything in the other panels
    titles = {_panel(point): f"{point.task}, {point.score}" for point in points}
    exponential = list(dict.fromkeys(_panel(point) for point in points if point.metric.is_exponential))
    panels = [(key, titles[key]) for key in sorted(titles, key=lambda key: (-weights[key], key))]
    spec = _front_spec(sorted({point.paper for point in points}))
    values = [_front_value(point, labels) for point in points]
    measures = list(map(list, MEASURES.items()))
    return _chart(spec, values, panels, titles=titles, exponential=exponential, measures=measures)


def _panel(point: Point) -> str:
    return f"{point.task} · {point.score}"


def _front_value(point: Point, labels: Mapping[str, str]) -> Chart:
    spread = "" if point.sd is None else f" ± {number(point.sd)}"
    sizes = dict(zip(MEASURES, (point.total_bytes, point.up_bytes, point.round_bytes), strict=True))
    return {
        "panel": _panel(point),
        "method": point.method,
        "paper": point.paper,
        "value": point.value,
        **_spread(point.metric, point.value, point.sd),
        "score": point.metric.in_unit(f"{number(point.value)}{spread}"),
        **sizes,
        "sizes": {name: human_bytes(value) for name, value in sizes.items()},
        "runs": "reported" if point.is_reported else f"{point.n} seed{'s' if point.n > 1 else ''}",
        "scale": "reported" if point.is_reported else f"{point.scale}: {labels.get(point.scale, '')}",
        "reported": point.is_reported,
        "best": point.is_best,
        "href": cell_page(point.cells[0]) if point.cells else "",
    }


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
                own = _spread(metric(column.averaged), centre, sd)
                values.append({**value, **own, "runs": len(defined), "spread": sd is not None})
    if not values:
        return None
    metrics = {column.name: metric(column.averaged) for column in request.columns}
    titles = {name: f"{own.label} ({own.unit})" if own.unit else own.label for name, own in metrics.items()}
    exponential = [name for name, own in metrics.items() if own.is_exponential]
    panels = [(name, name) for name in dict.fromkeys(str(value["panel"]) for value in values)]
    return _chart(LINES, values, panels, titles=titles, exponential=exponential)


def _spread(of: Metric, centre: float, sd: float | None) -> Chart:
    """A mean ± sd over seeds, within the range of its metric."""
    if sd is None:
        return {"low": None, "high": None}
    return {"low": max(centre - sd, of.limits[0]), "high": min(centre + sd, of.limits[1])}


def profile_chart(found: Profiles) -> Chart:
    """Performance profiles: the share of runs that lie within so many points of the best."""
    values = [
        {"method": method, "points": at, "share": share}
        for method, shares in found.shares.items()
        for at, share in zip(found.distances, shares, strict=True)
    ]
    x = _field("points", title="within so many points of the best method's mean")
    y = _field("share", scale={"domain": [0, 1]}, title="share of runs, over tasks", axis={"format": "%"})
    tip = [{"field": "method"}, {"field": "points", "format": ".1f"}, {"field": "share", "format": ".0%"}]
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    return _chart({"height": 280, "mark": line, "encoding": {"x": x, "y": y, "color": _COLOUR, "tooltip": tip}}, values)
