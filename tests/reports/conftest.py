"""A small benchmark with the paper's columns, and its records with given numbers."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.measures import metric
from benchmarks.publication import Deviation, Paper
from benchmarks.results import LedgerEntry, RoundRecord, RunResult
from benchmarks.run_config import RunConfig, TrainConfig

ROOT = Path(__file__).resolve().parents[2]
TABLE3 = ROOT / "benchmarks" / "fedsplitbert" / "published" / "table3.csv"

F1, ACC = "test/f1", "test/accuracy"
COLUMNS = (
    Column("mrpc", "MRPC", (F1, ACC), F1),
    Column("cola", "CoLA", ("test/matthews_correlation",), "test/matthews_correlation"),
    Column("sst2", "SST-2", (F1, ACC), ACC),
    Column("qqp", "QQP", (ACC,), ACC),
    Column("mnli", "MNLI", (ACC, "mismatched/accuracy"), ACC, {"test": "", "mismatched": "mm"}),
    Column("rte", "RTE", (F1, ACC), ACC),
    Column("qnli", "QNLI", (ACC,), ACC),
    Column("wnli", "WNLI", (ACC,), ACC),
    Column("stsb", "STS-B", ("test/pearson",), "test/pearson"),
)
MAJORITY = {"algorithm": "majority"}
SPLIT = {"algorithm": "fedsplitbert", "options.critical_layer": 6}
ROWS = (
    Row("fedavg", "FedAvg", {"algorithm": "fedavg"}),
    Row("fedprox", "FedProx", {"algorithm": "fedprox"}),
    Row("fedadam", "FedAdam", {"algorithm": "fedadam"}),
    Row("fedsplitbert", "FedSplitBERT", SPLIT),
    Row("fedsplitbert-qat", "FedSplitBERT + qat", {**SPLIT, "codec": "fp16"}),
    Row("fedavg-fp16", "FedAvg + fp16", {"algorithm": "fedavg", "codec": "fp16"}, printed=False),
    Row("majority", "Local majority", MAJORITY, printed=False, note="each client's most frequent label."),
)
SCALES = (
    Scale("demo", "tiny", 2, "generated", "generated data, tiny BERT"),
    Scale("lite", "minilm", 6, "glue", "real data, MiniLM"),
    Scale("paper", "bert-base-uncased", 12, "glue", "real data, BERT-base"),
)


def _cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    return RunConfig(
        scale=scale.id,
        task=column.task,
        task_version=1,
        source=scale.source,
        backbone=scale.backbone,
        clients=3,
        partition={"name": "equal"},
        algorithm=row.algorithm,
        options=row.options,
        training=TrainConfig(rounds=2, learning_rate=5e-5, batch_size=16),
        seed=seed,
        codec=str(row.changes.get("codec", "fp32")),
    )


@pytest.fixture(scope="session")
def table3() -> Benchmark:
    return Benchmark(
        id="fedsplitbert-table3",
        paper=Paper("fedsplitbert", "FedSplitBERT", "Lit et al., 2022", "uploads of one round, summed over clients"),
        place="Table III",
        title="9 GLUE tasks, 3 clients",
        rows=ROWS,
        columns=COLUMNS,
        scales=SCALES,
        base=_cell,
        published_csv=TABLE3,
        deviations=(
            Deviation("encoder", "A smaller encoder stands in for BERT-base.", ("demo", "lite")),
            Deviation("v100", "Another GPU than the paper's.", ("paper",)),
        ),
    )


RecordOf = Callable[..., RunResult]


@pytest.fixture(scope="session")
def record_of(table3: Benchmark) -> RecordOf:
    """A record of two rounds: scores of the last one by name; the first one's are half of them."""

    def build(
        row: str,
        task: str,
        scores: Mapping[str, float | None],
        *,
        seed: int = 0,
        scale: str = "lite",
        errors: Mapping[str, float] | None = None,
        up: Sequence[int] = (3000, 5000),
        down: Sequence[int] = (700, 900),
        data: Mapping[str, Any] | None = None,
        finished: str = "2025-01-01T00:00:00+00:00",
        timing: Mapping[str, float] | None = None,
    ) -> RunResult:
        rows, columns = {entry.id: entry for entry in ROWS}, {entry.task: entry for entry in COLUMNS}
        cell = _cell(rows[row], columns[task], table3.scale(scale), seed)

        def nested(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
            result: dict[str, dict[str, Any]] = {}
            for name, value in values.items():
                evaluation, metric = name.split("/")
                result.setdefault(evaluation, {})[metric] = value
            return result

        halved = {name: None if value is None else value / 2 for name, value in scores.items()}
        rounds = tuple(
            RoundRecord(number, (0, 1, 2), 0.5, (0.4, 0.5, 0.6), nested(values), (), up_bytes, down_bytes)
            for number, values, up_bytes, down_bytes in zip((1, 2), (halved, scores), up, down, strict=True)
        )
        ledger = [
            LedgerEntry(number, client, direction, "parameters", part // 4, part)
            for direction, sizes in (("up", up), ("down", down))
            for number, size in enumerate(sizes, start=1)
            for client, part in enumerate((size // 2, size // 4, size - size // 2 - size // 4))
        ]
        inputs = {
            "data": {"digest": "d0", "origin": "files", "examples": 100, "skipped": [], "notes": []} | dict(data or {}),
            "backbone": {"digest": "b0", "origin": "folder"},
        }
        return RunResult(
            cell=cell,
            cell_id=cell.cell_id({name: entry["digest"] for name, entry in inputs.items()}),
            inputs=inputs,
            partition={"n_examples": 303},  # all that the clients have
            clients=tuple({"client": k, "train": 80, "test": 20 + k} for k in range(3)),
            rounds=rounds,
            sampling_errors=nested(errors or {}),
            setup_bytes=12_000,
            # Set-up stands in the ledger as round 0 and belongs to no round's bytes.
            ledger=(LedgerEntry(0, 0, "down", "parameters", 3000, 12_000), *ledger),
            environment={},
            timing=timing or {},
            finished=finished,
        )

    return build


REFERENCES = (
    Row("central", "Central training", {"algorithm": "central"}, printed=False),
    Row("linear", "Linear model", {"algorithm": "linear"}, printed=False),
    Row("overall-majority", "Overall majority", {"algorithm": "overall_majority"}, printed=False),
    Row("local-majority", "Local majority", {"algorithm": "local_majority"}, printed=False),
)
LEVELS = {"central": 90.0, "linear": 60.0, "overall-majority": 50.0, "local-majority": 0.0}
Opened = Callable[..., tuple[Benchmark, list[RunResult]]]


@pytest.fixture(scope="session")
def opened() -> Opened:
    """A table with the rows that judge its columns, and their records of eight seeds beside some others.

    levels: of rows that score otherwise, in percent (of plain numbers the distance from 100), or None for no record.
    shut: tasks whose linear model is better than central training.
    """

    def reference(table: Benchmark, row: Row, like: RunResult, seed: int, level: float) -> RunResult:
        column = next(column for column in table.columns if column.task == like.cell.task)
        cell = table.cell(row, column, table.scale(like.cell.scale), seed)
        nested: dict[str, dict[str, float | None]] = {}
        for score in {*column.scores, column.averaged}:
            evaluation, name = score.split("/")
            value = (level if metric(score).higher_is_better else 100 - level) / metric(score).factor
            nested.setdefault(evaluation, {})[name] = value + (seed * len(row.id) % 7) * 1e-6
        rounds = (replace(like.rounds[0], scores=nested, pooled_scores=nested, up_bytes=0, down_bytes=0),)
        identity = cell.cell_id({name: entry["digest"] for name, entry in like.inputs.items()})
        return replace(like, cell=cell, cell_id=identity, rounds=rounds, ledger=(), chosen_by="")

    def build(
        table: Benchmark,
        records: Sequence[RunResult],
        levels: Mapping[str, float | None] | None = None,
        shut: Collection[str] = (),
    ) -> tuple[Benchmark, list[RunResult]]:
        whole = replace(table, rows=(*table.rows, *REFERENCES))
        by_task = {(record.cell.task, record.cell.scale): record for record in records}
        wanted = {**LEVELS, **(levels or {})}
        made = [
            reference(whole, row, like, seed, level)
            for like in by_task.values()
            for row in REFERENCES
            for seed in range(8)
            if (level := 95.0 if row.id == "linear" and like.cell.task in shut else wanted[row.id]) is not None
        ]
        return whole, [*records, *made]

    return build
