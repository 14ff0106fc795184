"""The rows and columns of FedSplitBERT's tables, as its published values name them."""

from __future__ import annotations

TASKS = {
    "mrpc": "MRPC",
    "cola": "CoLA",
    "sst2": "SST-2",
    "qqp": "QQP",
    "mnli": "MNLI",
    "rte": "RTE",
    "qnli": "QNLI",
    "wnli": "WNLI",
    "stsb": "STS-B",
}
TASKS_10 = {task: TASKS[task] for task in ("mrpc", "sst2", "qqp", "qnli")}  # Table V: 10 clients

METHODS = {
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "fedadam": "FedAdam",
    "fedsplitbert": "FedSplitBERT",
    "fedsplitbert-qat": "FedSplitBERT + qat",
}

LAYERS = {f"c{layer}": layer for layer in (12, 10, 8, 6, 4, 0)}  # Table IV: row id -> critical layer

ACCURACY = "test/accuracy"
# Tables III and IV: the score of each task that enters the average.
HEADLINE = {
    **dict.fromkeys(TASKS, ACCURACY),
    "mrpc": "test/f1",
    "cola": "test/matthews_correlation",
    "stsb": "test/pearson",
}
