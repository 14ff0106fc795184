"""The label-prior study's rows with an encoder of BERT-base's size, each tuned with the same budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.corrections import STRENGTH, without_training
from benchmarks.experiment import with_lite
from benchmarks.fedsplitbert import paper
from benchmarks.fedsplitbert.campaign.evidence import BENCHMARK as EVIDENCE

ENCODER = "all-mpnet-base-v2"
COMPARED = ("sst2", "qnli")
_C6 = EVIDENCE.row("c6")
_CHOSEN = Path(__file__).parents[2] / "campaign" / "results" / "sweeps" / "fedsplitbert-base-size-lite.json"
BENCHMARK = replace(
    EVIDENCE,
    id="fedsplitbert-base-size",
    place="base size",
    title="FedAvg, c = 6 and fine-tuning on an encoder of BERT-base's size, over 3 clients; not in the paper",
    rows=(*paper.REFERENCES[:-1], EVIDENCE.row("fedavg"), _C6, paper.FEDAVG_FINETUNED),
    columns=tuple(column for column in EVIDENCE.columns if column.task in COMPARED),
    scales=with_lite(
        EVIDENCE.scales,
        backbone=ENCODER,
        depth=12,
        material=f"real data, {ENCODER} (12 layers, 109M parameters)",
        elsewhere=None,  # its scores are MiniLM's
        search=replace(EVIDENCE.search(EVIDENCE.scale("lite")), chosen=_CHOSEN),
    ),
    gate=None,  # its own centralised run
    without_training=tuple(each for row in (paper.FEDAVG, _C6) for each in without_training(row, STRENGTH)),
)
