"""FedBFPT's tables and figures, and the further pre-training from which its downstream runs start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.costs import ClientCosts, Costing, WorkForm
from benchmarks.experiment import Benchmark, Column, Row, Scale, Stage, another, run_of, with_lite
from benchmarks.fedbfpt import finetuning, paper
from benchmarks.fedbfpt.finetuning import ABLATIONS, DEPTHS, FEDBFPT, JNLPBA, MEDICINE, SCIERC
from benchmarks.fedbfpt.paper import BEFORE, BERT_C, BERT_FL, CORPORA, DEVIATIONS, SCALES, SMALLER
from benchmarks.publication import LEARNING, View, Yardstick, deviations
from benchmarks.run_config import RunConfig, TrainConfig

# ---- a client's costs: the paper's formula of computation (section 4.1) -------------------------------------------


def _work(costs: ClientCosts, backward: float) -> float:
    return (costs.forward + backward) * costs.length**2 * costs.width**2


COSTING = Costing(
    baseline="bert-fl",
    forms={
        "mb trained": WorkForm(
            "(mf + mb)·S²·H² of section 4.1 without the output layer: mf layers run, the weights of mb are trained "
            "(1 for FEDBFPT)",
            lambda costs: _work(costs, costs.trained),
        ),
        "mb crossed": WorkForm(
            "the same with mb the layers that gradients go through: the trained one and all above it, mean over rounds",
            lambda costs: _work(costs, costs.backward),
        ),
    },
    timed=Path(__file__).parents[1] / "performance" / "measured" / "epyc" / "fedbfpt.json",
)

# ---- further pre-training ----------------------------------------------------------------------------------------

PRETRAINING = Benchmark(
    id="fedbfpt-pretraining",
    paper=paper.PAPER,
    place="further pre-training",
    title="Perplexity of held-out passages after further pre-training, 6 clients, three domains; not in the paper",
    rows=(BEFORE, *(replace(row, printed=False) for row in paper.METHODS)),
    columns=CORPORA,
    scales=with_lite(SCALES, search=paper.MINIATURE),
    base=paper.base_cell,
    published_csv=Path(__file__).parent / "published" / "pretraining.csv",
    deviations=DEVIATIONS,
    keeps_weights=True,
    average="",
    yardstick=Yardstick(
        row=BERT_C.id,
        name=BERT_C.name,
        rivals={BEFORE.id: "before it"},
        learns="centralised further pre-training lowers perplexity",
        fails="centralised further pre-training does not lower perplexity here",
    ),
)

CLIENTS = replace(
    PRETRAINING,
    id="fedbfpt-clients",
    place="clients",
    title="Perplexity of the worst client and spread over 6 clients after further pre-training; not in the paper",
    view=View("clients", {"baseline": BERT_FL.id}),
)
TABLE2 = another(
    PRETRAINING,
    "table2",
    "Table 2",
    "Computation and communication of one client in further pre-training, in percent of BERT-FL's",
    rows=(BERT_C, BERT_FL, *SMALLER, paper.FEDBFPT),
    columns=tuple(column for column in CORPORA if column.task == "corpus-computer-science"),
    deviations=(
        *deviations("""
- seconds: The paper gives computation as seconds per epoch on the authors' GPU. We show three counts of the ratio to
  BERT-FL next to the published one, and seconds from one run of all rows on another machine.
- bert: The row BERT, which is not further pre-trained, has BERT-FL's 1237.37 s in the paper and no communication. It
  is left out.
- size: The published MB are MiB of the torch.save file of the parameters that a client sends, with the tied decoder
  once. For DistilBERT this gives 255.56, not 255.55.
- corpus: The text does not say which domain was timed ("the S2ORC domain subset"). We use computer science, as in
  Tables 4 and 5, which have the same costs, as have the appendix's tables for the other domains. Shapes are the same.
