"""The pages of tables and of their sweeps, with the data of their charts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from benchmarks.measures import metric
from reports.evidence.records import Request
from reports.site.addresses import data_script, sweep_page, table_page
from reports.site.charts import curves_chart
from reports.site.material import Material
from reports.site.tables import Entry, Sheet, comparison_in, matrix, sheet, size
from reports.site.templates import rendered, script
from reports.views import show, view_of

# Views whose numbers are scores: the compact table comes first, and their own tables are folded below it.
_OF_SCORES = ("scores", "crossed", "curves", "layers")
# What a sweep leaves, in the order in which a reader asks for it.
PICTURES = {
    "heatmap": "Score over two fields",
    "front": "Score against uplink bytes",
    "history": "Score by trial",
}
EARLY = ("pruned", "given up")  # how the states of trials begin that were stopped early; the latter in old files
TRIALS, IMPORTANCES = "trials.csv", "importances.csv"


def table_pages(material: Material) -> Iterator[tuple[str, str]]:
    """A page for each table and scale, by path, and one for its sweeps."""
    for request in material.requests:
        benchmark, path = request.benchmark, table_page(request)
        view = view_of(request)
        page, comparison, chart = show(view), comparison_in(view, request), curves_chart(request)
        data = data_script(f"{benchmark.id}-{request.scale.id}") if chart is not None else ""
        if chart is not None:
            yield data, script("curves", chart)
        deviations = {f"Deviation {deviation.id}: {deviation.text}" for deviation in benchmark.deviations}
        values = {
            "title": f"{benchmark.paper.name}, {benchmark.place}",
            "here": benchmark.paper.id,
            "material": material,
            "request": request,
            "page": page,
            "matrix": matrix(comparison),
            "matrix_first": benchmark.view.name in _OF_SCORES,
            "shows_reported": comparison.shows_published,
            "script": data,
            "notes": [note for note in page.notes if note not in deviations],
            "n_deviations": sum(request.scale.id in deviation.scales for deviation in benchmark.deviations),
            "others": [own for own in material.requests if own.benchmark.id == benchmark.id and own is not request],
        }
        yield path, rendered("table", path, **values)
        if files := material.sweeps.get((benchmark.id, request.scale.id)):
            yield from _sweep(files, values)


def _sweep(files: Any, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The page of a sweep and the files that it shows."""
    request = values["request"]
    path = sweep_page(request)
    folder = path.removesuffix(".html")
    yield from ((f"{folder}/{name}", text) for name, text in files.items())
    sheets = {
        "pictures": [(f"{folder}/{name}.svg", text) for name, text in PICTURES.items() if f"{name}.svg" in files],
        "trials": _trials(_read(files.get(TRIALS, "")), request),
        "importances": _importances(_read(files.get(IMPORTANCES, "")), request),
        "downloads": [f"{folder}/{name}" for name in (TRIALS, IMPORTANCES) if name in files],
    }
    yield path, rendered("sweep", path, **{**values, "title": f"{values['title']}: sweep", **sheets})


def _read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def _names(line: dict[str, str], request: Request) -> tuple[str, str, str]:
    """Task and method by name, and the end of the study's."""
    tasks = {column.task: column.name for column in request.benchmark.columns}
    rows = {row.id: row.name for row in request.benchmark.rows}
    return tasks.get(line["task"], line["task"]), rows.get(line["method"], line["method"]), line["study"][-8:]


def _trials(lines: list[dict[str, str]], request: Request) -> Sheet:
    """Every trial, marked ones first: the best, ties and the front."""
    known = ("task", "method", "scale", "study", "trial", "score", "mean", "sd", "seeds", "uplink_bytes", "state")
    fields = [name for name in (lines[0] if lines else {}) if name not in known]
    shown: list[list[Entry | str]] = []
    for line in sorted(lines, key=lambda line: not line["state"] or line["state"].startswith(EARLY)):
        by, mean, sent = metric(line["score"]), line["mean"], line["uplink_bytes"]
        score = Entry(f"{by.shown(float(mean)):.2f}", mean) if mean else Entry("no score", "-inf")
        trial, uplink = Entry(line["trial"], line["trial"]), size(float(sent)) if sent else Entry("", "-1")
        values = (line[name] for name in fields)
        shown.append([*_names(line, request), trial, *values, by.label, score, uplink, line["state"]])
    headers = ("task", "method", "study", "trial", *fields, "score", "validation", "uplink", "result")
    return sheet(headers, shown)


def _importances(lines: list[dict[str, str]], request: Request) -> Sheet:
    shown = (
        (*_names(line, request), line["field"], Entry(f"{100 * float(line['importance']):.0f} %", line["importance"]))
        for line in lines
    )
    return sheet(("task", "method", "study", "field", "importance"), shown)
