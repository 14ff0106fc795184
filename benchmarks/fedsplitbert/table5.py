"""FedSplitBERT, Table V: five methods on four GLUE tasks, ten clients with skewed labels.

make fedsplitbert-table5 SCALE=lite TASKS=mrpc DATA_DIR=<folder of the GLUE download>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.fedsplitbert import setup, table3
from benchmarks.fedsplitbert.deviations import DEVIATIONS
from benchmarks.run_config import RunConfig

# Table II, in the order of the label ids; client 10's printed 51/48 for MRPC is normalised by the partitioner.
_OTHER = tuple((100 - label1, label1) for label1 in (90, 80, 70, 60, 50, 40, 30, 20, 10, 2))
LABEL_SHARES_10 = {
    "mrpc": ((8, 92), (14, 86), (29, 71), (34, 66), (50, 50), (56, 44), (65, 35), (72, 28), (88, 12), (48, 51)),
    "sst2": _OTHER,
    "qqp": _OTHER,
    "qnli": _OTHER,
}


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """One run with ten clients, before what the row changes."""
    partition = setup.label_table(column.task, scale, LABEL_SHARES_10[column.task])
    return replace(setup.base_cell(row, column, scale, seed), clients=10, partition=partition)


BENCHMARK = Benchmark(
    id="fedsplitbert-table5",
    paper=setup.PAPER,
    place="Table V",
    title="Performance on 4 GLUE datasets under a non-IID setting over 10 clients",
    rows=(
        *setup.REFERENCES,
        setup.FEDAVG,
        setup.FEDPROX,
        setup.FEDADAM,
        setup.FEDAVG_FP16,
        setup.FEDSPLITBERT,
        setup.FEDSPLITBERT_QAT,
        *setup.PERSONALISED,
    ),
    columns=tuple(
        Column(column.task, column.name, ("test/accuracy",), "test/accuracy")
        for column in setup.COLUMNS
        if column.task in LABEL_SHARES_10
    ),
    scales=setup.SCALES,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "table5.csv",
    deviations=DEVIATIONS,
    tuned=setup.TUNED,
    gate=table3.BENCHMARK,
    average="round",
)
