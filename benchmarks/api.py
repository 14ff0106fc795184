"""The harness from Python: the command line's functions on objects and data frames.

    from benchmarks import api

    chosen = api.select("fedsplitbert-table3", scale="demo", tasks=["rte"], methods=["fedavg", "fedsplitbert"], seeds=2)
    records = api.run(chosen, api.settings(results_dir="results", data_dir="data"))
    api.table(chosen, records)      # the table, one line for each row, task and quantity, with the published value
    api.scores(records)             # one line for each cell, evaluation and metric
    api.curves(records)             # one line for each round
    api.payloads(records)           # one line for each client, round, direction and kind of payload
    api.claims("fedsplitbert", "lite", api.load("benchmarks/fedsplitbert/records"))

Scores are in the records' unit: 0.75 is 75 %. Bad input raises `UserError`, which says what was expected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cli.select import Selection, part_of, summary, tables_of
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.results import POOLED, RunResult, among, read_folders, run_bytes, stage_bytes
from benchmarks.run_config import JSON, RunConfig, canonical_json
from benchmarks.running.completed import IsFinished
from benchmarks.running.events import CellFailed, CellFinished, Event, Sink
from benchmarks.running.run_options import (
    MOST_SEEDS,
    RunOptions,
    available_cores,
    default_workers,
    require_at_most,
    require_machine,
)

if TYPE_CHECKING:
    import pandas as pd

    from benchmarks.costs import WirePlan
    from benchmarks.predictions import Predictions

__all__ = [
    "UserError", "benchmark", "benchmarks", "claims", "curves", "load", "payloads", "plan", "predictions", "run",
    "run_cell", "scores", "select", "settings", "table",
]  # fmt: skip


def benchmarks() -> dict[str, Benchmark]:
    """Every definition of a table or figure, by id."""
    return {name: benchmark(name) for name in benchmark_ids()}


def select(
    id: str,
    scale: str = "demo",
    tasks: Sequence[str] = (),
    methods: Sequence[str] = (),
    seeds: int | Sequence[int] = 1,
    backbone: str | None = None,
    changes: Mapping[str, JSON] | None = None,
) -> Selection:
    """A part of a table or figure, as `make <id> SCALE=… TASKS=… METHODS=… SEEDS=…` chooses it.

    Args:
        id: Of the table or figure.
        scale: The id of a scale.
        tasks: Ids of columns; empty for all.
        methods: Ids of rows; empty for all.
        seeds: How many, from 0, or which.
        backbone: A folder or hub name that replaces the scale's own.
        changes: Field -> value, as `--set` has them, such as {"training.rounds": 2}.
    """
    seeds = range(seeds) if isinstance(seeds, int) else tuple(seeds)
    require_at_most("seeds", MOST_SEEDS, len(seeds))
    assignments = [f"{name}={canonical_json(value)}" for name, value in (changes or {}).items()]
    return part_of(id, scale, list(methods), list(tasks), seeds, assignments, backbone)


def settings(
    results_dir: str | Path = "results",
    data_dir: str | Path | None = None,
    workers: int | None = None,
    threads: int = 1,
    device: str | None = None,
    backbone: str | None = None,
    client_workers: int = 1,
) -> RunOptions:
    """Folders and machine, checked.

    workers: cells that run at once; None for as many as the cores or GPUs allow. client_workers: clients of a cell that
    train at once, in tasks of Ray. device: "cpu", "cuda", "cuda:1"; None for a GPU where there is one.
    """
    require_machine(device, threads, 1 if workers is None else workers, None, client_workers)
    options = RunOptions(
        results_dir=Path(results_dir),
        data_dir=None if data_dir is None else Path(data_dir),
        backbone=backbone,
        threads=threads,
        workers=workers or default_workers(device, available_cores(), None, client_workers),
        client_workers=client_workers,
        device=device,
    )
    options.check()
    return options


def run(
    chosen: Selection,
    made: RunOptions | None = None,
    tell: Sink | None = None,
    is_finished: IsFinished | None = None,
) -> list[RunResult]:
    """Compute the unfinished cells of a selection; returns the records of all its cells, in order.

    Nothing is printed or tracked. More than one worker needs a script that can be imported
    (`if __name__ == "__main__":`), or a notebook.

    Args:
        chosen: The selection.
        made: Folders and machine; None for the defaults of `settings`.
        tell: Called with every event (`benchmarks.running.events`) as it happens.
        is_finished: Says which cells are finished; None to look for their records.

    Raises:
        UserError: Some cells failed; the others have finished.
    """
    from benchmarks.executors import run_cells

    cells = list({cell.spec_id: cell for _, _, cell in chosen.cells()}.values())
    made = made or settings()
    finished: dict[str, RunResult] = {}
    failures: list[CellFailed] = []

    def collect(event: Event) -> None:
        if isinstance(event, CellFinished):
            finished[event.record.cell.spec_id] = event.record
        elif isinstance(event, CellFailed):
            failures.append(event)
        if tell is not None:
            tell(event)

    run_cells(cells, made, collect, chosen.benchmark.keeps_weights, is_finished)
    if failures:
        raise UserError(summary(failures, cells, chosen))
    return [replace(finished[cell.spec_id], folder=made.records_dir) for cell in cells]


def run_cell(cell: RunConfig, made: RunOptions, tell: Sink = lambda event: None) -> RunResult:
    """Compute one cell in this process, or read its record."""
    from benchmarks.running import runner

    return runner.run_cell(cell, made, tell)


def plan(cell: RunConfig, examples: Sequence[int] | None = None) -> WirePlan:
    """The bytes of a cell's rounds, derived without training; see `benchmarks.dry_run.rounds.wire_plan`."""
    from benchmarks.dry_run.rounds import wire_plan

    return wire_plan(cell, examples=examples)


