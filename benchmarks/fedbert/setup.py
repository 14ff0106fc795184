"""What FedBERT's tables share: its clients, corpus, training modes, budgets and scales (section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.experiment import Column, Row, Scale
from benchmarks.overrides import ByScale
from benchmarks.publication import Paper
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

_GENERATED = "generated data, random 4-layer encoder; shows the machinery only"
_MINIATURE = "real text, {} of 4 layers drawn here, pre-trained on under 2 MB"


def scales_of(demo: str, lite: str, lite_name: str, paper: str, paper_name: str) -> tuple[Scale, ...]:
    """The three scales of a table: its encoder at each by id, and what it is called."""
    return (
        Scale("demo", demo, 4, "generated", _GENERATED),
        Scale("lite", lite, 4, "english", _MINIATURE.format(lite_name)),
        Scale("paper", paper, 12, "english", f"real text, {paper_name}, drawn here, pre-trained on WikiText-103"),
    )


SMALL = scales_of("tiny", "roberta-mini-fresh", "a RoBERTa", "roberta-small-fresh", "RoBERTa-small (22.6M)")
BASE = scales_of("tiny", "roberta-mini-fresh", "a RoBERTa", "roberta-base-fresh", "RoBERTa-base (124.7M)")
GPT2 = scales_of("tiny-gpt2-fresh", "gpt2-mini-fresh", "a GPT-2", "gpt2-fresh", "GPT-2 (124.4M)")

# ---- corpus ------------------------------------------------------------------------------------------------------

_PERPLEXITY = ("test/perplexity",)
WIKITEXT = Column("wikitext", "WikiText", _PERPLEXITY, *_PERPLEXITY)
CAUSAL = Column("wikitext-causal", "WikiText", _PERPLEXITY, *_PERPLEXITY)
# Of the articles at hand: 2 MB, and 1.4 for GPT-2, which learns from every token.
LITE_SHARES: Mapping[str, float] = {WIKITEXT.task: 0.03, CAUSAL.task: 0.02}
LITE_SCORED = 0.1  # of the held-out articles: some 50 000 tokens, after every round

# ---- budgets -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Budget:
    """Of one model at one scale: N clients, and a client's epochs as rounds of an averaging period each.

    central: the same of centralised pre-training, in rounds and epochs a round.
    """

    clients: int
    rounds: int
    period: int
    central: tuple[int, int]

    @property
    def epochs(self) -> int:
        """Of one client."""
        return self.rounds * self.period


# Section 4.2.1. Centralised: 125 000 (GPT-2: 50 000) updates of 256 blocks of 512 tokens, in epochs. WikiText-103 has
# 103 227 021 words (Merity et al. 2017, table 1), some 118 million tokens of GPT-2's BPE: 900 updates an epoch.
UPDATES_AN_EPOCH = 900
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

# Even steps of the logarithm; models this narrow want more than Table 4's 5e-4.
RATES: Mapping[str, tuple[float, ...]] = {WIKITEXT.task: (1e-3, 2e-3, 4e-3), CAUSAL.task: (5e-4, 1e-3, 2e-3, 4e-3)}
TUNED = ("central", "fedavg", "share", "emdavg", "single", "diloco")


def miniature(task: str, name: str) -> Search:
    """How rates of the lite scale are chosen: one grid for all, by the perplexity of validation articles.

    GPT-2: after a quarter of a mode's rounds the best goes on. RoBERTa: all run to their end, with one epoch a round:
    masked models learn little but how often words stand at first, and which rate leaves that behind cannot be seen
    there. Head-Emd Avg, which averages a head's few parameters, too, takes EmdAvg's rate. The data are those of a seed
    that no table uses. name: of the file that holds what was chosen.
    """
    is_causal = task == CAUSAL.task
    return Search(
        {mode: {"training.learning_rate": RATES[task]} for mode in TUNED},
        rungs=(0.25,) if is_causal else (),
        seeds=(1000,),
        changes={} if is_causal else {"training.local_epochs": 1},
        chosen=Path(__file__).parent / "tuned" / f"{name}.json",
    )


def searched(scales: tuple[Scale, ...], search: Search) -> tuple[Scale, ...]:
    """A table's scales with the lite one's search."""
    return tuple(replace(scale, search=search) if scale.id == "lite" else scale for scale in scales)


def epochs_of(row: Row, budget: Budget) -> tuple[int, int]:
    """Rounds, and epochs a round, of a training mode; in Head-Emd Share each client has its own rounds, in turn."""
    if row.algorithm == "fedbert_sequential":
        return budget.clients * budget.rounds, budget.period
    if row.algorithm == "central" and row.options.get("of") != "first":
        return budget.central
    return budget.rounds, budget.period


def training_of(row: Row, task: str, scale: Scale) -> TrainConfig:
    """Rounds of an averaging period with one optimiser and schedule throughout; Table 4's at the paper's scale."""
    rounds, period = epochs_of(row, BUDGETS[task][scale.id])
    own: dict[str, JSON] = {**RECIPE, "rounds": rounds, "local_epochs": period}
    if scale.id == "demo":
        return TrainConfig(learning_rate=2e-3, batch_size=16, max_length=32, precision="fp32", **own)
    if scale.id == "lite":
        return TrainConfig(learning_rate=2e-3, batch_size=8, max_length=128, clip_norm=1.0, decayed="matrices", **own)
    return TrainConfig(learning_rate=5e-4, batch_size=256, max_length=512, **own)


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """Pre-training on articles that are shared out equally, before what the row changes."""
    return RunConfig(
        scale=scale.id,
        task=column.task,
        task_version=1,
        source=scale.source,
        backbone=row.backbone or scale.backbone,
        clients=BUDGETS[column.task][scale.id].clients,
        partition={"scheme": "equal"} | ({"share": LITE_SHARES[column.task]} if scale.id == "lite" else {}),
        algorithm=row.algorithm,
        options={},
        training=training_of(row, column.task, scale),
        seed=seed,
        test_share=0.0,
        head="causal-lm" if column.task == CAUSAL.task else "masked-lm",
        data_seed=0,  # one partition for all seeds
        central_share=LITE_SCORED if scale.id == "lite" else 1.0,
    )


# ---- training modes (section 4.2.1) ------------------------------------------------------------------------------

GLOBAL: Mapping[str, JSON] = {"options.embeddings": "global"}


def _parallel(id: str, name: str, averaged: str, transformer: str, **fields: Any) -> Row:
    """Algorithm 2: what of a client is averaged, and whether the server has a transformer for each."""
    options = {"options.averaged": averaged, "options.transformer": transformer}
    return Row(id, name, {"algorithm": "fedbert_parallel", **options}, **fields)


CENTRAL = Row("central", "Centralized", {"algorithm": "central", **GLOBAL})
FEDAVG = Row("fedavg", "FedAvg", {"algorithm": "fedavg", **GLOBAL})
SHARE = Row("share", "Head-Emd Share", {"algorithm": "fedbert_sequential", "options.turns": "pass"})
EMDAVG = _parallel("emdavg", "EmdAvg", "embeddings", "shared")
HEAVG = _parallel("heavg", "Head-Emd Avg", "head-embeddings", "shared", tuned_as=EMDAVG.id)
PARALLEL_FEDAVG = _parallel("parallel-fedavg", "Parallel FedAvg", "all", "own", tuned_as=FEDAVG.id)
SINGLE = CENTRAL.changed({"options.of": "first"}, id="single", name="Single Client")

# Rows that no table prints.
_OWN = "each client's transformer on the server is its own and never averaged; the first client's model is what counts"
EMDAVG_OWN = _parallel("emdavg-own", "EmdAvg, own transformers", "embeddings", "own").changed(
    {}, printed=False, note=_OWN, tuned_as=EMDAVG.id
)
HEAVG_OWN = _parallel("heavg-own", "Head-Emd Avg, own transformers", "head-embeddings", "own").changed(
    {}, printed=False, note=_OWN, tuned_as=EMDAVG.id
)
DILOCO = FEDAVG.changed(
    {"options.server": {"name": "sgd", "learning_rate": 0.7, "momentum": 0.9, "nesterov": True}},
    id="diloco",
    name="FedAvg + outer momentum",
    printed=False,
    note="DiLoCo (Douillard et al. 2023): the server takes each average as a step of Nesterov momentum 0.9, rate 0.7",
)
BEFORE = Row(
    "before",
    "Before pre-training",
    {"algorithm": "untrained", "training.rounds": 1},
    printed=False,
    note="the encoder as it is drawn; nothing is trained and nothing is sent",
)
UNIGRAM = Row(
    "unigram",
    "Unigram",
    {"algorithm": "unigram", "training.rounds": 1},
    printed=False,
    note="each token by how often it stands in the clients' texts, whatever stands around it",
)

MODES = (CENTRAL, FEDAVG, SHARE, EMDAVG, HEAVG, PARALLEL_FEDAVG, SINGLE)  # Table 6's order
UNPRINTED = (EMDAVG_OWN, HEAVG_OWN, DILOCO)


def _clients(row: Row, clients: int) -> Row:
    """A row with so many clients of the paper's ten, on the same corpus; the same share of a smaller scale's."""
    own = {scale: BUDGETS[WIKITEXT.task][scale].clients * clients // 10 for scale in ("demo", "lite")}
    shown = f"{row.name}, {clients} clients"
    return row.changed({"clients": ByScale(own, clients)}, id=f"{row.id}-{clients}", name=shown, tuned_as=row.id)


def _period(row: Row, epochs: int) -> Row:
    """A row averaged every so many of the paper's epochs, of as many in all; the same share of a smaller scale's."""
    times = epochs // BUDGETS[WIKITEXT.task]["paper"].period
    rounds, periods = (
        {scale: of(budget) for scale, budget in BUDGETS[WIKITEXT.task].items()}
        for of in (lambda budget: budget.rounds // times, lambda budget: times * budget.period)
    )
    changes = {
        "training.rounds": ByScale(rounds, rounds.pop("paper")),
        "training.local_epochs": ByScale(periods, periods.pop("paper")),
    }
    shown = f"{row.name}, every {epochs} epochs"
    return row.changed(changes, id=f"{row.id}-every-{epochs}", name=shown, tuned_as=row.id)


CLIENTS = tuple(_clients(row, clients) for row in (FEDAVG, EMDAVG) for clients in (5, 20))
PERIODS = tuple(_period(row, 100) for row in (FEDAVG, EMDAVG))
