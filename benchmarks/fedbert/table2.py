"""FedBERT, Table 2: what one client and the server send in an epoch, and how long they compute.

make fedbert-table2 SCALE=lite DATA_DIR=<folder with WikiText, or a Wikipedia text>      # cells of fedbert-pretraining
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.costs import Costing
from benchmarks.fedbert import equations, pretraining
from benchmarks.fedbert.setup import (
    EMDAVG,
    EMDAVG_OWN,
    FEDAVG,
    HEAVG,
    HEAVG_OWN,
    PARALLEL_FEDAVG,
    SHARE,
    UPDATES_AN_EPOCH,
)
from benchmarks.publication import Deviation, View

BLOCKS = 256 * UPDATES_AN_EPOCH  # of WikiText-103, of 512 tokens

BENCHMARK = replace(
    pretraining.BENCHMARK,
    id="fedbert-table2",
    place="Table 2",
    title="Communication and computation of one client's epoch, federated and split, by closed form and measured",
    rows=(FEDAVG, SHARE, EMDAVG, HEAVG, PARALLEL_FEDAVG, EMDAVG_OWN, HEAVG_OWN),
    published_csv=Path(__file__).parent / "published" / "table2.csv",
    deviations=(
        Deviation(
            "rows",
            "Table 2 prints equations of FedAvg, parallel FSL (here EmdAvg, Head-Emd Avg and Parallel FedAvg) and "
            "sequential FSL (Head-Emd Share), and no number.",
        ),
        Deviation(
            "equations",
            "Its 4pL leaves out what is averaged or handed on, and masks; its 2|W| is of an epoch, while FedAvg sends "
            "it once in an averaging period of many epochs, and N times as much at the server.",
        ),
        *(entry for entry in pretraining.BENCHMARK.deviations if entry.id not in ("tuning", "masking", "checkpoint")),
    ),
    view=View(
        "split",
        {
            "baseline": FEDAVG.id,
            "blocks": BLOCKS,
            "encoders": {"RoBERTa-small": "roberta-small-fresh", "RoBERTa-base": "roberta-base-fresh"},
        },
    ),
    closed_forms={
        FEDAVG.id: equations.FEDAVG,
        SHARE.id: equations.SHARE,
        **dict.fromkeys((EMDAVG.id, EMDAVG_OWN.id), equations.EMDAVG),
        **dict.fromkeys((HEAVG.id, HEAVG_OWN.id, PARALLEL_FEDAVG.id), equations.HEAVG),
    },
    costing=Costing(FEDAVG.id, {}, Path(__file__).parents[1] / "performance" / "measured" / "epyc" / "split.json"),
    gate=pretraining.BENCHMARK,
)
