"""FedFreezeBERT, Table 4: communication cost and gain, by the paper's equations and as bytes cross the wire.

make fedfreezebert-table4 SCALE=lite DATA_DIR=<folder with the authors' CSV files>      # Table 3's cells, and two more
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.experiment import Benchmark, Row
from benchmarks.fedfreezebert import equations
from benchmarks.fedfreezebert.setup import DEVIATIONS, HEADS, METHODS, PAPER, SCALES, SENTIMENT, base_cell, with_head
from benchmarks.publication import Deviation, View
from benchmarks.run_config import JSON

_METHOD = {row.id: row for row in METHODS}
_COSTED = ("psum", "hsum")  # whose W_s the paper's parameters give: four layers and four classifiers

BASELINES = tuple(with_head(_METHOD[name], "ordinary") for name in ("fedavg", "fedprox", "fedsplitbert"))
SPLIT_FP16 = BASELINES[2].changed(
    {"codec": "fp16"},
    id="fedsplitbert-ordinary-fp16",
    name="FedSplitBERT + fp16",
    printed=False,
    note="in half precision, as its authors offer; equation 3 halved. A cell that Table 3 does not have.",
)
DECENTRALISED, CENTRALISED = (
    tuple(replace(with_head(method, head), printed=head in _COSTED) for head in HEADS)
    for method in (replace(_METHOD["d-fedavg"], name="D-FedFreezeBERT"), _METHOD["c"])
)


def _variant(name: str, note: str, changes: Mapping[str, JSON]) -> Row:
    """C-FedFreezeBERT with P-SUM, sent in another way."""
    row = with_head(_METHOD["c"], "psum")
    return row.changed(changes, id=f"{row.id}-{name}", name=f"{row.name}, {name}", printed=False, note=note)


BENCHMARK = Benchmark(
    id="fedfreezebert-table4",
    paper=PAPER,
    place="Table 4",
    title="Communication cost and gain over FedAvg and FedSplitBERT, 5 clients",
    rows=(
        *BASELINES,
        SPLIT_FP16,
        *DECENTRALISED,
        *CENTRALISED,
        _variant(
            "trimmed",
            "each text's own tokens alone go up, in place of n_t; a cell that Table 3 does not have.",
            {"options.features": "trimmed"},
        ),
        _variant(
            "fp16",
            "features and W_s cross in half precision, and the server trains on such features; a cell that Table 3 "
            "does not have.",
            {"codec": "fp16"},
        ),
    ),
    columns=(SENTIMENT,),
    scales=SCALES,
    base=base_cell,
    published_csv=Path(__file__).parent / "published" / "table4.csv",
    deviations=(
        Deviation(
            "print",
            "The printed table was not at hand. Its parameters and the gains over FedAvg and FedSplitBERT stand in the "
            "text; costs follow from them by the equations.",
        ),
        Deviation(
            "one-layer",
            "Equation 2 counts one layer's embeddings. P-SUM and H-SUM read those of the last four, so four are sent; "
            "the average aggregator reads one, the ordinary one its [CLS] alone.",
        ),
        Deviation(
            "masks",
            "Equation 2 leaves out what else the server needs: labels (8 bytes a text) and masks (1 byte a token; of "
            "trimmed texts 4 bytes a text).",
        ),
        Deviation(
            "units",
            "Equation 2 adds features in GB of 2^30 bytes to weights in GB of 1024 · 10^6: a mixture, which the "
            "printed gains follow. SizeOf(BE) is printed as 308 MB.",
        ),
        Deviation(
            "pooler",
            "SizeOf(BERT) is the model for sequence classification, with BERT's pooler. The ordinary aggregator has "
            "none, so FedAvg and FedProx send a pooler less than equation 5 says, 2·T·n_c times.",
        ),
        Deviation("server", "D-FedFreezeBERT with FedAvg at the server: FedProx sends the same bytes."),
        *(entry for entry in DEVIATIONS if entry.id in ("layers", "backbone")),
    ),
    view=View("costs", {"baselines": ("fedavg-ordinary", "fedsplitbert-ordinary")}),
    closed_forms={
        "fedavg-ordinary": equations.FEDAVG,
        "fedprox-ordinary": equations.FEDAVG,
        "fedsplitbert-ordinary": equations.FEDSPLITBERT,
        SPLIT_FP16.id: equations.FEDSPLITBERT_FP16,
        **{row.id: equations.D_FEDFREEZEBERT for row in DECENTRALISED},
        **{row.id: equations.C_FEDFREEZEBERT for row in CENTRALISED},
    },
)
