"""FedSplitBERT, Figure 5: bytes a round and test scores against c; Table IV's cells, redrawn from their records.

make fedsplitbert-figure5 SCALE=lite TASKS=mrpc,cola DATA_DIR=<folder of the GLUE download>
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.experiment import Benchmark, Column
from benchmarks.fedsplitbert import table3, table4
from benchmarks.fedsplitbert.deviations import DEVIATIONS
from benchmarks.fedsplitbert.setup import LOCAL_MAJORITY, PAPER, SCALES, base_cell
from benchmarks.publication import Deviation, View

TASKS = ("mrpc", "cola", "rte")
# c of Table IV's rows; FedAvg exchanges every layer.
CRITICAL_LAYERS = {"c12": 12, **{f"c{layer}": layer for layer in table4.LAYERS}}
_SHARED = ("client-size", "rounds", "embeddings", "tuning", "padding", "pooler")


def _column(task: str) -> Column:
    """The task with the figure's one score: accuracy where it is computed."""
    found = next(column for column in table4.BENCHMARK.columns if column.task == task)
    score = "test/accuracy" if "test/accuracy" in found.scores else found.averaged
    return replace(found, scores=(score,), averaged=score)


BENCHMARK = Benchmark(
    id="fedsplitbert-figure5",
    paper=PAPER,
    place="Figure 5",
    title="Bytes a round, and test scores on 3 datasets, against the number of global layers c, over 3 clients",
    rows=tuple(row for row in table4.BENCHMARK.rows if row.id in (LOCAL_MAJORITY.id, *CRITICAL_LAYERS)),
    columns=tuple(map(_column, TASKS)),
    scales=SCALES,
    base=base_cell,
    published_csv=table4.BENCHMARK.published_csv,
    deviations=(
        *(deviation for deviation in DEVIATIONS if deviation.id in _SHARED),
        Deviation(
            "critical-layer",
            "c counts the paper's 12 layers; with a smaller encoder it is taken at the same share of the depth, and "
            "both are named, as in '6 (3 of 6)'. Several c may round to one number of layers: those are one run.",
            ("demo", "lite"),
        ),
        Deviation(
            "tasks",
            "The text does not name the 3 datasets of the right plot; here one of each kind that it contrasts: MRPC "
            "(similarity), CoLA (linguistic; Matthews' correlation, as it has no accuracy in the tables) and RTE "
            "(inference), with Table IV's printed values.",
        ),
        Deviation(
            "megabytes",
            "The caption's unit is MBits; Table VI's sizes and the text's costs fit megabytes (10^6 bytes), used here.",
        ),
    ),
    view=View("layers", {"critical_layers": CRITICAL_LAYERS, "printed_in": table4.BENCHMARK.place}),
    gate=table3.BENCHMARK,
)