# ---- results -----------------------------------------------------------------------------------------------------


def load(*folders: str | Path) -> list[RunResult]:
    """The records of folders such as results/records, each cell once; UserError for a damaged record or no folder."""
    return read_folders(map(Path, folders))


def table(chosen: Selection, records: Iterable[RunResult]) -> pd.DataFrame:
    """A table or figure in long form, as the table.csv of its report."""
    from benchmarks.cli.report import page_of

    return page_of(chosen, list(records)).frame()


def claims(paper: str, scale: str, records: Iterable[RunResult]) -> pd.DataFrame:
    """A paper's claims with their verdicts on the published numbers and on the records of a scale.

    UserError for an unknown paper or scale.
    """
    import pandas as pd

    from benchmarks.cli.paper import benchmarks_of, judged
    from reports.claims import wording
    from reports.claims.judge import measured_word

    if tables_of(paper) == [paper]:
        papers = sorted({table.paper.id for table in benchmarks().values()})
        raise UserError(f"unknown paper {paper!r}: expected one of {', '.join(papers)}")
    at = {each.id: each for table in benchmarks_of(paper).values() for each in table.scales}
    if scale not in at:
        raise UserError(f"scale {scale!r}: no table of {paper} has it")
    lines = [
        {
            "claim": judgement.claim.id,
            "quotation": judgement.claim.quotation,
            "in_print": judgement.published_word,
            "ours": judgement.word,
            "verdict": judgement.verdict,
            "numbers": wording.numbers(judgement.measured),
            "effect": judgement.effect,
            "seeds": judgement.n,
            "why": wording.why(judgement.measured),
            "without": wording.without(judgement.measured),
            "at_last_round": measured_word(judgement.at_last) if judgement.at_last else "",
        }
        for judgement in judged(paper, at[scale], list(records))
    ]
    return pd.DataFrame(lines)


def scores(records: Iterable[RunResult], chosen: Selection | None = None) -> pd.DataFrame:
    """One line for each cell, evaluation and metric: the score at the chosen and the last round, and the cell's bytes.

    uplink and downlink are sums over rounds and clients, with the earlier runs from which a cell starts, and None where
    the record of such a run is missing; uplink_stage is without them. one_time is the distribution of the model before
    the first round. Diverged cells have no score. chosen: adds its ids of methods.
    """
    records = list(records)
    find = among(records)
    return _frame(
        {
            **keys,
            "evaluation": evaluation,
            "metric": metric,
            "score": record.score(f"{evaluation}/{metric}", "chosen"),
            "last": record.score(f"{evaluation}/{metric}", "last"),
            "test_set_error": None if evaluation == POOLED else record.sampling_error(f"{evaluation}/{metric}"),
            "rounds": len(record.rounds),
            "chosen_round": record.chosen_round,
            "uplink": sent.up if sent else None,
            "downlink": sent.down if sent else None,
            "uplink_stage": stage_bytes(record).up,
            "one_time": record.setup_bytes,
            "diverged": record.divergence,
        }
        for record, keys in _with_keys(records, chosen)
        for sent in [run_bytes(record, find)]
        for evaluation, metric in _score_names(record)
    )


def curves(records: Iterable[RunResult], chosen: Selection | None = None) -> pd.DataFrame:
    """One line for each cell, round, evaluation and metric: the clients' combined score, the loss and the bytes."""
    return _frame(
        {
            **keys,
            "round": entry.round,
            "evaluation": evaluation,
            "metric": metric,
            "score": value,
            "train_loss": entry.train_loss,
            "uplink": entry.up_bytes,
            "downlink": entry.down_bytes,
        }
        for record, keys in _with_keys(records, chosen)
        for evaluation, metric in _score_names(record)
        for entry, value in zip(record.rounds, record.by_round(f"{evaluation}/{metric}"), strict=True)
    )


def payloads(records: Iterable[RunResult], chosen: Selection | None = None) -> pd.DataFrame:
    """The ledger: one line for each cell, round, client, direction and kind. Round 0 is the set-up."""
    return _frame(
        {**keys, **entry._asdict()} for record, keys in _with_keys(records, chosen) for entry in record.ledger
    )


def predictions(record: RunResult) -> dict[tuple[int, str], Predictions]:
    """(client, evaluation) -> labels and answers; UserError where the file of predictions is missing."""
    from benchmarks.predictions import read_predictions

    if record.folder is None:
        raise UserError("predictions lie beside records: load() the folder of this one first")
    return read_predictions(record.folder, record)


def _frame(lines: Iterable[Mapping[str, JSON]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(lines))


def _with_keys(records: Iterable[RunResult], chosen: Selection | None) -> Iterator[tuple[RunResult, dict[str, JSON]]]:
    """Each record with the columns that identify its cell."""
    methods = {cell.definition_id: row.id for row, _, cell in chosen.cells()} if chosen else {}
    for record in records:
        cell = record.cell
        method = {"method": methods[cell.definition_id]} if cell.definition_id in methods else {}
        yield (
            record,
            method
            | {
                "cell": record.cell_id,
                "scale": cell.scale,
                "task": cell.task,
                "algorithm": cell.algorithm,
                "options": canonical_json(cell.options),
                "backbone": cell.backbone,
                "clients": cell.clients,
                "learning_rate": cell.training.learning_rate,
                "seed": cell.seed,
            },
        )


def _score_names(record: RunResult) -> list[tuple[str, str]]:
    """The evaluations and metrics of a record; evaluation "pooled" is all clients' test examples together."""
    if not record.rounds:
        return []
    last = record.rounds[-1]
    scored = {**last.scores, POOLED: last.pooled_scores.get("test", {})}
    return [(evaluation, metric) for evaluation, metrics in scored.items() for metric in metrics]
