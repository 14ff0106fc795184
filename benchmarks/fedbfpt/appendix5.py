"""FedBFPT, the appendix's table 5: the sizes of six clients' datasets, uniform and skewed, requested against obtained.

make fedbfpt-appendix5 SCALE=lite DATA_DIR=<folder with corpora>
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.experiment import Benchmark
from benchmarks.fedbfpt.setup import BEFORE, CORPORA, DEVIATIONS, PAPER, SCALES, SKEWED_PARTITION, base_cell
from benchmarks.publication import Deviation, View

# Nothing is trained: every record holds what its clients got, and these cost one look at the held-out passages.
UNIFORM = BEFORE.changed({}, id="uniform", name="Uniform", printed=True, note="")
SKEWED = BEFORE.changed(SKEWED_PARTITION, id="skewed", name="Skewed", printed=True, note="")

BENCHMARK = Benchmark(
    id="fedbfpt-appendix5",
    paper=PAPER,
    place="Appendix Table 5",
    title="Sizes of uniform and skewed datasets of 6 clients, requested against obtained",
    rows=(UNIFORM, SKEWED),
    columns=CORPORA,
    scales=SCALES,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "appendix5.csv",
    deviations=(
        *(entry for entry in DEVIATIONS if entry.id == "corpora"),
        Deviation(
            "unit",
            "The paper prints MB of text of clients whose parameters it does not print: its skewed sizes are taken as "
            "shares of their sum, and passages are dealt out by these. Compared are shares of passages and of MB.",
        ),
    ),
    view=View("sizes"),
    average="",
)
