"""FedBFPT, further pre-training: perplexity of held-out passages, every method on three domains. No table of the paper.

make fedbfpt-pretraining SCALE=lite DATA_DIR=<folder with corpora>

The tables' fine-tuned cells begin from these cells' outcomes, those of seed 0.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark
from benchmarks.fedbfpt.setup import BEFORE, CORPORA, DEVIATIONS, METHODS, MINIATURE, PAPER, SCALES, base_cell
from benchmarks.publication import Yardstick

BENCHMARK = Benchmark(
    id="fedbfpt-pretraining",
    paper=PAPER,
    place="further pre-training",
    title="Perplexity of held-out passages after further pre-training, 6 clients, three domains; no table of the paper",
    rows=(BEFORE, *(replace(row, printed=False) for row in METHODS)),
    columns=CORPORA,
    scales=tuple(replace(scale, search=MINIATURE) if scale.id == "lite" else scale for scale in SCALES),
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "pretraining.csv",
    deviations=DEVIATIONS,
    keeps_weights=True,
    average="",
    yardstick=Yardstick(
        row="bert-c",
        name="BERT-C",
        rivals={BEFORE.id: "before it"},
        learns="central further pre-training lowers perplexity",
        fails="central further pre-training does not lower perplexity here",
    ),
)
