"""FedSplitBERT, Table VI: bytes a round, bytes to 84 % on MRPC and the gain; Table III's cells.

make fedsplitbert-table6 SCALE=lite DATA_DIR=<folder of the GLUE download>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.fedsplitbert import figure6
from benchmarks.fedsplitbert.setup import FEDADAM, FEDAVG
from benchmarks.publication import Deviation, View

TASK = "mrpc"

BENCHMARK = replace(
    figure6.BENCHMARK,
    id="fedsplitbert-table6",
    place="Table VI",
    title="Bytes of a round, bytes until a target accuracy on MRPC and the gain over FedAvg, over 3 clients",
    columns=tuple(column for column in figure6.BENCHMARK.columns if column.task == TASK),
    published_csv=Path(__file__).parent / "published" / "table6.csv",
    deviations=(
        *figure6.TARGET_DEVIATIONS,
        Deviation(
            "fedadam",
            "FedAdam's 1.7 GB a round, and with it its gain, is not derivable: it sends the tensors that FedAvg sends.",
        ),
    ),
    view=View(
        "targets",
        {"targets": {TASK: figure6.TARGETS[TASK]}, "baseline": FEDAVG.id, "not_derivable": (FEDADAM.id,)},
    ),
)
