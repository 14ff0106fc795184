"""FedBERT's pre-training (section 4): clients, corpus, training modes, budgets, scales, differences from the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.encoders.backbones import MINI_VOCAB_SIZE
from benchmarks.experiment import Column, Row, Scale, run_of
from benchmarks.overrides import ByScale
from benchmarks.publication import Paper, deviations
from benchmarks.run_config import JSON, RunConfig, TrainConfig
from benchmarks.sweeps.tuning import Search

PAPER = Paper(
    id="fedbert",
    name="FedBERT",
    citation="Yuanyishu Tian, Yao Wan, Lingjuan Lyu, Dezhong Yao, Hai Jin, Lichao Sun: FEDBERT: When Federated "
    "Learning Meets Pre-Training. ACM Transactions on Intelligent Systems and Technology, 2022",
    bytes_convention="both directions of a round, summed over clients, GB = 10^9 bytes; Table 2 counts one client's "
    "epoch, as the paper does",
    directions=("up", "down"),
)


def scales_of(demo: str, lite: str, lite_name: str, paper: str, paper_name: str) -> tuple[Scale, ...]:
    """The three scales of a table, by its encoders' ids and names."""
    generated = "generated data, random 4-layer encoder; shows the machinery only"
    small = (
        f"real text, {lite_name} of 4 layers, randomly initialised, pre-trained on under 2 MB"  # named in tuned/*.json
    )
    return (
        Scale("demo", demo, 4, "generated", generated),
        Scale("lite", lite, 4, "english", small),
        Scale(
            "paper", paper, 12, "english", f"real text, {paper_name}, randomly initialised, pre-trained on WikiText-103"
        ),
    )


SMALL = scales_of("tiny", "roberta-mini-fresh", "a RoBERTa", "roberta-small-fresh", "RoBERTa-small (22.6M)")
BASE = scales_of("tiny", "roberta-mini-fresh", "a RoBERTa", "roberta-base-fresh", "RoBERTa-base (124.7M)")
GPT2 = scales_of("tiny-gpt2-fresh", "gpt2-mini-fresh", "a GPT-2", "gpt2-fresh", "GPT-2 (124.4M)")

# ---- corpus ------------------------------------------------------------------------------------------------------

_PERPLEXITY = ("test/perplexity",)
WIKITEXT = Column("wikitext", "Wikipedia text", _PERPLEXITY, *_PERPLEXITY)
CAUSAL = Column("wikitext-causal", "Wikipedia text", _PERPLEXITY, *_PERPLEXITY)
# Share of the available articles: 2 MB; 1.4 MB for GPT-2, which learns from every token.
LITE_SHARES: Mapping[str, float] = {WIKITEXT.task: 0.03, CAUSAL.task: 0.02}
LITE_SCORED = 0.1  # of the held-out articles: about 50 000 tokens, after every round

# ---- budgets -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Budget:
    """The clients of one model at one scale, and each client's epochs as rounds of one averaging period.

    central: rounds of centralised pre-training, and epochs per round.
    """

    clients: int
    rounds: int
    period: int
    central: tuple[int, int]


# Section 4.2.1. Centralised pre-training has 125 000 (GPT-2: 50 000) updates of 256 blocks of 512 tokens. WikiText-103
# has 103 227 021 words (Merity et al. 2017, table 1), about 118 million tokens of GPT-2's BPE: 900 updates per epoch.
UPDATES_AN_EPOCH = 900
BLOCKS = 256 * UPDATES_AN_EPOCH  # of all clients together
BUDGETS: Mapping[str, Mapping[str, Budget]] = {
    WIKITEXT.task: {
        "demo": Budget(4, 4, 1, central=(4, 1)),
        "lite": Budget(4, 4, 3, central=(4, 3)),
        "paper": Budget(10, 10, 50, central=(14, 10)),  # 139 epochs
    },
    CAUSAL.task: {
        "demo": Budget(4, 4, 1, central=(4, 1)),
        "lite": Budget(4, 4, 1, central=(4, 1)),
        "paper": Budget(5, 4, 5, central=(11, 5)),  # 55.6 epochs
    },
}
# Table 4: polynomial decay of power 1, which is linear.
RECIPE: Mapping[str, JSON] = {
    "schedule": "linear",
    "warmup": 0.08,  # 10 000 of 125 000 updates
    "weight_decay": 0.1,
    "beta2": 0.98,
    "epsilon": 1e-6,
    "optimizer": "kept",
}

