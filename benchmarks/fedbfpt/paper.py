"""FedBFPT's further pre-training: clients, corpora, methods, budgets, scales, and what differs from the paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.experiment import Column, Row, Scale, run_of
from benchmarks.overrides import LayerUnit
from benchmarks.publication import Paper, deviations
from benchmarks.run_config import JSON, RunConfig, TrainConfig
from benchmarks.sweeps.tuning import Grid, Search

# The paper counts a local model's layers in its encoder's twelve layers.
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
HELD_OUT = 0.05  # share of each client's passages that is scored after each round and never trained on
# Appendix, table 5: MB of text per client.
SKEWED_MB: Mapping[str, tuple[float, ...]] = {
    "corpus-biology": (20.63, 66.71, 128.37, 128.42, 66.76, 20.59),
    "corpus-computer-science": (17.25, 56.11, 108.24, 108.23, 56.11, 17.37),
    "corpus-medicine": (43.70, 141.27, 272.47, 272.21, 141.25, 43.62),
}

# ---- budgets -----------------------------------------------------------------------------------------------------

ROUNDS = 5  # I, as in the authors' code: three for layer 0, one each for layers 1 and 2
# About 1 MB of text per domain, for all clients together.
LITE_SHARE: Mapping[str, float] = {"corpus-biology": 0.05, "corpus-computer-science": 0.05, "corpus-medicine": 0.25}

RATES = (1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3)  # evenly spaced logarithms
_RATE: Grid = {"training.learning_rate": RATES}
# The lite scale's learning rates, by the perplexity of validation passages. All tuned methods have the same grid and
# the same data, which no table uses. FEDBFPT's variants use its learning rate, except the one that trains all layers.
MINIATURE = Search(
    dict.fromkeys(("bert-c", "bert-fl", "fedbfpt", "fedbfpt-all"), _RATE),
    rungs=(1,),
    seeds=(1000,),
    chosen=Path(__file__).parent / "tuned" / "lite.json",
)


def training_of(scale: Scale) -> TrainConfig:
    """Rounds of one local epoch; at the paper's scale with section 5.1's batch size and learning rate."""
    if scale.id == "demo":
        return TrainConfig(ROUNDS, learning_rate=1e-3, batch_size=16, max_length=32, precision="fp32")
    if scale.id == "lite":
        return TrainConfig(ROUNDS, learning_rate=2e-4, batch_size=32, clip_norm=1.0, decayed="matrices")
    return TrainConfig(ROUNDS, learning_rate=5e-5, batch_size=256)


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """Further pre-training on a domain's corpus, which six clients share equally (section 5.1)."""
    return run_of(
        *(row, column, scale, seed, training_of(scale)),
        clients=CLIENTS,
        partition={"scheme": "equal"} | ({"share": LITE_SHARE[column.task]} if scale.id == "lite" else {}),
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
    note="the encoder without training; sends nothing",
)
BERT_C = Row("bert-c", "BERT-C", {"algorithm": "central", **GLOBAL})
BERT_FL = Row("bert-fl", "BERT-FL", {"algorithm": "fedavg", **GLOBAL})


def _smaller(id: str, name: str, backbone: str) -> Row:
    """Another encoder, further pre-trained like BERT-FL; only the paper's scale has its checkpoint."""
    return BERT_FL.changed({}, id=id, name=name, backbone=backbone, scales=("paper",))


SMALLER = (
    _smaller("distilbert", "DistilBERT", "distilbert-base-uncased"),
    _smaller("tinybert-6", "TinyBERT-6", "TinyBERT_General_6L_768D"),
    _smaller("tinybert-4", "TinyBERT-4", "TinyBERT_General_4L_312D"),
)
FEDBFPT = Row("fedbfpt", "FEDBFPT", {"algorithm": "fedbfpt", "options.local_layers": 6})


def _variant(id: str, name: str, changes: Mapping[str, JSON], note: str = "", **fields: Any) -> Row:
    return FEDBFPT.changed(changes, id=id, name=name, note=note, **{"tuned_as": FEDBFPT.id, **fields})


ALL = _variant(
    "fedbfpt-all",
    "FEDBFPT-ALL",
    {"options.trained": "all"},
    "always trains all layers of the local model and its embeddings; draws deeper layers without replacement",
    tuned_as="",
)
NO_PL = _variant("fedbfpt-no-pl", r"FEDBFPT\PL", {"options.schedule": "first"}, "trains layer 0 in every round")
NO_M = _variant(
    "fedbfpt-no-m",
    r"FEDBFPT\M",
    {"options.deeper": "first"},
    "the local model is always the first layers of the pool, without deeper ones",
)
NO_S = _variant(
    "fedbfpt-no-s",
    r"FEDBFPT\S",
    {"options.resampled": "layer"},
    "redraws deeper layers only when the trained layer changes",
)
NO_SP = _variant(
    "fedbfpt-no-sp",
    r"FEDBFPT\SP",
    {"options.schedule": "successive"},
    "trains the i-th layer in round i, one round each",
)
DEEPEST = _variant(
    "fedbfpt-deepest",
    "FEDBFPT, deepest layer",
    {"options.schedule": "last"},
    r"trains the local model's last layer in every round; the counterpart of \PL",
    printed=False,
)
FOUR = _variant("fedbfpt-4", "FEDBFPT-4", {"options.local_layers": 4})
EIGHT = _variant("fedbfpt-8", "FEDBFPT-8", {"options.local_layers": 8})


