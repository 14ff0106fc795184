"""Charts as Vega-Lite's JSON with their data: the site's script draws them in the reader's light or dark colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple
from itertools import product
from typing import Any

from benchmarks.costs.networks import DEVICES, NETWORKS, Deployment
from benchmarks.experiment import Column, Row
from benchmarks.measures import Metric, metric
from benchmarks.run_config import JSON
from fedsim.errors import plural
from reports.evidence.records import DEMO, Request
from reports.evidence.scores import score_label, scores_of
from reports.evidence.statistics import mean, sample_sd
from reports.evidence.traffic import whole_run
from reports.front.picture import Mark, marks_of
from reports.pages.plots import colour_of
from reports.pages.text import human_bytes, number, with_unit
from reports.site import html
from reports.views import view_class
from reports.views.scores import ScoreTable

Chart = dict[str, JSON]
MANY = 5  # panels with at least this many sending methods are equal in order
MEASURES = {
    "round": "uplink bytes per round, all clients",
    "up": "uplink bytes of the whole run, all clients",
    "total": "uplink and downlink bytes of the whole run, all clients",
}
TIME = ["time", "computed minutes of the whole run"]


def fields(name: str, **more: Any) -> Any:
    """An encoding by a number."""
    return {"field": name, "type": "quantitative", "title": "", **more}


def layered(height: int, layers: Mapping[str, Any]) -> Chart:
    """A spec of layers. Each shows the values with its name as a true field, and is left out without values."""
    shown = [
        {"transform": [{"filter": f"datum.{name}"}], "mark": mark, "encoding": encoding}
        for name, (mark, encoding) in layers.items()
    ]
    return {"height": height, "layer": shown, "usermeta": {"layers": list(layers)}}


_LEGEND = {"columns": 1, "labelLimit": 260, "symbolOpacity": 1}
COLOUR: Any = {"field": "method", "type": "nominal", "title": None, "legend": _LEGEND}
_ROUND = fields("round", title="round", axis={"tickMinStep": 1, "format": "d"})
_SCORE = fields("value", scale={"zero": False})
_LOW_TO_HIGH = {"y": {**_SCORE, "field": "low"}, "y2": {"field": "high"}, "color": COLOUR}
_LINE_TIP = [{"field": "method"}, {"field": "round"}, {"field": "runs"}, {"field": "value", "format": ".2f"}]
LINES = layered(  # scores after every round: one line per method, ± sd as a band
    280,
    {
        "spread": ({"type": "area", "opacity": 0.14}, {"x": _ROUND, **_LOW_TO_HIGH}),
        "ours": (
            {"type": "line", "point": {"size": 34}, "strokeWidth": 2},
            {"x": _ROUND, "y": _SCORE, "color": COLOUR, "shape": COLOUR, "tooltip": _LINE_TIP},  # not by colour alone
        ),
    },
)


def chart_of(
    spec: Chart, values: Sequence[Mapping[str, JSON]], panels: Sequence[tuple[str, str]] = (), **more: JSON
) -> Chart:
    """The script's input: a spec without data, all values, and the panels to choose from.

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
    """Scores after every round, one line per method: mean over seeds, ± sd as a band; None without runs."""
    values: list[Chart] = []
    for row, column in product(request.rows, request.columns):
        by_round = scores_of(request.records_of(row, column), column.averaged).by_round
        for place, measured in enumerate(by_round if len(by_round) > 1 else (), start=1):
            if measured:
                centre, sd = mean(measured), sample_sd(measured)
                value = {"panel": column.name, "method": row.name, "round": place, "value": centre, "ours": True}
                band = _spread(metric(column.averaged), centre, sd)
                values.append({**value, **band, "runs": len(measured), "spread": sd is not None})
    if not values:
        return None
    metrics = {column.name: metric(column.averaged) for column in request.columns}
    titles = {name: with_unit(measure.label, measure.unit) for name, measure in metrics.items()}
    exponential = [name for name, measure in metrics.items() if measure.is_exponential]
    panels = [(name, name) for name in dict.fromkeys(str(value["panel"]) for value in values)]
    return chart_of(LINES, values, panels, titles=titles, exponential=exponential)


def _spread(of: Metric, centre: float, sd: float | None) -> Chart:
    """A mean ± sd over seeds, within the range of its metric."""
    if sd is None:
        return {"low": None, "high": None}
    return {"low": max(centre - sd, of.limits[0]), "high": min(centre + sd, of.limits[1])}


def front_scale(scales: Sequence[str]) -> str:
    """The first scale with real data, or the first scale."""
    return next((scale for scale in scales if scale != DEMO), scales[0])


