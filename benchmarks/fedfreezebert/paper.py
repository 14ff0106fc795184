"""FedFreezeBERT: its clients, methods, budgets and scales, and the reproduction's deviations from the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Column, Row, Scale, run_of
from benchmarks.fedsplitbert import paper as fedsplitbert
from benchmarks.publication import LEARNING, Paper, deviations
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
    units=fedsplitbert.PAPER.units,
)

FROZEN_ALGORITHMS = ("fedfreezebert", "fedfreezebert_central")  # do not train the encoder
# For rows with a frozen encoder, evidence requires that its features suffice for the task.
FROZEN = replace(
    LEARNING,
    row="c-average",
    name="a linear probe on the frozen encoder",
    learns="the frozen encoder's features carry the task",
    fails="the frozen encoder's features are too weak here",
    of=" of rows over the frozen encoder",
)
GLOBAL = {"options.embeddings": "global"}
METHODS = (
    Row("central", "Centralised training", {"algorithm": "central", **GLOBAL}),
    Row("fedavg", "FedAvg", {"algorithm": "fedavg", **GLOBAL}),
    Row("fedprox", "FedProx", {"algorithm": "fedavg", **GLOBAL, "options.proximal": 0.05}),
    Row("fedsplitbert", "FedSplitBERT", {"algorithm": "fedsplitbert", "options.critical_layer": 8, **GLOBAL}),
    Row("d-fedavg", "D-FedFreezeBERT, FedAvg", {"algorithm": "fedfreezebert"}, yardstick=FROZEN),
    Row(
        "d-fedprox",
        "D-FedFreezeBERT, FedProx",
        {"algorithm": "fedfreezebert", "options.proximal": 0.05},
        yardstick=FROZEN,
    ),
    Row("c", "C-FedFreezeBERT", {"algorithm": "fedfreezebert_central"}, yardstick=FROZEN),
)
HEADS = {"ordinary": "ordinary", "average": "average", "psum": "P-SUM", "hsum": "H-SUM"}
# Heads of the same kind share learning rates, unless tuned separately: a linear layer, or four BERT layers.
TUNED_HEADS = {"ordinary": "average", "hsum": "psum"}


def with_head(row: Row, head: str) -> Row:
    """A method's row with an aggregation architecture, a key of HEADS."""
    tuned_as = f"{row.id}-{TUNED_HEADS[head]}" if head in TUNED_HEADS else ""
    return row.changed({"head": head}, id=f"{row.id}-{head}", name=f"{row.name} · {HEADS[head]}", tuned_as=tuned_as)


# The lite scale: equally many trials per method, on data that no table uses. Learning rates are evenly spaced in the
# logarithm, higher with a frozen encoder; the paper explored 9e-4 to 1e-6.
HEAD_RATES: Mapping[str, tuple[float, ...]] = {
    "average": (5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2),
    "psum": (2e-5, 4e-5, 8e-5, 1.6e-4, 3.2e-4, 5e-4, 1e-3, 2e-3),
}


def _grid(method: Row, head: str) -> Grid:
    """The settings to tune: the learning rate and, for C-FedFreezeBERT, which has only one round, the epochs."""
    rates = HEAD_RATES[head] if method.algorithm in FROZEN_ALGORITHMS else fedsplitbert.RATES
    rate: Grid = {"training.learning_rate": rates}
    return {**rate, "training.local_epochs": (3, 5)} if method.id == "c" else rate


MINIATURE = Search(
    {f"{row.id}-{head}": _grid(row, head) for row in METHODS for head in HEAD_RATES},
    trials=8,
    rungs=(2,),
    seeds=(1000,),
    chosen=Path(__file__).parent / "tuned" / "lite.json",
)

E5 = "multilingual-e5-small"
_ARABIC = (E5, 12, "arsarcasm", f"real data, {E5} (12 layers, weights in 4 bits)")
SCALES = (
    Scale("demo", "tiny", 4, "generated", "generated data, random 4-layer encoder; shows the machinery only"),
    Scale("lite", *_ARABIC, search=MINIATURE),
    Scale("literal", *_ARABIC[:-1], f"{_ARABIC[-1]}, the paper's settings, not tuned for it"),
    Scale("paper", "MARBERT", 12, "arsarcasm", "real data, MARBERT"),
)

SENTIMENT = Column("arsarcasm", "ArSarcasm-v2", ("test/f1_pn", "test/accuracy"), "test/f1_pn")
_MINILM = next(scale for scale in fedsplitbert.SCALES if scale.id == "lite")
_ON_MINILM = {name: getattr(_MINILM, name) for name in ("backbone", "depth", "source", "material")}
_ENGLISH_SCALES = ("lite", "literal")
ENGLISH = Column(
    "sst2-central",
    "SST-2",
    ("test/accuracy", "test/f1"),
    "test/accuracy",
    scales=_ENGLISH_SCALES,
    replacing={scale.id: replace(scale, **_ON_MINILM) for scale in SCALES if scale.id in _ENGLISH_SCALES},
)
ENGLISH_EXAMPLES = 3000  # as in benchmarks.tasks.glue

CLIENTS = 5
ROUNDS = 5  # of one epoch each
# As in FedNLP's library: each client gets at least ten examples, and no further label once it has a fifth of all.
PARTITION: Mapping[str, JSON] = {"scheme": "dirichlet", "alpha": 1.0, "capped": True, "min_size": 10}
DATA_SEED = 0  # one partition for all training seeds, as the paper's small deviations over five runs suggest

# Section "Experimental setup"; the paper tuned centralised training's learning rate and does not state it.
FROZEN_RATE = 5e-4
LEARNING_RATES = {"fedavg": 1e-6, **dict.fromkeys(FROZEN_ALGORITHMS, FROZEN_RATE)}  # others: 1e-5


