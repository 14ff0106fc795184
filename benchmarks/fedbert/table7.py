"""FedBERT, Table 7: RoBERTa-base pre-trained in six training modes, fine-tuned on seven GLUE tasks.

make fedbert-table7 SCALE=paper DATA_DIR=<folder with WikiText and GLUE>      # demo, lite: Table 6's cells
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.fedbert import table6
from benchmarks.fedbert.finetuning import PARALLEL_FEDAVG
from benchmarks.fedbert.setup import BASE
from benchmarks.publication import Deviation

BENCHMARK = replace(
    table6.BENCHMARK,
    id="fedbert-table7",
    place="Table 7",
    title="RoBERTa-base pre-trained in six training modes, 10 clients, on GLUE's development sets",
    rows=tuple(replace(row, printed=False) if row == PARALLEL_FEDAVG else row for row in table6.BENCHMARK.rows),
    scales=BASE,
    published_csv=Path(__file__).parent / "published" / "table7.csv",
    deviations=(
        *table6.BENCHMARK.deviations,
        Deviation("size", "One small encoder stands in for both sizes: the cells are Table 6's.", ("demo", "lite")),
    ),
)
