"""FedFreezeBERT's checkable sentences. Quotations are literal, from the paper's text (TeX's signs as they print)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from benchmarks.claims import At, AtMost, AverageBetter, Better, Cheaper, Claim, Similar

_table3 = partial(At, "fedfreezebert-table3")
_table4 = partial(At, "fedfreezebert-table4")
_inverted = partial(At, "fedfreezebert-inversion")
_layers = partial(At, "fedsplitbert-table4")
_REIMPLEMENTED = At("fedfreezebert-table2", "fedsplitbert-c8", printed="reimplementation")

_TWEETS = ("arsarcasm",)
_F1 = ("test/f1_pn",)  # Table 3 prints no other score
_ENGLISH = "the same ordering on SST-2, which no paper prints"
_TUNED = ("central", "fedavg", "fedprox", "fedsplitbert")  # methods that train the encoder
_D = ("d-fedavg", "d-fedprox")
_HEADS = ("ordinary", "average", "psum", "hsum")
_A_LITTLE = 2.0  # points
_RESULTS = "Results and analysis"
_COST_ROWS = (_table4("d-fedavg-psum"), _table4("c-psum"))
_COST_BASELINES = tuple(_table4(f"{method}-ordinary") for method in ("fedavg", "fedprox", "fedsplitbert"))
_COST_RIVALS = (*_COST_BASELINES, _table4("fedsplitbert-ordinary-fp16"))


def _with(head: str, *methods: str) -> tuple[At, ...]:
    """The rows of Table 3 of some methods with one aggregation architecture."""
    return tuple(_table3(f"{method}-{head}") for method in methods)


def _all_but(*rows: At) -> tuple[At, ...]:
    """Every other method and aggregation architecture of Table 3."""
    every = (row for head in _HEADS for row in _with(head, *_TUNED, *_D, "c"))
    return tuple(row for row in every if row not in rows)


def _above(rows: tuple[At, ...], than: tuple[At, ...], by: float = 0.0, relative: bool = False) -> Better:
    """Every row above every rival, by F1^PN on the paper's tweets."""
    return Better(rows, than, by=by, tasks=_TWEETS, scores=_F1, relative=relative)


def _changed(methods: tuple[str, ...], up: str, down: str, most: float = math.inf) -> tuple[Better, ...]:
    """Each method with one head is above itself with the other, by no more than so many points."""
    pairs = zip(_with(up, *methods), _with(down, *methods), strict=True)
    return tuple(Better((high,), (low,), most=most, tasks=_TWEETS, scores=_F1) for high, low in pairs)


def _english(claim: Claim) -> Claim:
    """The claim with its orderings by scores on the English column beside it.

    Gains that the paper states for its tweets are none of SST-2: there any gain counts. What is "a little" or
    "comparably" much stays so.
    """
    found = tuple(
        replace(one, by=min(one.by, 0.0), relative=False, tasks=("sst2-central",), scores=("test/accuracy",))
        for one in claim.relations
        if isinstance(one, Better) and one.tasks == _TWEETS
    )
    return replace(claim, otherwise={**claim.otherwise, _ENGLISH: found}) if found else claim


def _gain(row: At, than: At, factor: float, places: int = 1) -> tuple[Cheaper, ...]:
    return (Cheaper((row,), (than,), factor, ("arsarcasm",), places=places, whole_run=True),)


_C_PSUM, _C_HSUM = _table3("c-psum"), _table3("c-hsum")
_FEDERATED, _CENTRAL = _with("ordinary", "fedavg", "fedprox"), _with("ordinary", "central")
_SPLIT, _SPLIT_HSUM = _with("ordinary", "fedsplitbert"), _with("hsum", "fedsplitbert")

