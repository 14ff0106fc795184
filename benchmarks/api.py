"""The harness from Python: what the command line does, as objects and data frames.

    from benchmarks import api

    chosen = api.select("fedsplitbert-table3", scale="demo", tasks=["rte"], methods=["fedavg", "fedsplitbert"], seeds=2)
    records = api.run(chosen, api.settings(results_dir="results", data_dir="data"))
    api.table(chosen, records)      # the table, one line a row, task and quantity, beside the reported value
    api.scores(records)             # one line a cell, evaluation and metric
    api.curves(records)             # one line a round
    api.payloads(records)           # one line a client, round, direction and kind of payload
    api.claims("fedsplitbert", "lite", api.load("benchmarks/fedsplitbert/records"))

Scores are in the records' unit: 0.75 is 75 %. Bad input raises `UserError`, which says what was expected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cli.select import Selection, part_of, tables_of
from benchmarks.errors import UserError
from benchmarks.executors.slots import default_workers
from benchmarks.experiment import Benchmark
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.results import POOLED, RunResult, read_folders
from benchmarks.run_config import JSON, RunConfig, canonical_json
from benchmarks.running.events import CellFailed, CellFinished, Event, Sink
from benchmarks.running.run_options import MOST_SEEDS, RunOptions, available_cores, require_at_most, require_machine

if TYPE_CHECKING:
    import pandas as pd

    from benchmarks.costs import WirePlan

__all__ = [
    "UserError",
    "benchmark",
    "benchmarks",
    "claims",
    "curves",
    "load",
    "payloads",
    "plan",
    "predictions",
    "run",
    "run_cell",
    "scores",
    "select",
    "settings",
    "table",
]


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
    """A part of a table or figure: what `make <id> SCALE=… TASKS=… METHODS=… SEEDS=…` chooses; its `cells()` are data.

    tasks, methods: their ids; all where none is given. seeds: how many, from 0, or which. backbone: a folder or hub
    name in place of the scale's own.
    changes: fields as `--set` names them, such as {"training.rounds": 2}. UserError names what is there to choose.
    """
    seeds = range(seeds) if isinstance(seeds, int) else tuple(seeds)
    require_at_most("seeds", MOST_SEEDS, len(seeds))
    texts = [f"{name}={canonical_json(value)}" for name, value in (changes or {}).items()]
    return part_of(id, scale, list(methods), list(tasks), seeds, texts, backbone)


def settings(
    results_dir: str | Path = "results",
    data_dir: str | Path | None = None,
    workers: int | None = None,
    threads: int = 1,
    device: str | None = None,
    backbone: str | None = None,
    client_workers: int = 1,
) -> RunOptions:
    """Places and machine, checked. workers: as many as there are cores, or places on GPUs, where none is given.

    client_workers: clients of one cell that train at once, in tasks of Ray, where a method's clients train apart.
    backbone: as in `select`, where one is named there.
    """
    require_machine(device, threads, 1 if workers is None else workers, None, client_workers)
    made = RunOptions(
        results_dir=Path(results_dir),
        data_dir=None if data_dir is None else Path(data_dir),
        backbone=backbone,
        threads=threads,
        workers=workers or default_workers(device, available_cores(), None, client_workers),
        client_workers=client_workers,
        device=device,
    )
    made.check()
    return made


def run(chosen: Selection, made: RunOptions | None = None, tell: Sink | None = None) -> list[RunResult]:
    """Compute what is not finished of a selection; returns the records of its cells, in their order.

    Finished cells are found, interrupted ones go on. made: as `settings` gives them, which are the default. tell: is
    given every event (`benchmarks.running.events`) as it happens; nothing is printed and nothing tracked:
    `python -m benchmarks import` brings records into MLflow. UserError, once the others have finished, where cells
    could not be computed.
    More than one worker needs a calling script that can be imported (`if __name__ == "__main__":`), as Python's
    multiprocessing does; a notebook can have them.
    """
    from benchmarks.cli.run import summary
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

    run_cells(cells, made, collect, chosen.benchmark.keeps_weights)
    if failures:
        raise UserError(summary(failures, cells, chosen))
    return [replace(finished[cell.spec_id], folder=made.records_dir) for cell in cells]


def run_cell(cell: RunConfig, made: RunOptions, tell: Sink = lambda event: None) -> RunResult:
    """Compute one cell in this process, or find its record; `Benchmark.cell` and `dataclasses.replace` make cells."""
    from benchmarks.running.runner import run_cell as computed

    return computed(cell, made, tell)


def plan(cell: RunConfig, examples: Sequence[int] | None = None) -> WirePlan:
    """The bytes of a cell's rounds, derived from shapes without training, data or weights.

    examples: of each client, for methods that send something for each. UserError where bytes depend on the texts.
    """
    from benchmarks.dry_run.rounds import wire_plan

    return wire_plan(cell, examples=examples)


# ---- what was found ----------------------------------------------------------------------------------------------


def load(*folders: str | Path) -> list[RunResult]:
    """The records of folders such as results/records, each cell once; UserError where one is damaged, or no folder."""
    return read_folders(map(Path, folders))


def table(chosen: Selection, records: Iterable[RunResult]) -> pd.DataFrame:
    """What the table or figure shows of records, in long form: as its table.csv in the reports."""
    from benchmarks.cli.report import page_of

    return page_of(chosen, list(records)).frame()


def claims(paper: str, scale: str, records: Iterable[RunResult]) -> pd.DataFrame:
    """A paper's claims with their verdicts, on published numbers and on the records of a scale, and the numbers.

    UserError if the paper or the scale is unknown.
    """
    import pandas as pd

    from benchmarks.cli.paper import benchmarks_of, judged
    from reports.claims import wording
    from reports.claims.judge import measured_word

    if tables_of(paper) == [paper]:
        papers = sorted({found.paper.id for found in benchmarks().values()})
        raise UserError(f"unknown paper {paper!r}: expected one of {', '.join(papers)}")
    known = benchmarks_of(paper)
    at = next((table.scale(scale) for table in known.values() if scale in {each.id for each in table.scales}), None)
    if at is None:
        raise UserError(f"scale {scale!r}: no table of {paper} has it")
    lines = [
        {
            "claim": found.claim.id,
            "quotation": found.claim.quotation,
            "in_print": found.published_word,
            "ours": found.word,
            "verdict": found.verdict,
            "numbers": wording.numbers(found.measured),
            "effect": found.effect,
            "seeds": found.n,
            "why": wording.why(found.measured),
            "without": wording.without(found.measured),
            "at_last_round": measured_word(found.at_last) if found.at_last else "",
        }
        for found in judged(paper, at, list(records))
    ]
    return pd.DataFrame(lines)


def _keys(record: RunResult, names: Mapping[str, str]) -> dict[str, JSON]:
    cell = record.cell
    named = {"method": names[cell.definition_id]} if cell.definition_id in names else {}
    return named | {
        "cell": record.cell_id,
        "scale": cell.scale,
        "task": cell.task,
        "algorithm": cell.algorithm,
        "options": canonical_json(cell.options),
        "backbone": cell.backbone,
        "clients": cell.clients,
        "learning_rate": cell.training.learning_rate,
        "seed": cell.seed,
    }


def _names(chosen: Selection | None) -> dict[str, str]:
    """How a table calls its cells' methods, by what they are up to the seed."""
    return {cell.definition_id: row.id for row, _, cell in chosen.cells()} if chosen else {}


