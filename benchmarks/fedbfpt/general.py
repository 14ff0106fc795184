"""FedBFPT, the lite scale's masked language model: all-MiniLM-L6-v2 with a fresh head, on general text. No table.

make fedbfpt-general SCALE=lite DATA_DIR=<folder with corpora>

Whatever runs on the backbone `minilm-masked` runs this first, once, and begins from its outcome.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.fedbfpt.setup import GLOBAL, PAPER, SCALES
from benchmarks.publication import Deviation, View
from benchmarks.run_config import RunConfig, TrainConfig

GENERAL_TEXT = Column("corpus-wikipedia", "Wikipedia", ("test/perplexity",), "test/perplexity")
LITE_SHARE = 0.1  # of the training part
SCORED = 0.02  # share of it that is never trained on
EPOCHS = 3


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """One encoder with its head, trained in one place: an epoch a round, with one optimiser and schedule throughout."""
    demo = scale.id == "demo"
    return RunConfig(
        scale=scale.id,
        task=column.task,
        task_version=1,
        source=scale.source,
        backbone=scale.backbone,
        clients=1,
        partition={"scheme": "equal"} if demo else {"scheme": "equal", "share": LITE_SHARE},
        algorithm=row.algorithm,
        options={},
        training=TrainConfig(
            rounds=EPOCHS,
            learning_rate=5e-3 if demo else 3e-4,
            batch_size=16 if demo else 32,
            max_length=32 if demo else 128,
            precision="fp32" if demo else "auto",
            schedule="linear",
            warmup=0.1,
            clip_norm=1.0,
            decayed="matrices",
            optimizer="kept",
        ),
        seed=seed,
        test_share=0.2 if demo else SCORED,
        head="masked-lm",
    )


BENCHMARK = Benchmark(
    id="fedbfpt-general",
    paper=PAPER,
    place="encoder",
    title="Masked language modelling of general text, in one place: the lite scale's encoder; no table of the paper",
    rows=(Row("general", "Pre-training", {"algorithm": "central", **GLOBAL}, printed=False),),
    columns=(GENERAL_TEXT,),
    scales=tuple(
        replace(scale, backbone="all-MiniLM-L6-v2", material="real data, all-MiniLM-L6-v2 with a fresh masked-LM head")
        if scale.id == "lite"
        else scale
        for scale in SCALES
        if scale.id != "paper"
    ),
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "general.csv",
    deviations=(
        Deviation(
            "corpus",
            f"A random {100 * LITE_SHARE:.0f} % of the passages of Wikipedia at hand, none of the three domains' "
            f"corpora; {100 * SCORED:.0f} % of it is scored.",
            ("lite",),
        ),
        Deviation(
            "recipe",
            "15 % of a batch's tokens are masked (80 % of them as [MASK], 10 % as another token); no next sentence; "
            "AdamW with linear warm-up and decay; gradients cut at norm 1; embeddings and layers are trained too.",
        ),
    ),
    view=View("curves", {"quantity": "score"}),
    keeps_weights=True,
    average="",
)
