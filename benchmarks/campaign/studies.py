"""Studies: questions that no paper asks, with the runs that answer them (docs/label-prior.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    fresh = known.benchmarks[primary.relations[0].rows[0].benchmark]
    parts = zip(study.earlier, (primary.seeds, study.control_seeds), (primary.steps, study.control_steps), strict=True)
    main, controls = (
        (
            _evidence(
                "Exploratory, decides nothing",
                benchmark(earlier),
                records,
                dict.fromkeys(seeds, study.earlier_seeds),
                "last",
                study,
            ),
            _evidence("Confirmatory", fresh, [*records, *known.records], seeds, PROTOCOL, study, known.missing(steps)),
        )
        for earlier, seeds, steps in parts
    )
    return study_blocks(study, main, controls)


_ROUNDS = {"last": "last round", PROTOCOL: "mean of the last three rounds"}


def _evidence(
    kind: str,
    table: Benchmark,
    records: Sequence[RunResult],
    seeds: Mapping[str, range],
    score_at: str,
    study: Study,
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
    ids = study.earlier_rows if table.id in study.earlier else {}
    of = next(iter(seeds.values()))
    name = f"{kind}, seeds {of[0]} to {of[-1]}, {_ROUNDS[score_at]}"
    return Evidence(name, replace(runs, score_at=score_at, seeds=seeds), table.id, tuple(seeds), ids, missing)
