"""What FedSplitBERT's tables share: its clients, methods, budgets and scales."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.experiment import Column, Row, Scale
from benchmarks.overrides import LayerUnit
from benchmarks.publication import Elsewhere, Paper
from benchmarks.run_config import JSON, RunConfig, TrainConfig
from benchmarks.sweeps.tuning import Grid, Search

# A critical layer is written in the layers of the papers' encoders.
UNITS = {"options.critical_layer": LayerUnit("critical layer", of=12)}

PAPER = Paper(
    id="fedsplitbert",
    name="FedSplitBERT",
    citation="Zhengyang Li, Shijing Si, Jianzong Wang, Jing Xiao: Federated Split BERT for Heterogeneous Text "
    "Classification. IJCNN 2022, arXiv:2205.13299",
    bytes_convention="one direction (uplink), summed over clients, GB = 10^9 bytes",
    units=UNITS,
)

# The lite scale's settings: every method gets as many trials, on data that no table is made of.
RATES = (2e-5, 3.1e-5, 4.7e-5, 7.2e-5, 1.1e-4, 1.7e-4, 2.6e-4, 4e-4)  # even steps of the logarithm
_RATE: Grid = {"training.learning_rate": RATES}
MINIATURE = Search(
    {
        "central": _RATE,
        "local-only": _RATE,
        "fedavg": _RATE,
        "fedprox": {**_RATE, "options.proximal": (0.001, 0.01, 0.1, 1.0)},
        "fedadam": {**_RATE, "options.server.learning_rate": (0.001, 0.0032, 0.01, 0.032)},
        "fedper": _RATE,
        "fedsplitbert": {**_RATE, "options.critical_layer": (0, 2, 4, 6, 8, 10, 12)},
    },
    trials=8,
    rungs=(2,),
    seeds=(1000,),
    chosen=Path(__file__).parent / "tuned" / "lite.json",
)

# Section IV-B and Table IV: the values that the paper tried, for every task. The server learning rate's grid is not
# printed; half powers of ten around the one used here, as in Reddi et al. (2021).
_OWN: Mapping[str, Grid] = {
    "fedavg": {},
    "fedprox": {"options.proximal": (0.001, 0.01, 0.1, 1.0)},
    "fedadam": {"options.server.learning_rate": (0.001, 0.0032, 0.01, 0.032)},
    "fedsplitbert": {"options.critical_layer": (0, 4, 6, 8, 10, 12)},
}
_TRIED: Grid = {"training.learning_rate": (2e-5, 3e-5, 4e-5, 5e-5), "training.batch_size": (8, 16, 32)}
AS_THE_PAPER = Search({row: {**own, **_TRIED} for row, own in _OWN.items()})
TUNED: Mapping[str, Grid] = {  # of the demo scale, where a whole grid takes a minute
    **_OWN,
    "fedavg": {"training.learning_rate": _TRIED["training.learning_rate"]},
    "fedsplitbert": {**_OWN["fedsplitbert"], "training.learning_rate": _TRIED["training.learning_rate"]},
}

# At the lite scale the largest tasks are a random subset, of which all clients together learn from so many examples.
LARGE_TASKS = ("sst2", "qqp", "mnli", "qnli", "stsb")
LITE_LEARNED = 2400
# With a fifth of the subset for testing, seeds differ by little but the error of their test sets (docs/statistics.md).
# Testing costs less than training: as many are tested on as learned from where the pool is so large that seeds still
# hardly share a test.
WIDELY_TESTED = ("sst2", "qqp")
TEST_SHARE = 0.2  # section IV-B

# The class of the lite scale's encoder: distilled with six layers of 384, where all-MiniLM-L6-v2 goes back to every
# second layer of twelve (nreimers/MiniLM-L6-H384-uncased) and was trained on to embed sentences.
MINILM_ELSEWHERE = Elsewhere(
    {
        "mrpc": ("accuracy", 86.6),
        "sst2": ("accuracy", 91.3),
        "qqp": ("accuracy", 90.6),
        "mnli": ("accuracy", 82.8),
        "rte": ("accuracy", 68.9),
        "qnli": ("accuracy", 90.3),
    },
    "what MiniLM, 6 layers of 384, distilled at that size, reaches on GLUE's development sets, trained on whole tasks "
    "(model card of microsoft/xtremedistil-l6-h384-uncased, which has neither CoLA nor STS-B); ours has every second "
    "one of twelve layers, and was trained on to embed sentences apart from each other; it learned from "
    f"{LITE_LEARNED:,} examples of the largest tasks, of the others from what the label table leaves, a fifth less for "
    "testing. A plain loop over the same FedAvg reaches what the engine does (docs/performance.md)",
)

_MINILM = ("all-MiniLM-L6-v2", 6, "glue", "real data, all-MiniLM-L6-v2 (6 layers, 22.7M parameters)")
SCALES = (
    Scale("demo", "tiny", 4, "generated", "generated data, random 4-layer encoder; shows the machinery only"),
    Scale("lite", *_MINILM, search=MINIATURE, elsewhere=MINILM_ELSEWHERE),
    Scale("literal", *_MINILM[:-1], f"{_MINILM[-1]}, the paper's settings, not tuned for it", search=AS_THE_PAPER),
    Scale("paper", "bert-base-uncased", 12, "glue", "real data, bert-base-uncased", search=AS_THE_PAPER),
)

COLUMNS = (
    Column("mrpc", "MRPC", ("test/f1", "test/accuracy"), "test/f1"),
    # A correlation within one client says nothing of label shares; over all examples, who knows them gains by it.
    Column(
        "cola",
        "CoLA",
        ("test/matthews_correlation",),
        "test/matthews_correlation",
        beside=("pooled/matthews_correlation",),
    ),
    Column("sst2", "SST-2", ("test/f1", "test/accuracy"), "test/accuracy"),
    Column("qqp", "QQP", ("test/accuracy",), "test/accuracy"),
    Column(
        "mnli",
        "MNLI-(m/mm)",
        ("test/accuracy", "mismatched/accuracy"),
        "test/accuracy",
        {"test": "", "mismatched": "mm"},
    ),
    Column("rte", "RTE", ("test/f1", "test/accuracy"), "test/accuracy"),
    Column("qnli", "QNLI", ("test/accuracy",), "test/accuracy"),
    Column(
        "wnli",
        "WNLI",
        ("test/accuracy",),
        "test/accuracy",
        leak="share sentences with training, often for the other label",
    ),
    # Sorted by score, each client holds a narrow range of them, within which any correlation is low.
    Column("stsb", "STS-B", ("test/pearson",), "test/pearson", beside=("pooled/pearson",)),
)

# Tables I and II: per client, percent of label 1 / label 0 (their means over clients match the data's share of label
# 1); MNLI in the data's own order. Here every row is in the order of the label ids.
_OTHER_3 = ((20, 80), (50, 50), (80, 20))
LABEL_SHARES_3: Mapping[str, tuple[tuple[float, ...], ...]] = {
    "mrpc": ((5, 95), (25, 75), (75, 25)),
    "cola": ((9.5, 90.5), (17, 83), (60, 40)),
    "qqp": ((30, 70), (63, 37), (87, 13)),
    "mnli": ((86, 5, 9), (5, 90, 5), (5, 5, 90)),
    "sst2": _OTHER_3,
    "rte": _OTHER_3,
    "qnli": _OTHER_3,
    "wnli": _OTHER_3,
}


# A tenth or more of their test examples share their first sentence with an example that is trained on.
REPEATING_TASKS = ("mnli", "qnli", "wnli")


def partition_of(task: str, scale: Scale) -> dict[str, JSON]:
    """How the three clients share a task out: Table I, and for STS-B the text's sort by score (section IV-A)."""
    if task == "stsb":
        return {"scheme": "sorted-by-score", **({"size": lite_size(task, 3)} if scale.id == "lite" else {})}
    return label_table(task, scale, LABEL_SHARES_3[task])


