"""The pages of a paper: its report, its claims, its audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reports.audit.checks import summary as audit_summary
from reports.claims.judge import Judgement
from reports.claims.tables import RULE
from reports.claims.tables import summary as claims_summary
from reports.front.state import Standing, claims_counted
from reports.pages.text import human_bytes, human_seconds
from reports.site.addresses import paper_page, table_page
from reports.site.material import Dossier, Material
from reports.site.templates import rendered

CLAIMS_FIRST = (
    *("contradicted", "fails by derivation", "supported", "holds by derivation", "undecided", "not judged", "not run"),
)
CHECKS_FIRST = (False, None, True)


def dossier_pages(material: Material) -> Iterator[tuple[str, str]]:
    """Pages by path."""
    for dossier in material.dossiers:
        known = {"material": material, "dossier": dossier, "here": dossier.paper.id}
        yield _report(dossier, known)
        yield _claims(dossier, known)
        if dossier.standing.findings:
            yield _audit(dossier, known)


def _report(dossier: Dossier, known: Mapping[str, Any]) -> tuple[str, str]:
    path = paper_page(dossier.paper.id)
    tables = []
    for request in dossier.requests:
        run = sum(selection.is_run for selection in request.selections.values())
        tables.append((request, run, len(request.selections)))
    deviations = [(deviation, _places(places, dossier)) for deviation, places in dossier.deviations]
    results = [(scale, _result(standing)) for scale, standing in dossier.standings.items()]
    words = {"scope": _scope(dossier), "effort": _effort(dossier), "results": results}
    page = rendered("paper", path, title=dossier.paper.name, tables=tables, deviations=deviations, **words, **known)
    return path, page


def _places(places: Sequence[str], dossier: Dossier) -> str:
    return "all tables and figures" if len(places) == len(dossier.tables) else ", ".join(places)


def _scope(dossier: Dossier) -> str:
    printed = [table.place for table in dossier.tables if table.is_printed]
    studies = [table.place for table in dossier.tables if not table.is_printed]
    judged, checks = dossier.standing.judgements, dossier.standing.findings
    text = f"Defined here: {', '.join(printed)}"
    text += f"; beside the paper, as studies: {', '.join(studies)}. " if studies else ". "
    parts = [f"{len(judged)} of its sentences are judged as claims"] if judged else []
    parts += [f"{len(checks)} of its printed numbers and sentences are held against each other"] if checks else []
    return text + (f"{'; '.join(parts)}." if parts else "")


def _effort(dossier: Dossier) -> str:
    """What the records of a paper took, each run once."""
    records = {
        record.cell_id: record
        for request in dossier.requests
        for selection in request.selections.values()
        for record in (*selection.records, *selection.diverged)
    }.values()
    if not records:
        return "Nothing of it has been run here yet."
    seconds = sum(record.timing.get("train_seconds", 0.0) for record in records)
    sent = sum(entry.up_bytes + entry.down_bytes for record in records for entry in record.rounds)
    devices = sorted({str(record.environment.get("device")) for record in records if record.environment})
    on = f" on {', '.join(devices)}" if devices else ""
    return (
        f"The {len(records)} runs behind these pages trained for {human_seconds(seconds)} together{on}, and sent "
        f"{human_bytes(sent)} over the simulated wire."
    )


def _result(standing: Standing) -> str:
    run, of = (sum(pair[place] for pair in standing.cells.values()) for place in (0, 1))
    won, lost, open_ = claims_counted(standing.judgements)
    parts = [f"{run} of {of} cells have been run"]
    if standing.judgements:
        parts.append(f"of {len(standing.judgements)} claims {won} are borne out, {lost} are not, {open_} are open")
    if standing.findings:
        parts.append(audit_summary(standing.findings).rstrip("."))
    return "; ".join(parts) + "."


def _claims(dossier: Dossier, known: Mapping[str, Any]) -> tuple[str, str]:
    path = paper_page(dossier.paper.id, "claims")
    pages = {request.benchmark.id: (request.benchmark.place, table_page(request)) for request in dossier.requests}
    scales = []
    for standing in dossier.standings.values():
        if not standing.judgements:
            continue
        ordered = sorted(standing.judgements, key=lambda found: _rank(found.ours))
        counts = [_counted(getattr(found, name) for found in ordered) for name in ("ours", "in_print")]
        shown = [_Shown.of(found, pages) for found in ordered]
        scales.append((ordered[0].scale, shown, counts, claims_summary(standing.judgements)))
    title = f"{dossier.paper.name}: claims"
    return path, rendered("claims", path, title=title, scales=scales, rule=RULE, **known)


def _rank(verdict: str) -> int:
    return CLAIMS_FIRST.index(verdict) if verdict in CLAIMS_FIRST else len(CLAIMS_FIRST)


def _counted(words: Iterable[str]) -> list[tuple[str, int]]:
    """(word, how often), in the order in which they come."""
    return list(Counter(words).items())


class _Shown:
    """A judgement with the tables that its claim speaks of."""

    def __init__(self, found: Judgement, links: list[tuple[str, str]]) -> None:
        self.found, self.links = found, links

    @classmethod
    def of(cls, found: Judgement, pages: Mapping[str, tuple[str, str]]) -> _Shown:
        named = sorted(name for name in found.claim.benchmarks if name in pages)
        return cls(found, [pages[name] for name in named])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.found, name)


def _audit(dossier: Dossier, known: Mapping[str, Any]) -> tuple[str, str]:
    path = paper_page(dossier.paper.id, "audit")
    findings = sorted(dossier.standing.findings, key=lambda found: CHECKS_FIRST.index(found.agrees))
    filters = {name: _counted(getattr(found, one) for found in findings) for name, one in _FILTERS.items()}
    title, words = f"{dossier.paper.name}: audit", audit_summary(findings)
    return path, rendered("audit", path, title=title, findings=findings, summary=words, **filters, **known)


_FILTERS = {"verdicts": "verdict", "subjects": "subject"}
