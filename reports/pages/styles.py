"""One colour and one mark for a method, wherever it is drawn."""

from __future__ import annotations

import re
import zlib

# Okabe and Ito's colours for the methods that meet most often; all can be seen on white and on near-black.
_METHODS = {
    "FedAvg": "#0072B2",
    "FedProx": "#E69F00",
    "FedAdam": "#009E73",
    "FedSplitBERT": "#D55E00",
    "FedSplitBERT + qat": "#CC79A7",
    "FedPer": "#B07AA1",
    "Local only": "#8C6D31",
    "Centralised training": "#5F86A6",
    "Centralized": "#5F86A6",
    "BERT-C": "#5F86A6",
    "BERT-FL": "#0072B2",
    "FEDBFPT": "#D55E00",
    "Linear model": "#A08060",
    "Majority-class baseline, by client": "#868686",
    "Majority-class baseline, overall": "#BDBDBD",
    "Majority-class baseline": "#868686",
    "FedAvg + fp16": "#56B4E9",
    "FedSplitBERT, c chosen on test data": "#8B3A62",
    "FedAvg + local fine-tuning": "#3C6FD0",
    "FedAvg + local label prior": "#1F9E89",
    "EmdAvg": "#009E73",
    "Head-Emd Avg": "#E69F00",
    "Head-Emd Share": "#CC79A7",
    "Parallel FedAvg": "#56B4E9",
    "Single Client": "#8C6D31",
    "C-FedFreezeBERT · P-SUM": "#D55E00",
    "C-FedFreezeBERT · H-SUM": "#CC79A7",
    "FedAvg · ordinary": "#0072B2",
    "FedSplitBERT · ordinary": "#009E73",
}
_OTHERS = (
    *("#4E79A7", "#F28E2B", "#59A14F", "#E15759", "#76B7B2", "#B07AA1", "#FF9DA7", "#9C755F", "#56B4E9", "#C4A000"),
    *("#1F9E89", "#6A6ACD"),
)
_LAYERS = ("#7B5EA7", "#5B6FB5", "#3C8DBC", "#2BA6A0", "#3FB97A", "#86C440", "#C9B400")  # c = 0 … 12
_LAYER = re.compile(r"c = (\d+)\b")


MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def mark_of(method: str) -> str:
    """The mark of a method by its name."""
    known = list(_METHODS)
    return MARKS[(known.index(method) if method in _METHODS else zlib.crc32(method.encode())) % len(MARKS)]


def colour_of(method: str) -> str:
    """The colour of a method by its name: the same in every table and figure."""
    if method in _METHODS:
        return _METHODS[method]
    layer = _LAYER.match(method)
    if layer:
        return _LAYERS[min(int(layer[1]) // 2, len(_LAYERS) - 1)]
    return _OTHERS[zlib.crc32(method.encode()) % len(_OTHERS)]
