"""FedFreezeBERT's small Arabic encoder, which runs on the backbone `arabic-mini` start from; no table of the paper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.experiment import Column, Row, Scale, another, run_of, with_lite
from benchmarks.fedfreezebert.tables import TABLE1
from benchmarks.publication import View, deviations
from benchmarks.run_config import RunConfig, TrainConfig

MASKED_TOKENS = Column("arsarcasm-masked", "Held-out tweets", ("test/perplexity",), "test/perplexity")
EPOCHS = 10
HELD_OUT = 0.05  # share of the tweets that is scored after each epoch and never trained on


def encoder_run(
    row: Row, column: Column, scale: Scale, seed: int, rounds: int, rate: float, held_out: float, **training: Any
) -> RunConfig:
    """Masked language modelling in one place, an epoch a round, with one optimiser and one schedule throughout.

    The demo scale has its own rate and held-out share. `training` are further fields of the training.
    """
    common = {"schedule": "linear", "warmup": 0.1, "clip_norm": 1.0, "optimizer": "kept", **training}
    if scale.id == "demo":
        demo = TrainConfig(rounds, 5e-3, batch_size=16, max_length=32, precision="fp32", **common)
        return replace(run_of(row, column, scale, seed, demo), test_share=0.2, head="masked-lm")
    budget = TrainConfig(rounds, rate, batch_size=32, **common)
    return replace(run_of(row, column, scale, seed, budget), test_share=held_out, head="masked-lm")


def _base(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    return encoder_run(row, column, scale, seed, 6 if scale.id == "demo" else EPOCHS, 5e-4, HELD_OUT)


BENCHMARK = another(
    TABLE1,
    "pretraining",
    "encoder",
    "Masked language modelling of training tweets, in one place: the lite scale's encoder; no table of the paper",
    rows=(
        Row(
            "pretraining", "Pre-training", {"algorithm": "central", "options": {"embeddings": "global"}}, printed=False
        ),
    ),
    columns=(MASKED_TOKENS,),
    scales=with_lite(
        TABLE1.scales, ("demo", "lite"), backbone="arabic-mini-fresh", material="real data, a fresh 4-layer encoder"
    ),
    base=_base,
    deviations=deviations(f"""
- corpus (lite): The distinct training tweets of all clients together. {100 * HELD_OUT:.0f} % of them are held out and
  scored by their masked tokens. No labels and no test tweets.
- recipe: 15 % of a batch's tokens are masked (80 % as [MASK], 10 % as another token). No next sentence, and no
  dropout, which so few epochs do not need. AdamW with linear warm-up and decay, gradients cut at norm 1.
"""),
    view=View("curves", {"quantity": "score"}),
    keeps_weights=True,
)
