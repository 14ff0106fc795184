"""FedSplitBERT, Table I: the label distributions of three clients, requested against obtained.

make fedsplitbert-table1 SCALE=lite TASKS=mrpc,rte DATA_DIR=<folder of the GLUE download>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark
from benchmarks.fedsplitbert.deviations import DEVIATIONS
from benchmarks.fedsplitbert.setup import COLUMNS, LABEL_SHARES_3, LOCAL_MAJORITY, PAPER, SCALES, base_cell
from benchmarks.publication import View

# Labels in the order of print, as (id, name).
BINARY = ((1, "label 1"), (0, "label 0"))
LABELS = dict.fromkeys(LABEL_SHARES_3, BINARY) | {"mnli": ((0, "entailment"), (1, "neutral"), (2, "contradiction"))}

BENCHMARK = Benchmark(
    id="fedsplitbert-table1",
    paper=PAPER,
    place="Table I",
    title="Label distributions of 9 GLUE datasets over 3 clients, requested against obtained",
    rows=(LOCAL_MAJORITY,),  # Table III's own cells; every record holds what its clients got, and these train nothing
    columns=tuple(replace(column, name="MNLI") if column.task == "mnli" else column for column in COLUMNS),
    scales=SCALES,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "table1.csv",
    deviations=tuple(entry for entry in DEVIATIONS if entry.id in ("client-size", "subset", "mismatched", "stsb")),
    view=View("labels", {"labels": LABELS}),
)
