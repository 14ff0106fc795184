"""What FedFreezeBERT's tables share: its clients, methods, budgets and scales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Column, Row, Scale
from benchmarks.fedsplitbert import setup as fedsplitbert
from benchmarks.fedsplitbert.setup import UNITS
from benchmarks.publication import LEARNING, Deviation, Paper
from benchmarks.run_config import JSON, RunConfig, TrainConfig
from benchmarks.sweeps.tuning import Grid, Search

PAPER = Paper(
    id="fedfreezebert",
    name="FedFreezeBERT",
    citation="Omar Galal, Ahmed H. Abdel-Gawad, Mona Farouk: Federated Freeze BERT for text classification. Journal of "
    "Big Data 11, 28 (2024)",
    bytes_convention="both directions, summed over clients, GB = 1024 MB of 10^6 bytes",
    gigabyte=1024 * 10**6,
    directions=("up", "down"),
    units=UNITS,
)

GLOBAL = {"options.embeddings": "global"}
METHODS = (
    Row("central", "Centralised training", {"algorithm": "central", **GLOBAL}),
    Row("fedavg", "FedAvg", {"algorithm": "fedavg", **GLOBAL}),
    Row("fedprox", "FedProx", {"algorithm": "fedavg", **GLOBAL, "options.proximal": 0.05}),
    Row("fedsplitbert", "FedSplitBERT", {"algorithm": "fedsplitbert", "options.critical_layer": 8, **GLOBAL}),
    Row("d-fedavg", "D-FedFreezeBERT, FedAvg", {"algorithm": "fedfreezebert"}),
    Row("d-fedprox", "D-FedFreezeBERT, FedProx", {"algorithm": "fedfreezebert", "options.proximal": 0.05}),
    Row("c", "C-FedFreezeBERT", {"algorithm": "fedfreezebert_central"}),
)
HEADS = {"ordinary": "ordinary", "average": "average", "psum": "P-SUM", "hsum": "H-SUM"}
# Whose rates a head takes over: one linear layer, or four BERT layers, wants much the same whatever it reads.
TUNED_HEADS = {"ordinary": "average", "hsum": "psum"}


def with_head(row: Row, head: str) -> Row:
    """A method with an aggregation architecture."""
    tuned_as = f"{row.id}-{TUNED_HEADS[head]}" if head in TUNED_HEADS else ""
    return row.changed({"head": head}, id=f"{row.id}-{head}", name=f"{row.name} · {HEADS[head]}", tuned_as=tuned_as)


# The lite scale's settings: every method gets as many trials, on data that no table is made of. Rates are even steps of
# the logarithm, over an encoder that nobody trains higher ones; the paper explored 9e-4 to 1e-6.
RATES = fedsplitbert.RATES
HEAD_RATES: Mapping[str, tuple[float, ...]] = {
    "average": (5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2),
    "psum": (2e-5, 4e-5, 8e-5, 1.6e-4, 3.2e-4, 5e-4, 1e-3, 2e-3),
}
_EPOCHS = (3, 5)  # of C-FedFreezeBERT's one round, which has no later one to choose


def _grid(method: str, head: str) -> Grid:
    """What is tuned of a method: its rate. FedProx's weight and FedSplitBERT's c are the paper's."""
    is_frozen = method in ("d-fedavg", "d-fedprox", "c")
    grid: dict[str, tuple[JSON, ...]] = {"training.learning_rate": HEAD_RATES[head] if is_frozen else RATES}
    if method == "c":
        grid["training.local_epochs"] = _EPOCHS
    return grid


MINIATURE = Search(
    {f"{row.id}-{head}": _grid(row.id, head) for row in METHODS for head in HEAD_RATES},
    trials=8,
    rungs=(2,),
    seeds=(1000,),
    chosen=Path(__file__).parent / "tuned" / "lite.json",
)

_ARABIC = ("arabic-mini", 4, "arsarcasm", "real data, an encoder pre-trained here on the training tweets (4 layers)")
SCALES = (
    Scale("demo", "tiny", 4, "generated", "generated data, random 4-layer encoder; shows the machinery only"),
    Scale("lite", *_ARABIC, search=MINIATURE),
    Scale("literal", *_ARABIC[:-1], f"{_ARABIC[-1]}, the paper's settings, not tuned for it"),
    Scale("paper", "MARBERT", 12, "arsarcasm", "real data, MARBERT"),
)

