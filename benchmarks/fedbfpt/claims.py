"""FedBFPT's checkable sentences. Quotations are literal, from the paper's text (TeX's signs as they print)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from benchmarks.claims import At, Better, Claim, CostBound, PublishedColumn, Relation, rising, similar

_table3 = partial(At, "fedbfpt-table3")
_skew = partial(At, "fedbfpt-table6")
_pretraining = partial(At, "fedbfpt-pretraining")  # the cells with Tables 2, 4 and 5's costs, and every row
_timed = partial(At, "fedbfpt-table2")  # one timed run of all its rows
_sizes = partial(At, "fedbfpt-appendix5")  # the encoder before training, on uniform and on skewed datasets

_COMPARABLE, _A_LITTLE, _CRUCIAL, _NOT_MUCH = 2.0, 2.0, 1.0, 1.0  # points
_SIGNIFICANT = 110.0  # percent: a tenth more
_OURS, _FL, _CENTRAL, _BERT = map(_table3, ("fedbfpt", "bert-fl", "bert-c", "bert"))
_PRETRAINED = ("bert-c", "bert-fl", "fedbfpt")
_LIGHT = ("distilbert", "tinybert-6", "tinybert-4")
_SAMPLING = ("fedbfpt-no-m", "fedbfpt-no-s")
_PARTS = ("fedbfpt-no-pl", *_SAMPLING)  # published in all three domains
_SUCCESSIVE = "fedbfpt-no-sp"  # published only for computer science
_DEEPEST = "fedbfpt-deepest"  # not published
_BIOLOGY, _SCIENCE, _MEDICINE = "fedbfpt-appendix1", "fedbfpt-table4", "fedbfpt-appendix2"  # the ablations
_ABLATIONS = (_SCIENCE, _BIOLOGY, _MEDICINE)
_DEPTHS = ("fedbfpt-table5", "fedbfpt-appendix3", "fedbfpt-appendix4")
_CORPUS = ("corpus-computer-science",)  # as in Tables 4 and 5; cost ratios are equal in all domains
_BY_SHAPES = (
    "Published values are seconds and megabytes (Tables 2, 4 and 5); ours are a client's FLOPs and bytes with the "
    "paper's encoder and texts of full length."
)


def _cost(row: str, *than: str, of: str, table: str = "Table 2", **bounds: float) -> CostBound:
    """A row's cost of further pre-training in percent of the others'."""
    at = _timed if of == "seconds" else _pretraining
    costs = PublishedColumn(table, "communication_mb" if of == "round" else "computation_seconds")
    rows, rivals = (at(row),), tuple(map(at, than))
    return CostBound(rows, rivals, _CORPUS, of=of, share=True, costs=costs, **bounds)  # type: ignore[arg-type]


def _costs(row: str, *than: str, table: str = "Table 2", **bounds: float) -> tuple[CostBound, ...]:
    """Computation and communication, both within the same bounds."""
    return tuple(_cost(row, *than, of=of, table=table, **bounds) for of in ("flops", "round"))


def _above(tables: tuple[str, ...], *rivals: str, by: float = 0.0) -> tuple[Better, ...]:
    """FEDBFPT above these rows of each table."""
    return tuple(Better((At(table, "fedbfpt"),), tuple(At(table, row) for row in rivals), by=by) for table in tables)


def _order(tables: tuple[str, ...], *rows: str) -> tuple[Relation, ...]:
    """In each table every row is better than the one before it."""
    return tuple(step for table in tables for step in rising(tuple(At(table, row) for row in rows)))


def _same_perplexity(row: str, other: str) -> tuple[Better, ...]:
    """Perplexity within 2 percent of another row's."""
    return (similar(_pretraining(row), _pretraining(other), within=2.0, relative=True),)


def _perplexity(row: str, *rivals: str) -> tuple[Better, ...]:
    """Lower perplexity of held-out passages in all three domains, which the paper does not measure."""
    return (Better((_pretraining(row),), tuple(map(_pretraining, rivals))),)


