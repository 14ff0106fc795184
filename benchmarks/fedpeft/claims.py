"""Checkable sentences on federated parameter-efficient methods. Quotations are literal, from the pages named.

Bytes are in both directions, by BERT-base's shapes with 3 clients and rank 8. Scores are per client, with Dirichlet
label skew unless an interpretation says otherwise, on the tasks that docs/protocol.md names. No paper publishes numbers
for these tables; `audit.toml` judges published numbers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.claims import At, AtMost, Better, Claim, CostBound, similar
from benchmarks.fedpeft.forms import RANK
from benchmarks.fedpeft.paper import ROUNDS

_bytes = partial(At, "fedpeft-bytes")
_SCORES, _EVEN_LABELS, _ONE_LABEL = "fedpeft-scores", "fedpeft-even", "fedpeft-onelabel"
_drawn, _even = partial(At, _SCORES), partial(At, _EVEN_LABELS)
_work = partial(At, "fedpeft-localwork")
_skewed = partial(At, "fedpeft-fedpetuning")
_AGGREGATION, _ROUNDING = "fedpeft-aggregation", 1e-5
_TASK = ("mrpc",)  # bytes are the same on every task
_ALONE = {"h": 0}
_A_LITTLE, _TENTH = 1.0, 110.0  # points; percent
_MAJORITY = "overall-majority"
_COUNTED = "Counted: a client's communication in a round after the first, by closed forms."


def _cost(row: str, over: str, terms: dict[str, int] | None = None, **bounds: Any) -> tuple[CostBound, ...]:
    """A row's bytes against another's, by closed forms; terms: values that replace the encoder's."""
    return (CostBound((_bytes(row),), (_bytes(over),), _TASK, of="form", terms=terms or {}, **bounds),)


def _percent(row: str, over: str, most: float, terms: dict[str, int] | None = None) -> tuple[CostBound, ...]:
    return _cost(row, over, terms, most=most, share=True)


def _operations(most: float) -> tuple[CostBound, ...]:
    """FFA-LoRA's operations in percent of FedIT's."""
    return (CostBound((_drawn("ffa-lora"),), (_drawn("fedit"),), _TASK, most=most, of="flops", share=True),)


def _above(row: str, *rivals: str, by: float = 0.0, table: str = _SCORES) -> tuple[Better, ...]:
    """A row above others on every task."""
    return (Better((At(table, row),), tuple(At(table, each) for each in rivals), by),)


def _below(row: str, rival: str, by: float = 0.0) -> tuple[Better, ...]:
    """A row below another on every task; it may have learned nothing."""
    return (replace(*_above(rival, row, by=by), over_failed=True),)


def _fails(row: str, table: str = _SCORES) -> tuple[Better, ...]:
    """At most a little above the global majority class, on every task."""
    return (Better((At(table, row),), (At(table, _MAJORITY),), -math.inf, _A_LITTLE, over_failed=True),)


def _wider(*rows: str) -> tuple[Better, ...]:
    """Full fine-tuning's gain over each row is larger at α = 0.1 than at 10."""
    more, less = _skewed("fedavg-0.1"), _skewed("fedavg-10")
    return tuple(
        Better((more,), (less,), since=(_skewed(f"{row}-0.1"), _skewed(f"{row}-10")), over_failed=True) for row in rows
    )


def _less_error(by: float, row: str = "fedrot-lora-same-rate") -> tuple[Better, ...]:
    """FedRot-LoRA's aggregation error at least `by` percent below FedIT's."""
    return (Better((At(_AGGREGATION, row),), (At(_AGGREGATION, "fedit"),), by, relative=True, over_failed=True),)


def _half_as_alike(row: str, other: str, measure: str = "cosine_a") -> tuple[Better, ...]:
    """The similarity of a row's A is at most half of another's."""
    rows, others = (At("fedpeft-similarity", row),), (At("fedpeft-similarity", other),)
    scores = (f"round/{measure}",)
    return (Better(rows, others, -math.inf, -50.0, scores=scores, relative=True, over_failed=True),)


_SETTINGS = (
    f"here MiniLM, r = {RANK}, {ROUNDS} rounds of AdamW; the paper used RoBERTa-large, r = 4 and hundreds of rounds of "
    "SGD in half precision"
)
_COMMENTS = (
    "FedPETuning's numbers for these tasks are comments in its script, and at α = 0.1 MRPC's are those of a single "
    "predicted class"
)
_COLLAPSES = "Runs that end up predicting a single class count; the notes of fedpeft-scores name them."
_UP_TO = "“up to” holds if some rank reaches it. Smaller ranks give larger factors, so this interpretation is lenient."
_EXISTING = ("fedit", "ffa-lora", "rolora", "flexlora")  # the baselines of FedRot-LoRA's tables

