"""FedFreezeBERT, the lite scale's small Arabic encoder: masked language modelling of tweets. No table of the paper.

make fedfreezebert-pretraining SCALE=lite DATA_DIR=<folder with the authors' CSV files>

Whatever runs on the backbone `arabic-mini` runs this first, once, and begins from its outcome.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.fedfreezebert.setup import PAPER, SCALES
from benchmarks.publication import Deviation, View
from benchmarks.run_config import RunConfig, TrainConfig

MASKED_TOKENS = Column("arsarcasm-masked", "Held-out tweets", ("test/perplexity",), "test/perplexity")
EPOCHS = 10
HELD_OUT = 0.05  # share of the tweets: never trained on, scored after each epoch


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """One encoder, trained in one place: an epoch a round, with one optimiser and one schedule throughout."""
    demo = scale.id == "demo"
    return RunConfig(
        scale=scale.id,
        task=column.task,
        task_version=1,
        source=scale.source,
        backbone=scale.backbone,
        clients=1,
        partition={"scheme": "equal"},
        algorithm=row.algorithm,
        options={},
        training=TrainConfig(
            rounds=6 if demo else EPOCHS,
            learning_rate=5e-3 if demo else 5e-4,
            batch_size=16 if demo else 32,
            max_length=32 if demo else 128,
            precision="fp32" if demo else "auto",
            schedule="linear",
            warmup=0.1,
            clip_norm=1.0,
            optimizer="kept",
        ),
        seed=seed,
        test_share=0.2 if demo else HELD_OUT,
        head="masked-lm",
    )


BENCHMARK = Benchmark(
    id="fedfreezebert-pretraining",
    paper=PAPER,
    place="encoder",
    title="Masked language modelling of training tweets, in one place: the lite scale's encoder; no table of the paper",
    rows=(
        Row(
            "pretraining", "Pre-training", {"algorithm": "central", "options": {"embeddings": "global"}}, printed=False
        ),
    ),
    columns=(MASKED_TOKENS,),
    scales=tuple(
        replace(scale, backbone="arabic-mini-fresh", material="real data, a fresh 4-layer encoder")
        if scale.id == "lite"
        else scale
        for scale in SCALES
        if scale.id in ("demo", "lite")
    ),
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "pretraining.csv",
    deviations=(
        Deviation(
            "corpus",
            f"The distinct training tweets of all clients together, without {100 * HELD_OUT:.0f} % of them, on whose "
            "masked tokens it is scored; no label and no test tweet.",
            ("lite",),
        ),
        Deviation(
            "recipe",
            "15 % of a batch's tokens are masked (80 % of them as [MASK], 10 % as another token); no next sentence; no "
            "dropout, which so few epochs do not need; AdamW with linear warm-up and decay; gradients cut at norm 1.",
        ),
    ),
    view=View("curves", {"quantity": "score"}),
    keeps_weights=True,
)
