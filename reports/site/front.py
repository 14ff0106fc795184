"""The chart of the first page: score against bytes, one task of one table at one scale, at most eight methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.measures import metric
from reports.evidence.records import DEMO, Request
from reports.evidence.scores import score_label
from reports.evidence.statistics import mean, sample_sd
from reports.front.picture import Mark, marks_of
from reports.pages.text import human_bytes, number
from reports.site import html
from reports.site.charts import Chart, chart_of, fields, layered, spread

VIEWS = ("scores", "crossed")  # tables whose numbers are scores of whole runs
MEASURES = {
    "round": "uplink bytes per round, all clients",
    "up": "uplink bytes of the whole run, all clients",
    "total": "uplink and downlink bytes of the whole run, all clients",
}


def front_scale(scales: Sequence[str]) -> str:
    """The first scale whose data are real, or else the first."""
    return next((scale for scale in scales if scale != DEMO), scales[0])


def front_chart(requests: Sequence[Request], scales: Sequence[str]) -> Chart | None:
    """Score against bytes at the scale of the first page; None without marks.

    A panel a task of a table, those with the most runs first. No panel has methods of which none sends anything.
    """
    scale = front_scale(scales)
    panels: dict[str, list[Chart]] = {}
    titles, runs, exponential = {}, {}, []
    for request in requests:
        if request.scale.id != scale or request.benchmark.view.name not in VIEWS:
            continue
        for column in request.columns:
            marks = list(marks_of(request, column, column.averaged))
            if not any(mark.round_bytes for mark in marks):
                continue
            label, by = score_label(column, column.averaged), metric(column.averaged)
            name = f"{request.benchmark.paper.name}, {request.benchmark.place}: {column.name}, {label}"
            panels[name] = list(_values(name, marks, column.averaged))
            titles[name] = f"{column.name}, {label}" + (f" ({by.unit})" if by.unit else "")
            runs[name] = sum(len(mark.scores) for mark in marks if mark.round_bytes)
            exponential += [name] if by.is_exponential else []
    values = [value for name in panels for value in panels[name]]
    if not values:
        return None
    choices = [(name, name) for name in sorted(panels, key=lambda name: (-runs[name], name))]
    measures = list(map(list, MEASURES.items()))
    return chart_of(_spec(), values, choices, titles=titles, exponential=exponential, measures=measures)


def _values(panel: str, marks: Sequence[Mark], score: str) -> Iterator[Chart]:
    """The marks of a panel, in the order in which methods are chosen: the best by bytes, the paper's own, others."""
    by = metric(score)
    means = {mark.row.id: mean(mark.scores) for mark in marks}

    def is_best(mark: Mark) -> bool:
        """Whether no method is as good with fewer bytes a round, or better with as many."""
        own = means[mark.row.id], mark.round_bytes
        return not any(
            by.gain(means[other.row.id], own[0]) >= 0
            and other.round_bytes <= own[1]
            and (means[other.row.id], other.round_bytes) != own
            for other in marks
        )

    for mark in sorted(marks, key=lambda mark: (not is_best(mark), not mark.row.printed)):
        centre, sd = means[mark.row.id], sample_sd(mark.scores)
        sizes = dict(zip(MEASURES, (mark.round_bytes, mark.up_bytes, mark.total_bytes), strict=True))
        about = f"{number(centre)}{'' if sd is None else f' ± {number(sd)}'}"
        yield {
            "panel": panel,
            "method": mark.row.name,
            "value": centre,
            **spread(by, centre, sd),
            "score": by.in_unit(about),
            **sizes,
            "sizes": {name: human_bytes(size) for name, size in sizes.items()},
            "runs": f"{len(mark.scores)} seed{'s' if len(mark.scores) > 1 else ''}",
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
