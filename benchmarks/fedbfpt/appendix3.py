"""FedBFPT, the appendix's table 3: the depth of the local models, on biology.

make fedbfpt-appendix3 SCALE=lite DATA_DIR=<folder with corpora and tasks>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.fedbfpt import table3
from benchmarks.fedbfpt.costs import COSTING
from benchmarks.fedbfpt.finetuning import DEPTHS, JNLPBA

BENCHMARK = replace(
    table3.BENCHMARK,
    id="fedbfpt-appendix3",
    place="Appendix Table 3",
    title="Local models of 4, 6 and 8 of 12 layers, on JNLPBA",
    rows=DEPTHS,
    columns=(JNLPBA,),
    published_csv=Path(__file__).parent / "published" / "appendix3.csv",
    costing=COSTING,
    gate=table3.BENCHMARK,
)