# Evenly spaced logarithms; such narrow models need more than Table 4's 5e-4.
RATES: Mapping[str, tuple[float, ...]] = {WIKITEXT.task: (1e-3, 2e-3, 4e-3), CAUSAL.task: (5e-4, 1e-3, 2e-3, 4e-3)}
TUNED = ("central", "fedavg", "share", "emdavg", "single", "diloco")


def miniature(task: str, name: str) -> Search:
    """How the lite scale's learning rates are chosen: one grid for all modes, by the perplexity of validation articles.

    For GPT-2 only the best learning rate after a quarter of the rounds continues. For RoBERTa all learning rates run to
    the end, with one epoch per round: masked models first learn only word frequencies, which do not show the best one.
    The data's seed is one that no table uses. name: the file of the chosen learning rates.
    """
    is_causal = task == CAUSAL.task
    return Search(
        {mode: {"training.learning_rate": RATES[task]} for mode in TUNED},
        rungs=(0.25,) if is_causal else (),
        seeds=(1000,),
        changes={} if is_causal else {"training.local_epochs": 1},
        chosen=Path(__file__).parent / "tuned" / f"{name}.json",
    )


def epochs_of(row: Row, budget: Budget) -> tuple[int, int]:
    """Rounds, and epochs per round, for a training mode; in Head-Emd Share the clients' rounds follow each other."""
    if row.algorithm == "fedbert_sequential":
        return budget.clients * budget.rounds, budget.period
    if row.algorithm == "central" and row.options.get("of") != "first":
        return budget.central
    return budget.rounds, budget.period


def training_of(row: Row, task: str, scale: Scale) -> TrainConfig:
    """Rounds of one averaging period, one optimiser and schedule throughout; Table 4's at the paper scale."""
    rounds, period = epochs_of(row, BUDGETS[task][scale.id])
    common: dict[str, JSON] = {**RECIPE, "rounds": rounds, "local_epochs": period}
    if scale.id == "demo":
        return TrainConfig(learning_rate=2e-3, batch_size=16, max_length=32, precision="fp32", **common)
    if scale.id == "lite":
        return TrainConfig(
            learning_rate=2e-3, batch_size=8, max_length=128, clip_norm=1.0, decayed="matrices", **common
        )
    return TrainConfig(learning_rate=5e-4, batch_size=256, max_length=512, **common)


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """Pre-training on articles that are shared equally, before the row's changes."""
    is_lite = scale.id == "lite"
    return run_of(
        *(row, column, scale, seed, training_of(row, column.task, scale)),
        clients=BUDGETS[column.task][scale.id].clients,
        partition={"scheme": "equal"} | ({"share": LITE_SHARES[column.task]} if is_lite else {}),
        head="causal-lm" if column.task == CAUSAL.task else "masked-lm",
        data_seed=0,  # one partition for all seeds
        central_share=LITE_SCORED if is_lite else 1.0,
    )


# ---- training modes (section 4.2.1) ------------------------------------------------------------------------------

GLOBAL: Mapping[str, JSON] = {"options.embeddings": "global"}


def _parallel(id: str, name: str, averaged: str, transformer: str, **fields: Any) -> Row:
    """Algorithm 2. averaged: a client's averaged part. transformer: "shared", or "own" for one per client."""
    options = {"options.averaged": averaged, "options.transformer": transformer}
    return Row(id, name, {"algorithm": "fedbert_parallel", **options}, **fields)


