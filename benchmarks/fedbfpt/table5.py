"""FedBFPT, Table 5: the depth of the local models, 4, 6 and 8 of 12 layers, on computer science.

make fedbfpt-table5 SCALE=lite DATA_DIR=<folder with corpora and tasks>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.fedbfpt import table3
from benchmarks.fedbfpt.costs import COSTING
from benchmarks.fedbfpt.finetuning import DEPTHS, SCIERC

BENCHMARK = replace(
    table3.BENCHMARK,
    id="fedbfpt-table5",
    place="Table 5",
    title="Local models of 4, 6 and 8 of 12 layers, on SciERC",
    rows=DEPTHS,
    columns=(SCIERC,),
    published_csv=Path(__file__).parent / "published" / "table5.csv",
    costing=COSTING,
    gate=table3.BENCHMARK,
)
