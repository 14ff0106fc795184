"""FedBFPT, the appendix's table 2: what each part of PL-SDL adds, on medicine.

make fedbfpt-appendix2 SCALE=lite DATA_DIR=<folder with corpora and tasks>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.fedbfpt import table3
from benchmarks.fedbfpt.costs import COSTING
from benchmarks.fedbfpt.finetuning import ABLATIONS, FEDBFPT, MEDICINE

# The paper prints one of the five for computer science alone.
ROWS = tuple(replace(row, printed=row.printed and row.id != "fedbfpt-no-sp") for row in ABLATIONS)

BENCHMARK = replace(
    table3.BENCHMARK,
    id="fedbfpt-appendix2",
    place="Appendix Table 2",
    title="Ablation study on Rct-20k: all layers, and without each part of PL-SDL",
    rows=(*ROWS, FEDBFPT),
    columns=MEDICINE,
    published_csv=Path(__file__).parent / "published" / "appendix2.csv",
    costing=COSTING,
    gate=table3.BENCHMARK,
)
