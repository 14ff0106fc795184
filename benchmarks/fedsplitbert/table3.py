"""FedSplitBERT, Table III: five methods on nine GLUE tasks, three clients with skewed labels.

make fedsplitbert-table3 SCALE=lite TASKS=mrpc,rte DATA_DIR=<folder of the GLUE download>
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.experiment import Benchmark
from benchmarks.fedsplitbert.deviations import DEVIATIONS
from benchmarks.fedsplitbert.setup import (
    COLUMNS,
    FEDADAM,
    FEDAVG,
    FEDAVG_FP16,
    FEDPROX,
    FEDSPLITBERT,
    FEDSPLITBERT_CHOSEN,
    FEDSPLITBERT_QAT,
    PAPER,
    PERSONALISED,
    REFERENCES,
    SCALES,
    TUNED,
    base_cell,
)

BENCHMARK = Benchmark(
    id="fedsplitbert-table3",
    paper=PAPER,
    place="Table III",
    title="Performance on 9 GLUE datasets under a non-IID setting over 3 clients",
    rows=(
        *REFERENCES,
        FEDAVG,
        FEDPROX,
        FEDADAM,
        FEDAVG_FP16,
        FEDSPLITBERT,
        FEDSPLITBERT_CHOSEN,
        FEDSPLITBERT_QAT,
        *PERSONALISED,
    ),
    columns=COLUMNS,
    scales=SCALES,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "table3.csv",
    deviations=DEVIATIONS,
    tuned=TUNED,
)