SENTIMENT = Column("arsarcasm", "ArSarcasm-v2", ("test/f1_pn", "test/accuracy"), "test/f1_pn")
# A frozen encoder that is worth freezing, where the small Arabic one may be none.
_MINILM = next(scale for scale in fedsplitbert.SCALES if scale.id == "lite")
_ENGLISH_SCALES = ("lite", "literal")
ENGLISH = Column(
    "sst2-central",
    "SST-2",
    ("test/accuracy", "test/f1"),
    "test/accuracy",
    scales=_ENGLISH_SCALES,
    own={
        scale.id: replace(
            scale, backbone=_MINILM.backbone, depth=_MINILM.depth, source="glue", material=_MINILM.material
        )
        for scale in SCALES
        if scale.id in _ENGLISH_SCALES
    },
)

ENGLISH_EXAMPLES = 3000  # as the task has them (benchmarks.tasks.glue)

CLIENTS = 5
ROUNDS = 5  # of one epoch each
# As FedNLP's library: a client that holds its share of all examples gets no more, and none has fewer than ten.
PARTITION: Mapping[str, JSON] = {"scheme": "dirichlet", "alpha": 1.0, "capped": True, "min_size": 10}
DATA_SEED = 0  # one partition for all training seeds: the paper's deviations over five runs contain no other

# Section "Experimental setup": learning rates by method; central training's was tuned and is not printed.
FROZEN_RATE = 5e-4
LEARNING_RATES = {
    "central": 1e-5,
    "fedavg": 1e-6,
    "fedsplitbert": 1e-5,
    "fedfreezebert": FROZEN_RATE,
    "fedfreezebert_central": FROZEN_RATE,
}


def training_of(algorithm: str, scale: Scale) -> TrainConfig:
    """Batches of 16, 128 tokens, Adam, which is AdamW without weight decay; five epochs, each a round or all in one.

    At lite scale rates are tuned, and steps are taken as small encoders need them; central training is scored after
    each epoch, as the others are, with one optimiser throughout.
    """
    is_lite = scale.id == "lite"
    in_one_round = ("fedfreezebert_central",) if is_lite else ("central", "fedfreezebert_central")
    rounds, epochs = (1, ROUNDS) if algorithm in in_one_round else (ROUNDS, 1)
    training = TrainConfig(rounds, 2e-3, batch_size=16, local_epochs=epochs, weight_decay=0.0)
    if scale.id == "demo":
        return replace(training, max_length=32, precision="fp32")
    training = replace(training, learning_rate=LEARNING_RATES.get(algorithm, 1e-5))
    if not is_lite:
        return training
    tuned = replace(training, learning_rate=1e-4, warmup=0.1, clip_norm=1.0)
    return replace(tuned, optimizer="kept") if algorithm == "central" else tuned


# Rows that put the others' scores in their place.
REFERENCES = (fedsplitbert.OVERALL_MAJORITY, fedsplitbert.LOCAL_MAJORITY, fedsplitbert.LINEAR)
# They read no weights: none are trained for them first.
AS_IT_BEGINS = {"arabic-mini": "arabic-mini-fresh"}


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """One run with five clients, before what the row changes; the official test set is central."""
    reads_none = row in REFERENCES
    return RunConfig(
        scale=scale.id,
        task=column.task,
        task_version=1,
        source=scale.source,
        backbone=AS_IT_BEGINS.get(scale.backbone, scale.backbone) if reads_none else scale.backbone,
        clients=CLIENTS,
        partition=PARTITION,
        algorithm=row.algorithm,
        options={},
        training=training_of(row.algorithm, scale),
        seed=seed,
        test_share=0.0,
        validation_share=0.1 if scale.id == "lite" else 0.0,
        data_seed=DATA_SEED,
    )


