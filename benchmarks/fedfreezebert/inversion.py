"""FedFreezeBERT, do embeddings hide the text: what a server that receives them can read off. No table of the paper.

make fedfreezebert-inversion SCALE=lite DATA_DIR=<folder with the authors' CSV files>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.fedfreezebert import setup
from benchmarks.overrides import ByScale
from benchmarks.publication import Deviation
from benchmarks.run_config import JSON, RunConfig, TrainConfig

TEXTS = Column(
    "arsarcasm-texts", "Held-out tweets", ("test/token_recovery", "test/text_recovery"), "test/token_recovery"
)
# A deeper encoder, whose last four layers are not all that it has.
ENGLISH_TEXTS = Column(
    "sst2-texts",
    "Held-out SST-2",
    TEXTS.scores,
    TEXTS.averaged,
    scales=setup.ENGLISH.scales,
    own=setup.ENGLISH.own,
)
PUBLIC, FEW = 2000, 200  # texts that the server has anyway
DEMO_SHARE = 10  # at the demo scale, a tenth of them
PASSES = 3  # over PUBLIC texts; fewer texts are seen more often, so that every inverter takes as many steps


def _knowing(texts: int) -> dict[str, JSON]:
    """Changes to a server that has so many public texts, and sees each as often as makes the same number of steps."""
    few = texts // DEMO_SHARE
    return {
        "options.public_texts": ByScale({"demo": few}, otherwise=texts),
        "training.local_epochs": ByScale({"demo": PASSES * PUBLIC // few}, otherwise=PASSES * PUBLIC // texts),
    }


def _inversion(id: str, name: str, head: str, note: str = "", public_texts: int = PUBLIC, sent: str = "fp32") -> Row:
    changes = {"algorithm": "inversion", "head": head, "options.sent": sent, **_knowing(public_texts)}
    return Row(id, name, changes, printed=False, note=note)


MAJORITY = Row(
    "token-majority",
    "Most frequent token",
    {"algorithm": "token_majority", **_knowing(PUBLIC)},
    printed=False,
    note="that of the public texts, at every position: what is recovered without features",
)
ROWS = (
    MAJORITY,
    _inversion("last", "Last layer, fp32", "average", "what C-FedFreezeBERT sends with the average aggregator"),
    _inversion("last-fp16", "Last layer, fp16", "average", "the same, sent as fp16", sent="fp16"),
    _inversion("last-four", "Last four layers, fp32", "psum", "what it sends with P-SUM and H-SUM"),
    _inversion("last-four-fp16", "Last four layers, fp16", "psum", "the same, sent as fp16", sent="fp16"),
    _inversion(
        "last-few",
        "Last layer, fp32, few public texts",
        "average",
        f"{FEW} public texts in place of {PUBLIC}",
        public_texts=FEW,
    ),
)


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """One attack on Table 3's clients, with their encoder and tweets, before what the row changes."""
    training = TrainConfig(
        rounds=1,
        learning_rate=1e-3,
        batch_size=16,
        max_length=32 if scale.id == "demo" else 128,
        precision="fp32",
    )
    return replace(setup.base_cell(row, column, scale, seed), training=training, validation_share=0.0)


BENCHMARK = Benchmark(
    id="fedfreezebert-inversion",
    paper=setup.PAPER,
    place="privacy",
    title="Held-out tweets that a server recovers from their embeddings; no table of the paper",
    rows=ROWS,
    columns=(TEXTS, ENGLISH_TEXTS),
    scales=setup.SCALES,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "inversion.csv",
    deviations=(
        Deviation(
            "claim",
            "The paper rests C-FedFreezeBERT's privacy on “having BERT contextual embeddings for a sentence, one "
            "cannot get back the original sentence” and does not measure it; this study does.",
        ),
        Deviation(
            "attacker",
            "A server that follows the protocol and is curious. It has what every participant has, the pre-trained "
            f"encoder, and {PUBLIC} public texts of the clients' kind, here some of their training tweets. On these it "
            "trains an inverter: layer norm on each hidden state, two linear layers, and a product with the encoder's "
            "word embeddings. It then reads features of tweets that it does not have, the official test set, as "
            "clients would send them.",
        ),
        Deviation(
            "counted",
            "Of all tokens, those recovered at their positions; of all tweets, those with every token right. [CLS] and "
            "[SEP] are known and [UNK] is no word: left out.",
        ),
        Deviation(
            "lower-bound",
            "What is recovered is a lower bound of what features give away: the inverter is small, reads every "
            "position alone and knows no language. Little recovered would not show that a text is safe.",
        ),
        Deviation(
            "ordinary",
            "The ordinary aggregator is left out: it sends [CLS] alone, no state for each token; of its privacy this "
            "says nothing.",
        ),
        Deviation(
            "sent",
            "Features are computed in fp32 on every machine, and rounded where they are sent as fp16. The attack "
            "itself sends nothing, hence 0 bytes.",
        ),
        Deviation(
            "public-texts", f"A tenth of the public texts: {PUBLIC // DEMO_SHARE} and {FEW // DEMO_SHARE}.", ("demo",)
        ),
        Deviation(
            "depth",
            "The small Arabic encoder has these four layers and no more, SST-2's has six; after twelve, less of the "
            "words may be left.",
            ("lite", "literal"),
        ),
        *(entry for entry in setup.DEVIATIONS if entry.id in ("english", "backbone")),
    ),
)
