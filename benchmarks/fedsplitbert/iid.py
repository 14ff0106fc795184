"""FedSplitBERT, what FedAvg loses to skewed labels: its three clients, and as many with the same labels shared evenly.

make fedsplitbert-iid SCALE=lite TASKS=mrpc,rte DATA_DIR=<folder of the GLUE download>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.fedsplitbert import table3
from benchmarks.fedsplitbert.deviations import DEVIATIONS
from benchmarks.fedsplitbert.setup import COLUMNS, FEDAVG, LABEL_SHARES_3, PAPER, SCALES, base_cell
from benchmarks.publication import Deviation
from benchmarks.run_config import RunConfig

EVEN = replace(
    FEDAVG,
    id="fedavg-iid",
    tuned_as="fedavg",
    name="FedAvg, labels shared out evenly",
    printed=False,
    note="every client has the mean of the three clients' label shares, so as many examples of each label are used",
)


def cell_of(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """Table III's cell; of the even row with the mean of its label shares for each client, hence of the same size."""
    cell = base_cell(row, column, scale, seed)
    if row.id != EVEN.id:
        return cell
    shares = LABEL_SHARES_3[column.task]
    mean = [sum(label) / len(shares) for label in zip(*shares, strict=True)]
    return replace(cell, partition={**cell.partition, "shares": [mean] * len(shares)})


BENCHMARK = Benchmark(
    id="fedsplitbert-iid",
    paper=PAPER,
    place="heterogeneity",
    title="FedAvg over 3 clients with skewed and with even labels; no table of the paper",
    rows=(replace(FEDAVG, printed=False), EVEN),
    # Accuracy alone: clients of one size make its mean that of all examples, which F1 and correlations are not.
    columns=tuple(
        replace(column, scores=("test/accuracy",), averaged="test/accuracy")
        for column in COLUMNS
        if "test/accuracy" in column.scores and column.task != "wnli"
    ),
    scales=SCALES,
    base=cell_of,
    published_csv=Path(__file__).parent / "published" / "table3.csv",
    deviations=(
        *DEVIATIONS,
        Deviation(
            "even",
            "Even labels: each client has the mean of Table I's label shares, so both rows have the same number of "
            "examples of each label and clients of the same size.",
        ),
    ),
    gate=table3.BENCHMARK,
)
