"""FedBFPT, the appendix's table 1: what each part of PL-SDL adds, on biology.

make fedbfpt-appendix1 SCALE=lite DATA_DIR=<folder with corpora and tasks>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.fedbfpt import table3
from benchmarks.fedbfpt.costs import COSTING
from benchmarks.fedbfpt.finetuning import ABLATIONS, FEDBFPT, JNLPBA

# The paper prints one of the five for computer science alone.
ROWS = tuple(replace(row, printed=row.printed and row.id != "fedbfpt-no-sp") for row in ABLATIONS)

BENCHMARK = replace(
    table3.BENCHMARK,
    id="fedbfpt-appendix1",
    place="Appendix Table 1",
    title="Ablation study on JNLPBA: all layers, and without each part of PL-SDL",
    rows=(*ROWS, FEDBFPT),
    columns=(JNLPBA,),
    published_csv=Path(__file__).parent / "published" / "appendix1.csv",
    costing=COSTING,
    gate=table3.BENCHMARK,
)