"""),
        *(entry for entry in DEVIATIONS if entry.id not in ("tuning", "held-out", "masking")),
    ),
    view=View("benchmarks.fedbfpt.client_costs.Resources"),
    costing=COSTING,
    gate=PRETRAINING,
)

_PASSAGES_OF = {f"{column.task}-sentences": column for column in CORPORA}


def _of_sentences(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """The run on whole passages with its chosen settings, but on their sentences."""
    searched = replace(scale, search=PRETRAINING.scale(scale.id).search)
    return replace(PRETRAINING.cell(row, _PASSAGES_OF[column.task], searched, seed), task=column.task)


SENTENCES = replace(  # as the authors' code has them
    PRETRAINING,
    id="fedbfpt-sentences",
    place="sentences",
    title="Perplexity of held-out sentences after further pre-training, 6 clients, three domains; not in the paper",
    rows=tuple(PRETRAINING.row(row.id) for row in (BEFORE, BERT_C, BERT_FL, *SMALLER, paper.FEDBFPT)),
    columns=tuple(
        replace(column, task=task, name=f"{column.name}, sentences") for task, column in _PASSAGES_OF.items()
    ),
    scales=SCALES,
    base=_of_sentences,
    deviations=(
        *(entry for entry in DEVIATIONS if entry.id not in ("blocks", "tuning")),
        *deviations("""
- blocks (lite, paper): Passages are split into sentences by punctuation, each cut at 128 tokens, as in the authors'
  code, whose splitting rule is unknown. Perplexities are not comparable with those of whole passages, which have
  more context.
- tuning (lite): Learning rates are those chosen for whole passages of the same domain.
"""),
    ),
)

APPENDIX5 = another(
    PRETRAINING,
    "appendix5",
    "Appendix Table 5",
    "Sizes of uniform and skewed datasets of 6 clients, requested against obtained",
    rows=(  # no training; their records hold the clients' sizes
        BEFORE.changed({}, id="uniform", name="Uniform", printed=True, note=""),
        BEFORE.changed(paper.SKEWED_PARTITION, id="skewed", name="Skewed", printed=True, note=""),
    ),
    scales=SCALES,
    deviations=tuple(entry for entry in DEVIATIONS if entry.id == "corpora"),
    also="""
- unit: The paper gives MB of text per client, but not the skew's parameters. Clients get passages in proportion to its
  sizes. We compare shares of passages with shares of MB.
""",
    view=View("benchmarks.fedbfpt.sizes.SizeShares"),
    yardstick=LEARNING,
    keeps_weights=False,
)

# ---- the lite scale's masked language model ----------------------------------------------------------------------

_GENERAL_SHARE, _GENERAL_SCORED = 0.1, 0.02  # share of Wikipedia's passages; held-out share of these


def _general(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """Centralised masked language modelling, one epoch per round, one optimiser and schedule throughout."""
    training = TrainConfig(3, 3e-4, batch_size=32, schedule="linear", warmup=0.1, clip_norm=1.0, decayed="matrices")
    training = replace(training, optimizer="kept")  # for all rounds
    if scale.id == "demo":
        training = replace(training, learning_rate=5e-3, batch_size=16, max_length=32, precision="fp32")
        return run_of(row, column, scale, seed, training, test_share=0.2, head="masked-lm")
    partition = {"scheme": "equal", "share": _GENERAL_SHARE}
    return run_of(row, column, scale, seed, training, partition=partition, test_share=_GENERAL_SCORED, head="masked-lm")


# Runs on the backbone `minilm-masked` start from this one.
GENERAL = another(
    APPENDIX5,
    "general",
    "encoder",
    "Centralised masked language modelling of general text: the lite scale's encoder; not in the paper",
    rows=(Row("general", "Pre-training", {"algorithm": "central", **paper.GLOBAL}, printed=False),),
    columns=(Column("corpus-wikipedia", "Wikipedia", ("test/perplexity",), "test/perplexity"),),
    scales=with_lite(
        SCALES,
        ids=("demo", "lite"),
        backbone="all-MiniLM-L6-v2",
        material="real data, all-MiniLM-L6-v2 with a fresh masked-LM head",
    ),
    base=_general,
    deviations=deviations(f"""
