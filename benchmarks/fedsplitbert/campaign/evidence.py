"""FedSplitBERT on fresh seeds: the rows that the protocol compares, each tuned with the same budget (docs/protocol.md).

python -m benchmarks campaign
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.fedsplitbert import iid, setup, table3
from benchmarks.fedsplitbert.deviations import DEVIATIONS
from benchmarks.run_config import RunConfig
from benchmarks.sweeps.tuning import Grid

LAYERS = (0, 6, 8, 10)  # of 12
_RATE: Grid = {"training.learning_rate": setup.RATES}


def _layer(c: int) -> Row:
    return setup.FEDSPLITBERT.changed({"options.critical_layer": c}, id=f"c{c}", name=f"c = {c}", printed=False)


TASKS = ("mrpc", "cola", "sst2", "qqp", "qnli", "stsb")


def _cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """Table III's cell, or one with even labels; STS-B has scores instead of labels, which are split at random."""
    if column.task == "stsb" and row.id == EVEN.id:
        return replace(setup.base_cell(row, column, scale, seed), partition={"scheme": "equal"})
    return iid.cell_of(row, column, scale, seed)


EVEN = replace(iid.EVEN, tuned_as="")
C6_FP16 = _layer(6).changed({"codec": "fp16"}, id="c6-fp16", name="c = 6, fp16", tuned_as="c6")
# Unlike Table IV's rows, each fixed c has its own rate: one that was tuned together with another c favours that c.
GRIDS = {**setup.MINIATURE.grids, EVEN.id: _RATE, **{_layer(c).id: _RATE for c in LAYERS}}

BENCHMARK = Benchmark(
    id="fedsplitbert-evidence",
    paper=setup.PAPER,
    place="evidence",
    title="FedSplitBERT's comparisons on fresh seeds, by the protocol, over 3 clients; not a table of the paper",
    rows=(
        *(replace(row, printed=False) for row in (setup.FEDAVG, setup.FEDPROX)),
        EVEN,
        setup.FEDPER,
        setup.FEDAVG_FINETUNED,
        *map(_layer, LAYERS),
        C6_FP16,
    ),
    columns=tuple(column for column in setup.COLUMNS if column.task in TASKS),
    scales=tuple(
        replace(scale, search=replace(setup.MINIATURE, grids=GRIDS))
        for scale in setup.SCALES
        if scale.id in ("demo", "lite")
    ),
    base=_cell,
    published_csv=Path(__file__).parent.parent / "published" / "table3.csv",
    deviations=DEVIATIONS,
    gate=table3.BENCHMARK,
)