def training_of(algorithm: str, scale: Scale) -> TrainConfig:
    """Five epochs with batches of 16 and Adam (AdamW without weight decay), one epoch per round or all in one round.

    The lite scale tunes learning rates; centralised training has one round per epoch, so that a round can be chosen.
    """
    is_lite = scale.id == "lite"
    in_one_round = ("fedfreezebert_central",) if is_lite else ("central", "fedfreezebert_central")
    rounds, epochs = (1, ROUNDS) if algorithm in in_one_round else (ROUNDS, 1)
    training = TrainConfig(rounds, 2e-3, batch_size=16, local_epochs=epochs, weight_decay=0.0)
    if scale.id == "demo":
        return replace(training, max_length=32, precision="fp32")
    if is_lite:
        tuned = replace(training, learning_rate=1e-4, warmup=0.1, clip_norm=1.0)
        return replace(tuned, optimizer="kept") if algorithm == "central" else tuned
    return replace(training, learning_rate=LEARNING_RATES.get(algorithm, 1e-5))


REFERENCES = (fedsplitbert.OVERALL_MAJORITY, fedsplitbert.LOCAL_MAJORITY, fedsplitbert.LINEAR)


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """The base configuration with five clients; the official test set is central."""
    # SST-2's runs store full-precision features, like the committed records.
    is_half = row.algorithm in FROZEN_ALGORITHMS and (row.backbone or scale.backbone) == E5
    return run_of(
        *(row, column, scale, seed, training_of(row.algorithm, scale)),
        options={"half_features": True} if is_half else {},
        clients=CLIENTS,
        partition=PARTITION,
        validation_share=0.1 if scale.id == "lite" else 0.0,
        data_seed=DATA_SEED,
    )


# Centralised training with mean pooling, usual for sentence encoders, shows whether an encoder learns the task.
YARDSTICK = replace(LEARNING, row="central-average", name="centralised training")
FEDAVG_AT_FROZEN_RATE = with_head(METHODS[1], "ordinary").changed(
    {"training.learning_rate": FROZEN_RATE},
    id="fedavg-ordinary-frozen-rate",
    name=f"FedAvg · ordinary, learning rate {FROZEN_RATE:g}",
    printed=False,
    note="FedAvg with the learning rate that the paper gives its frozen methods (at the lite scale these have tuned "
    "ones): shows whether their gain is due to the method or to the learning rate",
)

DEVIATIONS = deviations(f"""
- partition: The tweets are distributed "as described in" FedNLP, without a number. Here each client's label
  distribution is drawn from a Dirichlet distribution with α = 1. As in its library, each gets at least ten tweets, and
  a client with a fifth of all gets no further label; the largest has 41 %.
- one-partition: One partition (data seed {DATA_SEED}) for all training seeds, as the paper's standard deviations of
  0.12 and 0.17 over five runs suggest. --set data_seed=null draws one per seed.
- english (lite, literal): The paper has no SST-2 column. {ENGLISH_EXAMPLES} of SST-2's 67 349 training phrases, drawn
  once, are partitioned in the same way and tested on GLUE's development set, with all-MiniLM-L6-v2 (6 layers).
- learning-rate (literal, paper): The paper omits centralised training's tuned rate: here it is FedSplitBERT's, 1e-5.
- miniature (lite): Each method has {MINIATURE.trials} trials over its learning rate, with the average aggregator and
  with P-SUM, on validation data from a partition and seed that no table uses. C-FedFreezeBERT has only one round, so
  its trials also choose between 3 and 5 epochs. After {MINIATURE.rungs[0]} rounds the best quarter, with ties,
  continues (benchmarks/fedfreezebert/tuned/lite.json). On SST-2, the ordinary aggregator uses the average's settings,
  H-SUM those of P-SUM. On tweets each of them has its own trials. FedProx's weight 0.05 and FedSplitBERT's c = 8 of 12
  are the paper's. Learning rates are {fedsplitbert.RATES[0]:g} to {fedsplitbert.RATES[-1]:g} for trained encoders; with
  a frozen one {HEAD_RATES["average"][0]:g} to {HEAD_RATES["average"][-1]:g} for one linear layer and
  {HEAD_RATES["psum"][0]:g} to {HEAD_RATES["psum"][-1]:g} for four BERT layers. Warm-up takes a tenth of the steps, and
  gradients are clipped to norm 1. A held-out tenth of each client's training examples chooses the round to score.
- optimiser (literal, paper): "Adam Optimizer" is AdamW without weight decay. The learning rate is constant, without
  warm-up and clipping, which the paper does not mention.
- optimiser-lite (lite): "Adam Optimizer" is AdamW without weight decay, constant after its warm-up.
- precision (lite, literal, paper): Matrix products use bf16 if the device supports it. The paper states no precision;
  each record names its precision.
- ordinary: The ordinary aggregator is [CLS] and one linear layer, as the text says, without BERT's pooler. Like every
  head, it is randomly initialised.
- personal: FedSplitBERT gives each client a personal model. Its score is their mean score on the central test set.
- layers (demo, lite, literal): A smaller encoder keeps the share of its depth for c = 8 of 12 (3 of 4, 4 of 6).
- backbone (lite, literal): A multilingual sentence encoder, {E5}, replaces MARBERT; its weights are rounded to
  4 bits. It has MARBERT's 12 layers, half its width, and 250 037 tokens for many languages. It was trained with the
  mean of all tokens, which favours the average aggregator over [CLS]. Its prefix "query: " is left out.
- half-features (lite, literal): Tweets' features are stored in half precision, even if they are computed in single.
""")