CENTRAL = Row("central", "Centralized", {"algorithm": "central", **GLOBAL})
FEDAVG = Row("fedavg", "FedAvg", {"algorithm": "fedavg", **GLOBAL})
SHARE = Row("share", "Head-Emd Share", {"algorithm": "fedbert_sequential", "options.turns": "pass"})
EMDAVG = _parallel("emdavg", "EmdAvg", "embeddings", "shared")
HEAVG = _parallel("heavg", "Head-Emd Avg", "head-embeddings", "shared", tuned_as=EMDAVG.id)
PARALLEL_FEDAVG = _parallel("parallel-fedavg", "Parallel FedAvg", "all", "own", tuned_as=FEDAVG.id)
SINGLE = CENTRAL.changed({"options.of": "first"}, id="single", name="Single Client")

# Rows that the paper lacks.
_PER_CLIENT: Mapping[str, Any] = {
    "printed": False,
    "tuned_as": EMDAVG.id,
    "note": "the server keeps a transformer per client and never averages them; we use the first client's model",
}
EMDAVG_PER_CLIENT = _parallel("emdavg-own", "EmdAvg, own transformers", "embeddings", "own", **_PER_CLIENT)
HEAVG_PER_CLIENT = _parallel("heavg-own", "Head-Emd Avg, own transformers", "head-embeddings", "own", **_PER_CLIENT)
DILOCO = FEDAVG.changed(
    {"options.server": {"name": "sgd", "learning_rate": 0.7, "momentum": 0.9, "nesterov": True}},
    id="diloco",
    name="FedAvg + outer momentum",
    printed=False,
    note="DiLoCo (Douillard et al. 2023): the server applies each average with Nesterov momentum 0.9 and learning rate "
    "0.7",
)
BEFORE = Row(
    "before",
    "Before pre-training",
    {"algorithm": "untrained", "training.rounds": 1},
    printed=False,
    note="the encoder as it is initialised; trains nothing and sends nothing",
)
UNIGRAM = Row(
    "unigram",
    "Unigram",
    {"algorithm": "unigram", "training.rounds": 1},
    printed=False,
    note="predicts each token by its frequency in the clients' texts, without context",
)

MODES = (CENTRAL, FEDAVG, SHARE, EMDAVG, HEAVG, PARALLEL_FEDAVG, SINGLE)  # Table 6's order
UNPRINTED = (EMDAVG_PER_CLIENT, HEAVG_PER_CLIENT, DILOCO)


def _by_scale(of: Callable[[Budget], int]) -> ByScale:
    """A number that follows from RoBERTa's budget at each scale."""
    demo, lite, at_paper = (of(BUDGETS[WIKITEXT.task][scale]) for scale in ("demo", "lite", "paper"))
    return ByScale({"demo": demo, "lite": lite}, at_paper)


