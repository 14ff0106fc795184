"""FedBERT's tables and figures, and the pre-training from which its downstream runs start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.costs import ClosedForm, Parts, SplitTerms
from benchmarks.experiment import Benchmark, Row, Stage, another, with_lite
from benchmarks.fedbert import finetuning, paper
from benchmarks.fedbert.paper import BEFORE, EMDAVG, FEDAVG, HEAVG, PARALLEL_FEDAVG, UNIGRAM, WIKITEXT
from benchmarks.publication import View, Yardstick, deviations


def _without_parallel_fedavg(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows, with Parallel FedAvg marked as unpublished."""
    return tuple(replace(row, printed=False) if row.id == PARALLEL_FEDAVG.id else row for row in rows)


# ---- pre-training ------------------------------------------------------------------------------------------------

PRETRAINING = Benchmark(
    id="fedbert-pretraining",
    paper=paper.PAPER,
    place="pre-training",
    title="Perplexity of masked tokens of held-out text after pre-training of RoBERTa; not in the paper",
    rows=(
        *(BEFORE, UNIGRAM),
        *(replace(row, printed=False) for row in (*paper.MODES, *paper.UNPRINTED, *paper.CLIENTS, *paper.PERIODS)),
    ),
    columns=(WIKITEXT,),
    scales=with_lite(paper.SMALL, search=paper.miniature(WIKITEXT.task, "lite")),
    base=paper.base_cell,
    published_csv=Path(__file__).parent / "published" / "pretraining.csv",
    deviations=paper.DEVIATIONS,
    keeps_weights=True,
    average="",
    yardstick=Yardstick(
        row="central",
        name="centralised pre-training",
        rivals={UNIGRAM.id: "unigram"},
        learns="centralised pre-training learns more than token frequencies",
        fails="centralised pre-training learns no more than token frequencies",
    ),
)


# Table 2's equations, completed by averaging and hand-overs, which it leaves out.


def _split(t: SplitTerms, parameters: float) -> Parts:
    """4pL per epoch and client, for activations and gradients in both directions; plus the given parameters."""
    crossing = 2 * t.N * t.T * t.pL
    return {"activations": crossing, "gradients": crossing, "parameters": parameters}


# Table 2's equation is for a client's epoch, the second form for a whole run.
_WHOLE = ClosedForm("2|W|", "2·rounds·N·|W|", lambda t: {"parameters": 2 * t.rounds * t.N * t.W})
# Embeddings and head go up after each client's turn, and down to all clients but the first.
_SEQUENTIAL = ClosedForm("4pL", "4·N·T·pL + (2N − 1)·(|E| + |H|)", lambda t: _split(t, (2 * t.N - 1) * (t.E + t.H)))
# Averaged parameters go down and up in every round.
_EMBEDDINGS = ClosedForm("4pL", "4·N·T·pL + 2·rounds·N·|E|", lambda t: _split(t, 2 * t.rounds * t.N * t.E))
_WITH_HEAD = ClosedForm(
    "4pL", "4·N·T·pL + 2·rounds·N·(|E| + |H|)", lambda t: _split(t, 2 * t.rounds * t.N * (t.E + t.H))
)

TABLE2 = another(
    PRETRAINING,
    "table2",
    "Table 2",
    "Communication and computation of one client's epoch, federated and split, by closed form and measured",
    rows=(FEDAVG, paper.SHARE, EMDAVG, HEAVG, PARALLEL_FEDAVG, paper.EMDAVG_PER_CLIENT, paper.HEAVG_PER_CLIENT),
    deviations=(
        *deviations("""
- rows: Table 2 has equations for FedAvg, parallel FSL (here EmdAvg, Head-Emd Avg and Parallel FedAvg) and sequential
  FSL (Head-Emd Share), but no numbers.
- equations: 4pL leaves out the averaged or handed-on parameters, and masks. 2|W| is given per epoch, but FedAvg sends
  it once per averaging period of many epochs, and N times as much at the server.
"""),
        *(entry for entry in PRETRAINING.deviations if entry.id not in ("tuning", "masking", "checkpoint")),
    ),
    view=View("benchmarks.fedbert.split_costs.SplitCosts"),
    closed_forms={
        FEDAVG.id: _WHOLE,
        paper.SHARE.id: _SEQUENTIAL,
        **dict.fromkeys((EMDAVG.id, paper.EMDAVG_PER_CLIENT.id), _EMBEDDINGS),
        **dict.fromkeys((HEAVG.id, paper.HEAVG_PER_CLIENT.id, PARALLEL_FEDAVG.id), _WITH_HEAD),
    },
    gate=PRETRAINING,
)

