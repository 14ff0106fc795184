"""Charts as Vega-Lite's JSON, with their data: what the site's script draws, in the reader's light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from benchmarks.measures import Metric, metric
from benchmarks.run_config import JSON
from reports.evidence.records import Request
from reports.evidence.scores import scores_of
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
_COLOUR: Any = {"field": "method", "type": "nominal", "title": None, "legend": {"columns": 1, "labelLimit": 260}}


def chart(
    spec: Mapping[str, JSON], values: Sequence[Mapping[str, JSON]], choices: Mapping[str, JSON], **more: JSON
) -> Chart:
    """What the script needs: a spec without data, all values, and what a reader may choose between.

    choices: a value's field -> [key, label] of each option: the values of the first are shown at first. Of the panels
    that `more` has as `exponential`, scores stand on a logarithmic axis.
    """
    colours = {value["method"]: colour_of(value["method"]) for value in values if "method" in value}
    return {"spec": dict(spec), "values": list(values), "choices": dict(choices), "colours": colours, **more}


def front_chart(points: Sequence[Point], labels: Mapping[str, str]) -> Chart:
    """Score against bytes: a panel a task; reported marks are hollow, ours have ± sd over seeds. labels: of scales."""
    weights: dict[str, int] = {}
    for point in points:
        key = _panel(point)
        runs = 1 if point.is_reported else 100 * point.n  # what was run most often comes first
        weights[key] = weights.get(key, 0) + runs * (point.total_bytes > 0)
    points = [found for found in points if weights[_panel(found)]]  # elsewhere nothing is sent by any method
    titles = {_panel(point): f"{point.task}, {point.score}" for point in points}
    exponential = list(dict.fromkeys(_panel(point) for point in points if point.metric.is_exponential))
    values = [_front_value(point, labels) for point in points]
    panels = sorted(titles, key=lambda key: (-weights[key], key))
    tip = [{"field": name, "title": name} for name in ("method", "paper", "score", "bytes", "runs", "scale")]
    x = {"field": "x", "type": "quantitative", "scale": {"type": "log", "nice": False, "padding": 24}, "title": ""}
    x["axis"] = {
        "format": "~s",
        "labelExpr": "datum.label ? datum.label + 'B' : ''",
        "labelOverlap": True,
        "tickCount": 6,
    }
    y = {"field": "value", "type": "quantitative", "scale": {"zero": False, "padding": 16}, "title": ""}
    mark = {"size": 110, "strokeWidth": 2}
    shape = {"field": "paper", "type": "nominal", "title": None, "scale": _papers(points), "legend": {}}
    encoding = {"x": x, "y": y, "color": _COLOUR, "shape": shape, "tooltip": tip}
    dashed = {"condition": {"test": "datum.reported", "value": [3, 3]}, "value": [1, 0]}
    layers = {
        "front": {
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.2, "opacity": 0.55, "color": "#888"},
            "encoding": {"x": x, "y": y, "detail": {"field": "scale"}, "strokeDash": dashed},
        },
        "spread": {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": _COLOUR},
        },
        "printed": {"mark": {"type": "point", "filled": False, "opacity": 1, **mark}, "encoding": encoding},
        "ours": {
            "mark": {"type": "point", "filled": True, "opacity": 1, **mark, "cursor": "pointer"},
            "encoding": encoding,
        },
        "silent": {
            "mark": {"type": "rule", "strokeDash": [6, 4], "strokeWidth": 1.4},
            "encoding": {"y": y, "color": _COLOUR, "tooltip": tip},
        },
    }
    choices = {"panel": [[key, titles[key]] for key in panels]}
    measures = list(map(list, MEASURES.items()))
    return chart(layered(340, layers), values, choices, titles=titles, exponential=exponential, measures=measures)


def layered(height: int, layers: Mapping[str, JSON]) -> Chart:
    """A spec of layers, each of which shows the values that have its name as a true field, and is left out without."""
    return {
        "height": height,
        "layer": [{"transform": [{"filter": f"datum.{name}"}], **layer} for name, layer in layers.items()],
        "usermeta": {"layers": list(layers)},
    }


def _panel(point: Point) -> str:
    return f"{point.task} · {point.score}"


def _papers(points: Iterable[Point]) -> Chart:
    papers = sorted({point.paper for point in points})
    return {"domain": papers, "range": list(_SHAPES[: len(papers)])}


def _front_value(point: Point, labels: Mapping[str, str]) -> Chart:
    spread = "" if point.sd is None else f" ± {number(point.sd)}"
    sizes = (point.total_bytes, point.up_bytes, point.round_bytes)
    return {
        "panel": _panel(point),
        "method": point.method,
        "paper": point.paper,
        "value": point.value,
        **_spread(point.metric, point.value, point.sd),
        "score": point.metric.in_unit(f"{number(point.value)}{spread}"),
        **dict(zip(MEASURES, sizes, strict=True)),
        "sizes": dict(zip(MEASURES, map(human_bytes, sizes), strict=True)),
        "runs": "reported" if point.is_reported else f"{point.n} seed{'s' if point.n > 1 else ''}",
        "scale": "reported" if point.is_reported else f"{point.scale}: {labels.get(point.scale, '')}",
        "reported": point.is_reported,
        "best": point.is_best,
        "href": cell_page(point.cells[0]) if point.cells else "",
    }


def curves_chart(request: Request) -> Chart | None:
    """Scores after every round, a line a method: mean over seeds, ± sd as a band; None where nothing was run."""
    values: list[Chart] = []
    for row, column in product(request.rows, request.columns):
        records = request.records_of(row, column)
        if not records or max(len(record.rounds) for record in records) < 2:
            continue
        shorter = min(len(record.rounds) for record in records)
        shown = [seed[:shorter] for seed in scores_of(records, column.averaged).shown]
        for place, found in enumerate(zip(*shown, strict=True), start=1):
            known = [value for value in found if value is not None]
            if known:
                sd = sample_sd(known)
                centre = mean(known)
                values.append(
                    {
                        "panel": column.name,
                        "method": row.name,
                        "round": place,
                        "value": centre,
                        **_spread(metric(column.averaged), centre, sd),
                        "runs": len(known),
                        "ours": True,
                        "spread": sd is not None,
                    }
                )
    if not values:
        return None
    titles = {column.name: _title(column.averaged) for column in request.columns}
    exponential = [column.name for column in request.columns if metric(column.averaged).is_exponential]
    panels = {"panel": [[name, name] for name in dict.fromkeys(value["panel"] for value in values)]}
    return chart(_lines("method"), values, panels, titles=titles, exponential=exponential)


def _spread(of: Metric, centre: float, sd: float | None) -> Chart:
    """A mean ± sd over seeds, within what a score can be."""
    if sd is None:
        return {"low": None, "high": None}
    return {"low": max(centre - sd, of.limits[0]), "high": min(centre + sd, of.limits[1])}


def _title(score: str) -> str:
    found = metric(score)
    return f"{found.label} ({found.unit})" if found.unit else found.label


def _lines(of: str) -> Chart:
    x = {"field": "round", "type": "quantitative", "title": "round", "axis": {"tickMinStep": 1, "format": "d"}}
    y = {"field": "value", "type": "quantitative", "scale": {"zero": False}, "title": ""}
    tip = [{"field": name} for name in (of, "round", "runs")] + [{"field": "value", "format": ".2f"}]
    band = {
        "mark": {"type": "area", "opacity": 0.14},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": _COLOUR},
    }
    line = {
        "mark": {"type": "line", "point": {"size": 34}, "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": _COLOUR, "tooltip": tip},
    }
    return layered(280, {"spread": band, "ours": line})


def seeds_chart() -> Chart:
    """A record's scores after every round: its seed in colour, the others beside it in grey."""
    x = {"field": "round", "type": "quantitative", "title": "round", "axis": {"tickMinStep": 1, "format": "d"}}
    y = {"field": "value", "type": "quantitative", "scale": {"zero": False}, "title": ""}
    tip = [{"field": "seed"}, {"field": "round"}, {"field": "value", "format": ".3f"}]
    other = {"type": "line", "strokeWidth": 1.2, "opacity": 0.6, "color": "#999"}
    own = {"type": "line", "point": {"size": 40}, "strokeWidth": 2.4, "color": "#0072B2"}
    layers = {
        "other": {"mark": other, "encoding": {"x": x, "y": y, "detail": {"field": "seed"}, "tooltip": tip}},
        "own": {"mark": own, "encoding": {"x": x, "y": y, "tooltip": tip}},
    }
    return layered(260, layers)


def profile_chart(found: Profiles) -> Chart:
    """Performance profiles: the share of runs that lie within so many points of the best."""
    values = [
        {"method": profile.method, "points": at, "share": share}
        for profile in found.profiles
        for at, share in zip(profile.distances, profile.shares, strict=True)
    ]
    x = {"field": "points", "type": "quantitative", "title": "within so many points of the best method's mean"}
    y = {"field": "share", "type": "quantitative", "scale": {"domain": [0, 1]}, "title": "share of runs, over tasks"}
    y["axis"] = {"format": "%"}
    tip = [{"field": "method"}, {"field": "points", "format": ".1f"}, {"field": "share", "format": ".0%"}]
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    return chart(
        {"height": 280, "mark": line, "encoding": {"x": x, "y": y, "color": _COLOUR, "tooltip": tip}}, values, {}
    )
