"""What FedBFPT's tables share: its clients, corpora, methods of further pre-training, budgets and scales."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.experiment import Column, Row, Scale
from benchmarks.overrides import ByTask, LayerUnit
from benchmarks.publication import Deviation, Paper
from benchmarks.run_config import JSON, RunConfig, TrainConfig
from benchmarks.sweeps.tuning import Grid, Search

# A local model's layers are written in the 12 of the paper's encoder, of a table's own cells and of what they begin
# from.
_LOCAL_LAYERS = LayerUnit("local layers", of=12, symbol="m^L", least=1)

PAPER = Paper(
    id="fedbfpt",
    name="FedBFPT",
    citation="Xin'ao Wang, Huan Li, Ke Chen, Lidan Shou: FEDBFPT: An Efficient Federated Learning Framework for BERT "
    "Further Pre-training. IJCAI 2023",
    bytes_convention="one client's uplink in a round, its tensors' payload in MiB of 2^20 bytes; the paper's MB are "
    "MiB of the file that torch.save makes of them, which is a little larger",
    gigabyte=2**30,
    per_client=True,
    units={"options.local_layers": _LOCAL_LAYERS, "initial.options.local_layers": _LOCAL_LAYERS},
)

SCALES = (
    Scale("demo", "tiny", 4, "generated", "generated data, random 4-layer encoder; shows the machinery only"),
    Scale(
        "lite",
        "minilm-masked",
        6,
        "scientific",
        "real data, all-MiniLM-L6-v2 with a masked-LM head trained here on general text (6 layers)",
    ),
    Scale("paper", "bert-base-uncased", 12, "scientific", "real data, bert-base-uncased"),
)

# ---- corpora -----------------------------------------------------------------------------------------------------

_PERPLEXITY = ("test/perplexity",)
CORPORA = (
    Column("corpus-biology", "Biology", _PERPLEXITY, *_PERPLEXITY),
    Column("corpus-computer-science", "Computer Science", _PERPLEXITY, *_PERPLEXITY),
    Column("corpus-medicine", "Medicine", _PERPLEXITY, *_PERPLEXITY),
)
CLIENTS = 6
HELD_OUT = 0.05  # share of each client's passages: never trained on, scored after each round
# Appendix, table 5: MB of text of each client, in its skewed part and, as shares are taken of them, of all together.
SKEWED_MB: Mapping[str, tuple[float, ...]] = {
    "corpus-biology": (20.63, 66.71, 128.37, 128.42, 66.76, 20.59),
    "corpus-computer-science": (17.25, 56.11, 108.24, 108.23, 56.11, 17.37),
    "corpus-medicine": (43.70, 141.27, 272.47, 272.21, 141.25, 43.62),
}
SKEWED_SHARES: Mapping[str, tuple[float, ...]] = {
    task: tuple(size / sum(sizes) for size in sizes) for task, sizes in SKEWED_MB.items()
}

# ---- budgets -----------------------------------------------------------------------------------------------------

ROUNDS = 5  # I, as in the authors' code: three for layer 0, one each for layers 1 and 2
# The lite scale: of all clients together, about 1 MB of each stand-in in corpora/.
LITE_SHARE: Mapping[str, float] = {"corpus-biology": 0.05, "corpus-computer-science": 0.05, "corpus-medicine": 0.25}

RATES = (1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3)  # even steps of the logarithm
_RATE: Grid = {"training.learning_rate": RATES}
# Rates of the lite scale, by the perplexity of validation passages: every method that is tuned has the same grid on the
# same data, which no table uses; variants of FEDBFPT take over its rate, but for the one that trains all layers.
MINIATURE = Search(
    dict.fromkeys(("bert-c", "bert-fl", "fedbfpt", "fedbfpt-all"), _RATE),
    rungs=(1,),
    seeds=(1000,),
    chosen=Path(__file__).parent / "tuned" / "lite.json",
)


def partition_of(task: str, scale: Scale) -> dict[str, JSON]:
    """How the six clients share a corpus out: evenly (section 5.1)."""
    return {"scheme": "equal"} | ({"share": LITE_SHARE[task]} if scale.id == "lite" else {})


def training_of(scale: Scale) -> TrainConfig:
    """Rounds of one local epoch; batch size and rate of section 5.1 at the paper's scale."""
    if scale.id == "demo":
        return TrainConfig(ROUNDS, learning_rate=1e-3, batch_size=16, max_length=32, precision="fp32")
    if scale.id == "lite":
        return TrainConfig(ROUNDS, learning_rate=2e-4, batch_size=32, clip_norm=1.0, decayed="matrices")
    return TrainConfig(ROUNDS, learning_rate=5e-5, batch_size=256)


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """Further pre-training on one domain's corpus with six clients, before what the row changes."""
    return RunConfig(
        scale=scale.id,
        task=column.task,
        task_version=1,
        source=scale.source,
        backbone=row.backbone or scale.backbone,
        clients=CLIENTS,
        partition=partition_of(column.task, scale),
        algorithm=row.algorithm,
        options={},
        training=training_of(scale),
        seed=seed,
        test_share=0.2 if scale.id == "demo" else HELD_OUT,
        head="masked-lm",
    )


