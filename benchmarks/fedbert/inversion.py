"""FedBERT, do activations hide the text: what a server reads off the embeddings it receives. No table of the paper.

make fedbert-inversion SCALE=lite DATA_DIR=<folder with GLUE's TSV files>
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.fedbert.setup import PAPER
from benchmarks.fedfreezebert.inversion import DEMO_SHARE, PASSES, PUBLIC
from benchmarks.overrides import ByScale
from benchmarks.publication import Deviation
from benchmarks.run_config import JSON, RunConfig, TrainConfig

TEXTS = Column("sst2-texts", "Held-out SST-2", ("test/token_recovery", "test/text_recovery"), "test/token_recovery")
SCALES = (
    Scale("demo", "tiny", 4, "generated", "generated data, random 4-layer encoder; shows the machinery only"),
    Scale("lite", "all-MiniLM-L6-v2", 6, "glue", "real data, all-MiniLM-L6-v2's embeddings"),
    Scale("paper", "bert-base-uncased", 12, "glue", "real data, BERT-base's embeddings, as wide as RoBERTa-base's"),
)
CLIENTS = 4
DROPOUT = 0.1  # Table 4
MAX_LENGTH = 128
KNOWN: dict[str, JSON] = {  # texts that the server has anyway
    "options.public_texts": ByScale({"demo": PUBLIC // DEMO_SHARE}, otherwise=PUBLIC),
    "training.local_epochs": ByScale({"demo": PASSES * DEMO_SHARE}, otherwise=PASSES),
}


def _nearest(id: str, sent: str, note: str, dropout: float = 0.0) -> Row:
    changes: dict[str, JSON] = {"algorithm": "nearest_neighbour", "head": "average", "options.sent": sent}
    name = f"Nearest neighbour, {sent}"
    if dropout:
        changes, name = changes | {"options.dropout": dropout}, f"{name}, dropout {dropout:g}"
    return Row(id, name, changes, printed=False, note=note)


def _inverter(id: str, sent: str, note: str) -> Row:
    changes = {"algorithm": "inversion", "head": "average", "options.layer": 0, "options.sent": sent, **KNOWN}
    return Row(id, f"Trained inverter, {sent}", changes, printed=False, note=note)


ROWS = (
    Row(
        "token-majority",
        "Most frequent token",
        {"algorithm": "token_majority", **KNOWN},
        printed=False,
        note="that of the public texts, at every position: what is recovered without activations",
    ),
    _nearest("nearest", "fp32", "the server has the embedding layer, and looks what it receives up there"),
    _nearest("nearest-fp16", "fp16", "the same, where activations are sent as fp16"),
    _nearest("nearest-dropout", "fp32", "the same of activations as training sends them", dropout=DROPOUT),
    _inverter("inverter", "fp32", f"the server has word embeddings and {PUBLIC} public texts, and learns to invert"),
    _inverter("inverter-fp16", "fp16", "the same, where activations are sent as fp16"),
)


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """One attack on clients that share the texts out equally, before what the row changes; the held-out ones are GLUE's
    development set, which is central.
    """
    training = TrainConfig(
        rounds=1,
        learning_rate=1e-3,
        batch_size=16,
        weight_decay=0.0,
        max_length=32 if scale.id == "demo" else MAX_LENGTH,
        precision="fp32",
    )
    return RunConfig(
        scale=scale.id,
        task=column.task,
        task_version=1,
        source=scale.source,
        backbone=scale.backbone,
        clients=CLIENTS,
        partition={"scheme": "equal"},
        algorithm=row.algorithm,
        options={},
        training=training,
        seed=seed,
        test_share=0.0,
        data_seed=0,
    )


BENCHMARK = Benchmark(
    id="fedbert-inversion",
    paper=PAPER,
    place="privacy",
    title="Held-out texts that a split-learning server recovers from the embeddings it receives; no table of the paper",
    rows=ROWS,
    columns=(TEXTS,),
    scales=SCALES,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "inversion.csv",
    deviations=(
        Deviation(
            "claim",
            "Section 5.1: “raw data is not exchanged by our proposed FEDBERT”. What the activations tell that are "
            "exchanged, the paper does not measure; this study does.",
        ),
        Deviation(
            "received",
            "What the server receives of every batch, with its mask: the embedding layer's output at each position "
            "(P_ef of Algorithms 2 and 3), word, position and type embeddings added up and normalised. It depends on "
            "that position's token alone. What the server sees besides, the head's gradients, is not attacked.",
        ),
        Deviation(
            "attacker",
            "A server that follows the protocol and is curious. Nearest neighbour: it has the embedding layer as is, "
            "since it initialises it, and averages it or hands it on. Inverter: it has the word embeddings, and learns "
            f"from {PUBLIC} public texts of the clients' kind, here some of their training texts; of positions, types "
            "and the norm it knows nothing.",
        ),
        Deviation(
            "dropout",
            "Activations are those of evaluation, but in the row that says so: in training a tenth of their values "
            "(Table 4) is zero, drawn anew each time that a text is sent, which is once an epoch.",
        ),
        Deviation(
            "weights",
            "Embeddings are a pre-trained encoder's, as they are; FedBERT begins with drawn ones and trains them.",
            ("lite", "paper"),
        ),
        Deviation(
            "counted",
            "Of all tokens, those recovered at their positions; of all texts, those with every token right. [CLS] and "
            "[SEP] are known and [UNK] is no word: left out.",
        ),
        Deviation(
            "sent",
            "Activations are computed in fp32 on every machine, and rounded where they are sent as fp16. The attack "
            "itself sends nothing, hence 0 bytes.",
        ),
        Deviation("public-texts", f"A tenth of the public texts: {PUBLIC // DEMO_SHARE}.", ("demo",)),
    ),
)