def scores(records: Iterable[RunResult], chosen: Selection | None = None) -> pd.DataFrame:
    """One line a cell, evaluation and metric: the score at the chosen round and at the last, and the cell's bytes.

    chosen: whose ids of methods are put beside. Uplink and downlink are sums over rounds and clients; one_time is the
    distribution of the model before the first round. Cells that diverged have no score.
    """
    import pandas as pd

    def lines() -> Iterator[dict[str, JSON]]:
        for record in records:
            sums = {
                "rounds": len(record.rounds),
                "chosen_round": record.chosen_round if record.rounds else None,
                "uplink": sum(entry.up_bytes for entry in record.rounds),
                "downlink": sum(entry.down_bytes for entry in record.rounds),
                "one_time": record.setup_bytes,
                "diverged": record.divergence,
            }
            for name in _scored(record):
                evaluation, measured = name.split("/")
                yield {
                    **_keys(record, names),
                    "evaluation": evaluation,
                    "metric": measured,
                    "score": record.score(name, "chosen"),
                    "last": record.score(name, "last"),
                    "test_set_error": None if evaluation == POOLED else record.sampling_error(name),
                    **sums,
                }

    names = _names(chosen)
    return pd.DataFrame(list(lines()))


def _scored(record: RunResult) -> list[str]:
    """Names of a record's scores: "test/f1"; "pooled/f1" on all clients' test examples together."""
    last = record.rounds[-1] if record.rounds else None
    if last is None:
        return []
    own = [f"{evaluation}/{name}" for evaluation, found in last.scores.items() for name in found]
    return own + [f"{POOLED}/{name}" for name in last.pooled_scores.get("test", {})]


def curves(records: Iterable[RunResult], chosen: Selection | None = None) -> pd.DataFrame:
    """One line a cell, round, evaluation and metric: the clients' combined score after the round, losses and bytes."""
    import pandas as pd

    names = _names(chosen)
    return pd.DataFrame(
        [
            {
                **_keys(record, names),
                "round": entry.round,
                "evaluation": name.split("/")[0],
                "metric": name.split("/")[1],
                "score": value,
                "train_loss": entry.train_loss,
                "uplink": entry.up_bytes,
                "downlink": entry.down_bytes,
            }
            for record in records
            for name in _scored(record)
            for entry, value in zip(record.rounds, record.by_round(name), strict=True)
        ]
    )


def payloads(records: Iterable[RunResult], chosen: Selection | None = None) -> pd.DataFrame:
    """The ledger: one line a cell, round, client, direction and kind, with values, bytes and messages.

    Round 0 is the one-time distribution.
    """
    import pandas as pd

    names = _names(chosen)
    return pd.DataFrame([{**_keys(record, names), **entry._asdict()} for record in records for entry in record.ledger])


def predictions(record: RunResult) -> dict[tuple[int, str], object]:
    """What a cell answered: (client, evaluation) -> labels and outputs; UserError where its file is not beside it."""
    from benchmarks.predictions import read_predictions

    if record.folder is None:
        raise UserError("predictions lie beside records: load() the folder of this one first")
    return dict(read_predictions(record.folder, record))