# ---- methods -----------------------------------------------------------------------------------------------------

GLOBAL: Mapping[str, JSON] = {"options.embeddings": "global"}
BEFORE = Row(
    "before",
    "Before further pre-training",
    {"algorithm": "untrained", "training.rounds": 1},
    printed=False,
    note="the encoder as it is; nothing is trained and nothing is sent",
)
BERT_C = Row("bert-c", "BERT-C", {"algorithm": "central", **GLOBAL})
BERT_FL = Row("bert-fl", "BERT-FL", {"algorithm": "fedavg", **GLOBAL})


def _smaller(id: str, name: str, backbone: str) -> Row:
    """Another pre-trained encoder, further pre-trained as BERT-FL is; its checkpoint is not at hand at other scales."""
    return BERT_FL.changed({}, id=id, name=name, backbone=backbone, scales=("paper",))


SMALLER = (
    _smaller("distilbert", "DistilBERT", "distilbert-base-uncased"),
    _smaller("tinybert-6", "TinyBERT-6", "TinyBERT_General_6L_768D"),
    _smaller("tinybert-4", "TinyBERT-4", "TinyBERT_General_4L_312D"),
)
FEDBFPT = Row("fedbfpt", "FEDBFPT", {"algorithm": "fedbfpt", "options.local_layers": 6})


def _variant(id: str, name: str, changes: Mapping[str, JSON], note: str = "", tuned_as: str = FEDBFPT.id) -> Row:
    return FEDBFPT.changed(changes, id=id, name=name, note=note, tuned_as=tuned_as)


ALL = _variant(
    "fedbfpt-all",
    "FEDBFPT-ALL",
    {"options.trained": "all"},
    "always trains all layers of the local model, its embeddings too; deeper layers are drawn without replacement",
    tuned_as="",
)
NO_PL = _variant("fedbfpt-no-pl", r"FEDBFPT\PL", {"options.schedule": "first"}, "trains layer 0 in every round")
NO_M = _variant(
    "fedbfpt-no-m",
    r"FEDBFPT\M",
    {"options.deeper": "first"},
    "the local model is always the first layers of the pool; no deeper one is drawn",
)
NO_S = _variant(
    "fedbfpt-no-s",
    r"FEDBFPT\S",
    {"options.resampled": "layer"},
    "deeper layers are drawn anew only when the trained layer moves on",
)
NO_SP = _variant(
    "fedbfpt-no-sp", r"FEDBFPT\SP", {"options.schedule": "successive"}, "round i trains the i-th layer, one round each"
)
DEEPEST = _variant(
    "fedbfpt-deepest",
    "FEDBFPT, deepest layer",
    {"options.schedule": "last"},
    r"trains the local model's last layer in every round: \PL's counterpart",
).changed({}, printed=False)
FOUR = _variant("fedbfpt-4", "FEDBFPT-4", {"options.local_layers": 4})
EIGHT = _variant("fedbfpt-8", "FEDBFPT-8", {"options.local_layers": 8})
SKEWED_PARTITION: Mapping[str, JSON] = {
    "partition.scheme": "sizes",
    "partition.sizes": ByTask({task: list(shares) for task, shares in SKEWED_SHARES.items()}),
}
SKEWED = _variant(
    "fedbfpt-skewed",
    "FEDBFPT, skewed datasets",
    {**SKEWED_PARTITION, "options.weights": "size"},
    "clients have the sizes of the appendix's table 5 and weigh by them",
)
ABLATIONS = (ALL, NO_PL, NO_M, NO_S, NO_SP, DEEPEST)
METHODS = (BERT_C, BERT_FL, *SMALLER, FEDBFPT, *ABLATIONS, FOUR, EIGHT, SKEWED)

# ---- deviations --------------------------------------------------------------------------------------------------