def label_table(task: str, scale: Scale, shares: tuple[tuple[float, ...], ...]) -> dict[str, JSON]:
    """Clients with these shares of the labels, of the largest equal size, or of a part of the subset for that scale."""
    is_subset = scale.id == "lite" and task in LARGE_TASKS
    return {"scheme": "label-table", "shares": shares, "size": lite_size(task, len(shares)) if is_subset else None}


def lite_size(task: str, clients: int) -> int:
    """Examples of each client at the lite scale, to learn from and to be tested on."""
    return round(LITE_LEARNED / (1 - lite_test_share(task))) // clients


def lite_test_share(task: str) -> float:
    """The share of a client's examples that it is tested on at the lite scale."""
    return 0.5 if task in WIDELY_TESTED else TEST_SHARE


# Table V's caption states 6 rounds for MRPC, 9 for SST-2, 3 for QQP and QNLI; the others by size.
ROUNDS = {"mrpc": 6, "cola": 6, "sst2": 9, "qqp": 3, "mnli": 3, "rte": 6, "qnli": 3, "wnli": 6, "stsb": 6}


def training_of(task: str, scale: Scale) -> TrainConfig:
    """The budget of a task: the paper's own beyond the demo; learning rate and batch size out of its ranges.

    At lite scale, where the encoder is another, rates are tuned, and steps are taken as this encoder needs them.
    """
    if scale.id == "demo":
        return TrainConfig(
            rounds=min(ROUNDS[task], 4),
            learning_rate=2e-3,
            batch_size=16,
            local_epochs=5,
            max_length=32,
            precision="fp32",
        )
    if scale.id == "lite":
        rounds = 10 if task == "cola" else 6  # short texts, slowly learnt
        return TrainConfig(rounds, learning_rate=1e-4, batch_size=16, warmup=0.1, clip_norm=1.0, decayed="matrices")
    return TrainConfig(rounds=ROUNDS[task], learning_rate=5e-5, batch_size=16)


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """One run of FedSplitBERT's experiments with three clients, before what the row changes."""
    return RunConfig(
        scale=scale.id,
        task=column.task,
        task_version=1,
        source=scale.source,
        backbone=scale.backbone,
        clients=3,
        partition=partition_of(column.task, scale),
        algorithm=row.algorithm,
        options={},
        training=training_of(column.task, scale),
        seed=seed,
        test_share=lite_test_share(column.task) if scale.id == "lite" else TEST_SHARE,
        head="average" if scale.id == "lite" else "pooled",  # as this encoder was made
        validation_share=0.1 if scale.id == "lite" else 0.0,
        grouped=scale.id == "lite" and column.task in REPEATING_TASKS,
    )


