"""Studies: questions that no paper asks, with the runs that answer them (docs/label-prior.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from benchmarks.campaign.protocol import SCALE, campaign
from benchmarks.campaign.study_text import ACCURACY, Evidence, fixed_test, pairs_of, study_blocks
from benchmarks.claims import Study
from benchmarks.experiment import Benchmark
from benchmarks.registry import benchmark
from benchmarks.results import RunResult
from reports.claims.cells import Runs
from reports.evidence.inference import CONFIDENCE, average_of
from reports.evidence.scores import PROTOCOL
from reports.front.state import MEASURED, Headline
from reports.pages.text import compared, seed_counts, with_interval


def blocks_of(study: Study, records: Sequence[RunResult]) -> dict[str, str]:
    """Block name in the study's document -> its text.

    Args:
        study: The study.
        records: The papers' committed records, with the exploratory runs and the reference rows.
    """

    def exploratory(table: str, tasks: Iterable[str], title: str = "") -> Evidence:
        seeds, kind = dict.fromkeys(tasks, study.earlier_seeds), "Exploratory, decides nothing"
        return replace(_evidence(title, kind, benchmark(table), records, seeds, "last"), ids=study.earlier_rows)

    main = exploratory(study.earlier, study.primary.seeds), _answering(study, records)
    controls = []
    for control in study.controls:
        if control.earlier:
            controls.append((control, exploratory(control.earlier, control.seeds, control.title)))
        fresh = _confirmatory(control.table, control.seeds, control.steps, records, control.title)
        controls.append((control, fresh))
    return study_blocks(study, main, controls)


def headline_of(study: Study, records: Sequence[RunResult]) -> Headline | None:
    """The study's finding for the first page; None before all runs of its primary comparison are finished."""
    evidence = _answering(study, records)
    estimates = [] if evidence.missing else evidence.differences(pairs_of(study)[0])
    whole = average_of(estimates)
    if whole.value is None or whole.interval is None:
        return None
    text, n = with_interval(whole.value, whole.interval, "+", 1), seed_counts(each.n for each in estimates)
    summary = study.headline.format(compared=compared(whole.value, whole.interval))
    margin, word = fixed_test(study, evidence)
    test = f"The preregistered hypothesis that both are equal within {margin:g} point is {word}"
    numbers = f"accuracy, mean of {len(estimates)} tasks, {text}, {CONFIDENCE} interval{n}. {test}"
    return Headline(summary, "", MEASURED, numbers, study=study.earlier, page=study.page, is_planned=True, test=test)


def _answering(study: Study, records: Sequence[RunResult]) -> Evidence:
    """The evidence for the primary comparison."""
    primary = study.primary
    return _confirmatory(primary.relations[0].rows[0].benchmark, primary.seeds, primary.steps, records)


def _confirmatory(
    table: str, seeds: Mapping[str, range], steps: Sequence[int], records: Sequence[RunResult], title: str = ""
) -> Evidence:
    whole = campaign()
    every, missing = [*records, *whole.records], whole.missing(steps)
    return _evidence(title, "Confirmatory", whole.benchmarks[table], every, seeds, PROTOCOL, missing)


_ROUNDS = {"last": "last round", PROTOCOL: "mean of the last three rounds"}


def _evidence(
    title: str,
    kind: str,
    table: Benchmark,
    records: Sequence[RunResult],
    seeds: Mapping[str, range],
    score_at: str,
    missing: str = "",
) -> Evidence:
    """A table's runs, scored by accuracy per task; stored predictions give it if a run did not record it.

    title: what differs from the study; "" for the study's own comparison.
    """
    columns = (
        replace(column, scores=(ACCURACY,), averaged=ACCURACY, primary="", extra=())
        for task in seeds
        for column in table.columns
        if column.task == task
    )
    accurate = replace(table, columns=tuple(columns))
    gates = {} if table.gate is None else {table.gate.id: table.gate}
    runs = Runs.of_all({**gates, table.id: accurate}, table.scale(SCALE), records)
    of = next(iter(seeds.values()))
    name = f"{title}: {kind.lower()}" if title else kind
    name += f", seeds {of[0]} to {of[-1]}, {_ROUNDS[score_at]}"
    return Evidence(name, replace(runs, score_at=score_at, seeds=seeds), table.id, tuple(seeds), missing=missing)