DEVIATIONS = (
    Deviation(
        "corpora",
        "Of each domain's passages a random part, so that every method runs on CPUs: "
        f"{', '.join(f'{100 * LITE_SHARE[column.task]:.0f} % of {column.name.lower()}' for column in CORPORA)}. S2ORC "
        "was not to be had for the committed records: theirs are of stand-ins (biology: literature of "
        "MTL-Bioinformatics-2016; computer science: abstracts of the ACL Anthology; medicine: PubMedQA and others).",
        ("lite",),
    ),
    Deviation(
        "corpora",
        "Which passages of S2ORC the authors took is not known: here those of each domain's field of study that the "
        "data directory or the hub has. Each record keeps their digest, and its partition how many there are.",
        ("paper",),
    ),
    Deviation(
        "rounds",
        "I is not printed: five rounds of one local epoch, as in the authors' code; layer 0 has three, layers 1 and 2 "
        "one each. AdamW is fresh in every round.",
    ),
    Deviation(
        "draw",
        "Deeper layers are drawn anew for each client and round, with replacement, and sorted, as the text says. The "
        "authors' code reseeds its generator, so that clients and rounds with the same layer share what is drawn, "
        "masks and order of examples too: option draw = official, which shares the drawn layers alone.",
    ),
    Deviation(
        "weights",
        "Clients weigh alike, as in equation 1; with skewed datasets by their sizes, as section 5.4 says and the "
        "authors' code does not do.",
    ),
    Deviation(
        "output-layer",
        "The output layer that is trained is the masked-LM head's transform, norm and bias; the decoder's weight is "
        "tied to the word embeddings, which stay frozen, and is neither trained nor sent.",
    ),
    Deviation(
        "all",
        "FEDBFPT-ALL trains the embeddings too: its printed 255.57 MB are a whole model of six layers.",
    ),
    Deviation(
        "baselines",
        "BERT-C and BERT-FL train all parameters, the embeddings too: BERT-FL's printed 417.83 MB are the whole model.",
    ),
    Deviation(
        "smaller",
        "DistilBERT and the two TinyBERTs are further pre-trained as BERT-FL, from their own published checkpoints: "
        "the text does not say how, the authors' code loads DistilBERT through a configuration of twelve BERT layers "
        "(its printed cost is 100.31 % of BERT's) and links rerankers as TinyBERT.",
        ("paper",),
    ),
    Deviation(
        "smaller",
        "DistilBERT and the two TinyBERTs are left out: no checkpoint of theirs is at hand, and nothing stands in.",
        ("demo", "lite"),
    ),
    Deviation(
        "backbone",
        "all-MiniLM-L6-v2 has no masked-LM head: it was trained with one on general text first (fedbfpt-general), its "
        "embeddings and layers too, so that every row begins from a masked language model.",
        ("lite",),
    ),
    Deviation(
        "layers",
        "Local models of 4, 6 and 8 of 12 layers are taken at the same share of a smaller encoder's depth (lite: 2, 3 "
        "and 4 of 6; demo: 1, 2 and 3 of 4). The schedule counts the encoder's own layers from 0 on.",
        ("demo", "lite"),
    ),
    Deviation(
        "tuning",
        f"Not the paper's rate, which is for another encoder and 256 sentences a batch: {RATES[0]:g} to {RATES[-1]:g}, "
        "chosen for each method and domain by the perplexity of validation passages of a seed that no table uses; "
        "FEDBFPT's variants take over its rate, FEDBFPT-ALL has its own. Batches of 32, gradients cut at norm 1, "
        "weights alone decay.",
        ("lite",),
    ),
    Deviation(
        "blocks",
        "Passages are tokenised whole and cut into blocks of 128 tokens; the authors' code has sentences of abstracts "
        "and bodies, cut at 128 tokens (fedbfpt-sentences).",
        ("lite", "paper"),
    ),
    Deviation(
        "masking",
        "15 % of a batch's tokens are masked (80 % of them as [MASK], 10 % as another token), as of BERT; no next "
        "sentence; AdamW with weight decay 0.01 and a constant rate, of which the text says nothing.",
    ),
    Deviation(
        "held-out",
        f"{100 * HELD_OUT:.0f} % of each client's passages are held back and scored; the paper measures no perplexity.",
        ("lite", "paper"),
    ),
    Deviation(
        "precision",
        "Matrix products are in bf16 where the device has it, which the text does not say; each record names its own.",
        ("lite", "paper"),
    ),
)
