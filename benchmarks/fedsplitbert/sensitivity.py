"""FedSplitBERT, what silent choices do: embeddings frozen, as here by default, or exchanged; 1 or 3 local epochs.

make fedsplitbert-sensitivity SCALE=lite TASKS=mrpc DATA_DIR=<folder of the GLUE download>
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

LOCAL_EPOCHS = 3  # in every round: the least of the "local fine-tuning epochs ranging from 3 to 9", read literally


def _frozen(row: Row) -> Row:
    return replace(row, name=f"{row.name}, embeddings frozen", printed=False)


def _exchanged(row: Row) -> Row:
    name = f"{row.name}, embeddings exchanged"
    changed = {"options.embeddings": "global"}
    return row.changed(changed, id=f"{row.id}-global", name=name, printed=False, tuned_as=row.id)


def _longer(row: Row) -> Row:
    name = f"{row.name}, {LOCAL_EPOCHS} local epochs"
    changed = {"training.local_epochs": LOCAL_EPOCHS}
    return row.changed(changed, id=f"{row.id}-epochs", name=name, printed=False, tuned_as=row.id)


BENCHMARK = Benchmark(
    id="fedsplitbert-sensitivity",
    paper=PAPER,
    place="sensitivity",
    title="Frozen against trained and exchanged embeddings, one local epoch against three, 3 clients; no table of the "
    "paper",
    rows=(
        LOCAL_MAJORITY,
        *(change(row) for row in (FEDAVG, FEDSPLITBERT) for change in (_frozen, _exchanged, _longer)),
    ),
    columns=tuple(column for column in COLUMNS if column.task in ("mrpc", "cola", "rte")),
    scales=SCALES,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "table3.csv",
    deviations=DEVIATIONS,
    gate=table3.BENCHMARK,
)
