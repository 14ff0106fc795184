"""FedSplitBERT, Table II: the label distributions of ten clients, requested against obtained.

make fedsplitbert-table2 SCALE=lite TASKS=mrpc DATA_DIR=<folder of the GLUE download>
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.experiment import Benchmark
from benchmarks.fedsplitbert import setup, table5
from benchmarks.fedsplitbert.deviations import DEVIATIONS
from benchmarks.fedsplitbert.table1 import BINARY
from benchmarks.publication import Deviation, View

BENCHMARK = Benchmark(
    id="fedsplitbert-table2",
    paper=setup.PAPER,
    place="Table II",
    title="Label distributions of 4 GLUE datasets over 10 clients, requested against obtained",
    rows=(setup.LOCAL_MAJORITY,),  # Table V's own cells
    columns=table5.BENCHMARK.columns,
    scales=setup.SCALES,
    base=table5.base_cell,
    published_csv=Path(__file__).parent / "published" / "table2.csv",
    deviations=(
        *(entry for entry in DEVIATIONS if entry.id in ("client-size", "subset")),
        Deviation(
            "client-10",
            "MRPC's client 10 reads 51%/48% in print, which sums to 99: requested here are these shares scaled to sum "
            "to 100, so that they differ from print.",
        ),
    ),
    view=View("labels", {"labels": dict.fromkeys(table5.LABEL_SHARES_10, BINARY)}),
)
