"""FedSplitBERT on fresh seeds: the protocol's rows, each tuned with the same budget (docs/protocol.md).

python -m benchmarks campaign
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.corrections import without_training
from benchmarks.experiment import Column, Row, Scale
from benchmarks.fedsplitbert import paper, studies
from benchmarks.fedsplitbert.tables import TABLE3
from benchmarks.run_config import RunConfig

COMPARED = ("mrpc", "cola", "sst2", "qqp", "qnli", "stsb")
_LAYERS = tuple(
    paper.FEDSPLITBERT.changed({"options.critical_layer": c}, id=f"c{c}", name=f"c = {c}", printed=False)
    for c in (0, 6, 8, 10)  # of 12
)
_C6 = _LAYERS[1]
_FP16 = _C6.changed({"codec": "fp16"}, id="c6-fp16", name="c = 6, fp16", tuned_as="c6")
EVEN = replace(studies.EVEN, tuned_as="")
_C6_EVEN = replace(_C6, id="c6-iid", name="c = 6, IID labels", note=EVEN.note)
_REFERENCES = (paper.OVERALL_MAJORITY, paper.LOCAL_MAJORITY, paper.LINEAR)
# Unlike in Table IV, each fixed c has a separately tuned learning rate: one tuned with another c would favour that c.
_TUNED = (EVEN, *_LAYERS, _C6_EVEN)
_GRIDS = {row.id: {"training.learning_rate": paper.RATES} for row in _TUNED}
_SEARCH = replace(paper.MINIATURE, grids={**paper.MINIATURE.grids, **_GRIDS})


def _base(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """Table III's run, or one with IID labels; STS-B, which has scores, is split at random."""
    run = paper.base_cell(row, column, scale, seed)
    if row.id not in (EVEN.id, _C6_EVEN.id):
        return run
    if column.task == "stsb":
        return replace(run, partition={"scheme": "equal"})
    return replace(run, partition=studies.even_or_skewed(EVEN, column, scale, seed).partition)


BENCHMARK = replace(
    TABLE3,
    id="fedsplitbert-evidence",
    place="evidence",
    title="FedSplitBERT's comparisons on fresh seeds, by the protocol, over 3 clients; not in the paper",
    rows=(
        *(replace(row, printed=False) for row in (paper.FEDAVG, paper.FEDPROX)),
        *(EVEN, paper.FEDPER, paper.FEDAVG_FINETUNED, *_LAYERS, _FP16, _C6_EVEN, *_REFERENCES),
    ),
    columns=tuple(column for column in TABLE3.columns if column.task in COMPARED),
    scales=tuple(replace(scale, search=_SEARCH) for scale in paper.SCALES if scale.id in ("demo", "lite")),
    base=_base,
    tuned={},
    gate=TABLE3,
    without_training=tuple(
        each
        for row in (paper.FEDAVG, paper.FEDPER, paper.FEDAVG_FINETUNED, _C6, EVEN)
        for each in without_training(row)
    ),
)
