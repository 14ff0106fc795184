"""FedFreezeBERT, Table 3: seven methods under four aggregation architectures on ArSarcasm-v2, five clients.

make fedfreezebert-table3 SCALE=lite DATA_DIR=<folder with the authors' CSV files>
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.experiment import Benchmark
from benchmarks.fedfreezebert.setup import (
    DEVIATIONS,
    ENGLISH,
    FEDAVG_AT_FROZEN_RATE,
    HEADS,
    METHODS,
    PAPER,
    REFERENCES,
    SCALES,
    SENTIMENT,
    YARDSTICK,
    base_cell,
    with_head,
)
from benchmarks.publication import Deviation, View

BENCHMARK = Benchmark(
    id="fedfreezebert-table3",
    paper=PAPER,
    place="Table 3",
    title="Seven methods under four aggregation architectures, 5 clients",
    rows=(*REFERENCES, *(with_head(row, head) for head in HEADS for row in METHODS), FEDAVG_AT_FROZEN_RATE),
    columns=(SENTIMENT, ENGLISH),
    scales=SCALES,
    base=base_cell,
    yardstick=YARDSTICK,
    published_csv=Path(__file__).parent / "published" / "table3.csv",
    deviations=(
        *DEVIATIONS,
        Deviation(
            "print",
            "The printed table was not at hand: reported values are the three that the text names (central and C- "
            "with P-SUM, C- with H-SUM), and those that follow from its relative gains, marked ≈.",
        ),
    ),
    view=View(
        "crossed",
        {
            "variant": "aggregation architecture",
            "methods": {
                method.name: {name: with_head(method, head).id for head, name in HEADS.items()} for method in METHODS
            }
            | {FEDAVG_AT_FROZEN_RATE.name: {HEADS["ordinary"]: FEDAVG_AT_FROZEN_RATE.id}},
        },
    ),
)