def front_chart(requests: Sequence[Request], scales: Sequence[str]) -> Chart | None:
    """Score against bytes at the scale of the first page; None without marks.

    One panel per task of a table, those with many methods and seeds first; no panel if nothing is sent.
    """
    scale = front_scale(scales)
    panels: dict[str, list[Chart]] = {}
    titles, runs, exponential = {}, {}, []
    for request in requests:
        view = view_class(request.benchmark)
        if request.scale.id != scale or not (issubclass(view, ScoreTable) and view.is_of_whole_runs):
            continue
        for column in request.columns:
            marks = list(marks_of(request, column, column.averaged))
            if not any(mark.cost.round_up for mark in marks):
                continue
            label, by = score_label(column, column.averaged), metric(column.averaged)
            name = f"{request.benchmark.paper.name}, {request.benchmark.place}: {column.name}, {label}"
            panels[name] = list(_values(name, marks, request, column))
            titles[name] = with_unit(f"{column.name}, {label}", by.unit)
            sending = [len(mark.scores) for mark in marks if mark.cost.round_up]
            runs[name] = min(len(sending), MANY), mean(sending)
            exponential += [name] if by.is_exponential else []
    values = [value for name in panels for value in panels[name]]
    if not values:
        return None
    choices = [(name, name) for name in sorted(panels, key=runs.__getitem__, reverse=True)]
    measures = [*map(list, MEASURES.items()), TIME]
    more = {"titles": titles, "exponential": exponential, "measures": measures, "presets": presets()}
    return chart_of(_spec(), values, choices, **more)


def _values(panel: str, marks: Sequence[Mark], request: Request, column: Column) -> Iterator[Chart]:
    """The marks of a panel: the paper's methods first, then others that send something."""
    by = metric(column.averaged)
    for mark in sorted(marks, key=lambda mark: (not mark.row.printed, not mark.cost.round_up)):
        centre, sd, cost = mean(mark.scores), sample_sd(mark.scores), mark.cost
        sizes = dict(zip(MEASURES, (cost.round_up, cost.up_bytes, cost.total_bytes), strict=True))
        about = f"{number(centre)}{'' if sd is None else f' ± {number(sd)}'}"
        yield {
            "panel": panel,
            "method": mark.row.name,
            "value": centre,
            **_spread(by, centre, sd),
            "score": by.in_unit(about),
            **sizes,
            "sizes": {name: human_bytes(size) for name, size in sizes.items()},
            "rounds": rounds_of(request, mark.row, column),
            "runs": plural(len(mark.scores), "seed"),
            "href": html.cell_page(mark.cell_id),
        }


def _spec() -> Chart:
    """Marks of score against bytes, each with its name; dashed lines send nothing. The script sets the domains."""
    ticks = {"format": "~s", "labelExpr": "datum.label ? datum.label + 'B' : ''", "labelOverlap": True, "tickCount": 6}
    scale = {"type": "log", "nice": False}
    x, at = (fields(name, scale=scale, axis=ticks) for name in ("x", "at"))
    colour = {"field": "method", "type": "nominal", "legend": None}
    about = {"color": colour, "tooltip": [{"field": name} for name in ("method", "score", "bytes", "runs")]}
    y, thin = fields("value"), {"type": "rule", "strokeWidth": 0.8}
    layers = {
        "spread": ({"type": "rule", "strokeWidth": 2}, {"x": x, **about, "y": fields("low"), "y2": {"field": "high"}}),
        "leads": (thin, {"x": x, "x2": {"field": "at"}, "y": y, "y2": {"field": "label"}, **about}),
        "silent": ({**thin, "strokeDash": [6, 4], "strokeWidth": 1.4}, {"y": y, **about}),
        "sends": ({"type": "point", "filled": True, "size": 110, "cursor": "pointer"}, {"x": x, "y": y, **about}),
        "named": (
            {"type": "text", "align": "left", "baseline": "middle", "dx": 3, "fontSize": 12},
            {"x": at, "y": fields("label"), "text": {"field": "method"}},
        ),
    }
    return layered(380, layers)


def presets() -> JSON:
    """The networks and devices to choose from, and the settings that stay as in the tables."""
    share = Deployment.utilisation
    return {
        "networks": {name: asdict(network) for name, network in NETWORKS.items()},
        "devices": {name: {"name": device.name, "rate": share * device.peak} for name, device in DEVICES.items()},
        "server": share * Deployment.server.peak,
        "slowdown": Deployment.slowdown,
    }


def rounds_of(request: Request, row: Row, column: Column) -> list[JSON]:
    """For each seed the distinct rounds of a run with its earlier ones: how many, and the numbers of each `Turn`.

    Empty if the operations of a method are unknown.
    """
    runs = [whole_run(record, request) for record in request.records_of(row, column)]
    return [
        [[count, list(turns)] for turns, count in Counter(tuple(map(astuple, turns)) for turns in rounds).items()]
        for rounds in runs
        if rounds
    ]
