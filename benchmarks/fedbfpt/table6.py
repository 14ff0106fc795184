"""FedBFPT, Table 6: clients with as much text each, and with skewed sizes.

make fedbfpt-table6 SCALE=lite DATA_DIR=<folder with corpora and tasks>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.fedbfpt import table3
from benchmarks.fedbfpt.finetuning import COLUMNS, SKEWED, UNIFORM

BENCHMARK = replace(
    table3.BENCHMARK,
    id="fedbfpt-table6",
    place="Table 6",
    title="FEDBFPT with uniform and with skewed datasets",
    rows=(UNIFORM, SKEWED),
    columns=COLUMNS,
    published_csv=Path(__file__).parent / "published" / "table6.csv",
    gate=table3.BENCHMARK,
)
