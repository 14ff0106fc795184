"""FedBFPT, the appendix's table 4: the depth of the local models, on medicine.

make fedbfpt-appendix4 SCALE=lite DATA_DIR=<folder with corpora and tasks>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.fedbfpt import table3
from benchmarks.fedbfpt.costs import COSTING
from benchmarks.fedbfpt.finetuning import DEPTHS, MEDICINE

BENCHMARK = replace(
    table3.BENCHMARK,
    id="fedbfpt-appendix4",
    place="Appendix Table 4",
    title="Local models of 4, 6 and 8 of 12 layers, on Rct-20k",
    rows=DEPTHS,
    columns=MEDICINE,
    published_csv=Path(__file__).parent / "published" / "appendix4.csv",
    costing=COSTING,
    gate=table3.BENCHMARK,
)
