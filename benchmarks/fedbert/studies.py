"""How much text a server recovers from split learning's embeddings; not in the paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark, Column, Row, Scale, run_of
from benchmarks.fedbert.paper import PAPER
from benchmarks.fedfreezebert.studies import DEMO_SHARE, MAJORITY, PUBLIC, attack_training, knowing
from benchmarks.publication import deviations
from benchmarks.run_config import JSON, RunConfig

CLIENTS = 4
DROPOUT = 0.1  # Table 4


def _nearest(id: str, sent: str, note: str, dropout: float = 0.0) -> Row:
    changes: dict[str, JSON] = {"algorithm": "nearest_neighbour", "head": "average", "options.sent": sent}
    name = f"Nearest neighbour, {sent}"
    if dropout:
        changes, name = changes | {"options.dropout": dropout}, f"{name}, dropout {dropout:g}"
    return Row(id, name, changes, printed=False, note=note)


def _inverter(id: str, sent: str, note: str) -> Row:
    changes = {"algorithm": "inversion", "head": "average", "options.layer": 0, "options.sent": sent, **knowing(PUBLIC)}
    return Row(id, f"Trained inverter, {sent}", changes, printed=False, note=note)


def _base(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """An attack on clients that share the texts equally; the held-out texts are GLUE's development set."""
    training = replace(attack_training(scale), weight_decay=0.0)
    return run_of(row, column, scale, seed, training, clients=CLIENTS, data_seed=0)


BENCHMARK = Benchmark(
    id="fedbert-inversion",
    paper=PAPER,
    place="privacy",
    title="Held-out texts that a split-learning server recovers from the embeddings it receives; not in the paper",
    rows=(
        MAJORITY.changed({}, note="predicts the public texts' most frequent token, without reading activations"),
        _nearest("nearest", "fp32", "the server looks up what it receives in its copy of the embedding layer"),
        _nearest("nearest-fp16", "fp16", "the same, with activations sent as fp16"),
        _nearest("nearest-dropout", "fp32", "the same, with dropout as in training", dropout=DROPOUT),
        _inverter("inverter", "fp32", f"the server trains an inverter on word embeddings and {PUBLIC} public texts"),
        _inverter("inverter-fp16", "fp16", "the same, with activations sent as fp16"),
    ),
    columns=(
        Column("sst2-texts", "Held-out SST-2", ("test/token_recovery", "test/text_recovery"), "test/token_recovery"),
    ),
    scales=(
        Scale("demo", "tiny", 4, "generated", "generated data, random 4-layer encoder; shows the machinery only"),
        Scale("lite", "all-MiniLM-L6-v2", 6, "glue", "real data, all-MiniLM-L6-v2's embeddings"),
        Scale("paper", "bert-base-uncased", 12, "glue", "real data, BERT-base's embeddings, as wide as RoBERTa-base's"),
    ),
    base=_base,
    published_csv=Path(__file__).parent / "published" / "inversion.csv",
    deviations=deviations(f"""
- claim: Section 5.1 says: "raw data is not exchanged by our proposed FEDBERT". The paper does not measure what the
  exchanged activations give away; this study does.
- received: For each batch the server receives the mask and the embedding layer's output at each position (P_ef in
  Algorithms 2 and 3): the normalised sum of word, position and type embeddings, which depends only on that position's
  token. It also sees the head's gradients, which are not attacked.
- attacker: The server is honest but curious. Nearest neighbour: it knows the embedding layer, which it initialises and
  then averages or hands on. Inverter: it knows only the word embeddings, and learns from {PUBLIC} public texts like the
  clients', here some of their training texts.
- dropout: Activations are without dropout, except in the row with dropout. In training a random tenth of their values
  (Table 4) is zero each time a text is sent, once per epoch.
- weights (lite, paper): We use a pre-trained encoder's embeddings. FedBERT starts with random ones and trains them.
- counted: The share of tokens recovered at their positions, and of texts with all tokens recovered. We leave out [CLS]
  and [SEP], which are known, and [UNK], which is not a word.
- sent: Activations are computed in fp32 on every machine, and rounded if sent as fp16. The attack itself sends nothing,
  hence 0 bytes.
- public-texts (demo): A tenth of the public texts: {PUBLIC // DEMO_SHARE}.
"""),
)