def _skewed_sizes(task: str) -> list[float]:
    """A task's client sizes in the appendix, as shares."""
    sizes = SKEWED_MB[task]
    return [size / sum(sizes) for size in sizes]


SKEWED_PARTITION: Mapping[str, JSON] = {"partition.scheme": "sizes", "partition.sizes": _skewed_sizes}
SKEWED = _variant(
    "fedbfpt-skewed",
    "FEDBFPT, skewed datasets",
    {**SKEWED_PARTITION, "options.weights": "size"},
    "clients have the sizes in appendix Table 5 and are weighted by them",
)
ABLATIONS = (ALL, NO_PL, NO_M, NO_S, NO_SP, DEEPEST)
METHODS = (BERT_C, BERT_FL, *SMALLER, FEDBFPT, *ABLATIONS, FOUR, EIGHT, SKEWED)

# ---- deviations --------------------------------------------------------------------------------------------------

_SHARES = ", ".join(f"{100 * LITE_SHARE[column.task]:.0f} % of {column.name.lower()}" for column in CORPORA)
DEVIATIONS = deviations(f"""
- corpora (lite): A random part of each domain's passages, so that every method runs on CPUs: {_SHARES}. The committed
  records use other texts, because S2ORC was not available: MTL-Bioinformatics-2016, abstracts of the ACL Anthology, and
  PubMedQA and others.
- corpora (paper): The paper does not say which passages of S2ORC it uses. We use those in each domain's field of study
  that the data directory or the hub has.
- rounds: The paper does not state I. We use five rounds of one local epoch, as in the authors' code: three for layer 0,
  one each for layers 1 and 2. AdamW is fresh in every round.
- draw: Each client redraws deeper layers in every round, with replacement, and sorts them, as the text says. In the
  authors' code clients and rounds with the same trained layer share drawn layers, masks and example order. Option draw
  = official shares the layers.
- weights: Clients have equal weights, as in equation 1; with skewed datasets weights follow sizes, as section 5.4 says,
  although not in the authors' code.
- output-layer: The trained output layer is the masked-LM head's transform, norm and bias. The decoder's weight is tied
  to the word embeddings, which stay frozen: it is neither trained nor sent.
- all: FEDBFPT-ALL trains the embeddings too: its published 255.57 MB are a whole model of six layers.
- baselines: BERT-C and BERT-FL train all parameters, including the embeddings: BERT-FL's published 417.83 MB are the
  whole model.
- smaller (paper): DistilBERT and the two TinyBERTs are further pre-trained like BERT-FL, from their published
  checkpoints. The authors' code loads DistilBERT as twelve BERT layers (its published cost is 100.31 % of BERT's) and
  links rerankers as TinyBERT.
- smaller (demo, lite): DistilBERT and the two TinyBERTs are left out, because their checkpoints are not available.
- backbone (lite): all-MiniLM-L6-v2 has no masked-LM head. It was first trained with one on general text
  (fedbfpt-general), so that every row starts from a masked language model.
- layers (demo, lite): Local models of 4, 6 and 8 of 12 layers become the same share of a smaller encoder's depth (lite:
  2, 3 and 4 of 6; demo: 1, 2 and 3 of 4). The schedule counts this encoder's layers from 0.
- tuning (lite): The paper's learning rate is for another encoder and 256 sentences per batch. Here each method and
  domain has a learning rate between {RATES[0]:g} and {RATES[-1]:g}, chosen by the perplexity of validation passages
  with a seed that no table uses. FEDBFPT's variants use its learning rate, except FEDBFPT-ALL. Batches of 32, gradients
  clipped to norm 1, weight decay only on weights.
- blocks (lite, paper): Passages are tokenised whole and cut into blocks of 128 tokens. The authors' code has sentences
  of abstracts and bodies, cut at 128 tokens (fedbfpt-sentences).
- masking: 15 % of a batch's tokens are masked (80 % as [MASK], 10 % as another token), as in BERT. No next sentence.
  AdamW has weight decay 0.01 and a constant learning rate.
- held-out (lite, paper): {100 * HELD_OUT:.0f} % of each client's passages are held out and scored. The paper measures
  no perplexity.
- precision (lite, paper): Matrix products use bf16 if the device supports it. The paper states no precision; each
  record names its precision.
""")
