"""FedBFPT, Figure 4: test scores against epochs of fine-tuning; Table 3's cells, redrawn from their records.

make fedbfpt-figure4 SCALE=lite DATA_DIR=<folder with corpora and tasks>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.fedbfpt import table3
from benchmarks.publication import Deviation, View

BENCHMARK = replace(
    table3.BENCHMARK,
    id="fedbfpt-figure4",
    place="Figure 4",
    title="F1 or accuracy against epochs of fine-tuning",
    published_csv=Path(__file__).parent / "published" / "figure4.csv",
    deviations=(
        *table3.BENCHMARK.deviations,
        Deviation(
            "figure", "The text has no number of these curves and does not name them: here Table 3's rows, every epoch."
        ),
    ),
    view=View("curves", {"quantity": "score"}),
    gate=table3.BENCHMARK,
)
