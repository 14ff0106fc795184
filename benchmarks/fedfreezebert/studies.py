"""Studies of FedFreezeBERT that the paper lacks: what embeddings reveal, and what a mean hides."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.experiment import Column, Row, Scale, another
from benchmarks.fedfreezebert import paper
from benchmarks.fedfreezebert.tables import TABLE1, TABLE3
from benchmarks.overrides import ByScale
from benchmarks.publication import View, deviations
from benchmarks.run_config import JSON, RunConfig, TrainConfig

_RECOVERED = (("test/token_recovery", "test/text_recovery"), "test/token_recovery")
# An inverter has one class per token of the vocabulary: e5-small's 250 000 are too many.
TEXTS = Column("arsarcasm-texts", "Held-out tweets", *_RECOVERED, scales=("demo", "paper"))
# Its encoder has more layers than the last four.
ENGLISH_TEXTS = Column(
    "sst2-texts", "Held-out SST-2", *_RECOVERED, scales=paper.ENGLISH.scales, replacing=paper.ENGLISH.replacing
)
PUBLIC, FEW = 2000, 200  # public texts that the server has
DEMO_SHARE = 10  # the demo scale uses a tenth
PASSES = 3  # over PUBLIC texts; more over fewer texts, so that all inverters take equally many steps


def knowing(texts: int) -> dict[str, JSON]:
    """The changes for a server with this number of public texts."""
    few = texts // DEMO_SHARE
    return {
        "options.public_texts": ByScale({"demo": few}, otherwise=texts),
        "training.local_epochs": ByScale({"demo": PASSES * PUBLIC // few}, otherwise=PASSES * PUBLIC // texts),
    }


def _inversion(id: str, name: str, head: str, note: str, public_texts: int = PUBLIC, sent: str = "fp32") -> Row:
    changes = {"algorithm": "inversion", "head": head, "options.sent": sent, **knowing(public_texts)}
    return Row(id, name, changes, printed=False, note=note)


MAJORITY = Row(
    "token-majority",
    "Most frequent token",
    {"algorithm": "token_majority", **knowing(PUBLIC)},
    printed=False,
    note="predicts the public texts' most frequent token at every position, without reading what is sent",
)


def attack_training(scale: Scale) -> TrainConfig:
    """Training of an inverter, in one round."""
    return TrainConfig(1, 1e-3, batch_size=16, max_length=32 if scale.id == "demo" else 128, precision="fp32")


def _attack(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """The base configuration of an attack on Table 3's clients, with their encoder and tweets."""
    run = paper.base_cell(row, column, scale, seed)
    return replace(run, training=attack_training(scale), validation_share=0.0)


INVERSION = another(
    TABLE1,
    "inversion",
    "privacy",
    "Held-out texts that a server recovers from their embeddings; not in the paper",
    rows=(
        MAJORITY,
        _inversion("last", "Last layer, fp32", "average", "what C-FedFreezeBERT sends with the average aggregator"),
        _inversion("last-fp16", "Last layer, fp16", "average", "the same, sent as fp16", sent="fp16"),
        _inversion("last-four", "Last four layers, fp32", "psum", "what it sends with P-SUM and H-SUM"),
        _inversion("last-four-fp16", "Last four layers, fp16", "psum", "the same, sent as fp16", sent="fp16"),
        _inversion(
            "last-few", "Last layer, fp32, few public texts", "average", f"with {FEW} public texts, not {PUBLIC}", FEW
        ),
    ),
    columns=(TEXTS, ENGLISH_TEXTS),
    base=_attack,
    deviations=(
        *deviations(f"""
- claim: C-FedFreezeBERT's privacy rests on the sentence "having BERT contextual embeddings for a sentence, one cannot
  get back the original sentence". The paper does not measure it; this study does.
- attacker: The server is honest but curious. It has the pre-trained encoder and {PUBLIC} public texts like the
  clients', here some of their training texts. On these it trains an inverter: layer norm on each hidden state, two
  linear layers, and a product with the encoder's word embeddings. It then inverts the features of the official test
  texts, which it does not have.
- counted: The share of tokens that are recovered at their positions, and of texts with all tokens recovered. [CLS] and
  [SEP] are given and [UNK] is not a word, so they do not count.
- lower-bound: The result is a lower bound for what features reveal: the inverter is small, reads each position alone
  and has no language model.
- ordinary: The ordinary aggregator is left out. It sends only [CLS], no state per token; the study does not address
  its privacy.
- sent: Features are computed in fp32 on every machine and rounded when they are sent as fp16. The attack sends
  nothing, hence 0 bytes.
- public-texts (demo): A tenth of the public texts: {PUBLIC // DEMO_SHARE} and {FEW // DEMO_SHARE}.
- tweets (lite, literal): Tweets are left out: their encoder's 250 000 tokens are too many classes for an inverter.
- depth (lite, literal): SST-2's encoder has six layers. Features after twelve layers may reveal less.
"""),
        *(entry for entry in paper.DEVIATIONS if entry.id == "english"),
    ),
    view=View(),
)

# ---- what a mean over clients hides ------------------------------------------------------------------------------


def _of_clients(column: Column) -> Column:
    """The column with scores on each client's validation examples."""
    score = column.averaged.replace("test/", "validation/")
    return replace(column, scores=(score,), averaged=score)


_FEDERATED = ("fedavg", "fedsplitbert", "fedfreezebert")  # all clients train
CLIENTS = another(
    replace(TABLE3, columns=tuple(map(_of_clients, TABLE3.columns))),
    "clients",
    "clients",
    "The worst client and the spread over 5 clients, on their validation examples; not in the paper",
    rows=tuple(replace(row, printed=False) for row in TABLE3.rows if row.algorithm in _FEDERATED),
    also="""
- validation: The test set is central, and the same for all clients. Here scores are on each client's
  validation examples. They also choose the round and the settings, but this table uses the last rounds.
""",
    view=View("clients", {"baseline": "fedavg-ordinary"}),
)

BENCHMARKS = (INVERSION, CLIENTS)
