"""FedSplitBERT, Figure 4: training loss against rounds; Table III's cells, redrawn from their records.

make fedsplitbert-figure4 SCALE=lite TASKS=rte,mrpc,wnli DATA_DIR=<folder of the GLUE download>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.fedsplitbert import figure3
from benchmarks.fedsplitbert.setup import FEDSPLITBERT, LOCAL_MAJORITY
from benchmarks.publication import Deviation, View

# A higher rate alone lowers the loss of the last round.
ALIKE = replace(
    FEDSPLITBERT,
    id="fedsplitbert-alike",
    name="FedSplitBERT, c = 6, at FedAvg's rate",
    printed=False,
    scales=("lite",),
    tuned_as="fedavg",
    note="whether its loss is the method's or the tuned rate's",
)

BENCHMARK = replace(
    figure3.BENCHMARK,
    id="fedsplitbert-figure4",
    place="Figure 4",
    title="Training loss against communication rounds on 6 datasets, FedSplitBERT without quantisation",
    rows=(*(row for row in figure3.BENCHMARK.rows if row.id != LOCAL_MAJORITY.id), ALIKE),  # that does not train
    published_csv=Path(__file__).parent / "published" / "figure4.csv",
    deviations=(
        *figure3.CURVE_DEVIATIONS,
        Deviation(
            "loss",
            "What the paper averages as training loss is not stated; here cross-entropy, for STS-B mean squared error, "
            "over the examples of all clients, without FedProx's term.",
        ),
    ),
    view=View("curves", {"quantity": "train_loss"}),
)
