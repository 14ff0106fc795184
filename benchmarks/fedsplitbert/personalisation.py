"""FedSplitBERT, how much of what personalisation gains over FedAvg knowing a client's label shares gives by itself.

make fedsplitbert-personalisation SCALE=lite TASKS=mrpc,sst2 DATA_DIR=<folder of the GLUE download>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark, Column
from benchmarks.fedsplitbert import table3
from benchmarks.fedsplitbert.deviations import DEVIATIONS
from benchmarks.fedsplitbert.setup import (
    COLUMNS,
    FEDAVG,
    FEDAVG_FINETUNED,
    FEDAVG_PRIOR,
    FEDPER,
    FEDSPLITBERT,
    FEDSPLITBERT_QAT,
    LOCAL_MAJORITY,
    LOCAL_ONLY,
    PAPER,
    SCALES,
    base_cell,
)
from benchmarks.publication import View

_PERSONALISED = (FEDAVG_PRIOR, FEDAVG_FINETUNED, FEDPER, LOCAL_ONLY, FEDSPLITBERT, FEDSPLITBERT_QAT)
_ROWS = (FEDAVG, *_PERSONALISED, LOCAL_MAJORITY)


def _one_score(column: Column) -> Column:
    """Accuracy where the task has it, which label shares change most; else its only score."""
    score = "test/accuracy" if "test/accuracy" in column.scores else column.averaged
    return replace(column, scores=(score,), averaged=score, beside=())


BENCHMARK = Benchmark(
    id="fedsplitbert-personalisation",
    paper=PAPER,
    place="personalisation",
    title="What personalised methods gain over FedAvg, and beyond FedAvg with each client's label prior, over 3 "
    "clients; no table of the paper",
    rows=tuple(replace(row, printed=False) for row in _ROWS),
    columns=tuple(map(_one_score, COLUMNS)),
    scales=SCALES,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "table3.csv",
    deviations=DEVIATIONS,
    view=View("gains", {"reference": FEDAVG.id, "part": FEDAVG_PRIOR.id, "told": FEDSPLITBERT.id}),
    gate=table3.BENCHMARK,
)
