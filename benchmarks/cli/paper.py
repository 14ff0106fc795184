"""What is said of a paper as a whole: its claims judged, and its printed numbers held against each other."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence

from benchmarks.planning import wire_plan
from benchmarks.record import RunRecord, write_text
from benchmarks.registry import benchmark, benchmark_ids, claims_of
from benchmarks.settings import Settings
from benchmarks.spec import Benchmark, Scale


def benchmarks_of(paper: str) -> dict[str, Benchmark]:
    """Every benchmark of a paper, by id."""
    return {name: benchmark(name) for name in benchmark_ids() if name.startswith(f"{paper}-")}


def show_claims(paper: str, scale: Scale, records: Sequence[RunRecord], made: Settings, brief: bool = False) -> str:
    """Judge a paper's claims in print and on the records of a scale, print and write them.

    Returns Markdown: with the numbers, or, if `brief`, the verdicts alone.
    """
    from reports.audit.finding import Numbers, read_folder
    from reports.claims import judge
    from reports.claims.render import claims_markdown, print_claims, verdicts_markdown

    tables = benchmarks_of(paper)
    printed = Numbers.of(read_folder(next(iter(tables.values())).published_csv.parent))
    judgements = judge(claims_of(paper), printed, records, tables, scale)
    if not judgements:
        return ""
    print_claims(judgements)
    path = made.results_dir / "reports" / paper / f"claims-{scale.id}.md"
    write_text(path, claims_markdown(judgements))
    print(f"Written to {path}")
    return verdicts_markdown(judgements) if brief else claims_markdown(judgements)


def show_audit(paper: str, records: Sequence[RunRecord], made: Settings) -> None:
    """Say how far a paper's printed numbers agree with each other, and write every finding, if it has an audit."""
    from reports.audit.finding import read_folder
    from reports.audit.render import audit_markdown, summary
    from reports.views.labels.bounds import label1_ranges

    if importlib.util.find_spec(f"reports.audit.{paper}") is None:
        return
    tables = benchmarks_of(paper)
    round_bytes: dict[str, int] = {}
    for table in tables.values():
        for row in table.rows:
            if row.id not in round_bytes:
                round_bytes[row.id] = wire_plan(table.cell(row, table.columns[0], table.scale("paper"), 0)).up_bytes
    published = read_folder(next(iter(tables.values())).published_csv.parent)
    audit_paper = importlib.import_module(f"reports.audit.{paper}").audit_paper
    findings = audit_paper(published, round_bytes, label1_ranges(records), claims_of(paper), tables)
    path = made.results_dir / "reports" / paper / "audit.md"
    write_text(path, audit_markdown(findings))
    print(f"{summary(findings)} Every finding: {path}")
