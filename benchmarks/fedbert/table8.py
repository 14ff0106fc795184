"""FedBERT, Table 8: perplexity of WikiText's test text after pre-training of GPT-2, six training modes.

make fedbert-table8 SCALE=lite DATA_DIR=<folder with WikiText, or a Wikipedia text>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark
from benchmarks.fedbert.deviations import PRETRAINING
from benchmarks.fedbert.pretraining import LEARNING
from benchmarks.fedbert.setup import (
    BEFORE,
    CAUSAL,
    GPT2,
    MODES,
    PAPER,
    PARALLEL_FEDAVG,
    UNIGRAM,
    UNPRINTED,
    base_cell,
    miniature,
    searched,
)
from benchmarks.publication import Deviation

BENCHMARK = Benchmark(
    id="fedbert-table8",
    paper=PAPER,
    place="Table 8",
    title="Perplexity of GPT-2 pre-trained in six training modes, 5 clients",
    rows=(
        *(BEFORE, UNIGRAM),
        *(replace(row, printed=False) if row == PARALLEL_FEDAVG else row for row in MODES),
        *UNPRINTED,
    ),
    columns=(CAUSAL,),
    scales=searched(GPT2, miniature(CAUSAL.task, "lite-causal")),
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "table8.csv",
    deviations=(
        *PRETRAINING,
        Deviation(
            "tied",
            "GPT-2's head is its word embeddings and has no parameters of its own: EmdAvg and Head-Emd Avg are one "
            "algorithm here, and so are their two rows with own transformers.",
        ),
        Deviation(
            "perplexity",
            "Of tokens of GPT-2's BPE, each block by itself from its first token on; the paper does not say whether a "
            "word's or a token's, nor how much of the text before a block is shown.",
            ("lite", "paper"),
        ),
    ),
    average="",
    yardstick=LEARNING,
)
