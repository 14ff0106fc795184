"""The pages of tables and of their sweeps: a compact table with links to the runs, its chart, and all its numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from fedsim.errors import plural
from reports.evidence.scores import score_label
from reports.evidence.statistics import mean
from reports.pages.page import deviation_note
from reports.pages.text import NOT_RUN, NOTHING, in_one_unit, marked, number
from reports.site import html
from reports.site.charts import curves_chart
from reports.site.site_data import SiteData
from reports.views import view_of
from reports.views.comparison import Comparison
from reports.views.curves import Curves


def table_pages(site: SiteData) -> Iterator[tuple[str, str]]:
    """A page for each table and scale, by path, and one for its sweeps."""
    for request in site.requests:
        benchmark, path = request.benchmark, html.table_page(request)
        view = view_of(request)
        comparison = view if isinstance(view, Comparison) else Comparison(request)
        chart = curves_chart(request)
        data = f"data/{benchmark.id}-{request.scale.id}.js" if chart is not None else ""
        if chart is not None:
            yield data, html.script("curves", chart)
        page = view.page()
        deviations = set(map(deviation_note, benchmark.deviations))
        values = {
            "title": f"{benchmark.paper.name}, {benchmark.place}",
            "here": benchmark.paper.id,
            "site": site,
            "request": request,
            "page": page,
            "matrix": matrix(comparison),
            # If the view's numbers are scores, its own tables are folded below the compact one.
            "matrix_first": isinstance(view, Comparison | Curves),
            "shows_reported": comparison.shows_published,
            "script": data,
            "notes": [note for note in page.notes if note not in deviations],
            "n_deviations": sum(request.scale.id in deviation.scales for deviation in benchmark.deviations),
            "others": [each for each in site.requests if each.benchmark.id == benchmark.id and each is not request],
        }
        yield path, html.rendered("table", path, **values)
        if files := site.sweeps.get((benchmark.id, request.scale.id)):
            yield from _sweep(files, values)


# ---- the compact table -----------------------------------------------------------------------------------------------


def matrix(comparison: Comparison) -> html.Sheet:
    """The compact table: one line per method, its bytes, `75.3 ± 0.4 (5)` per cell and the published value below."""
    request = comparison.request
    places = [(column, score) for column in request.columns for score in column.scores]
    sizes, headers = _bytes(comparison)
    lines = []
    for row in request.rows:
        name = html.Entry(request.name_of(row), title=row.note, kind="row")
        scores = (_entry(comparison, row, *place) for place in places)
        lines.append((name, *sizes[row.id], *scores))
    return html.sheet(
        [("Method", ""), *headers, *((column.name, score_label(column, s)) for column, s in places)], lines
    )


def _bytes(comparison: Comparison) -> tuple[dict[str, list[html.Entry]], list[tuple[str, str]]]:
    """Bytes by row and their headers: up and down per round, and the set-up; empty without bytes.

    Means over the tasks that all of the paper's methods ran; a note counts a method's tasks if they differ.
    """
    request = comparison.request
    costs = {
        row.id: {
            column.name: (cost.round_up, cost.round_down, cost.setup_bytes)
            for column in request.columns
            if (cost := comparison.cell(row, column).cost) is not None
        }
        for row in request.rows
    }
    ran = [set(costs[row.id]) for row in request.rows if costs[row.id] and row.printed] or [set()]
    common = set.intersection(*ran)
    sizes, notes = {}, {}
    for name, by_task in costs.items():
        tasks = [task for task in by_task if task in common] or list(by_task)
        sizes[name] = [mean(way) for way in zip(*(by_task[task] for task in tasks), strict=True)]
        notes[name] = "" if not tasks or set(tasks) == common else plural(len(tasks), "task")
    flat = [value for values in sizes.values() for value in values]
    if not any(flat):
        return {name: [] for name in costs}, []
    texts = iter(in_one_unit(flat, request.benchmark.paper.gigabyte, places=1))
    entries = {
        name: [html.Entry(next(texts), repr(value), note=notes[name]) for value in values] or [html.Entry(NOTHING)] * 3
        for name, values in sizes.items()
    }
    over = ", ".join(sorted(common)) if len(common) <= 2 else f"mean of {len(common)} tasks"
    over = f"per round, {over}" if common else "per round"
    return entries, [("uplink", over), ("downlink", over), ("one-time model", "distribution")]


def _entry(comparison: Comparison, row: Row, column: Column, score: str) -> html.Entry:
    cell, request, unit = comparison.cell(row, column), comparison.request, metric(score).unit
    result, selection = cell.score(score), request.selections[row.id, column.task]
    published = result.published if comparison.shows_published and row.printed else None
    note = "" if published is None else marked(number(published), result.is_derived)
    records = [*selection.records, *selection.diverged]
    link = html.cell_page(min(records, key=lambda record: record.cell.seed).cell_id) if records else ""
    if not cell.is_run:
        sort = "" if published is None else repr(published)
        return html.Entry(selection.divergence or NOT_RUN, sort, link, note, kind="open")
    numbers = {"± test set": result.sampling_error, "reported": published, "difference to reported": result.difference}
    about = [f"{name} {metric(score).in_unit(number(value))}" for name, value in numbers.items() if value is not None]
    if result.interval is not None:
        about.insert(0, f"90 % interval {number(result.interval[0])} to {number(result.interval[1])}")
    if result.verdict:
        about.append(result.verdict)
    seeds = ", ".join(map(str, cell.seeds))
    title = f"{row.name}, {column.name} {score_label(column, score)} {unit}: seeds {seeds}; {'; '.join(about)}"
    if result.ours is None:
        return html.Entry("undefined" if result.is_held else NOTHING, "", link, note, title)
    spread = "" if result.sd is None else f" ± {html.compact(result.sd, unit)}"
    text = f"{html.compact(result.ours, unit)}{spread} ({result.seeds})"
    kind = "best" if row.id in comparison.bold[column.task, score] else ""
    return html.Entry(text, repr(result.ours), link, note, title, kind)


# ---- sweeps --------------------------------------------------------------------------------------------------------


def _sweep(files: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The page of a sweep, and its pictures and tables as files."""
    path = html.sweep_page(values["request"])
    folder = path.removesuffix(".html")
    yield from ((f"{folder}/{name}", text) for name, text in files.items())
    sweep = {
        "title": f"{values['title']}: sweep",
        "pictures": [f"{folder}/{name}" for name in files if name.endswith(".svg")],
        "sheets": {
            f"{folder}/{name}": _as_sheet(list(csv.DictReader(io.StringIO(text))))
            for name, text in files.items()
            if name.endswith(".csv")
        },
    }
    yield path, html.rendered("sweep", path, **{**values, **sweep})


def _as_sheet(lines: Sequence[Mapping[str, str]]) -> html.Sheet:
    """Lines of a CSV file: numbers in four digits, sorted as numbers, and bytes in readable units."""

    def entry(name: str, text: str) -> html.Entry:
        try:
            value = float(text)
        except ValueError:
            return html.Entry(text)
        return html.size(value) if name.endswith("_bytes") else html.Entry(f"{value:.4g}", text)

    headers = tuple(lines[0]) if lines else ()
    return html.sheet(headers, ([entry(name, line[name]) for name in headers] for line in lines))
