"""The pages of a paper: its report, its claims, its audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from reports.audit.statements import summary as audit_summary
from reports.claims.judge import VERDICTS, tally
from reports.claims.tables import RULE
from reports.claims.tables import summary as claims_summary
from reports.front.state import Standing
from reports.pages.page import deviation_name
from reports.pages.text import human_bytes, human_seconds
from reports.site import html
from reports.site.site_data import Dossier, SiteData


def paper_pages(site: SiteData) -> Iterator[tuple[str, str]]:
    """Pages by path."""
    for dossier in site.dossiers:
        shared = {"site": site, "dossier": dossier, "here": dossier.paper.id}
        for part, values in (("", _report(dossier)), ("claims", _claims(dossier)), ("audit", _audit(dossier))):
            path, title = html.paper_page(dossier.paper.id, part), f"{dossier.paper.name}{f': {part}' if part else ''}"
            if part != "audit" or dossier.standing.findings:
                yield path, html.rendered(part or "paper", path, title=title, **values, **shared)


def _report(dossier: Dossier) -> dict[str, Any]:
    return {
        "tables": _tables(dossier),
        "deviations": [
            (
                deviation_name(deviation.id),
                deviation,
                "all tables and figures" if len(places) == len(dossier.tables) else ", ".join(places),
            )
            for deviation, places in dossier.deviations.items()
        ],
        "effort": _effort(dossier),
        "results": {scale: _result(standing) for scale, standing in dossier.standings.items()},
    }


def _tables(dossier: Dossier) -> html.Sheet:
    lines = []
    for request in dossier.requests:
        run, of = request.run
        share = str(run / of if of else 0)
        cells = html.Entry(f"{run} of {of}", share) if run else html.Entry("not run", share, kind="open")
        place = html.Entry(request.benchmark.place, link=html.table_page(request))
        lines.append((place, html.Entry(request.benchmark.title, kind="wrap"), request.scale.id, cells))
    return html.sheet(("Place", "What", "Scale", "Cells run"), lines)


def _effort(dossier: Dossier) -> str:
    """The effort of a paper's records, counting each run once."""
    cells = [selection for request in dossier.requests for selection in request.selections.values()]
    records = {record.cell_id: record for cell in cells for record in (*cell.records, *cell.diverged)}.values()
    if not records:
        return "Nothing of it has been run here yet."
    seconds = sum(record.timing.get("train_seconds", 0.0) for record in records)
    sent = sum(entry.up_bytes + entry.down_bytes for record in records for entry in record.rounds)
    devices = sorted({str(record.environment.get("device")) for record in records if record.environment})
    on = f" on {', '.join(devices)}" if devices else ""
    took = f"The {len(records)} runs behind these pages trained for {human_seconds(seconds)} together{on}"
    return f"{took}, and sent {human_bytes(sent)} over the simulated wire."


def _result(standing: Standing) -> str:
    run, of = standing.counted
    parts = [f"{run} of {of} cells have been run"]
    if standing.judgements:
        parts.append(f"of {len(standing.judgements)} claims: {tally(standing.judgements)}")
    if standing.findings:
        parts.append(audit_summary(standing.findings).rstrip("."))
    return "; ".join(parts) + "."


def _claims(dossier: Dossier) -> dict[str, Any]:
    """The claims by scale, decided ones first, with the tables of each claim."""
    pages = {request.benchmark.id: (request.benchmark.place, html.table_page(request)) for request in dossier.requests}
    scales = []
    for standing in dossier.standings.values():
        if standing.judgements:
            ordered = sorted(standing.judgements, key=lambda judgement: VERDICTS.index(judgement.word))
            counts = {"verdict": Counter(judgement.word for judgement in ordered)}
            counts["published"] = Counter(judgement.published_word for judgement in ordered)
            shown = [(each, [pages[name] for name in sorted(each.claim.benchmarks & set(pages))]) for each in ordered]
            scales.append((ordered[0].scale, shown, counts, claims_summary(standing.judgements)))
    return {"scales": scales, "rule": RULE}


def _audit(dossier: Dossier) -> dict[str, Any]:
    findings = sorted(dossier.standing.findings, key=lambda finding: (False, None, True).index(finding.agrees))
    counts = {name: Counter(getattr(finding, name) for finding in findings) for name in ("verdict", "subject")}
    return {"findings": findings, "summary": audit_summary(findings), "counts": counts}
