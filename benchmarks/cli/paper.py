"""What is said of a paper as a whole: its claims judged, and whether its published numbers are consistent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks.dry_run.shapes import derive_client, derive_for
from benchmarks.experiment import Benchmark, Scale
from benchmarks.registry import benchmark, benchmark_ids, claims_of
from benchmarks.results import RunResult, write_text
from benchmarks.running.run_options import RunOptions

if TYPE_CHECKING:
    from reports.audit.checks import Finding
    from reports.claims.judge import Judgement
    from reports.evidence.published import Numbers


def benchmarks_of(paper: str) -> dict[str, Benchmark]:
    """Every benchmark of a paper, others that its claims speak of, and those that judge their columns, by id."""
    own = [name for name in benchmark_ids() if name.startswith(f"{paper}-")]
    named = sorted({name for claim in claims_of(paper) for name in claim.benchmarks})
    found = [benchmark(name) for name in dict.fromkeys([*own, *named])]
    return {table.id: table for table in [*found, *(table.gate for table in found if table.gate is not None)]}


def published_of(tables: Iterable[Benchmark]) -> Mapping[str, Numbers]:
    """A paper's id -> its published numbers, of every paper that the benchmarks are from."""
    from reports.evidence.published import Numbers, read_folder

    folders = {table.paper.id: table.published_csv.parent for table in tables}
    return {paper: Numbers.of(read_folder(folder)) for paper, folder in folders.items()}


def judged(paper: str, scale: Scale, records: Sequence[RunResult]) -> Sequence[Judgement]:
    """A paper's claims, in print and on the records of a scale."""
    from reports.claims.judge import judge

    tables = benchmarks_of(paper)
    name = next(table.paper.name for table in tables.values() if table.paper.id == paper)
    published = published_of(tables.values())
    return judge(name, claims_of(paper), published, records, tables, scale, derive_for, derive_client)


def audited(paper: str, records: Sequence[RunResult]) -> Sequence[Finding]:
    """Whether a paper's published numbers agree with each other; () for a paper without an audit."""
    from reports.audit import findings
    from reports.audit.checks import Material

    tables = benchmarks_of(paper)
    published = published_of(tables.values())
    return findings(Material(paper, published, tables, claims_of(paper), tuple(records), derive_for, derive_client))


def show_claims(paper: str, scale: Scale, records: Sequence[RunResult], made: RunOptions) -> str:
    """Judge a paper's claims in print and on the records of a scale, print and write them; returns Markdown."""
    from reports.claims.tables import claims_markdown, print_claims

    judgements = judged(paper, scale, records)
    if not judgements:
        return ""
    print_claims(judgements)
    path = made.results_dir / "reports" / paper / f"claims-{scale.id}.md"
    write_text(path, claims_markdown(judgements))
    print(f"Written to {path}")
    return claims_markdown(judgements)


def show_audit(paper: str, records: Sequence[RunResult], made: RunOptions) -> str:
    """Print and write how far a paper's published numbers agree with each other, if it has an audit.

    Returns Markdown of it for a paper's page, folded; "" without an audit.
    """
    from reports.audit.checks import audit_markdown, summary

    findings = audited(paper, records)
    if not findings:
        return ""
    path = made.results_dir / "reports" / paper / "audit.md"
    write_text(path, audit_markdown(findings))
    print(f"{summary(findings)} Every finding: {path}")
    name = next(table.paper.name for table in benchmarks_of(paper).values() if table.paper.id == paper)
    whole = audit_markdown(findings, level=4).partition("\n\n")[2].strip()
    folded = f"<details><summary>Every finding</summary>\n\n{whole}\n\n</details>"
    return f"### {name}, consistency of the published numbers\n\n{summary(findings)}\n\n{folded}"