# Central training with mean pooling, as encoders of sentences are made, says whether an encoder learns the task.
YARDSTICK = replace(LEARNING, row="central-average", name="centralised training")
FEDAVG_AT_FROZEN_RATE = with_head(METHODS[1], "ordinary").changed(
    {"training.learning_rate": FROZEN_RATE},
    id="fedavg-ordinary-frozen-rate",
    name=f"FedAvg · ordinary, at {FROZEN_RATE:g}",
    printed=False,
    note="FedAvg at the learning rate that the paper gives its frozen methods (at lite these have tuned ones): is its "
    "gain the method's or the rate's?",
)

DEVIATIONS = (
    Deviation(
        "partition",
        "The tweets are distributed “as described in” FedNLP, without a number: here a Dirichlet distribution over "
        "labels with α = 1 for each client, and as in its library a client that holds a fifth of all tweets gets no "
        "more, and none has fewer than ten.",
    ),
    Deviation(
        "one-partition",
        f"One partition (data seed {DATA_SEED}) for all training seeds, as deviations of 0.12 and 0.17 over five runs "
        "contain no other; what is concluded holds for it. --set data_seed=null draws one for each seed.",
    ),
    Deviation(
        "english",
        f"SST-2 is no column of the paper: {ENGLISH_EXAMPLES} of its 67 349 training phrases, drawn once, are shared "
        "out in the same way, GLUE's development set is the central test set, and the encoder is all-MiniLM-L6-v2 (6 "
        "layers).",
        ("lite", "literal"),
    ),
    Deviation(
        "learning-rate",
        "Centralised training's rate was tuned and is not printed: here FedSplitBERT's, 1e-5.",
        ("literal", "paper"),
    ),
    Deviation(
        "miniature",
        f"A fair miniature: every method has {MINIATURE.trials} trials of its learning rate (C-FedFreezeBERT of its "
        "epochs too, 3 or 5, as it has no round to choose) under the average aggregator and under P-SUM, on validation "
        "data of a partition and seed that no table uses, of which the best quarter after "
        f"{MINIATURE.rungs[0]} rounds goes on, with what ties with it "
        "(benchmarks/fedfreezebert/tuned/lite.json). The ordinary aggregator "
        "takes over the average's settings, H-SUM P-SUM's. FedProx's weight 0.05 and FedSplitBERT's c = 8 of 12 are "
        f"the paper's. Rates go from {RATES[0]:g} to {RATES[-1]:g} where the encoder is trained; over a frozen one "
        f"from {HEAD_RATES['average'][0]:g} to {HEAD_RATES['average'][-1]:g} for one linear layer, from "
        f"{HEAD_RATES['psum'][0]:g} to {HEAD_RATES['psum'][-1]:g} for four BERT layers. A tenth of the steps warm up, "
        "gradients are clipped to length 1. Scores are those of the round that is best on a tenth of each client's "
        "training examples, which is held back for that; centralised training's rounds are its epochs.",
        ("lite",),
    ),
    Deviation(
        "optimiser",
        "“Adam Optimizer” is AdamW without weight decay, here with a constant rate, no warm-up and no clipping, of "
        "which the text says nothing.",
        ("literal", "paper"),
    ),
    Deviation(
        "optimiser-lite",
        "“Adam Optimizer” is AdamW without weight decay, constant after its warm-up.",
        ("lite",),
    ),
    Deviation(
        "precision",
        "Matrix products are in bf16 where the device has it, which the text does not say; each record names its own.",
        ("lite", "literal", "paper"),
    ),
    Deviation(
        "ordinary",
        "The ordinary aggregator is [CLS] and one linear layer, as the text says, without BERT's pooler; it is fresh, "
        "as all heads are.",
    ),
    Deviation(
        "personal",
        "FedSplitBERT leaves every client a model of its own: its score is the mean of their scores on the central "
        "test set.",
    ),
    Deviation(
        "layers",
        "With a smaller encoder c = 8 of 12 is taken at the same share of its depth (3 of 4, 4 of 6).",
        ("demo", "lite", "literal"),
    ),
    Deviation(
        "backbone",
        "The small Arabic encoder was pre-trained by masked language modelling on the training tweets of all clients "
        "together (python -m benchmarks pretrain arabic-mini), so it has seen the texts, never the labels or the test "
        "tweets.",
        ("lite", "literal"),
    ),
)
