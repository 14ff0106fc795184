"""The suite's tables: each method's communication cost, and its scores under two label skews."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark, another
from benchmarks.fedpeft import paper
from benchmarks.fedpeft.forms import FACTORS, FORMS, RANK
from benchmarks.fedpeft.paper import COLUMNS, DEVIATIONS, METHODS, REFERENCES
from benchmarks.publication import View

SCORES = Benchmark(
    id="fedpeft-scores",
    paper=paper.PAPER,
    place="scores",
    title="Accuracy of federated parameter-efficient fine-tuning over 3 clients with Dirichlet label skew (α = 0.5)",
    rows=(*REFERENCES, *METHODS),
    columns=COLUMNS,
    scales=paper.SCALES,
    base=paper.drawn_shares,
    published_csv=Path(__file__).parent / "published" / "scores.csv",
    deviations=DEVIATIONS,
    average="round",
    view=View("scores", {"at": "late"}),
    without_training=paper.CORRECTED,
)
ONE_LABEL = another(
    SCORES,
    "onelabel",
    "one label",
    "Accuracy of federated parameter-efficient fine-tuning over 3 clients with one label each",
    base=paper.base_over(paper.CLIENTS, paper.one_label(paper.CLIENTS)),
    gate=SCORES,
    swept_as=SCORES.id,
    without_training=paper.CORRECTED,
)
# Encoders for which bytes are derived: name, layers.
ENCODERS = (("all-MiniLM-L6-v2", 6), ("bert-base-uncased", 12), ("roberta-large-fresh", 24))
BYTES = another(
    SCORES,
    "bytes",
    "bytes",
    "What one client sends and receives in a round: closed forms, shapes and ledgers",
    rows=METHODS,
    columns=COLUMNS[:1],
    scales=tuple(replace(scale, search=None) for scale in paper.SCALES),
    deviations=tuple(entry for entry in DEVIATIONS if entry.id in ("adapters", "rank", "codecs", "fed-sb")),
    also="""
- head: The head h (pooler and classifier, or the classifier alone at the lite scale) is counted if it is sent.
- bitfit: BitFit trains L(7d + f) + d biases of the encoder. The bias of the pooler belongs to the head.
- codec-forms: Σ is over the tensors v that are sent, the head's included; QSGD's norms and top-k's places are counted.
- rounds: Two rounds of one epoch on a few examples, which show the bytes; no scores.
""",
    view=View(
        "sent",
        {
            "forms": FORMS,
            "encoders": ENCODERS,
            "baselines": ("fedavg", "fedit"),
            "rank": RANK,
            "factors": FACTORS,
            "factor_encoders": (ENCODERS[1], ("roberta-base-fresh", 12), ENCODERS[2]),
        },
    ),
    average="",
    base=paper.two_rounds,
)

BENCHMARKS = (BYTES, SCORES, ONE_LABEL)