CLAIMS = (
    Claim(
        "1a",
        "FEDBFPT achieves performance levels comparable to traditional FL methods",
        "Abstract; sections 1, 5.2 and 6",
        (similar(_OURS, _FL, within=_COMPARABLE),),
        reading=f"comparable is within {_COMPARABLE:g} points of BERT-FL on every task; the paper states no margin. "
        "Its BERT without further pre-training is within 1.1 points of BERT-FL, too.",
        otherwise={
            "within 1 point": (similar(_OURS, _FL, within=1.0),),
            "within 2 % of BERT-FL's score": (similar(_OURS, _FL, within=2.0, relative=True),),
            "no more than 1 point below": (Better((_OURS,), (_FL,), by=-1.0),),
            "perplexity within 2 % of BERT-FL's": _same_perplexity("fedbfpt", "bert-fl"),
        },
    ),
    Claim(
        "1b",
        "even approaching the performance of centralized training models",
        "Abstract; section 1",
        (Better((_OURS,), (_CENTRAL,), by=-_COMPARABLE),),
        reading=f"no more than {_COMPARABLE:g} points below BERT-C on every task; the paper states no number.",
        otherwise={
            "no more than 1 point below": (Better((_OURS,), (_CENTRAL,), by=-1.0),),
            "perplexity within 2 % of BERT-C's": _same_perplexity("fedbfpt", "bert-c"),
        },
    ),
    Claim(
        "1c",
        "Can such a method achieve the accuracy of traditional FL or even centralized training?",
        "section 1, answered “Yes.”",
        (similar(_OURS, _FL, within=1.0), similar(_OURS, _CENTRAL, within=1.0)),
        reading="to achieve an accuracy is to be within 1 point of BERT-FL and of BERT-C on every task.",
        otherwise={
            "BERT-FL alone": (similar(_OURS, _FL, within=1.0),),
            "above both by any amount": (Better((_OURS,), (_FL, _CENTRAL)),),
            "perplexity": _perplexity("fedbfpt", "bert-fl"),
        },
    ),
    Claim(
        "1d",
        "all pass the t-test, showing that the two methods are comparable",
        "footnote 3",
        (similar(_OURS, _FL, within=1.0, p_values="Text"),),
        reading="published: p > 0.05. With few seeds different methods pass this test too, so runs are judged by "
        "what it should show: within 1 point, the protocol's margin; p is shown next to it.",
    ),
    Claim(
        "2a",
        "only using 46.70% of the computational cost",
        "section 5.2; Abstract; section 1",
        (_cost("fedbfpt", "bert-fl", of="flops", most=46.7, places=2),),
        reading=f"at most 46.70 % of BERT-FL's, rounded to two decimals. The paper measures cost as time. {_BY_SHAPES}",
        otherwise={
            "exactly 46.70 %": (_cost("fedbfpt", "bert-fl", of="flops", least=46.7, most=46.7, places=2),),
            "at most 46.70 % of the time": (_cost("fedbfpt", "bert-fl", of="seconds", most=46.7, places=2),),
        },
        headline="A FedBFPT client computes {value:.1f} % of the operations of training the whole model; the paper "
        "measured {published:.1f} % of the time",
    ),
    Claim(
        "2b",
        "and 7.04% of the communication cost of BERT-FL",
        "section 5.2, TeX's marks left out; Abstract; section 1",
        (_cost("fedbfpt", "bert-fl", of="round", least=7.04, most=7.04, places=2),),
        reading=f"what rounds to 7.04 %. {_BY_SHAPES}",
    ),
    Claim(
        "2c",
        "reducing computation and communication costs by 46.70% and 7.04%, respectively",
        "Abstract",
        tuple(
            _cost("fedbfpt", "bert-fl", of=of, least=100 - percent, most=100 - percent, places=2)
            for of, percent in (("flops", 46.7), ("round", 7.04))
        ),
        reading="literally: reduced by these shares, to 53.30 % and 92.96 %. Sections 1 and 5.2 say to these shares. "
        "The numbers shown are the shares that remain.",
    ),
    Claim(
        "3a",
        "Our method outperforms other lightweight BERT models",
        "section 5.2",
        (Better((_OURS,), tuple(map(_table3, _LIGHT))),),
        reading="above DistilBERT, TinyBERT-6 and TinyBERT-4 on every task.",
        caveats={"lite": "their checkpoints are not available"},
    ),
    Claim(
        "3b",
        "and requires fewer resources",
        "section 5.2",
        _costs("fedbfpt", *_LIGHT, most=100.0),
        reading=f"no more computation and communication than each of the three. {_BY_SHAPES}",
        otherwise={
            "computation alone": (_cost("fedbfpt", *_LIGHT, of="flops", most=100.0),),
            "communication alone": (_cost("fedbfpt", *_LIGHT, of="round", most=100.0),),
        },
    ),
    Claim(
        "3c",
        "our method has lower computational and communication costs compared to other models",
        "section 5.4",
        _costs("fedbfpt", "bert-fl", *_LIGHT, most=100.0),
        reading=f"the same with BERT-FL among the others. {_BY_SHAPES}",
    ),
    Claim(
        "4a",
        "better performance on specialized domain tasks after undergoing further pre-training",
        "section 1",
        (Better((_CENTRAL, _FL, _OURS), (_BERT,)),),
        reading="BERT-C, BERT-FL and FEDBFPT each above BERT in each domain.",
        otherwise={
            "BERT-C alone": (Better((_CENTRAL,), (_BERT,)),),
            "BERT-FL alone": (Better((_FL,), (_BERT,)),),
            "FEDBFPT alone": (Better((_OURS,), (_BERT,)),),
            "somewhere (“can yield”)": (Better((_CENTRAL, _FL, _OURS), (_BERT,), some=True),),
            "perplexity": (Better(tuple(map(_pretraining, _PRETRAINED)), (_pretraining("before"),)),),
        },
    ),
    Claim(
        "5a",
        "All these contribute to the decent model performance of FEDBFPT with limited resources",
        "section 5.2",
        (*_above(_ABLATIONS, *_PARTS), *_above((_SCIENCE,), _SUCCESSIVE)),
        reading=r"FEDBFPT above itself without \PL, \M and \S in each domain, and \SP in computer science, the only "
        "domain in which it is published.",
        otherwise={
            r"with \SP in each domain": _above(_ABLATIONS, *_PARTS, _SUCCESSIVE),
            "perplexity": _perplexity("fedbfpt", *_PARTS, _SUCCESSIVE),
        },
    ),
    Claim(
        "5b",
        "efficiently complete further pre-training with a minimal amount of resources",
        "section 5.3",
        _costs("fedbfpt", "fedbfpt-all", *_PARTS, _SUCCESSIVE, table="Table 4", most=100.0),
        reading=f"no row of Table 4 costs less; four published costs are equal. {_BY_SHAPES}",
    ),
    Claim(
        "5c",
        "sampling and mapping deeper T-layers on each iteration are crucial for achieving good performance",
        "section 5.3",
        _above(_ABLATIONS, *_SAMPLING, by=_CRUCIAL),
        reading=rf"crucial is at least {_CRUCIAL:g} point above \M, which maps no deeper layer, and \S, which does not "
        "draw in each iteration, in each domain; the paper states no number.",
        otherwise={
            "Table 4 alone": _above((_SCIENCE,), *_SAMPLING, by=_CRUCIAL),
            r"\S is the worst of all": tuple(
                Better(
                    tuple(At(table, row) for row in ("fedbfpt", "fedbfpt-all", "fedbfpt-no-pl", "fedbfpt-no-m")),
                    (At(table, "fedbfpt-no-s"),),
                )
                for table in _ABLATIONS
            ),
            "perplexity, any amount": _perplexity("fedbfpt", *_SAMPLING),
        },
    ),
    Claim(
        "5d",
        "achieves the least computational and communication cost",
        "appendix, section 1.2",
        (
            *_costs("fedbfpt", "fedbfpt-all", *_PARTS, table="Appendix Table 1", most=100.0),
            *_costs("fedbfpt", "fedbfpt-all", *_PARTS, table="Appendix Table 2", most=100.0),
        ),
        reading=f"no row of these tables costs less. {_BY_SHAPES}",
    ),
    Claim(
        "5e",
        "as well as the highest accuracy",
        "appendix, section 1.2",
        _above((_BIOLOGY, _MEDICINE), "fedbfpt-all", *_PARTS),
        reading="above every other published row of tables 1 and 2 of the appendix; in biology by F1.",
    ),
    Claim(
        "5f",
        "These results are consistent with what we have presented in Section 5.3",
        "appendix, section 1.2",
        _order((_BIOLOGY, _MEDICINE), "fedbfpt-no-s", "fedbfpt-no-m", "fedbfpt-all", "fedbfpt-no-pl", "fedbfpt"),
        reading=r"consistent is Table 4's order from the lowest to the highest: \S, \M, ALL, \PL, FEDBFPT.",
        otherwise={"FEDBFPT is the best": _above((_BIOLOGY, _MEDICINE), "fedbfpt-all", *_PARTS)},
    ),
    Claim(
        "5g",
        "this does not bring much performance gain",
        "footnote 1, on training more than one T-layer at an iteration",
        tuple(
            Better((At(table, "fedbfpt-all"),), (At(table, "fedbfpt"),), by=-math.inf, most=_NOT_MUCH)
            for table in _ABLATIONS
        ),
        reading=f"FEDBFPT-ALL, which trains all local layers, is no more than {_NOT_MUCH:g} point above FEDBFPT.",
    ),
    Claim(
        "5h",
        "but increase the client’s computational and communication cost significantly",
        "footnote 1",
        _costs("fedbfpt-all", "fedbfpt", table="Table 4", least=_SIGNIFICANT),
        reading=f"FEDBFPT-ALL costs at least a tenth more than FEDBFPT. {_BY_SHAPES}",
    ),
    Claim(
        "6a",
        "the value of 6 we chose effectively balances the trade-off between overhead and performance",
        "section 5.4; appendix, section 1.3",
        (*_above(_DEPTHS, "fedbfpt-4", "fedbfpt-8"), *_costs("fedbfpt", "fedbfpt-8", table="Table 5", most=100.0)),
        reading=f"local models of 6 layers score above those of 4 and 8 and cost no more than those of 8. {_BY_SHAPES}",
        otherwise={
            "no more than 1 point below depth 8, above depth 4": (
                *_above(_DEPTHS, "fedbfpt-4"),
                *_above(_DEPTHS, "fedbfpt-8", by=-1.0),
            ),
            "perplexity": _perplexity("fedbfpt", "fedbfpt-4", "fedbfpt-8"),
        },
    ),
    Claim(
        "6b",
        "The additional results exhibit a similar trend as that reported in Section 5.4",
        "appendix, section 1.3",
        _order(_DEPTHS[1:], "fedbfpt-4", "fedbfpt-8", "fedbfpt"),
        reading="in the order of Table 5: depth 4 below depth 8 below depth 6.",
    ),
    Claim(
        "6c",
        "a smaller m_k^L will reduce C_k's computational cost",
        "section 3.1",
        tuple(
            _cost(low, high, of="flops", table="Table 5", most=100.0)
            for low, high in (("fedbfpt-4", "fedbfpt"), ("fedbfpt", "fedbfpt-8"))
        ),
        reading=f"depth 4 against 6, and 6 against 8. {_BY_SHAPES}",
    ),
    Claim(
        "6d",
        "as well as the final performance of the global model",
        "section 3.1, of a smaller m_k^L",
        _order(_DEPTHS, "fedbfpt-4", "fedbfpt", "fedbfpt-8"),
        reading="a smaller local depth scores lower: 4 below 6 below 8 in each domain; 6a contradicts it.",
    ),
    Claim(
        "6e",
        "communication cost while reducing the final performance of the global model as well",
        "section 3.1, of a smaller m_k^T",
        (
            *(Better((At(table, "fedbfpt-all"),), (At(table, "fedbfpt"),)) for table in _ABLATIONS),
            _cost("fedbfpt", "fedbfpt-all", of="round", table="Table 4", most=100.0),
        ),
        reading="one trained layer (FEDBFPT) sends less than six (FEDBFPT-ALL), and scores lower in each domain.",
    ),
    Claim(
        "7",
        "the uneven distribution may result in some loss of model performance, our method still performs well",
        "section 5.4",
        (Better((_skew("fedbfpt-skewed"),), (_skew("fedbfpt"),), by=-_A_LITTLE),),
        reading=f"skewed sizes cost at most {_A_LITTLE:g} points on any task. The audit checks the sum of the parts. "
        "Held-out passages differ, so perplexities are compared with those before training on the same passages.",
        otherwise={
            "no more than 1 point": (Better((_skew("fedbfpt-skewed"),), (_skew("fedbfpt"),), by=-1.0),),
            "some loss, and a little": (Better((_skew("fedbfpt"),), (_skew("fedbfpt-skewed"),), most=_A_LITTLE),),
            "perplexity's gain over before training within 2 percentage points": (
                replace(*_same_perplexity("fedbfpt-skewed", "fedbfpt"), since=(_sizes("skewed"), _sizes("uniform"))),
            ),
        },
    ),
    Claim(
        "8",
        "focusing more on the shallow layers during the further pre-training phase",
        "section 5.4, where it “is effective”; Abstract: they “are crucial in the pre-training stage”",
        _above((_SCIENCE,), _SUCCESSIVE),
        reading=r"more rounds for shallower layers (FEDBFPT) against one round for each (\SP). The paper compares no "
        "deep layer alone with a shallow one; a row of ours does.",
        otherwise={
            "in each domain": _above(_ABLATIONS, _SUCCESSIVE),
            r"the shallowest alone (\PL) above a round for each": _order(_ABLATIONS, _SUCCESSIVE, "fedbfpt-no-pl"),
            "perplexity": _perplexity("fedbfpt", _SUCCESSIVE),
            r"the shallowest alone (\PL) above the local model's deepest": _order(
                _ABLATIONS, _DEEPEST, "fedbfpt-no-pl"
            ),
            "the same by perplexity": _perplexity("fedbfpt-no-pl", _DEEPEST),
        },
    ),
)