FEDAVG = Row("fedavg", "FedAvg", {"algorithm": "fedavg"})
FEDPROX = Row("fedprox", "FedProx", {"algorithm": "fedavg", "options.proximal": 0.01})
FEDADAM = Row("fedadam", "FedAdam", {"algorithm": "fedavg", "options.server": {"name": "adam", "learning_rate": 0.01}})
FEDSPLITBERT = Row("fedsplitbert", "FedSplitBERT", {"algorithm": "fedsplitbert", "options.critical_layer": 6})
FEDSPLITBERT_QAT = FEDSPLITBERT.changed(
    {"codec": "fp16"}, id="fedsplitbert-qat", name="FedSplitBERT + qat", tuned_as="fedsplitbert"
)
# The printed FedSplitBERT row is, task by task, one of Table IV's rows, by its numbers.
LAYERS_IN_PRINT = {
    "mrpc": 8, "cola": 6, "sst2": 10, "qqp": 6, "mnli": 10, "rte": 8, "qnli": 10, "wnli": 10, "stsb": 10,
}  # fmt: skip
FEDSPLITBERT_CHOSEN = FEDSPLITBERT.changed(
    {"options.critical_layer": LAYERS_IN_PRINT},
    id="fedsplitbert-chosen",
    name="FedSplitBERT, c chosen on test data",
    printed=False,
    note="c of 12 for each task as in the printed FedSplitBERT row (8, 6, 10, 6, 10, 8, 10, 10, 10), which the paper "
    "took from Table IV's test scores",
    tuned_as="fedsplitbert",
)
FEDAVG_FP16 = FEDAVG.changed(
    {"codec": "fp16"},
    id="fedavg-fp16",
    name="FedAvg + fp16",
    printed=False,
    note="what precision alone saves",
    tuned_as="fedavg",
)
LOCAL_MAJORITY = Row(
    "local-majority",
    "Majority-class baseline, by client",
    {"algorithm": "local_majority", "training.rounds": 1},  # it answers the same after every round
    printed=False,
    note="each client's most frequent training label; personalisation has to beat it",
)

# Rows that put the others' scores in their place.
OVERALL_MAJORITY = LOCAL_MAJORITY.changed(
    {"options.whose": "all"},
    id="overall-majority",
    name="Majority-class baseline, overall",
    note="the most frequent training label of all clients together, whoever is asked; nothing is sent",
)
LINEAR = Row(
    "linear",
    "Linear model",
    {"algorithm": "linear", "training.rounds": 1},
    printed=False,
    note="TF-IDF of uni- and bigrams, logistic or ridge regression, on all clients' training examples in one place; no "
    "encoder, and nothing is sent",
)
CENTRAL = Row(
    "central",
    "Centralised training",
    {"algorithm": "central"},
    printed=False,
    note="the same encoder trained on all clients' training examples in one place, as many epochs; nothing is sent",
)
LOCAL_ONLY = FEDSPLITBERT.changed(
    {"options.critical_layer": 0},
    id="local-only",
    name="Local only",
    printed=False,
    note="c = 0: each client trains by itself; nothing is sent but the pre-trained model, once",
)
FEDPER = Row(
    "fedper",
    "FedPer",
    {"algorithm": "fedper"},
    printed=False,
    note="Arivazhagan et al. (2019): all but the head is shared, which no c of FedSplitBERT does",
)
# Cells of one round, whatever their FedAvg is given.
_AFTER_FEDAVG: Mapping[str, JSON] = {
    "begins": FEDAVG.id,
    "tuned_as": FEDAVG.id,
    "fixed": ("training.rounds",),
    "printed": False,
}
FEDAVG_FINETUNED = LOCAL_ONLY.changed(
    {"training.rounds": 1},
    id="fedavg-finetuned",
    name="FedAvg + local fine-tuning",
    note="FedAvg's last model, which each client trains by itself for one round more; its bytes are FedAvg's",
    **_AFTER_FEDAVG,
)
FEDAVG_PRIOR = Row(
    "fedavg-prior",
    "FedAvg + local label prior",
    {"algorithm": "local_prior", "training.rounds": 1},
    note="FedAvg's last model, its log-probabilities corrected by each client's label shares against all clients' "
    "(logit adjustment, Menon et al. 2021; a score is cut to the client's own range): no training, a few bytes on top "
    "of FedAvg's",
    **_AFTER_FEDAVG,
)
REFERENCES = (OVERALL_MAJORITY, LOCAL_MAJORITY, LINEAR, CENTRAL, LOCAL_ONLY)
PERSONALISED = (FEDPER, FEDAVG_FINETUNED, FEDAVG_PRIOR)
