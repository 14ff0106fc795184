"""FedBFPT, Table 4: what each part of PL-SDL adds, on computer science.

make fedbfpt-table4 SCALE=lite DATA_DIR=<folder with corpora and tasks>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.fedbfpt import table3
from benchmarks.fedbfpt.costs import COSTING
from benchmarks.fedbfpt.finetuning import ABLATIONS, FEDBFPT, SCIERC

BENCHMARK = replace(
    table3.BENCHMARK,
    id="fedbfpt-table4",
    place="Table 4",
    title="Ablation study on SciERC: all layers, and without each part of PL-SDL",
    rows=(*ABLATIONS, FEDBFPT),
    columns=(SCIERC,),
    published_csv=Path(__file__).parent / "published" / "table4.csv",
    costing=COSTING,
    gate=table3.BENCHMARK,
)
