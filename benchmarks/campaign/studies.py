"""Studies: questions that no paper asks, with the runs that answer them (docs/label-prior.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from benchmarks.campaign.protocol import SCALE, campaign
from benchmarks.campaign.study_text import ACCURACY, Evidence, study_blocks
from benchmarks.claims import Study
from benchmarks.experiment import Benchmark
from benchmarks.registry import benchmark
from benchmarks.results import RunResult
from reports.claims.cells import Runs
from reports.evidence.scores import PROTOCOL


def blocks_of(study: Study, records: Sequence[RunResult]) -> dict[str, str]:
    """Block name in the study's document -> its text.

    Args:
        study: The study.
        records: The papers' committed records, with the earlier runs and the reference rows.
    """
    known, primary = campaign(), study.primary

    def exploratory(table: str, tasks: Iterable[str]) -> Evidence:
        seeds = dict.fromkeys(tasks, study.earlier_seeds)
        found = _evidence("Exploratory, decides nothing", benchmark(table), records, seeds, "last")
        return replace(found, ids=study.earlier_rows)

    def confirmatory(table: str, seeds: Mapping[str, range], steps: Sequence[int]) -> Evidence:
        every = [*records, *known.records]
        return _evidence("Confirmatory", known.benchmarks[table], every, seeds, PROTOCOL, known.missing(steps))

    main = (
        exploratory(study.earlier, primary.seeds),
        confirmatory(primary.relations[0].rows[0].benchmark, primary.seeds, primary.steps),
    )
    controls = [
        (control, evidence)
        for control in study.controls
        for evidence in (
            *((exploratory(control.earlier, control.seeds),) if control.earlier else ()),
            confirmatory(control.table, control.seeds, control.steps),
        )
    ]
    return study_blocks(study, main, controls)


_ROUNDS = {"last": "last round", PROTOCOL: "mean of the last three rounds"}


def _evidence(
    kind: str,
    table: Benchmark,
    records: Sequence[RunResult],
    seeds: Mapping[str, range],
    score_at: str,
    missing: str = "",
) -> Evidence:
    """A table's runs, scored by accuracy per task; stored answers give it if a run did not record it."""
    columns = (
        replace(column, scores=(ACCURACY,), averaged=ACCURACY, primary="", beside=())
        for task in seeds
        for column in table.columns
        if column.task == task
    )
    accurate = replace(table, columns=tuple(columns))
    gates = {} if table.gate is None else {table.gate.id: table.gate}
    runs = Runs.of_all({**gates, table.id: accurate}, table.scale(SCALE), records)
    of = next(iter(seeds.values()))
    name = f"{kind}, seeds {of[0]} to {of[-1]}, {_ROUNDS[score_at]}"
    return Evidence(name, replace(runs, score_at=score_at, seeds=seeds), table.id, tuple(seeds), missing=missing)