TABLE8 = another(
    PRETRAINING,
    "table8",
    "Table 8",
    "Perplexity after causal pre-training in six modes (in the paper GPT-2, 5 clients)",
    rows=(*(BEFORE, UNIGRAM), *_without_parallel_fedavg(paper.MODES), *paper.UNPRINTED),
    columns=(paper.CAUSAL,),
    scales=with_lite(paper.GPT2, search=paper.miniature(paper.CAUSAL.task, "lite-causal")),
    also="""
- tied: GPT-2's head is its word embeddings, without further parameters. So EmdAvg and Head-Emd Avg are the same
  algorithm here, also with own transformers.
- perplexity (lite, paper): Per token of GPT-2's BPE, for each block alone from its first token. The paper does not say
  whether it is per word or per token, nor how much context precedes a block.
""",
    keeps_weights=False,
)

# ---- fine-tuning -------------------------------------------------------------------------------------------------

TABLE6 = Benchmark(
    id="fedbert-table6",
    paper=paper.PAPER,
    place="Table 6",
    title="GLUE's development sets after pre-training in seven modes (in the paper RoBERTa-small, 10 clients)",
    rows=(*finetuning.REFERENCES, *finetuning.MODES, *finetuning.UNPRINTED),
    columns=finetuning.COLUMNS,
    scales=paper.SMALL,
    base=finetuning.base_cell,
    published_csv=Path(__file__).parent / "published" / "table6.csv",
    deviations=finetuning.DEVIATIONS,
    average="",
    yardstick=finetuning.GAIN,
    stage=Stage(PRETRAINING, {column.task: WIKITEXT.task for column in finetuning.COLUMNS}, seed=0),
)
TABLE7 = another(
    TABLE6,
    "table7",
    "Table 7",
    "GLUE's development sets after pre-training in six modes (in the paper RoBERTa-base, 10 clients)",
    rows=_without_parallel_fedavg(TABLE6.rows),
    scales=paper.BASE,
    also="""
- size (demo, lite): One small encoder replaces both sizes, so the runs are those of Table 6.
""",
)
_FIVE, _TWENTY = finetuning.CLIENTS[::2], finetuning.CLIENTS[1::2]
_AVERAGED = (finetuning.FEDAVG, finetuning.EMDAVG)
FIGURE8 = another(
    TABLE6,
    "figure8",
    "Figure 8",
    "FedAvg and EmdAvg with fewer and more clients (in the paper RoBERTa-small with 5, 10 and 20)",
    rows=(finetuning.CENTRAL, *(row for rows in zip(_FIVE, _AVERAGED, _TWENTY, strict=True) for row in rows)),
    also="""
- figure: The text has no numbers for this figure, and names no RoBERTa size; we use the small one.
- clients (demo, lite): 2, 4 and 8 clients replace 5, 10 and 20.
""",
    gate=TABLE6,
)
FIGURE9 = another(
    TABLE6,
    "figure9",
    "Figure 9",
    "FedAvg and EmdAvg with two averaging periods (in the paper RoBERTa-small with 50 and 100 epochs)",
    rows=tuple(row for rows in zip(_AVERAGED, finetuning.PERIODS, strict=True) for row in rows),
    also="""
- figure: The published values are section 5.4's six numbers. FedAvg's on RTE and STS-B equal Table 6's for Parallel
  FedAvg; EmdAvg's on RTE is in no table.
- period (demo): Averaged after every epoch, and every 2 of 4 epochs.
- period (lite): Averaged every 3, and every 6, of 12 epochs.
""",
    gate=TABLE6,
)

BENCHMARKS = (PRETRAINING, TABLE2, TABLE6, TABLE7, TABLE8, FIGURE8, FIGURE9)
