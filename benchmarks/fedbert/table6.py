"""FedBERT, Table 6: RoBERTa-small pre-trained in seven training modes, fine-tuned on seven GLUE tasks.

make fedbert-table6 SCALE=lite TASKS=rte-central DATA_DIR=<folder with WikiText, or a Wikipedia text, and GLUE>
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.experiment import Benchmark
from benchmarks.fedbert.deviations import FINETUNING
from benchmarks.fedbert.finetuning import COLUMNS, GAIN, MODES, REFERENCES, STAGE, UNPRINTED, base_cell
from benchmarks.fedbert.setup import PAPER, SMALL

BENCHMARK = Benchmark(
    id="fedbert-table6",
    paper=PAPER,
    place="Table 6",
    title="RoBERTa-small pre-trained in seven training modes, 10 clients, on GLUE's development sets",
    rows=(*REFERENCES, *MODES, *UNPRINTED),
    columns=COLUMNS,
    scales=SMALL,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "table6.csv",
    deviations=FINETUNING,
    average="",
    yardstick=GAIN,
    stage=STAGE,
)
