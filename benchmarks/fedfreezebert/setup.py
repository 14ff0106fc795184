"""What FedFreezeBERT's tables share: its clients, budgets and scales."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.fedsplitbert.setup import UNITS
from benchmarks.spec import Cell, Column, Deviation, Paper, Row, Scale, Training

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

SCALES = (
    Scale("demo", "tiny", 4, "generated", "generated data, random 4-layer encoder; shows the machinery only"),
    Scale(
        "lite",
        "arabic-mini",
        4,
        "arsarcasm",
        "real data, an encoder pre-trained here on the training tweets (4 layers)",
    ),
    Scale("paper", "MARBERT", 12, "arsarcasm", "real data, MARBERT"),
)

SENTIMENT = Column("arsarcasm", "ArSarcasm-v2", ("test/f1_pn", "test/accuracy"), "test/f1_pn")

CLIENTS = 5
ROUNDS = 5  # of one epoch each; what is trained in one place has one round of five epochs
PARTITION = {"scheme": "dirichlet", "alpha": 1.0}


# Section "Experimental setup": learning rates by method; central training's was tuned and is not printed.
LEARNING_RATES = {
    "central": 1e-5,
    "fedavg": 1e-6,
    "fedsplitbert": 1e-5,
    "fedfreezebert": 5e-4,
    "fedfreezebert_central": 5e-4,
}
# The small encoder is fine-tuned with one rate by every method; heads alone have the paper's.
LITE_LEARNING_RATES = LEARNING_RATES | dict.fromkeys(("central", "fedavg", "fedsplitbert"), 1e-4)
IN_ONE_PLACE = ("central", "fedfreezebert_central")


def training_of(algorithm: str, scale: Scale) -> Training:
    """Batches of 16, 128 tokens, Adam, which is AdamW without weight decay; five epochs, each a round or all in one."""
    rounds, epochs = (1, ROUNDS) if algorithm in IN_ONE_PLACE else (ROUNDS, 1)
    training = Training(rounds, 2e-3, batch_size=16, local_epochs=epochs, weight_decay=0.0)
    if scale.id == "demo":
        return replace(training, max_length=32, precision="fp32")
    rates = LEARNING_RATES if scale.id == "paper" else LITE_LEARNING_RATES
    return replace(training, learning_rate=rates.get(algorithm, 1e-5))


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> Cell:
    """One run on ArSarcasm-v2 with five clients, before what the row changes; the official test set is central."""
    return Cell(
        scale=scale.id,
        task=column.task,
        task_version=1,
        source=scale.source,
        backbone=scale.backbone,
        clients=CLIENTS,
        partition=PARTITION,
        algorithm=row.algorithm,
        options={},
        training=training_of(row.algorithm, scale),
        seed=seed,
        test_share=0.0,
    )


GLOBAL = {"options.embeddings": "global"}
METHODS = (
    Row("central", "Central training", {"algorithm": "central", **GLOBAL}),
    Row("fedavg", "FedAvg", {"algorithm": "fedavg", **GLOBAL}),
    Row("fedprox", "FedProx", {"algorithm": "fedavg", **GLOBAL, "options.proximal": 0.05}),
    Row("fedsplitbert", "FedSplitBERT", {"algorithm": "fedsplitbert", "options.critical_layer": 8, **GLOBAL}),
    Row("d-fedavg", "D-FedFreezeBERT, FedAvg", {"algorithm": "fedfreezebert"}),
    Row("d-fedprox", "D-FedFreezeBERT, FedProx", {"algorithm": "fedfreezebert", "options.proximal": 0.05}),
    Row("c", "C-FedFreezeBERT", {"algorithm": "fedfreezebert_central"}),
)
HEADS = {"ordinary": "ordinary", "average": "average", "psum": "P-SUM", "hsum": "H-SUM"}


def with_head(row: Row, head: str) -> Row:
    """A method with an aggregation architecture."""
    return row.changed({"head": head}, id=f"{row.id}-{head}", name=f"{row.name} · {HEADS[head]}")


DEVIATIONS = (
    Deviation(
        "partition",
        "The tweets are distributed “as described in” FedNLP, without a number: here a Dirichlet distribution over "
        "labels with α = 1 for each client.",
    ),
    Deviation(
        "learning-rate",
        "Central training's rate was tuned and is not printed: here FedSplitBERT's, 1e-5.",
        ("paper",),
    ),
    Deviation(
        "learning-rates",
        "Not tuned: 1e-4 for every method that trains the small encoder, the paper's 5e-4 where only heads are.",
        ("lite",),
    ),
    Deviation(
        "optimiser",
        "“Adam Optimizer” is AdamW without weight decay, here with a constant rate, no warm-up and no clipping, of "
        "which the text says nothing.",
        ("lite", "paper"),
    ),
    Deviation(
        "precision",
        "Matrix products are in bf16 where the device has it, which the text does not say; each record names its own.",
        ("lite", "paper"),
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
        "With a smaller encoder c = 8 of 12 is taken at the same share of its depth (3 of 4).",
        ("demo", "lite"),
    ),
    Deviation(
        "backbone",
        "The small encoder was pre-trained by masked language modelling on the training tweets of all clients together "
        "(python -m benchmarks pretrain arabic-mini), so it has seen the texts, never the labels or the test tweets.",
        ("lite",),
    ),
)
