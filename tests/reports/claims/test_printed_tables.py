"""The printed tables as if our own runs had given them, almost without noise: they give print's own verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.claims import AverageBetter, Better, Claim, Similar
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.registry import benchmark, claims_of
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig
from reports.claims.judge import Judgement, judge
from reports.evidence.published import Numbers, read_folder

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks" / "fedsplitbert" / "published"
NUMBERS = Numbers.of(read_folder(FOLDER))
SEEDS = 5
NOISE = 1e-4  # points
REFERENCES = {"central": 99.0, "linear": 20.0, "overall-majority": 10.0, "local-majority": 1.0}
WORDS = {"holds": "supported", "does not hold": "contradicted", "not printed": "not run"}


def _told_apart(name: str, gate: Benchmark | None = None) -> Benchmark:
    """A table with the rows that judge its columns, none of which leaks, and with cells of its own.

    Table III's FedSplitBERT and Table IV's c = 6 are one cell of ours, of which the paper prints two numbers.
    """
    table = benchmark(f"fedsplitbert-{name}")
    known = {row.id for row in table.rows}
    extra = [Row(row, row, {"algorithm": row}, printed=False) for row in REFERENCES if row not in known]
    columns = tuple(replace(column, leak="") for column in table.columns)

    def base(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
        return replace(table.base(row, column, scale, seed), source=name)

    return replace(table, rows=(*table.rows, *extra), columns=columns, gate=gate, base=base)


TABLE3 = _told_apart("table3")
TABLES = {table.id: table for table in (TABLE3, *(_told_apart(name, TABLE3) for name in ("table4", "table5", "iid")))}
SCALE = TABLE3.scale("paper")


def _printed(table: Benchmark, row: Row, column: Column) -> dict[str, float]:
    """Score -> what the paper prints of a row, or a level for the rows that judge."""
    if row.id in REFERENCES:
        return dict.fromkeys({*column.scores, column.averaged}, REFERENCES[row.id])
    found = {score: NUMBERS.values.get((table.place, row.id, column.task, score)) for score in column.scores}
    return {score: float(value) for score, value in found.items() if value is not None}


@pytest.fixture(scope="module")
def records(record_of: Callable[..., RunResult]) -> list[RunResult]:
    like = record_of("fedavg", "qqp", {"test/accuracy": 0.5}, scale="paper")
    return [made for table in TABLES.values() for made in _records(table, like)]


def _records(table: Benchmark, like: RunResult) -> Iterator[RunResult]:
    for column in table.columns:
        for row in table.rows:
            levels = _printed(table, row, column)
            if set(levels) < set(column.scores):
                continue  # not printed
            for seed in range(SEEDS):
                cell = table.cell(row, column, table.scale("paper"), seed)
                shaken = {score: level + NOISE * ((seed * 7 + len(row.id)) % 5 - 2) for score, level in levels.items()}
                yield _record(like, cell, shaken)


def _record(like: RunResult, cell: RunConfig, levels: Mapping[str, float]) -> RunResult:
    scores: dict[str, dict[str, float | None]] = {}
    for score, level in levels.items():
        evaluation, name = score.split("/")
        scores.setdefault(evaluation, {})[name] = level / 100
    rounds = (replace(like.rounds[0], scores=scores, pooled_scores=scores),)
    identity = cell.cell_id({key: entry["digest"] for key, entry in like.inputs.items()})
    exact = {evaluation: dict.fromkeys(found, 0.0) for evaluation, found in scores.items()}
    return replace(like, cell=cell, cell_id=identity, rounds=rounds, ledger=(), sampling_errors=exact)


def _on_scores(claim: Claim) -> bool:
    kinds = (Better, Similar, AverageBetter)
    return all(
        isinstance(relation, kinds) and getattr(relation, "measure", "score") == "score" for relation in claim.relations
    )


CLAIMS = [claim for claim in claims_of("fedsplitbert") if _on_scores(claim)]


@pytest.fixture(scope="module")
def judged(records: list[RunResult]) -> dict[str, Judgement]:
    found = judge("FedSplitBERT", CLAIMS, {"fedsplitbert": NUMBERS}, records, TABLES, SCALE)
    return {judgement.claim.id: judgement for judgement in found}


@pytest.mark.parametrize("key", [claim.id for claim in CLAIMS])
def test_almost_without_noise_records_say_what_print_says(judged: dict[str, Judgement], key: str) -> None:
    found = judged[key]
    assert (found.ours, found.why) == (WORDS[found.in_print], "")
