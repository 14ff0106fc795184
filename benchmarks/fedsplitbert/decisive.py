"""The comparisons that decide FedSplitBERT's claims: the table in docs/protocol.md, fixed before the runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.claims import At, AverageBetter, Better, Control, Decisive, Study
from benchmarks.fedsplitbert.claims import CLAIMS

_row = partial(At, "fedsplitbert-evidence")
_C0, _C6, _C8, _C10, _FP16 = map(_row, ("c0", "c6", "c8", "c10", "c6-fp16"))
_FEDAVG, _FEDPROX, _EVEN = map(_row, ("fedavg", "fedprox", "fedavg-iid"))
_RIVALS = (_FEDAVG, _FEDPROX)
# In Table III FedSplitBERT has c = 6; in the table of IID labels, its row has the learning rate of skewed ones.
_INSTEAD = {
    At("fedsplitbert-table3", "fedsplitbert"): _C6,
    At("fedsplitbert-table3", "fedsplitbert-qat"): _FP16,
    At("fedsplitbert-table3", "fedavg-prior-strength"): _row("fedavg-prior-strength"),
    At("fedsplitbert-table4", "c6"): _C6,
    At("fedsplitbert-iid", "fedavg-iid"): _EVEN,
    At("fedsplitbert-iid", "fedavg"): _FEDAVG,
}

_PRIMARY = ("test/accuracy", "test/matthews_correlation", "test/pearson")  # a task's first one counts
_COLA, _OTHERS = {"cola": range(5, 11)}, ("mrpc", "sst2", "qqp", "qnli")
_FIVE = {**_COLA, **dict.fromkeys(_OTHERS, range(5, 10))}
_SIX = dict.fromkeys(("mrpc", "cola", "sst2", "qqp", "qnli", "stsb"), range(5, 10))
_EVEN_TASKS = dict.fromkeys(_OTHERS, range(5, 10))


def _decisive(
    claims: tuple[str, ...],
    relation: Better | AverageBetter,
    steps: tuple[int, ...],
    seeds: Mapping[str, range],
    scores: tuple[str, ...] = _PRIMARY,
    **fields: Any,
) -> Decisive:
    """A comparison of these scores, on the tasks that have seeds."""
    fixed = replace(relation, tasks=tuple(seeds), scores=scores)
    return Decisive(claims, (fixed,), steps, seeds, instead=_INSTEAD, **fields)


_CLAIM_5 = tuple(one for claim in CLAIMS if claim.id == "5" for one in claim.relations if isinstance(one, Better))
DECISIVE = (
    _decisive(("1a", "7b"), Better((_C6,), _RIVALS), (1, 3), _FIVE),
    _decisive(("1b",), AverageBetter((_C6,), _RIVALS, by=0.0), (1, 3), _FIVE),
    _decisive(("1d",), Better((_C6,), _RIVALS, by=1.0), (1, 3), _FIVE),
    _decisive(("2",), Better((_C6, _C8), (_C0, _FEDAVG)), (1,), _COLA),
    _decisive(("4b",), Better((_FEDAVG,), (_C0,), over_failed=True), (1,), _COLA),
    _decisive(("6",), AverageBetter((_FP16,), (_C6,), by=-1.0, most=1.0, over_failed=True), (4,), _SIX),
    _decisive(("13",), Better((), (_C0, _FEDAVG)), (1,), _COLA, best_of=(_C6, _C8, _C10)),
    Decisive(("5",), _CLAIM_5, (9,), dict.fromkeys(("mrpc", "qnli", "stsb"), range(5))),
    _decisive(("15",), AverageBetter((_EVEN,), (_FEDAVG,), by=2.0, over_failed=True), (2,), _EVEN_TASKS),
)

# ---- the label-prior study (docs/label-prior.md) -----------------------------------------------------------------

_STUDIED = dict.fromkeys(("cola", *_OTHERS), range(5, 10))
_ACCURACY = ("test/accuracy",)  # CoLA's follows from its stored predictions
_PRIOR, _C6_PRIOR = _row("fedavg-prior-strength"), _row("c6-prior-strength")
STUDY = Study(
    page="docs/label-prior.md",
    primary=_decisive(
        ("study",),
        AverageBetter((_PRIOR,), (_C6_PRIOR,), by=-1.0, most=1.0, over_failed=True),
        (1, 3),
        _STUDIED,
        scores=_ACCURACY,
    ),
    headline="FedAvg is {compared} than FedSplitBERT if both get a label-prior correction (logit adjustment, Menon et "
    "al. 2021) with its strength chosen on validation data",
    rows={
        "fedavg": "FedAvg",
        "fedavg-prior": "FedAvg + prior (strength 1)",
        "fedavg-prior-strength": "FedAvg + prior",
        "fedavg-threshold": "FedAvg + one threshold per client",
        "c6": "FedSplitBERT",
        "c6-prior-strength": "FedSplitBERT + prior",
        "fedper": "FedPer",
        "fedper-prior-strength": "FedPer + prior",
        "fedavg-finetuned": "Fine-tuned FedAvg",
        "fedavg-finetuned-prior-strength": "Fine-tuned FedAvg + prior",
        "overall-majority": "Majority class, global",
        "local-majority": "Majority class, per client",
        "linear": "Linear model",
    },
    secondary=(
        ("c6", "fedavg"),
        ("fedavg-prior-strength", "c6"),
        ("fedavg-prior-strength", "fedper-prior-strength"),
        ("fedavg-prior-strength", "fedper"),
        ("fedavg-prior-strength", "fedavg-finetuned-prior-strength"),
        ("fedavg-prior-strength", "fedavg-finetuned"),
    ),
    controls=(
        Control(
            "IID labels",
            "fedsplitbert-evidence",
            (
                ("fedavg-iid-prior-strength", "fedavg-iid"),
                ("fedavg-iid-threshold", "fedavg-iid"),
                ("c6-iid", "fedavg-iid"),
            ),
            (2, 6),
            _EVEN_TASKS,
            earlier="fedsplitbert-iid",
        ),
        Control(
            "Other texts for each client, and flipped labels",
            "fedsplitbert-controls",
            (("c6", "fedavg"), ("fedavg-finetuned", "fedavg"), ("fedavg-prior", "fedavg")),
            (20,),
            dict.fromkeys(("mixed-pairs", "sst2-flipped"), range(5, 10)),
        ),
        Control(
            "An encoder of BERT-base's size",
            "fedsplitbert-base-size",
            (
                ("fedavg-prior-strength", "c6-prior-strength"),
                ("c6", "fedavg"),
                ("fedavg-prior-strength", "c6"),
            ),
            (10,),
            dict.fromkeys(("sst2", "qnli"), range(5, 8)),
        ),
    ),
    earlier="fedsplitbert-personalisation",
    earlier_seeds=range(5),  # the scoring rule was chosen after reading their results
    earlier_rows={"c6": "fedsplitbert", "c6-prior-strength": "fedsplitbert-prior-strength"},
)
