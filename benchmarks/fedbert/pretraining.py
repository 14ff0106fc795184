"""FedBERT, pre-training of RoBERTa: perplexity of held-out text, every training mode. No table of the paper.

make fedbert-pretraining SCALE=lite DATA_DIR=<folder with WikiText, or a Wikipedia text>

The tables' fine-tuned cells begin from these cells' outcomes, those of seed 0.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark
from benchmarks.fedbert.deviations import PRETRAINING
from benchmarks.fedbert.setup import (
    BEFORE,
    CLIENTS,
    MODES,
    PAPER,
    PERIODS,
    SMALL,
    UNIGRAM,
    UNPRINTED,
    WIKITEXT,
    base_cell,
    miniature,
    searched,
)
from benchmarks.publication import Yardstick

LEARNING = Yardstick(
    row="central",
    name="centralised pre-training",
    rivals={UNIGRAM.id: "unigram"},
    learns="centralised pre-training learns more than how often each token stands",
    fails="centralised pre-training learns no more than how often each token stands",
)

BENCHMARK = Benchmark(
    id="fedbert-pretraining",
    paper=PAPER,
    place="pre-training",
    title="Perplexity of masked tokens of held-out text after pre-training of RoBERTa; no table of the paper",
    rows=(
        *(BEFORE, UNIGRAM),
        *(replace(row, printed=False) for row in (*MODES, *UNPRINTED, *CLIENTS, *PERIODS)),
    ),
    columns=(WIKITEXT,),
    scales=searched(SMALL, miniature(WIKITEXT.task, "lite")),
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "pretraining.csv",
    deviations=PRETRAINING,
    keeps_weights=True,
    average="",
    yardstick=LEARNING,
)
