"""A whole paper: its benchmarks, judged claims, audited numbers and reproduction status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pandas as pd

from benchmarks.campaign.protocol import SCALE, campaign, decisive_of, study_of
from benchmarks.campaign.studies import headline_of
from benchmarks.claims import rows_named
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Scale
from benchmarks.registry import benchmark, benchmark_ids, claims_of, ids_of, tables_of
from benchmarks.results import RunResult
from benchmarks.selection import FinishedCells
from reports.audit.sources import PaperFacts
from reports.audit.statements import Finding, findings
from reports.claims import wording
from reports.claims.cells import Runs
from reports.claims.deciding import Deciding
from reports.claims.judge import Judgement, judge, measured_word
from reports.evidence.published import Numbers
from reports.evidence.published_files import read_paper
from reports.evidence.records import PAPER, request_for
from reports.evidence.scores import PROTOCOL
from reports.front.state import MEASURED, Headline, Standing
from reports.views import has_finding, page


def benchmarks_of(paper: str) -> dict[str, Benchmark]:
    """A paper's benchmarks by id, with those from other papers that its claims or columns need."""
    tables = ids_of(paper)
    named = sorted({name for claim in claims_of(paper) for name in claim.benchmarks})
    benchmarks = [benchmark(name) for name in dict.fromkeys([*tables, *named])]
    return {table.id: table for table in [*benchmarks, *(table.gate for table in benchmarks if table.gate is not None)]}


def tables_by_paper() -> dict[str, list[Benchmark]]:
    """A paper's id -> its tables and figures."""
    by_paper: dict[str, list[Benchmark]] = {}
    for table in map(benchmark, benchmark_ids()):
        by_paper.setdefault(table.paper.id, []).append(table)
    return by_paper


def published_of(tables: Iterable[Benchmark]) -> Mapping[str, Numbers]:
    """Paper id -> its published numbers, for the papers of the given benchmarks."""
    files: dict[str, list[Path]] = {}
    for table in tables:
        files.setdefault(table.paper.id, []).append(table.published_csv)
    return {paper: Numbers.of(read_paper(paths)) for paper, paths in files.items()}


def judged(paper: str, scale: Scale, records: Sequence[RunResult]) -> Sequence[Judgement]:
    """A paper's claims, judged by its published numbers and by a scale's records."""
    tables = benchmarks_of(paper)
    name = next(table.paper.name for table in tables.values() if table.paper.id == paper)
    published = published_of(tables.values())
    deciding = _deciding(paper, records) if scale.id == SCALE else {}
    return judge(name, claims_of(paper), published, records, tables, scale, deciding)


def _deciding(paper: str, records: Sequence[RunResult]) -> dict[str, Deciding]:
    """Claim id -> the campaign's comparisons that decide it. records: include the reference rows' runs."""
    fixed: dict[str, Deciding] = {}
    for decisive in decisive_of(paper):
        evidence_campaign = campaign()
        read = (claim.otherwise.values() for claim in claims_of(paper) if claim.id in decisive.claims)
        relations = (*decisive.relations, *chain.from_iterable(chain.from_iterable(read)))
        named = {at.benchmark for relation in relations for at in rows_named(relation)}
        tables = {name: evidence_campaign.table(name) for name in named}
        gates = {table.gate.id: table.gate for table in tables.values() if table.gate is not None}
        scale = next(iter(tables.values())).scale(SCALE)
        runs = Runs.of_all({**gates, **tables}, scale, [*records, *evidence_campaign.records])
        counted = replace(runs, score_at=PROTOCOL, seeds=decisive.seeds)
        missing = evidence_campaign.missing(decisive.steps, records)
        comparisons = Deciding(evidence_campaign.resolved(decisive), counted, missing, decisive.instead)
        fixed |= dict.fromkeys(decisive.claims, comparisons)
    return fixed


def audited(paper: str, records: Sequence[RunResult]) -> Sequence[Finding]:
    """The consistency checks of a paper's published numbers; () for a paper without an audit."""
    tables = benchmarks_of(paper)
    published = published_of(tables.values())
    return findings(PaperFacts(paper, published, tables, claims_of(paper), tuple(records)))


def cells_at(
    scale: str, tables: Iterable[Benchmark], records: Sequence[RunResult]
) -> tuple[dict[tuple[str, str], dict[str, bool]], dict[str, int]]:
    """Which cells of tables have been run at a scale.

    Returns:
        Table's id and place -> cell -> whether it was run, for the paper's columns, or all columns of a study.
        Our column in a table of the paper -> number of cells run.
    """
    finished = FinishedCells([record.cell for record in records], scale)
    cells: dict[tuple[str, str], dict[str, bool]] = {}
    additions: dict[str, int] = {}
    for table in tables:
        if at := table.scales_by_id.get(scale):
            cells[table.id, table.place] = finished.places(table, at)
            for column in table.columns_at(at) if table.is_printed else ():
                if PAPER not in column.scales:
                    additions[column.name] = additions.get(column.name, 0) + finished.run(table, at, [column])
    return cells, additions


def standings_at(
    scale: str, by_paper: Mapping[str, Sequence[Benchmark]], records: Sequence[RunResult]
) -> list[Standing]:
    """The reproduction status at a scale of each paper that has it, with findings of its additional studies."""
    standings = []
    for paper, tables in by_paper.items():
        at = {table.id: table.scale(scale) for table in tables if scale in table.scales_by_id}
        if not at:
            continue
        studies = []
        study = study_of(paper) if scale == SCALE else None
        if study and (headline := headline_of(study, records)):
            studies.append(headline)
        for table in (table for table in tables if table.id in at and has_finding(table)):
            if table.id in {headline.study for headline in studies}:
                continue
            statement, numbers = page(request_for(table, at[table.id], records)).finding or ("", "")
            if statement:
                is_planned = "kind" in table.view.options
                studies.append(
                    Headline(statement, table.title, MEASURED, numbers, study=table.id, is_planned=is_planned)
                )
        cells, additions = cells_at(scale, tables, records)
        verdicts = judged(paper, next(iter(at.values())), records), audited(paper, records)
        link = f"benchmarks/{paper}/README.md"
        standings.append(Standing(tables[0].paper, link, cells, *verdicts, studies, additions))
    return standings


def claims_frame(paper: str, scale: str, records: Sequence[RunResult]) -> pd.DataFrame:
    """One line per claim of a paper, with verdicts and numbers; UserError for an unknown paper or scale."""
    if tables_of(paper) == [paper]:
        raise UserError(f"unknown paper {paper!r}: expected one of {', '.join(sorted(tables_by_paper()))}")
    at = {each.id: each for table in benchmarks_of(paper).values() for each in table.scales}
    if scale not in at:
        raise UserError(f"expected a scale that a table of {paper} has, found {scale!r}")
    return pd.DataFrame(
        {
            "claim": judgement.claim.id,
            "quotation": judgement.claim.quotation,
            "in_print": judgement.published_word,
            "ours": judgement.word,
            "verdict": judgement.verdict,
            "numbers": wording.numbers(judgement.measured),
            "evidence": judgement.evidence,
            "tasks": judgement.counts,
            "effect": judgement.effect,
            "over_tasks": judgement.over_tasks,
            "smallest_effect": judgement.smallest,
            "seeds": judgement.n,
            "why": wording.why(judgement.measured),
            "without": wording.without(judgement.measured),
            **dict.fromkeys(("at_chosen_round", "at_last_round"), ""),
            **{f"at_{which}_round": measured_word(ours) for which, ours in judgement.at_rounds.items()},
        }
        for judgement in judged(paper, at[scale], records)
    )
