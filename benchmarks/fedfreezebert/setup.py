"""What FedFreezeBERT's tables share: its clients, budgets and scales."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.spec import Cell, Column, Deviation, Paper, Row, Scale, Training

PAPER = Paper(
    id="fedfreezebert",
    name="FedFreezeBERT",
    citation="Omar Galal, Ahmed H. Abdel-Gawad, Mona Farouk: Federated Freeze BERT for text classification. Journal of "
    "Big Data 11, 28 (2024)",
    bytes_convention="both directions, summed over clients, GB = 1024 MB of 10^6 bytes",
    gigabyte=1024 * 10**6,
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


def training_of(scale: Scale) -> Training:
    """Section "Experimental setup": batches of 16, 128 tokens, Adam, which is AdamW without weight decay."""
    if scale.id == "demo":
        return Training(
            rounds=ROUNDS, learning_rate=2e-3, batch_size=16, weight_decay=0.0, max_length=32, precision="fp32"
        )
    return Training(rounds=ROUNDS, learning_rate=1e-5, batch_size=16, weight_decay=0.0)


def cell(row: Row, column: Column, scale: Scale, seed: int) -> Cell:
    """One run on ArSarcasm-v2 with five clients; the official test set is central."""
    training = training_of(scale)
    if row.algorithm == "local_majority":
        training = replace(training, rounds=1)  # it answers the same after every round
    return Cell(
        scale=scale.id,
        task=column.task,
        task_version=1,
        source=scale.source,
        backbone=scale.backbone,
        clients=CLIENTS,
        partition=PARTITION,
        algorithm=row.algorithm,
        options=dict(row.options),
        training=training,
        seed=seed,
        codec=row.codec,
        test_share=0.0,
    )


DEVIATIONS = (
    Deviation(
        "partition",
        "The tweets are distributed “as described in” FedNLP, without a number: here a Dirichlet distribution over "
        "labels with α = 1 for each client.",
    ),
    Deviation(
        "backbone",
        "The small encoder was pre-trained by masked language modelling on the training tweets of all clients together "
        "(python -m benchmarks pretrain arabic-mini), so it has seen the texts, never the labels or the test tweets.",
        ("lite",),
    ),
)
