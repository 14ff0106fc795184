"""Facts about a paper as a whole: its benchmarks, judged claims, audited numbers, and how far it is reproduced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from benchmarks.cli.look import Finished
from benchmarks.dry_run.shapes import derive_client, derive_for
from benchmarks.experiment import Benchmark, Scale
from benchmarks.registry import benchmark, benchmark_ids, claims_of
from benchmarks.results import RunResult
from reports.audit.sources import PaperFacts
from reports.audit.statements import Finding, findings
from reports.claims.judge import Judgement, judge
from reports.evidence.published import Numbers, read_folder
from reports.evidence.records import request_for
from reports.front.state import MEASURED, Headline, Standing
from reports.views import has_finding, page


def benchmarks_of(paper: str) -> dict[str, Benchmark]:
    """Every benchmark of a paper by id, with those of other papers that its claims or columns need."""
    own = [name for name in benchmark_ids() if name.startswith(f"{paper}-")]
    named = sorted({name for claim in claims_of(paper) for name in claim.benchmarks})
    tables = [benchmark(name) for name in dict.fromkeys([*own, *named])]
    return {table.id: table for table in [*tables, *(table.gate for table in tables if table.gate is not None)]}


def name_of(paper: str) -> str:
    """A paper's name, such as FedSplitBERT."""
    return next(table.paper.name for table in benchmarks_of(paper).values() if table.paper.id == paper)


def tables_by_paper() -> dict[str, list[Benchmark]]:
    """A paper's id -> its tables and figures."""
    by_paper: dict[str, list[Benchmark]] = {}
    for table in map(benchmark, benchmark_ids()):
        by_paper.setdefault(table.paper.id, []).append(table)
    return by_paper


def published_of(tables: Iterable[Benchmark]) -> Mapping[str, Numbers]:
    """A paper's id -> its published numbers, for each paper of some benchmarks."""
    folders = {table.paper.id: table.published_csv.parent for table in tables}
    return {paper: Numbers.of(read_folder(folder)) for paper, folder in folders.items()}


def judged(paper: str, scale: Scale, records: Sequence[RunResult]) -> Sequence[Judgement]:
    """A paper's claims, judged by its published numbers and by the records of a scale."""
    tables = benchmarks_of(paper)
    published = published_of(tables.values())
    return judge(name_of(paper), claims_of(paper), published, records, tables, scale, derive_for, derive_client)


def audited(paper: str, records: Sequence[RunResult]) -> Sequence[Finding]:
    """Whether a paper's published numbers are consistent; () for a paper without an audit."""
    tables = benchmarks_of(paper)
    published = published_of(tables.values())
    return findings(PaperFacts(paper, published, tables, claims_of(paper), tuple(records), derive_for, derive_client))


def standings_at(
    scale: str, by_paper: Mapping[str, Sequence[Benchmark]], records: Sequence[RunResult]
) -> list[Standing]:
    """How far each paper that has this scale is reproduced at it."""
    standings, finished = [], Finished([record.cell for record in records], scale)
    for paper, tables in by_paper.items():
        at = {table.id: own for table in tables for own in table.scales if own.id == scale}
        if not at:
            continue
        cells = {table.place: finished.of(table, at[table.id]) for table in tables if table.id in at}
        judgements = judged(paper, next(iter(at.values())), records)
        link, studies = f"benchmarks/{paper}/README.md", list(_studies(tables, scale, records))
        standings.append(Standing(tables[0].paper, link, cells, judgements, audited(paper, records), studies))
    return standings


def _studies(tables: Sequence[Benchmark], scale: str, records: Sequence[RunResult]) -> Iterator[Headline]:
    """The findings of tables whose view has one for the first page."""
    for table in tables:
        if has_finding(table) and scale in {own.id for own in table.scales}:
            said, numbers = page(request_for(table, table.scale(scale), records)).finding or ("", "")
            if said:
                yield Headline(said, MEASURED, numbers, note=f"{table.place}, 95 % CIs (n)", study=table.id)
