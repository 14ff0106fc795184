"""FedFreezeBERT, Table 1: the sentiment of ArSarcasm-v2's training tweets, and how five clients share them out.

make fedfreezebert-table1 SCALE=lite DATA_DIR=<folder with the authors' CSV files>
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.experiment import Benchmark
from benchmarks.fedfreezebert.setup import DEVIATIONS, PAPER, SCALES, SENTIMENT, base_cell
from benchmarks.fedsplitbert.setup import LOCAL_MAJORITY
from benchmarks.publication import Deviation, View

BENCHMARK = Benchmark(
    id="fedfreezebert-table1",
    paper=PAPER,
    place="Table 1",
    title="Sentiment distribution of ArSarcasm-v2's training tweets, and of 5 clients",
    rows=(LOCAL_MAJORITY,),
    columns=(SENTIMENT,),
    scales=SCALES,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "table1.csv",
    deviations=(
        *(entry for entry in DEVIATIONS if entry.id == "partition"),
        Deviation("print", "The printed table's numbers were not at hand; the distribution follows from the data."),
    ),
    view=View("labels", {"labels": {"arsarcasm": ((2, "positive"), (1, "neutral"), (0, "negative"))}}),
)
