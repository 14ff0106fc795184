"""FedBFPT, Table 3: downstream scores after further pre-training, seven models on three domains.

make fedbfpt-table3 SCALE=lite TASKS=scierc DATA_DIR=<folder with corpora and tasks>
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.experiment import Benchmark
from benchmarks.fedbfpt.finetuning import (
    BERT,
    BERT_C,
    BERT_FL,
    COLUMNS,
    DEVIATIONS,
    FEDBFPT,
    GAIN,
    SMALLER,
    STAGE,
    base_cell,
)
from benchmarks.fedbfpt.setup import PAPER, SCALES

BENCHMARK = Benchmark(
    id="fedbfpt-table3",
    paper=PAPER,
    place="Table 3",
    title="F1 or accuracy on downstream tasks after further pre-training with 6 clients",
    rows=(BERT, BERT_C, BERT_FL, *SMALLER, FEDBFPT),
    columns=COLUMNS,
    scales=SCALES,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "table3.csv",
    deviations=DEVIATIONS,
    average="",
    yardstick=GAIN,
    stage=STAGE,
)
