"""Studies of FedSplitBERT that the paper lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.corrections import STRENGTH, THRESHOLD, without_training
from benchmarks.experiment import Column, Row, Scale
from benchmarks.fedsplitbert import paper
from benchmarks.fedsplitbert.paper import COLUMNS, DEVIATIONS, FEDAVG, FEDSPLITBERT, LOCAL_MAJORITY
from benchmarks.fedsplitbert.tables import TABLE3, with_one_score
from benchmarks.publication import View, deviations
from benchmarks.run_config import RunConfig

_STUDY = replace(TABLE3, tuned={}, gate=TABLE3, without_training=())

# ---- FedAvg's loss from skewed labels ----------------------------------------------------------------------------

EVEN = replace(
    FEDAVG,
    id="fedavg-iid",
    tuned_as="fedavg",
    name="FedAvg, IID labels",
    printed=False,
    note="every client has the mean of the three clients' label distributions, so the same number of examples of each "
    "label is used",
)


def even_or_skewed(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """Table III's run; in the IID row all clients have the mean label distribution, and thus equal sizes."""
    run = paper.base_cell(row, column, scale, seed)
    if row.id != EVEN.id:
        return run
    shares = paper.LABEL_SHARES_3[column.task]
    mean = [sum(label) / len(shares) for label in zip(*shares, strict=True)]
    return replace(run, partition={**run.partition, "shares": [mean] * len(shares)})


IID = replace(
    _STUDY,
    id="fedsplitbert-iid",
    place="heterogeneity",
    title="FedAvg over 3 clients with skewed and with IID labels; not in the paper",
    rows=(replace(FEDAVG, printed=False), EVEN),
    # Only accuracy: its mean over clients with equal sizes is that over all examples, unlike F1 and correlations.
    columns=with_one_score(
        column.task for column in COLUMNS if "test/accuracy" in column.scores and column.task != "wnli"
    ),
    without_training=without_training(EVEN, STRENGTH, THRESHOLD),
    base=even_or_skewed,
    deviations=(
        *DEVIATIONS,
        *deviations("""
- even: With IID labels each client has the mean of Table I's label distributions. Both rows have equally many examples
  per label, and equal client sizes.
"""),
    ),
)

# ---- how much of personalisation's gain a client's label distribution explains (docs/label-prior.md) --------------

# For the first page, which has no notes.
GLOSS = "FedAvg with a label-prior correction (logit adjustment, Menon et al. 2021)"

_ACCURATE: Mapping[str, Any] = {"scores": ("test/accuracy",), "averaged": "test/accuracy"}  # from stored predictions
_PERSONALISED = (paper.FEDAVG_FINETUNED, paper.FEDPER, paper.LOCAL_ONLY)
PERSONALISATION = replace(
    _STUDY,
    id="fedsplitbert-personalisation",
    place="personalisation",
    title="What personalised methods gain over FedAvg, and over FedAvg with a label-prior correction, over 3 clients; "
    "not in the paper",
    rows=tuple(
        replace(row, printed=False)
        for row in (FEDAVG, *_PERSONALISED, FEDSPLITBERT, paper.FEDSPLITBERT_QAT, LOCAL_MAJORITY)
    ),
    columns=tuple(
        replace(column, extra=(), **(_ACCURATE if column.task == "cola" else {}))
        for column in with_one_score(column.task for column in COLUMNS)
    ),
    view=View(
        "gains",
        {
            "reference": FEDAVG.id,
            "part": f"{FEDAVG.id}-{STRENGTH}",
            "headline": FEDSPLITBERT.id,
            "is": GLOSS,
            "kind": "exploratory (docs/label-prior.md has the confirmatory result)",
        },
    ),
    without_training=(
        *paper.FEDAVG_CORRECTED,
        *(each for row in (*_PERSONALISED[:2], FEDSPLITBERT) for each in without_training(row, STRENGTH)),
    ),
)

# ---- what a mean over clients and a number of rounds hide --------------------------------------------------------

_METHODS = (
    *(FEDAVG, paper.FEDPROX, paper.FEDADAM, paper.FEDAVG_FP16, FEDSPLITBERT, paper.FEDSPLITBERT_QAT),
    *(paper.FEDPER, paper.FEDAVG_FINETUNED, paper.LOCAL_ONLY),
)
CLIENTS = replace(
    _STUDY,
    id="fedsplitbert-clients",
    place="clients",
    title="The worst client, the spread over clients and the mean over 3 clients; not in the paper",
    rows=tuple(replace(row, printed=False) for row in (*_METHODS, LOCAL_MAJORITY)),
    columns=PERSONALISATION.columns,
    view=View("clients", {"baseline": FEDAVG.id}),
    without_training=paper.FEDAVG_CORRECTED,
)
ORDERS = replace(
    CLIENTS,
    id="fedsplitbert-orders",
    place="rankings by five criteria",
    title="Methods ranked by mean, worst client, score within 100 MB, and time on 3G and in a data centre, over 3 "
    "clients; not in the paper",
    rows=tuple(replace(row, printed=False) for row in _METHODS),
    columns=tuple(  # docs/protocol.md's primary scores, which records have for every round
        replace(
            column, scores=(column.primary or column.averaged,), averaged=column.primary or column.averaged, extra=()
        )
        for column in COLUMNS
    ),
    view=View("orders", {"megabytes": 100, "front": (10, 30, 100, 300, 1000), "networks": ("3g", "datacentre")}),
    without_training=(),
)

# ---- what the paper leaves open: embeddings and local epochs -----------------------------------------------------

LOCAL_EPOCHS = 3  # per round: the minimum of the "local fine-tuning epochs ranging from 3 to 9", read literally


def _variants(row: Row) -> tuple[Row, ...]:
    return (
        replace(row, name=f"{row.name}, embeddings frozen", printed=False),
        *(
            row.changed(changes, id=f"{row.id}-{id}", name=f"{row.name}, {name}", printed=False, tuned_as=row.id)
            for id, name, changes in (
                ("global", "embeddings exchanged", {"options.embeddings": "global"}),
                ("epochs", f"{LOCAL_EPOCHS} local epochs", {"training.local_epochs": LOCAL_EPOCHS}),
            )
        ),
    )


SENSITIVITY = replace(
    _STUDY,
    id="fedsplitbert-sensitivity",
    place="sensitivity",
    title="Frozen against trained and exchanged embeddings, one local epoch against three, over 3 clients; not in the "
    "paper",
    rows=(LOCAL_MAJORITY, *_variants(FEDAVG), *_variants(FEDSPLITBERT)),
    columns=tuple(column for column in COLUMNS if column.task in ("mrpc", "cola", "rte")),
)

BENCHMARKS = (IID, PERSONALISATION, CLIENTS, ORDERS, SENSITIVITY)
