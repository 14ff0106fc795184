"""The pages of sweeps: pictures of what was tried, how much each field mattered, and every trial."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from benchmarks.measures import metric
from reports.evidence.records import Request
from reports.pages.text import human_bytes
from reports.site.addresses import sweep_page
from reports.site.cells import Sheet
from reports.site.material import Material
from reports.site.templates import rendered

# What a sweep leaves, in the order in which a reader asks for it.
PICTURES = {
    "heatmap": "Score over two fields",
    "front": "Score against uplink bytes",
    "history": "Score by trial",
}
EARLY = ("pruned", "given up")  # how the states of trials begin that did not run to their end; the latter of old
TRIALS, IMPORTANCES = "trials.csv", "importances.csv"


def sweep_pages(material: Material) -> Iterator[tuple[str, str]]:
    """A page a table and scale that was swept, by path, and the files beside it."""
    for request in material.requests:
        files = material.sweeps.get((request.benchmark.id, request.scale.id))
        if not files:
            continue
        path = sweep_page(request)
        folder = path.removesuffix(".html")
        yield from ((f"{folder}/{name}", text) for name, text in files.items())
        yield (
            path,
            rendered(
                "sweep",
                path,
                title=f"{request.benchmark.paper.name}, {request.benchmark.place}: sweep",
                here=request.benchmark.paper.id,
                material=material,
                request=request,
                pictures=[
                    (f"{folder}/{name}.svg", about) for name, about in PICTURES.items() if f"{name}.svg" in files
                ],
                trials=_trials(files.get(TRIALS, ""), request),
                importances=_importances(files.get(IMPORTANCES, ""), request),
                downloads=[f"{folder}/{name}" for name in (TRIALS, IMPORTANCES) if name in files],
            ),
        )


def _read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def _names(line: dict[str, str], request: Request) -> list[tuple[str, str]]:
    """Task and method by name, and the end of the study's."""
    tasks = {column.task: column.name for column in request.benchmark.columns}
    rows = {row.id: row.name for row in request.benchmark.rows}
    names = tasks.get(line["task"], line["task"]), rows.get(line["method"], line["method"]), line["study"][-8:]
    return [(name, "") for name in names]


def _trials(text: str, request: Request) -> Sheet:
    """Every trial, those first that are marked: the best, ties and the front."""
    lines = sorted(_read(text), key=lambda line: not line["state"] or line["state"].startswith(EARLY))
    known = ("task", "method", "scale", "study", "trial", "score", "mean", "sd", "seeds", "uplink_bytes", "state")
    fields = [name for name in (lines[0] if lines else {}) if name not in known]
    headers = ("task", "method", "study", "trial", *fields, "score", "validation", "uplink", "what came of it")
    return Sheet(headers, tuple(_trial(line, fields, request) for line in lines))


def _trial(line: dict[str, str], fields: list[str], request: Request) -> tuple[tuple[str, str], ...]:
    by = metric(line["score"])
    shown = f"{by.shown(float(line['mean'])):.2f}" if line["mean"] else "no score"
    size = human_bytes(float(line["uplink_bytes"])) if line["uplink_bytes"] else ""
    return (
        *_names(line, request),
        (line["trial"], line["trial"]),
        *((line[name], "") for name in fields),
        (by.label, ""),
        (shown, line["mean"] or "-inf"),
        (size, line["uplink_bytes"] or "-1"),
        (line["state"], ""),
    )


def _importances(text: str, request: Request) -> Sheet:
    lines = ((*_names(line, request), (line["field"], ""), _share(line["importance"])) for line in _read(text))
    return Sheet(("task", "method", "study", "field", "importance"), tuple(lines))


def _share(value: str) -> tuple[str, str]:
    return f"{100 * float(value):.0f} %", value
