"""The places of FedFreezeBERT's stated numbers, as its published values name them."""

from __future__ import annotations

from decimal import Decimal

from reports.audit.finding import Numbers

TEXT, SCORES, COSTS = "Text", "Table 3", "Table 4"  # "Text": stated there, and of no table
TASK, F1 = "arsarcasm", "test/f1_pn"

CENTRALISED = {"c-psum": "C-FedFreezeBERT with P-SUM", "c-hsum": "C-FedFreezeBERT with H-SUM"}
BASELINES = {  # with the ordinary aggregator
    "fedavg-ordinary": "FedAvg/FedProx",
    "central-ordinary": "central training",
    "fedsplitbert-ordinary": "FedSplitBERT",
}
COSTED = {"d-fedavg-psum": "D-FedFreezeBERT", "c-psum": "C-FedFreezeBERT"}
COST_BASELINES = {"fedavg-ordinary": "FedAvg", "fedsplitbert-ordinary": "FedSplitBERT"}
SPLIT, SPLIT_HSUM = "fedsplitbert-ordinary", "fedsplitbert-hsum"


def f1(numbers: Numbers, row: str) -> Decimal:
    """F1^PN of a row of Table 3, in percent."""
    return numbers.at(SCORES, row, TASK, F1)


def gain_percent(numbers: Numbers, row: str, over: str) -> Decimal:
    """By how many percent a row is above a baseline, as the text states."""
    return numbers.at(TEXT, row, over, "stated/percent_over")
