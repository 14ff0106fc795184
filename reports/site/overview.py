"""The first page, the state at a glance, and the list of all records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchmarks.results import RunResult, run_bytes
from reports.claims.judge import counted, tally
from reports.evidence.scores import score_at
from reports.front.state import AGAINST, Headline
from reports.pages.text import NOTHING
from reports.site import html
from reports.site.charts import front_chart, front_scale
from reports.site.site_data import Dossier, SiteData


def overview(site: SiteData) -> Iterator[tuple[str, str]]:
    """Pages and their data, by path."""
    chart = front_chart(site.requests, site.scales)
    if chart is not None:
        yield "data/front.js", html.script("front", chart)
    states = {
        scale: [_state(dossier, scale) for dossier in site.dossiers if scale in dossier.standings]
        for scale in site.scales
    }
    headlines = [(dossier, headline) for dossier in site.dossiers for headline in dossier.headlines]
    index = html.rendered(
        "index",
        html.INDEX,
        title="State of reproduction",
        site=site,
        papers=_papers(site),
        has_front=chart is not None,
        front_scale=front_scale(site.scales),
        tiles=_tiles(site),
        states={scale: standings for scale, standings in states.items() if standings},
        headlines=sorted(headlines, key=_order),
    )
    yield html.INDEX, index
    records = html.rendered("records", html.RECORDS, title="Records", here="records", site=site, records=_records(site))
    yield html.RECORDS, records


def _order(entry: tuple[Dossier, Headline]) -> tuple[bool, bool]:
    """Studies with a document, then findings against a paper."""
    return not entry[1].is_planned, not entry[1].verdict.startswith(AGAINST)


def _tiles(site: SiteData) -> list[tuple[str, str]]:
    """Counts with their labels."""
    scale = site.scales[0]
    standings = [dossier.standings[scale] for dossier in site.dossiers if scale in dossier.standings]
    run, of = (sum(each.counted[place] for each in standings) for place in (0, 1))
    judgements = [judged for each in standings for judged in each.judgements]
    checks = [finding.agrees for dossier in site.dossiers for finding in dossier.standing.findings]
    tables = {table.id: table.is_printed for dossier in site.dossiers for table in dossier.tables}
    published = sum(tables.values())
    studies = f"papers, {published} tables and figures, {len(tables) - published} studies of ours"
    return [
        (str(_papers(site)), studies),
        (f"{run} of {of}", f"cells run at the {scale} scale"),
        (str(len(judgements)), f"claims: {tally(judgements)}"),
        (str(checks.count(False)), f"of {len(checks)} published numbers and sentences are inconsistent"),
    ]


def _papers(site: SiteData) -> int:
    """The reproduced papers; our suites have no table of a paper."""
    return sum(any(table.is_printed for table in dossier.tables) for dossier in site.dossiers)


def _state(dossier: Dossier, scale: str) -> dict[str, Any]:
    """A paper at a scale, at a glance."""
    standing = dossier.standings[scale]
    requests = [request for request in dossier.requests if request.scale.id == scale]
    links = {(request.benchmark.id, request.benchmark.place): html.table_page(request) for request in requests}
    agrees = [finding.agrees for finding in standing.findings]
    whole, names = html.paper_page(dossier.paper.id), dict.fromkeys((*links, *standing.cells))
    counts = Counter(place for _, place in standing.cells)
    return {
        "paper": standing.paper,
        "places": [
            (
                place if counts[place] == 1 else f"{place} ({id})",
                links.get((id, place), whole),
                sum(standing.cells[id, place].values()),
                len(standing.cells[id, place]),
            )
            for id, place in names
            if (id, place) in standing.cells
        ],
        "claims": counted(standing.judgements),
        "checks": [agrees.count(answer) for answer in (True, False, None)] if agrees else [],
    }


def _records(site: SiteData) -> html.Sheet:
    headers = ("Record", "Paper", "Scale", "Task", "Method", "Seed", "Tables", "Score", "Up", "Down", "Finished")
    lines = (_line(site, record) for record in site.records)
    return html.sheet(headers, lines, ("Paper", "Scale", "Task", "Method"))


def _line(site: SiteData, record: RunResult) -> list[html.Entry | str]:
    """A record, with the bytes of its parent runs; a dash if their records are missing."""
    places, sent = site.places.get(record.cell_id, ()), run_bytes(record, site.find)
    first = places[0] if places else None
    score = html.Entry(record.divergence or NOTHING)
    if first and not record.diverged:
        value = score_at(record, first.column.averaged, first.request.score_at)
        score = html.scored(first.column.averaged, value, label=True)
    tables = dict.fromkeys(place.request.benchmark.place for place in places)
    return [
        html.Entry(record.cell_id[:8], link=html.cell_page(record.cell_id), kind="code"),
        first.request.benchmark.paper.name if first else NOTHING,
        record.cell.scale,
        first.column.name if first else record.cell.task,
        first.row.name if first else record.cell.algorithm,
        html.Entry(str(record.cell.seed), str(record.cell.seed)),
        html.Entry(", ".join(tables) or NOTHING, kind="wrap"),
        score,
        *((html.size(sent[0]), html.size(sent[1])) if sent else (NOTHING, NOTHING)),
        record.finished[:16].replace("T", " "),
    ]