def _clients(row: Row, clients: int) -> Row:
    """A row with this many clients instead of ten, on the same corpus; smaller scales keep the ratio."""
    changes = {"clients": _by_scale(lambda budget: budget.clients * clients // 10)}
    return row.changed(changes, id=f"{row.id}-{clients}", name=f"{row.name}, {clients} clients", tuned_as=row.id)


def _half_as_often(row: Row) -> Row:
    """A row averaged half as often, which at the paper's scale is every 100 epochs."""
    changes = {
        "training.rounds": _by_scale(lambda budget: budget.rounds // 2),
        "training.local_epochs": _by_scale(lambda budget: budget.period * 2),
    }
    return row.changed(changes, id=f"{row.id}-every-100", name=f"{row.name}, every 100 epochs", tuned_as=row.id)


CLIENTS = tuple(_clients(row, clients) for row in (FEDAVG, EMDAVG) for clients in (5, 20))
PERIODS = (_half_as_often(FEDAVG), _half_as_often(EMDAVG))

# ---- deviations --------------------------------------------------------------------------------------------------


def _epochs(column: Column, scale: str) -> str:
    budget = BUDGETS[column.task][scale]
    return f"{budget.rounds * budget.period} averaged after each {budget.period}"


_RATES, _CAUSAL_RATES = (", ".join(f"{rate:g}" for rate in RATES[column.task]) for column in (WIKITEXT, CAUSAL))
DEVIATIONS = deviations(f"""
- corpus (lite): WikiText-103 is not available at this scale. We use a random {100 * LITE_SHARES[WIKITEXT.task]:.0f} %
  (GPT-2: {100 * LITE_SHARES[CAUSAL.task]:.0f} %) of the articles of a Wikipedia text (the data directory's WikiText, or
  corpora/wikipedia), 1 to 2 MB, with a BPE vocabulary of {MINI_VOCAB_SIZE} built from such text. All rows and seeds
  share the articles and the partition. Each round is scored on the same random {100 * LITE_SCORED:.0f} % of the
  held-out articles.
- partition: Articles are shared equally, at random, in one partition for all seeds. The paper says equally, without a
  unit.
- blocks (paper): Each client's articles are concatenated and cut into full blocks, without padding and without next
  sentence (section 2.1: RoBERTa). The paper states no length: here 512 tokens, as in fairseq's recipe for this corpus.
- blocks (demo, lite): Each client's articles are concatenated and cut into full blocks of 128 tokens (demo: 32),
  without padding and without next sentence (section 2.1: RoBERTa).
- masking: A random 15 % of each batch's tokens: 80 % of them become the mask, 10 % another token (section 2.1).
- split: In EmdAvg and Head-Emd Avg every client's batches update one transformer on the server, as section 3.4 says.
  Section 3.3.1 and the apparent release keep one per client and never average them; the rows with own transformers do
  this and use the first client's model. Parallel FedAvg has one per client.
- crossing: Attention masks are sent to the server and counted separately; labels stay with the client. Table 2 counts
  neither.
- tied-head: The head's decoder is tied to the client's word embeddings; both are averaged and counted once. So EmdAvg
  averages the head except its transform, norm and bias.
- share: Head-Emd Share is one pass: a client trains its whole budget, then hands embeddings and head to the next one
  through the server. Optimiser moments stay with each client (as in the release: option handed_on = optimizer). Section
  5.1's learning rate reached 0 midway; here one schedule covers all turns.
- central (paper): 125 000 updates of 256 blocks (GPT-2: 50 000) are 139 (55.6) epochs of WikiText-103 with
  {UPDATES_AN_EPOCH} updates each, from 118 million tokens of GPT-2's BPE: 14 rounds of 10 (11 of 5) epochs. A client's
  500 (20) epochs are 45 000 (3 600) updates.
- budget (demo, lite): Centralised pre-training, Single Client and each client in the other modes have the same number
  of epochs: {_epochs(WIKITEXT, "lite")} (GPT-2: {_epochs(CAUSAL, "lite")}; demo: {_epochs(WIKITEXT, "demo")}). The
  paper's have {_epochs(WIKITEXT, "paper")} (GPT-2: {_epochs(CAUSAL, "paper")}), and 139 (55.6) centralised.
- schedule: Warm-up is 8 % of each run's updates, and the learning rate reaches 0 at its end (Table 4: 10 000 of 125 000
  for every mode). Polynomial decay of power 1. Optimiser and schedule continue over rounds.
- checkpoint: We fine-tune every row's last state. The paper uses the best checkpoint of Centralized and Head-Emd Share
  and the last average of the others. Perplexities are from the best round on validation text, if there is such a text.
- tuning (lite): One learning rate per mode, from {_RATES} (GPT-2: {_CAUSAL_RATES}; Table 4: 5e-4), by the perplexity of
  a fifth of the clients' training text on a partition that no table uses, with one epoch per round (GPT-2: the best
  after a quarter of a run continues). Variants use their mode's learning rate, Head-Emd Avg EmdAvg's, Parallel FedAvg
  FedAvg's. Batches of 8, gradients clipped to norm 1, weight decay only on weights.
- clipping (lite): In split modes client and server each clip their gradients to norm 1; elsewhere the whole model's are
  clipped. So Parallel FedAvg differs from FedAvg in the last bits, unless training.clip_scope = model exchanges the two
  norms. The paper names no clipping, so the paper scale has none.
- precision (lite, paper): Matrix products use bf16 if the device supports it. The paper states no precision; each
  record names its precision.
""")
