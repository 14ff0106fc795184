"""The pages of tables and of their cells, with the data of their charts."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence

from benchmarks.results import RunResult
from reports.evidence.records import Request
from reports.site import cells
from reports.site.addresses import cell_page, data_script, table_page
from reports.site.charts import curves_chart, seeds_chart
from reports.site.material import Material, Place
from reports.site.tables import comparison_in, matrix
from reports.site.templates import data_script as script
from reports.site.templates import rendered
from reports.views import show

# Views whose numbers are scores: the compact table comes first, and theirs are folded below it.
_OF_SCORES = ("scores", "crossed", "curves", "layers")


def table_pages(material: Material) -> Iterator[tuple[str, str]]:
    """A page a table and scale, by path."""
    for request in material.requests:
        yield from _table(request, material)


def _table(request: Request, material: Material) -> Iterator[tuple[str, str]]:
    benchmark, path = request.benchmark, table_page(request)
    found = importlib.import_module(f"reports.views.{benchmark.view.name}").join(request)
    page, comparison = show(benchmark.view.name, found), comparison_in(found, request)
    chart = curves_chart(request)
    name = f"{benchmark.id}-{request.scale.id}"
    if chart is not None:
        yield data_script(name), script("curves", chart)
    said = {f"Deviation {deviation.id}: {deviation.text}" for deviation in benchmark.deviations}
    yield (
        path,
        rendered(
            "table",
            path,
            title=f"{benchmark.paper.name}, {benchmark.place}",
            here=benchmark.paper.id,
            material=material,
            request=request,
            page=page,
            matrix=matrix(comparison),
            matrix_first=benchmark.view.name in _OF_SCORES,
            shows_reported=comparison.shows_published,
            has_curves=chart is not None,
            notes=[note for note in page.notes if note not in said],
            n_deviations=sum(request.scale.id in deviation.scales for deviation in benchmark.deviations),
            others=[
                other for other in material.requests if other.benchmark.id == benchmark.id and other is not request
            ],
        ),
    )


def cell_pages(material: Material) -> Iterator[tuple[str, str]]:
    """A page a record, and a script of curves for all seeds of a cell."""
    written = set()
    for record in material.records:
        places = material.places.get(record.cell_id, ())
        every = places[0].records if places else (record,)
        has_curves = any(len(other.rounds) > 1 for other in every)
        data = data_script(f"seeds-{every[0].cell_id}")
        if has_curves and data not in written:
            written.add(data)
            yield data, script("seeds", _seeds(every))
        yield cell_page(record.cell_id), _cell(record, places, every, data if has_curves else "", material)


def _seeds(every: Sequence[RunResult]) -> dict[str, object]:
    runs = [{"seed": record.cell.seed, "scores": cells.by_round(record)} for record in every]
    names = cells.score_names(max(every, key=lambda record: len(record.rounds)))
    titles = {name: cells.title_of(name) for name in names}
    choices = {"panel": [[name, title] for name, title in titles.items()]}
    return {"spec": seeds_chart(), "seeds": runs, "choices": choices, "titles": titles}


def _cell(record: RunResult, places: Sequence[Place], every: Sequence[RunResult], data: str, material: Material) -> str:
    place = places[0] if places else None
    name = f"{place.row.name} on {place.column.name}" if place else f"{record.cell.algorithm} on {record.cell.task}"
    unused = record.partition.get("unused_share")
    words = f"{record.partition.get('scheme', 'unknown')}, {len(record.clients)} clients"
    return rendered(
        "cell",
        cell_page(record.cell_id),
        title=f"{name}, seed {record.cell.seed}, scale {record.cell.scale}",
        here=place.request.benchmark.paper.id if place else "",
        material=material,
        record=record,
        place=place,
        others=_others(places),
        seeds=cells.seeds_beside(record, every),
        reached=list(cells.reached(record)),
        costs=list(cells.cost_facts(record)),
        has_curves=bool(data),
        script=data,
        rounds=cells.rounds_sheet(record),
        clients=cells.clients_sheet(record),
        ledger=cells.ledger_sheet(record),
        partition=cells.partition_sheet(record),
        partition_words=words + ("" if unused is None else f"; {100 * unused:.1f} % of the data unused") + ".",
        commands=cells.command(place, record) if place else "",
        settings=cells.settings(record),
        identity=cells.identity(record),
        surroundings=cells.surroundings(record),
    )


def _others(places: Sequence[Place]) -> list[Place]:
    """The other tables that show a record, each once."""
    found = {place.request.benchmark.id: place for place in reversed(places)}
    return [place for place in reversed(found.values()) if place.request is not places[0].request]