_SENTENCES = (
    Claim(
        "1a",
        "C-FedFreezeBERT with P-SUM achieved an improvement of 12.9%, 2.4%, and 1.2% over FedAvg/FedProx",
        _RESULTS,
        (_above((_C_PSUM,), _FEDERATED, 12.85, relative=True),),
        reading="relative to the rival with the ordinary aggregator; what rounds to 12.9 % or more.",
        is_source=True,
        otherwise={
            "a gain of the method and not of the learning rate: over FedAvg at the paper's frozen rate, too": (
                _above((_C_PSUM,), (*_FEDERATED, _table3("fedavg-ordinary-frozen-rate")), 12.85, relative=True),
            )
        },
    ),
    Claim(
        "1b",
        "2.4%, and 1.2% over FedAvg/FedProx, baseline central training",
        _RESULTS,
        (_above((_C_PSUM,), _CENTRAL, 2.35, relative=True),),
        reading="what rounds to 2.4 % of centralised training with the ordinary aggregator, or more.",
        is_source=True,
    ),
    Claim(
        "1c",
        "1.2% over FedAvg/FedProx, baseline central training, and FedSplitBERT respectively",
        _RESULTS,
        (_above((_C_PSUM,), _SPLIT, 1.15, relative=True),),
        reading="what rounds to 1.2 % of FedSplitBERT with the ordinary aggregator, or more; in print FedSplitBERT "
        "follows from 1f.",
    ),
    Claim(
        "1d",
        "an improvement of 12.4%, 2%, and 0.74% over FedAvg/FedProx",
        _RESULTS,
        (_above((_C_HSUM,), _FEDERATED, 12.35, relative=True),),
        reading="C-FedFreezeBERT with H-SUM; what rounds to 12.4 % or more; in print FedAvg follows from 1a.",
    ),
    Claim(
        "1e",
        "2%, and 0.74% over FedAvg/FedProx, baseline central training",
        _RESULTS,
        (_above((_C_HSUM,), _CENTRAL, 1.5, relative=True),),
        reading="C-FedFreezeBERT with H-SUM; what rounds to 2 % or more; reported centralised training is of 1b.",
    ),
    Claim(
        "1f",
        "0.74% over FedAvg/FedProx, baseline central training, and FedSplitBERT respectively",
        _RESULTS,
        (_above((_C_HSUM,), _SPLIT, 0.735, relative=True),),
        reading="C-FedFreezeBERT with H-SUM; what rounds to 0.74 % or more.",
        is_source=True,
    ),
    Claim(
        "2a",
        "FedSplitBERT with H-SUM is improved by 0.66% over the baseline FedSplitBERT",
        _RESULTS,
        (_above(_SPLIT_HSUM, _SPLIT, 0.655, relative=True),),
        reading="what rounds to 0.66 % or more.",
        is_source=True,
    ),
    Claim(
        "2b",
        "To make sure that the 0.66% is a relevant improvement",
        _RESULTS,
        (_above(_SPLIT_HSUM, _SPLIT),),
        reading="relevant is above chance: an interval wholly above 0; the printed deviations are in the audit.",
        is_source=True,
    ),
    Claim(
        "3a",
        "FedSplitBERT is the best baseline approach outperforming the central training approach",
        _RESULTS,
        (_above(_SPLIT, (*_CENTRAL, *_FEDERATED)),),
        reading="with the ordinary aggregator, which all baselines use.",
    ),
    Claim(
        "3b",
        "D-FedFreezeBERT gets very low",
        _RESULTS,
        (replace(_above(_with("ordinary", *_TUNED, "c"), _with("ordinary", *_D)), over_failed=True),),
        reading="very low is below every other method with the ordinary aggregator; no number is stated.",
    ),
    Claim(
        "3c",
        "its performance is much higher than D-FedFreezeBERT",
        _RESULTS,
        (replace(_above(_with("ordinary", "c"), _with("ordinary", *_D), by=5.0), over_failed=True),),
        reading="C-FedFreezeBERT with the ordinary aggregator; much higher is 5 points or more.",
    ),
    Claim(
        "4a",
        "When AverageAggregator is used, the central training performance degraded a little",
        _RESULTS,
        _changed(("central",), up="ordinary", down="average", most=_A_LITTLE),
        reading=f"below the ordinary aggregator, and by no more than {_A_LITTLE:g} points.",
    ),
    Claim(
        "4b",
        "FedSplitBERT performance degraded a little",
        _RESULTS,
        _changed(("fedsplitbert",), up="ordinary", down="average", most=_A_LITTLE),
        reading="the same with the average aggregator.",
    ),
    Claim(
        "4c",
        "Both D-FedFreezeBERT and C-FedFreezeBERT performance was enhanced because of using the AverageAggregator",
        _RESULTS,
        tuple(replace(one, over_failed=True) for one in _changed((*_D, "c"), up="average", down="ordinary")),
        reading="each above itself with the ordinary aggregator.",
    ),
    Claim(
        "5a",
        "The central training performance improved to achieve 74.63",
        _RESULTS,
        _changed(("central",), up="psum", down="ordinary"),
        reading="with P-SUM above itself with the ordinary aggregator.",
    ),
    Claim(
        "5b",
        "Both FedAvg and FedProx performance also improved compared to their counterparts with the OrdinaryAggregator",
        _RESULTS,
        _changed(("fedavg", "fedprox"), up="psum", down="ordinary"),
        reading="with P-SUM.",
    ),
    Claim(
        "5c",
        "For FedSplitBERT, the performance was enhanced with P-SUM by a little margin",
        _RESULTS,
        _changed(("fedsplitbert",), up="psum", down="ordinary", most=_A_LITTLE),
        reading=f"above the ordinary aggregator, and by no more than {_A_LITTLE:g} points.",
    ),
    Claim(
        "5d",
        "as expected they cannot exceed the central training performance",
        _RESULTS,
        (_above(_with("psum", "central"), _with("psum", "fedavg", "fedprox")),),
        reading="FedAvg and FedProx with P-SUM are below centralised training with P-SUM.",
    ),
    Claim(
        "5e",
        "its performance couldn’t exceed the central training performance",
        _RESULTS,
        (_above(_with("psum", "central"), _with("psum", "fedsplitbert")),),
        reading="FedSplitBERT with P-SUM is below centralised training with P-SUM.",
    ),
    Claim(
        "6a",
        "central training, FedAvg, and FedProx get a performance enhancement compared to their baselines counterparts",
        _RESULTS,
        _changed(("central", "fedavg", "fedprox"), up="hsum", down="ordinary"),
        reading="with H-SUM above themselves with the ordinary aggregator.",
    ),
    Claim(
        "6b",
        "When they are compared with the P-SUM results, it can be observed that their performance degrades",
        _RESULTS,
        _changed(("central", "fedavg", "fedprox"), up="psum", down="hsum"),
        reading="centralised training, FedAvg and FedProx with H-SUM are below themselves with P-SUM.",
    ),
    Claim(
        "6c",
        "D-FedFreezeBERT’s performance increased a little with H-SUM compared to its performance with P-SUM",
        _RESULTS,
        _changed(_D, up="hsum", down="psum", most=_A_LITTLE),
        reading=f"above P-SUM, and by no more than {_A_LITTLE:g} points.",
    ),
    Claim(
        "7a",
        "a new state-of-the-art on ArSarcasm-v2 in a Federated Learning setting",
        _RESULTS,
        (_above((_C_PSUM,), _all_but(_C_PSUM)),),
        reading="C-FedFreezeBERT with P-SUM above every other cell of Table 3, centralised training included.",
    ),
    Claim(
        "7b",
        "exceeding also all other approaches - except for C-FedFreezeBERT with P-SUM",
        _RESULTS,
        (_above((_C_HSUM,), _all_but(_C_PSUM, _C_HSUM)),),
        reading="C-FedFreezeBERT with H-SUM above every other cell of Table 3 but that one.",
    ),
    Claim(
        "8a",
        "D-FedFreezeBERT achieves a communication gain of 5.7× and 4.7 × compared to FedAvg",
        _RESULTS,
        _gain(_COST_ROWS[0], _COST_BASELINES[0], 5.7),
        reading="all bytes of a run, both directions, with P-SUM; the ratio is rounded to one decimal. In print by "
        "equations 1 and 5; ours by what the real channel carries for the paper's encoder, at every scale.",
    ),
    Claim(
        "8b",
        "4.7 × compared to FedAvg and FedSplitBERT respectively",
        _RESULTS,
        _gain(_COST_ROWS[0], _COST_BASELINES[2], 4.7),
        reading="as 8a; in print by equations 1 and 3.",
    ),
    Claim(
        "8c",
        "C-FedFreezeBERT achieves a communication gain of 6.2× and 5× compared to FedAvg",
        _RESULTS,
        _gain(_COST_ROWS[1], _COST_BASELINES[0], 6.2),
        reading="as 8a, in print by equations 2 and 5. Equation 2 counts the embeddings of one layer; P-SUM reads "
        "four, which are sent.",
        headline=True,
    ),
    Claim(
        "8d",
        "5× compared to FedAvg and FedSplitBERT respectively",
        _RESULTS,
        _gain(_COST_ROWS[1], _COST_BASELINES[2], 5.0, places=0),
        reading="as 8c, rounded to a whole number; in print by equations 2 and 3.",
    ),
    Claim(
        "8e",
        "the most cost-effective approach that integrates BERT within a Federated Learning environment",
        "Introduction",
        (Cheaper(_COST_ROWS[:1], _COST_RIVALS, 1.0, ("arsarcasm",), whole_run=True),),
        reading="D-FedFreezeBERT with P-SUM sends fewer bytes in a run than every baseline of Table 4, and than "
        "FedSplitBERT in half precision, which its authors offer.",
    ),
    Claim(
        "8f",
        "FedFreezeBERT is the most cost-effective framework regarding communication costs",
        "Conclusion and future work",
        (Cheaper(_COST_ROWS[1:], _COST_RIVALS, 1.0, ("arsarcasm",), whole_run=True),),
        reading="the same of C-FedFreezeBERT with P-SUM.",
    ),
    Claim(
        "9",
        "having BERT contextual embeddings for a sentence, one cannot get back the original sentence",
        "Methodology, C-FedFreezeBERT",
        (
            AtMost(
                tuple(map(_inverted, ("last", "last-fp16", "last-four", "last-four-fp16"))),
                "test/text_recovery",
                percent=1.0,
                beside="test/token_recovery",
            ),
        ),
        reading="contradicted where a trained inverter gets back more than 1 % of held-out texts whole, token by "
        "token; beside it the share of tokens. At lite scale of tweets, and of SST-2 by a deeper encoder.",
        caveats={"lite": "the Arabic encoder has four layers, so its last four are all it has; SST-2's has six"},
        headline=True,
    ),
    Claim(
        "10",
        "on average, the best number of layers to be included in the global part is 8",
        "Introduction",
        (AverageBetter((_layers("c8"),), tuple(map(_layers, ("c12", "c10", "c6", "c4", "c0"))), by=0.0),),
        reading="a statement on FedSplitBERT's Table IV: the average of its row c = 8 above every other row's.",
    ),
    Claim(
        "11",
        "our implementation gives almost identical accuracy on SST-2",
        "Baseline methods",
        (Similar(_REIMPLEMENTED, _layers("c8"), within=1.0, tasks=("sst2",), scores=("test/accuracy",)),),
        reading="almost identical is within 1 point. In print the original's 93.27 stands alone; ours: embeddings "
        "exchanged, as here, against frozen, as the original's bytes imply.",
    ),
    Claim(
        "12",
        "Table 3 shows that both FedAvg and FedProx get low performance compared to the central training approach",
        _RESULTS,
        (_above(_CENTRAL, _FEDERATED),),
        reading="low is below centralised training, with the ordinary aggregator.",
    ),
    Claim(
        "13",
        "hence their performance also degraded with AverageAggregator compared to OrdinaryAggregator",
        _RESULTS,
        _changed(("fedavg", "fedprox"), up="ordinary", down="average"),
        reading="FedAvg and FedProx with the average aggregator are below themselves with the ordinary one.",
    ),
    Claim(
        "14",
        "D-FedFreezeBERT achieved a comparably high",
        _RESULTS,
        (_above(_with("psum", *_D), _with("psum", "central"), by=-5.0),),
        reading="with P-SUM, no more than 5 points below centralised training with P-SUM; no number is stated.",
    ),
    Claim(
        "15",
        "the communication cost is still not reduced by a great factor compared to",
        "Introduction",
        (Cheaper(_COST_BASELINES[2:], _COST_BASELINES[:1], 1.0, ("arsarcasm",), whole_run=True, most=2.0),),
        reading="FedSplitBERT with c = 8 sends fewer bytes in a run than FedAvg, and no less than half of them; in "
        "print by equations 3 and 5.",
    ),
)

CLAIMS = tuple(map(_english, _SENTENCES))
