"""The first page, and the pages over several tables: the state at a glance, all tasks at once, all records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.measures import metric
from benchmarks.results import RunResult
from reports.front.state import AGAINST, claims_counted
from reports.pages.text import NOTHING
from reports.site.addresses import INDEX, PROFILES, RECORDS, cell_page, data_script, paper_page, table_page
from reports.site.charts import front_chart, profile_chart
from reports.site.material import Dossier, Material, Place
from reports.site.points import Point, points_of, with_front
from reports.site.profiles import Profiles, profiles_of
from reports.site.tables import Entry, Sheet, compact, sheet, size
from reports.site.templates import rendered, script


def overview(material: Material) -> Iterator[tuple[str, str]]:
    """Pages and their data, by path."""
    points = with_front(point for request in material.requests for point in points_of(request))
    if points:
        yield data_script("front"), script("front", front_chart(points, material.labels))
    yield INDEX, _index(material, points)
    found = [each for each in map(profiles_of, material.requests) if each is not None]
    sections = [(f"profiles-{each.request.benchmark.id}-{each.request.scale.id}", each) for each in found]
    if sections:
        yield data_script("profiles"), "".join(script(name, profile_chart(each)) for name, each in sections)
    shown = [(name, each, _improvements(each)) for name, each in sections]
    values = {"title": "Over tasks", "here": "profiles", "material": material, "sections": shown}
    yield PROFILES, rendered("profiles", PROFILES, **values)
    values = {"title": "Records", "here": "records", "material": material, "records": _records(material)}
    yield RECORDS, rendered("records", RECORDS, **values)


def _index(material: Material, points: Sequence[Point]) -> str:
    states = {
        scale: [_state(dossier, scale) for dossier in material.dossiers if scale in dossier.standings]
        for scale in material.scales
    }
    told = [(dossier, headline) for dossier in material.dossiers for headline in dossier.headlines]
    return rendered(
        "index",
        INDEX,
        title="State of reproduction",
        material=material,
        tiles=_tiles(material),
        headlines=sorted(told, key=lambda entry: not entry[1].verdict.startswith(AGAINST)),
        states={scale: found for scale, found in states.items() if found},
        has_front=bool(points),
    )


def _tiles(material: Material) -> list[tuple[str, str]]:
    """Numbers and what they count."""
    scale = material.scales[0]
    standings = [dossier.standings[scale] for dossier in material.dossiers if scale in dossier.standings]
    run, of = (sum(pair[place] for each in standings for pair in each.cells.values()) for place in (0, 1))
    claims = claims_counted([judged for each in standings for judged in each.judgements])
    checks = [finding.agrees for dossier in material.dossiers for finding in dossier.standing.findings]
    tables = {table.id: table.is_printed for dossier in material.dossiers for table in dossier.tables}
    printed = sum(tables.values())
    studies = f"papers, {printed} tables and figures, {len(tables) - printed} studies beside them"
    return [
        (str(len(material.dossiers)), studies),
        (f"{run} of {of}", f"cells run, scale {scale}"),
        *((str(number), f"claims {name}") for name, number in claims.items()),
        (str(checks.count(False)), f"of {len(checks)} published numbers and sentences are inconsistent"),
    ]


def _state(dossier: Dossier, scale: str) -> dict[str, Any]:
    """A paper at a scale, at a glance."""
    standing = dossier.standings[scale]
    links = {request.benchmark.place: table_page(request) for request in dossier.requests if request.scale.id == scale}
    agrees = [finding.agrees for finding in standing.findings]
    return {
        "paper": standing.paper,
        "places": [
            (name, links.get(name, paper_page(dossier.paper.id)), *standing.cells[name])
            for name in dict.fromkeys((*links, *standing.cells))
            if name in standing.cells
        ],
        "claims": claims_counted(standing.judgements),
        "checks": [agrees.count(answer) for answer in (True, False, None)] if agrees else [],
    }


def _improvements(found: Profiles) -> Sheet:
    """The probability that the method on the left beats the one above."""
    lines = []
    for own in found.shares:
        line = [Entry(own, kind="row")]
        for other in found.shares:
            each = found.improvements.get((own, other))
            ends = [f"{100 * end:.0f}" for end in each.interval] if each and each.interval else []
            text = f"{100 * each.probability:.0f} %" if each else NOTHING
            line.append(Entry(text, str(each.probability) if each else "", note=" to ".join(ends)))
        lines.append(line)
    return sheet(("Method", *found.shares), lines)


def _records(material: Material) -> Sheet:
    headers = ("Record", "Scale", "Task", "Method", "Seed", "Stands in", "Score", "Up", "Down", "Finished")
    lines = (_line(record, material.places.get(record.cell_id, ())) for record in material.records)
    return sheet(headers, lines, ("Scale", "Task", "Method"))


def _line(record: RunResult, places: Sequence[Place]) -> list[Entry | str]:
    first = places[0] if places else None
    score = Entry(record.divergence or NOTHING)
    if first and not record.diverged:
        value, by = record.score(first.column.averaged, "chosen"), metric(first.column.averaged)
        text = NOTHING if value is None else f"{by.label} {compact(by.shown(value), by.unit)}"
        score = Entry(text, "" if value is None else repr(value))
    stands_in = dict.fromkeys(f"{own.request.benchmark.paper.name}, {own.request.benchmark.place}" for own in places)
    return [
        Entry(record.cell_id[:8], link=cell_page(record.cell_id), kind="code"),
        record.cell.scale,
        first.column.name if first else record.cell.task,
        first.row.name if first else record.cell.algorithm,
        Entry(str(record.cell.seed), str(record.cell.seed)),
        Entry(", ".join(stands_in) or NOTHING, kind="wrap"),
        score,
        *(size(sum(getattr(entry, f"{way}_bytes") for entry in record.rounds)) for way in ("up", "down")),
        record.finished[:16].replace("T", " "),
    ]