CLAIMS = (
    Claim(
        "1a",
        "FFA-LoRA is more accurate than FedIT",
        "our sentence; averages in FedRot-LoRA's Table 1 differ by −2.6 (+1.3 without SST-2, where a run seems to "
        "have failed), −1.0 and +0.4 points (3, 10, 50 clients)",
        _above("ffa-lora", "fedit"),
        is_question=True,
        reading="higher accuracy on SST-2, by any amount. Both share the head, and each has its own grid of learning "
        "rates. One learning rate trains adapter and head, so FFA-LoRA's head has five times FedIT's learning rate. "
        "FFA-LoRA's abstract claims consistency and efficiency, which claims 1b and 1c judge.",
        otherwise={
            f"no more than {_A_LITTLE:g} point below": _above("ffa-lora", "fedit", by=-_A_LITTLE),
            "head frozen at its initial values": _above("ffa-lora-frozen", "fedit"),
            "with one label per client": _above("ffa-lora", "fedit", table=_ONE_LABEL),
        },
        headline="FFA-LoRA's accuracy minus FedIT's is {value:.1f} points on SST-2, over 3 clients with Dirichlet "
        "label skew",
    ),
    Claim(
        "1b",
        "better computational efficiency over vanilla LoRA",
        "arXiv 2403.12313, abstract, of FFA-LoRA",
        _operations(100.0),
        reading="a client's training takes no more operations per text than FedIT's, by BERT-base's shapes.",
        otherwise={"at least 1 % fewer operations": _operations(99.0)},
    ),
    Claim(
        "1c",
        "more consistent performance",
        "arXiv 2403.12313, abstract, of FFA-LoRA",
        (Better((_drawn("ffa-lora"),), (_drawn("fedit"),), since=(_even("ffa-lora"), _even("fedit"))),),
        reading="it loses less than FedIT from balanced labels to Dirichlet label skew, on SST-2.",
    ),
    Claim(
        "2a",
        "further halve the communication cost",
        "arXiv 2403.12313, abstract, of FFA-LoRA",
        _cost("ffa-lora", "fedit", _ALONE, least=2, most=2),
        reading=f"half of FedIT's communication, for the adapter alone. {_COUNTED}",
        otherwise={
            "with the head (BERT's pooler and classifier), which both share": _cost("ffa-lora", "fedit", least=2)
        },
        headline="FFA-LoRA halves FedIT's communication if the shared head is not counted",
    ),
    Claim(
        "2b",
        "without increasing communication cost",
        "arXiv 2602.23638, abstract, of FedRot-LoRA",
        _percent("fedrot-lora", "fedit", 100),
        reading=f"no more communication than FedIT, with the head. {_COUNTED}",
    ),
    Claim(
        "3",
        "order-of-magnitude reduction in aggregation error",
        "caption of assets/agg_error.png in haoran-zh/FedRot-LoRA at commit 36a67ef2",
        _less_error(90.0),
        reading="FedRot-LoRA's error is at most a tenth of FedIT's on SST-2, both at FedIT's learning rate, because "
        "the error grows with the learning rate. The error is relative to the mean product. λ is 1; the paper does not "
        "state its λ.",
        caveats={"lite": _SETTINGS},
        otherwise={
            "lower by any amount": _less_error(0.0),
            "each at its tuned learning rate": _less_error(90.0, "fedrot-lora"),
        },
    ),
    Claim(
        "4",
        "consistently outperforms existing federated LoRA baselines across a range of heterogeneity levels and LoRA "
        "ranks",
        "arXiv 2602.23638, abstract, of FedRot-LoRA",
        _above("fedrot-lora", *_EXISTING),
        reading="above FedIT, FFA-LoRA, RoLoRA and FlexLoRA on SST-2, at one heterogeneity level and rank 8; each row "
        "has 8 trials. λ = 1 is the rotation of the abstract.",
        otherwise={"λ tuned": _above("fedrot-lora-soft", *_EXISTING), "above FedIT": _above("fedrot-lora", "fedit")},
    ),
    Claim(
        "5",
        "FedIT (without alignment) fails to converge across all datasets",
        "caption of assets/fedopt_style.png in haoran-zh/FedRot-LoRA at commit 36a67ef2, of FedIT with a server's Adam",
        _fails("fedit-adam"),
        reading=f"within twelve rounds, no more than {_A_LITTLE:g} point above the global majority class on SST-2. "
        "The server's learning rate is tuned from 1e-3 to 3e-2; the paper used 1e-3 or 1e-2.",
        caveats={"lite": f"{_SETTINGS}; a collapse after hundreds of rounds is not tested"},
        otherwise={
            "with one label per client": _fails("fedit-adam", _ONE_LABEL),
            "more than 5 points below FedIT": _below("fedit-adam", "fedit", by=5.0),
        },
    ),
    Claim(
        "6a",
        "A matrices are responsible for learning general knowledge, while B matrices focus on capturing "
        "client-specific knowledge",
        "arXiv 2410.01463, abstract, of FedSA-LoRA",
        _above("fedsa-lora-shared", "share-b"),
        reading="sharing A and keeping B local has higher local accuracy than sharing B and keeping A local, with a "
        "shared head, on SST-2. A local factor that knows the client's label distribution gains here, too; balanced "
        "accuracy does not reward that.",
        otherwise={
            "by balanced accuracy": tuple(
                replace(one, scores=("independent/accuracy",)) for one in _above("fedsa-lora-shared", "share-b")
            ),
            "with one label per client": _above("fedsa-lora-shared", "share-b", table=_ONE_LABEL),
        },
    ),
    Claim(
        "6b",
        "this similarity is largely attributable to the identical initialization rather than shared knowledge",
        "arXiv 2509.25414v1, of Fed-ALoRA, on the A of clients that train alone",
        _half_as_alike("local-lora-own-draws", "local-lora"),
        reading="for clients that train alone, the cosine of two clients' A is at most half as large with different "
        "initial A as with the same, on SST-2. Different draws lower the cosine in any case.",
        caveats={"lite": "a weak test, as the cosine depends on A's basis; the overlap of row spaces does not"},
        otherwise={
            "where B is shared": _half_as_alike("share-b-own-draws", "share-b"),
            "by the overlap of row spaces": _half_as_alike("local-lora-own-draws", "local-lora", "overlap_a"),
        },
    ),
    Claim(
        "7a",
        "exact updates with minimal computational and communication overhead",
        "arXiv 2410.09432v4, abstract, of FedEx-LoRA",
        _percent("fedex-lora", "fedit", _TENTH, _ALONE),
        reading=f"at most {_TENTH - 100:g} % more communication than FedIT, for the adapter alone, with the residual "
        f"in factors and 3 clients; the paper states no number. {_COUNTED}",
        otherwise={
            "with the head": _percent("fedex-lora", "fedit", _TENTH),
            "the residual dense, as in the authors' code": _percent("fedex-lora-dense", "fedit", _TENTH, _ALONE),
            "at most 10 % of full fine-tuning's": _percent("fedex-lora", "fedavg", 10, _ALONE),
            "at most 10 % of full fine-tuning's, 50 clients": _percent("fedex-lora", "fedavg", 10, {**_ALONE, "K": 50}),
        },
        headline="FedEx-LoRA's exact update takes {value:.0f} % of FedIT's communication with 3 clients if the shared "
        "head is not counted",
    ),
    Claim(
        "7b",
        "consistent performance gains over state-of-the-art methods",
        "arXiv 2410.09432v4, abstract, of FedEx-LoRA",
        _above("fedex-lora", "fedit", "ffa-lora"),
        reading=f"above FedIT and FFA-LoRA on SST-2. {_COLLAPSES}",
        otherwise={"above FedIT": _above("fedex-lora", "fedit")},
    ),
    Claim(
        "8a",
        "surpassing state-of-the-art methods",
        "arXiv 2409.05976v1, abstract, of FLoRA",
        _above("flora", "fedit"),
        reading=f"above FedIT, the method that it compares with, on SST-2. {_COLLAPSES}",
        otherwise={"with one label per client": _above("flora", "fedit", table=_ONE_LABEL)},
    ),
    Claim(
        "8b",
        "FLoRA is unstable and can't converge.",
        "issue 11 of ziyaow1010/FederatedLLM",
        _fails("flora"),
        reading=f"no more than {_A_LITTLE:g} point above the global majority class on SST-2. Claim 8a says the "
        f"opposite. The issue is about LLaMA. “Unstable” is not judged. {_COLLAPSES}",
        otherwise={
            "below FFA-LoRA (issue 15)": _below("flora", "ffa-lora"),
            "with one label per client": _fails("flora", _ONE_LABEL),
        },
    ),
    Claim(
        "8c",
        "Few steps per round hurt FLoRA",
        "our sentence; in issue 15 of ziyaow1010/FederatedLLM FLoRA is below FFA-LoRA with ten steps per round",
        (
            Better(
                (_work("flora-many"),),
                (_work("flora-few"),),
                _A_LITTLE,
                since=(_work("fedit-many"), _work("fedit-few")),
            ),
        ),
        is_question=True,
        reading=f"its gain over FedIT at 5 steps per round is more than {_A_LITTLE:g} point below that at 45 steps, on "
        "SST-2. A round is one epoch, so fewer steps have larger batches. Both use the learning rate "
        "tuned for 10 steps. In a pilot with 45 steps, FedIT predicted a single "
        "class at that learning rate; where it does, the claim is not testable. FLoRA below FFA-LoRA is an "
        "interpretation of claim 8b.",
    ),
    Claim(
        "8d",
        "noise-free",
        "arXiv 2409.05976v1, abstract, of FLoRA's aggregation",
        (AtMost((At(_AGGREGATION, "flora"),), "round/aggregation_error", _ROUNDING, ("sst2",)),),
        reading=f"FLoRA's aggregation error is at most {_ROUNDING:g} of the mean product's norm on SST-2, which leaves "
        "the rounding of sums in fp32.",
    ),
    Claim(
        "9",
        "as the data across users becomes more diverse, the gap between fully fine-tuning the model and employing PEFT "
        "methods widens",
        "arXiv 2308.06522, abstract, of SLoRA",
        _wider("fedit", "bitfit", "bottleneck", "prefix"),
        reading="FedAvg's gain over FedIT, BitFit, the adapter and the prefix is larger at α = 0.1 than at α = 10, "
        "over 100 clients, on SST-2 and MRPC. The consistency page compares FedPETuning's plotted numbers.",
        not_judged=_COMMENTS,
        otherwise={"over FedIT": _wider("fedit")},
    ),
    Claim(
        "10",
        "efficiently defend against privacy attacks and maintains acceptable performance",
        "ar5iv 2212.10025, abstract, of FedPETuning; the margin of 2 points is ours",
        tuple(
            similar(_skewed(f"{row}-1"), _skewed("fedavg-1"), within=2.0)
            for row in ("bottleneck", "fedit", "prefix", "bitfit")
        ),
        reading="performance: adapter, LoRA, prefix and BitFit within 2 points of full fine-tuning on SST-2 and MRPC, "
        "over 100 clients with α = 1. Attacks are not judged.",
        not_judged=_COMMENTS,
    ),
    Claim(
        "11a",
        "substantially enhances the robustness and effectiveness in multiple federated fine-tuning scenarios",
        "arXiv 2409.02346v1, abstract, of RoLoRA",
        _above("rolora", "fedit", by=_A_LITTLE),
        reading=f"at least {_A_LITTLE:g} point above FedIT on SST-2, with 3 clients.",
        otherwise={"with one label per client": _above("rolora", "fedit", by=_A_LITTLE, table=_ONE_LABEL)},
    ),
    Claim(
        "11b",
        "robustness and effectiveness",
        "arXiv 2409.02346v1, abstract, of RoLoRA",
        _above("rolora", "fedit", by=_A_LITTLE, table="fedpeft-fifty"),
        reading=f"at least {_A_LITTLE:g} point above FedIT on SST-2 with 50 clients of one label each. Their batches "
        "are smaller than those of 3 clients, whose learning rates they have.",
    ),
    Claim(
        "12a",
        "reducing communication costs by up to 230x",
        "arXiv 2502.15436, abstract, of Fed-SB",
        _cost("fed-sb", "fedit", {**_ALONE, "r": 6}, least=230),
        reading=f"{_UP_TO} FedIT's communication over Fed-SB's, for the adapter alone, both at rank 6. {_COUNTED} The "
        "abstract names no baseline and no rank; fedpeft-bytes shows at which ranks each interpretation reaches it.",
        otherwise={
            f"rank {RANK}": _cost("fed-sb", "fedit", _ALONE, least=230),
            "with the head": _cost("fed-sb", "fedit", least=230),
            "over FLoRA and FedEx-LoRA, 3 clients": _cost("fed-sb", "fedex-lora", _ALONE, least=230),
            "over full fine-tuning": _cost("fed-sb", "fedavg", _ALONE, least=230),
        },
    ),
    Claim(
        "12b",
        "can reduce the communication overhead by up to 2041×",
        "arXiv 2602.17095, abstract, of FLoRG",
        _cost("share-b", "fedavg", {**_ALONE, "r": 2}, least=2041),
        reading=f"{_UP_TO} FLoRG sends one factor per layer, as many bytes as the row "
        "that shares B, which replaces it here: full fine-tuning's communication over that row's, for the adapter "
        f"alone, at rank 2. {_COUNTED} The abstract names no baseline and no rank. FLoRG can send Gram matrices "
        "instead, which are not counted.",
        otherwise={
            f"rank {RANK}": _cost("share-b", "fedavg", _ALONE, least=2041),
            "over FedEx-LoRA, dense": _cost("share-b", "fedex-lora-dense", _ALONE, least=2041),
            "over FLoRA, 50 clients": _cost("share-b", "flora", {**_ALONE, "K": 50}, least=2041),
        },
    ),
)
