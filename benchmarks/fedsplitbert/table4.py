"""FedSplitBERT, Table IV: the critical layer c, three clients.

make fedsplitbert-table4 SCALE=lite TASKS=mrpc,cola DATA_DIR=<folder of the GLUE download>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark, Row
from benchmarks.fedsplitbert import table3
from benchmarks.fedsplitbert.deviations import DEVIATIONS
from benchmarks.fedsplitbert.setup import (
    COLUMNS,
    FEDAVG,
    FEDSPLITBERT,
    LOCAL_MAJORITY,
    PAPER,
    SCALES,
    base_cell,
)

LAYERS = (10, 8, 6, 4, 0)


def _row(layer: int) -> Row:
    changed = {"options.critical_layer": layer}
    return FEDSPLITBERT.changed(changed, id=f"c{layer}", name=f"c = {layer}", tuned_as="fedsplitbert")


# The printed row c = 12 is FedAvg's own cell; this one has to equal it, which says something only by other code.
ALL_SHARED = replace(
    _row(12),
    id="c12-split",
    name="c = 12 by FedSplitBERT",
    printed=False,
    tuned_as="fedavg",
    note="FedSplitBERT's own code with every layer shared, pooler and classifier too; it has to be the same run as "
    "FedAvg, bit by bit",
)


BENCHMARK = Benchmark(
    id="fedsplitbert-table4",
    paper=PAPER,
    place="Table IV",
    title="FedSplitBERT with the critical layer c at 0, 4, 6, 8, 10 and 12 of 12, over 3 clients",
    rows=(
        LOCAL_MAJORITY,
        replace(FEDAVG, id="c12", name="c = 12 (FedAvg)", tuned_as="fedavg"),
        ALL_SHARED,
        *map(_row, LAYERS),
    ),
    # Table IV prints RTE's accuracy alone
    columns=tuple(
        replace(column, scores=("test/accuracy",)) if column.task in ("rte", "sst2") else column for column in COLUMNS
    ),
    scales=SCALES,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "table4.csv",
    deviations=DEVIATIONS,
    gate=table3.BENCHMARK,
)
