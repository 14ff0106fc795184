"""The first page, and the pages over several tables: the state at a glance, all tasks at once, all records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.measures import metric
from benchmarks.results import RunResult
from reports.front.state import Headline, Standing, claims_counted
from reports.pages.text import NOTHING, human_bytes
from reports.site.addresses import INDEX, PROFILES, RECORDS, cell_page, data_script, paper_page, table_page
from reports.site.cells import Fact
from reports.site.charts import front_chart, profile_chart
from reports.site.material import Dossier, Material, Place, standing_at
from reports.site.points import Point, points_of, with_front
from reports.site.profiles import Improvement, Profiles, profiles_of
from reports.site.tables import compact
from reports.site.templates import data_script as script
from reports.site.templates import rendered

_LED_BY = ("contradicted", "fails by derivation", "inconsistent")


@dataclass(frozen=True)
class Meter:
    """How many cells of a table are run."""

    name: str
    link: str
    run: int
    of: int


@dataclass(frozen=True)
class State:
    """A paper at a scale, at a glance."""

    standing: Standing
    places: tuple[Meter, ...]

    @property
    def paper(self) -> object:
        return self.standing.paper

    @property
    def claims(self) -> tuple[int, int, int]:
        return claims_counted(self.standing.judgements)

    @property
    def checks(self) -> tuple[int, int, int] | None:
        """Checks of the printed numbers: agreeing, not, not derivable; None without an audit."""
        found = [finding.agrees for finding in self.standing.findings]
        return (found.count(True), found.count(False), found.count(None)) if found else None


def overview(material: Material) -> Iterator[tuple[str, str]]:
    """Pages and their data, by path."""
    points = with_front(point for request in material.requests for point in points_of(request))
    if points:
        yield data_script("front"), script("front", front_chart(points, material.labels))
    yield INDEX, _index(material, points)
    yield from _profiles(material)
    yield RECORDS, _records(material)


def _index(material: Material, points: Sequence[Point]) -> str:
    states = [
        (scale, [_state(dossier, scale) for dossier in material.dossiers if scale in dossier.standings])
        for scale in material.scales
    ]
    return rendered(
        "index",
        INDEX,
        title="State of reproduction",
        material=material,
        tiles=_tiles(material),
        headlines=_told(material),
        states=[(scale, found) for scale, found in states if found],
        has_front=bool(points),
    )


def _told(material: Material) -> list[tuple[Dossier, Headline]]:
    """Every headline, those against a paper first."""
    found = [(dossier, headline) for dossier in material.dossiers for headline in dossier.headlines]
    return sorted(found, key=lambda entry: entry[1].verdict not in _LED_BY)


def _tiles(material: Material) -> list[Fact]:
    standings = standing_at(material.dossiers, material.scales[0])
    run, of = (sum(pair[place] for each in standings for pair in each.cells.values()) for place in (0, 1))
    claims = [sum(claims_counted(each.judgements)[place] for each in standings) for place in (0, 1)]
    checks = [finding.agrees for dossier in material.dossiers for finding in dossier.standing.findings]
    tables = {table.id: table.is_printed for dossier in material.dossiers for table in dossier.tables}
    printed = sum(tables.values())
    return [
        Fact(
            f"papers, {printed} tables and figures, {len(tables) - printed} studies beside them",
            str(len(material.dossiers)),
        ),
        Fact(f"cells run, scale {material.scales[0]}", f"{run} of {of}"),
        Fact("claims borne out", str(claims[0])),
        Fact("claims that do not hold", str(claims[1])),
        Fact(
            f"of {len(checks)} printed numbers and sentences do not agree",
            str(checks.count(False)),
        ),
    ]


def _state(dossier: Dossier, scale: str) -> State:
    standing = dossier.standings[scale]
    order = {request.benchmark.place: table_page(request) for request in dossier.requests if request.scale.id == scale}
    links = {name: order.get(name, paper_page(dossier.paper.id)) for name in (*order, *standing.cells)}
    meters = (Meter(name, link, *standing.cells[name]) for name, link in links.items() if name in standing.cells)
    return State(standing, tuple(meters))


def _profiles(material: Material) -> Iterator[tuple[str, str]]:
    found = [each for each in map(profiles_of, material.requests) if each is not None]
    sections, parts = [], []
    for each in found:
        name = f"profiles-{each.request.benchmark.id}-{each.request.scale.id}"
        parts.append(script(name, profile_chart(each)))
        sections.append((name, each, _improvements(each)))
    if parts:
        yield data_script("profiles"), "".join(parts)
    title = "Over tasks"
    yield PROFILES, rendered("profiles", PROFILES, title=title, here="profiles", material=material, sections=sections)


def _improvements(found: Profiles) -> dict[str, list[Improvement | None]]:
    methods = [profile.method for profile in found.profiles]
    pairs = {(each.method, each.than): each for each in found.improvements}
    return {own: [pairs.get((own, other)) for other in methods] for own in methods}


def _records(material: Material) -> str:
    lines = [_line(record, material.places.get(record.cell_id, ())) for record in material.records]
    return rendered(
        "records",
        RECORDS,
        title="Records",
        here="records",
        material=material,
        lines=lines,
        **{name: _counts([line[one] for line in lines]) for name, one in _FILTERS.items()},
    )


_FILTERS = {"scales": "scale", "tasks": "task", "methods": "method"}


def _counts(words: Sequence[str]) -> list[tuple[str, int]]:
    return [(word, words.count(word)) for word in sorted(set(words))]


def _line(record: RunResult, places: Sequence[Place]) -> dict[str, str]:
    first = places[0] if places else None
    score, value = first.column.averaged if first else "", None
    if score and not record.diverged:
        value = record.score(score, "chosen")
    found = metric(score) if score else None
    up, down = (sum(getattr(entry, f"{way}_bytes") for entry in record.rounds) for way in ("up", "down"))
    shown = NOTHING if value is None or found is None else f"{found.label} {compact(found.shown(value), found.unit)}"
    return {
        "id": record.cell_id,
        "link": cell_page(record.cell_id),
        "scale": record.cell.scale,
        "task": first.column.name if first else record.cell.task,
        "method": first.row.name if first else record.cell.algorithm,
        "seed": str(record.cell.seed),
        "places": ", ".join(dict.fromkeys(_place(place) for place in places)) or NOTHING,
        "score": record.divergence or shown,
        "sort": "" if value is None else repr(value),
        "up": human_bytes(up),
        "down": human_bytes(down),
        "up_bytes": str(up),
        "down_bytes": str(down),
        "finished": record.finished[:16].replace("T", " "),
    }


def _place(place: Place) -> str:
    return f"{place.request.benchmark.paper.name}, {place.request.benchmark.place}"