- corpus (lite): A random {100 * _GENERAL_SHARE:.0f} % of the available Wikipedia passages, which are outside the three
  domains. {100 * _GENERAL_SCORED:.0f} % of them are scored.
- recipe: 15 % of a batch's tokens are masked (80 % as [MASK], 10 % as another token). No next sentence. AdamW with
  linear warm-up and decay, gradients clipped to norm 1. Embeddings and layers are trained too.
"""),
    view=View("curves", {"quantity": "score"}),
    keeps_weights=True,
)

# ---- downstream scores -------------------------------------------------------------------------------------------

TABLE3 = Benchmark(
    id="fedbfpt-table3",
    paper=paper.PAPER,
    place="Table 3",
    title="F1 or accuracy on downstream tasks after further pre-training with 6 clients",
    rows=(finetuning.BERT, finetuning.BERT_C, finetuning.BERT_FL, *finetuning.SMALLER, FEDBFPT),
    columns=finetuning.COLUMNS,
    scales=SCALES,
    base=finetuning.base_cell,
    published_csv=Path(__file__).parent / "published" / "table3.csv",
    deviations=finetuning.DEVIATIONS,
    average="",
    yardstick=finetuning.GAIN,
    # All fine-tuning seeds of a domain start from one run of further pre-training.
    stage=Stage(PRETRAINING, finetuning.CORPUS_OF, seed=0),
)
FIGURE4 = another(
    TABLE3,
    "figure4",
    "Figure 4",
    "F1 or accuracy against epochs of fine-tuning",
    also="""
- figure: The text has no numbers for these curves and does not name them. We show Table 3's rows by epoch.
""",
    view=View("curves", {"quantity": "score"}),
    gate=TABLE3,
)
TABLE6 = another(
    TABLE3,
    "table6",
    "Table 6",
    "FEDBFPT with uniform and with skewed datasets",
    rows=(finetuning.UNIFORM, finetuning.SKEWED),
    gate=TABLE3,
)
# The paper has FEDBFPT\SP only for computer science.
_WITHOUT_SP = tuple(replace(row, printed=row.printed and row.id != "fedbfpt-no-sp") for row in ABLATIONS)
_ABLATION = "Ablation study on {}: all layers, and without each part of PL-SDL"
_DEPTH = "Local models of 4, 6 and 8 of 12 layers, on {}"
ABLATIONS_AND_DEPTHS = tuple(
    another(
        TABLE3,
        name,
        place,
        title.format(columns[0].name),
        rows=rows,
        columns=columns,
        view=View("benchmarks.fedbfpt.client_costs.ScoresAndCosts"),
        costing=COSTING,
        gate=TABLE3,
    )
    for name, place, title, rows, columns in (
        ("table4", "Table 4", _ABLATION, (*ABLATIONS, FEDBFPT), (SCIERC,)),
        ("table5", "Table 5", _DEPTH, DEPTHS, (SCIERC,)),
        ("appendix1", "Appendix Table 1", _ABLATION, (*_WITHOUT_SP, FEDBFPT), (JNLPBA,)),
        ("appendix2", "Appendix Table 2", _ABLATION, (*_WITHOUT_SP, FEDBFPT), MEDICINE),
        ("appendix3", "Appendix Table 3", _DEPTH, DEPTHS, (JNLPBA,)),
        ("appendix4", "Appendix Table 4", _DEPTH, DEPTHS, MEDICINE),
    )
)

BENCHMARKS = (
    PRETRAINING,
    CLIENTS,
    SENTENCES,
    GENERAL,
    TABLE2,
    TABLE3,
    TABLE6,
    FIGURE4,
    *ABLATIONS_AND_DEPTHS,
    APPENDIX5,
)
