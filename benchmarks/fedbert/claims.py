"""FedBERT's checkable sentences. Quotations are literal, from the paper's text (TeX's signs as they print)."""

from __future__ import annotations

from functools import partial

from benchmarks.claims import At, AtMost, Better, Cheaper, Claim, CostShare, Similar, rising
from benchmarks.fedbert import claims_glue
from benchmarks.fedbert.claims_glue import (
    ALL,
    AVERAGED,
    FIVE,
    MATCHED,
    MISMATCHED,
    MNLI,
    MRPC,
    PARALLEL,
    QNLI,
    QQP,
    RTE,
    SLIGHTLY,
    SST2,
    STSB,
    TABLE_6_ALONE,
    above,
    figure8,
    perplexity,
    pretraining,
)

_table8, _figure9 = partial(At, "fedbert-table8"), partial(At, "fedbert-figure9")
_attacked = partial(At, "fedbert-inversion")

_MUCH_LESS = 10.0  # percent
_TWICE = 50.0  # percent of the rival's perplexity that is saved
_CORPUS = ("wikitext",)


def _period(row: str, better: tuple[tuple[str, ...], ...], worse: tuple[tuple[str, ...], ...]) -> tuple[Better, ...]:
    """Every 100 epochs above every 50 on the first tasks, below on the others; a pair of them is a task and a score."""
    long, short = _figure9(f"{row}-every-100"), _figure9(row)
    return tuple(
        Better((high,), (low,), tasks=(place[0],), scores=place[1:])
        for high, low, places in ((long, short, better), (short, long, worse))
        for place in places
    )


_EMD_PERIOD = _period("emdavg", (MRPC, STSB, SST2), (RTE, MNLI, QNLI, QQP))

CLAIMS = (
    *claims_glue.CLAIMS,
    Claim(
        "6a",
        "the share pattern gets a negligible decrease of 0.56 on PPL compared to centralized training",
        "section 5.1, of GPT",
        (Similar(_table8("share"), _table8("central"), within=0.56),),
        reading="negligible is no more than 0.56 apart, either way: of perplexity less is better, while the sentences "
        "around it speak of a loss.",
        otherwise={
            "0.56 lower, which is better": (Better((_table8("share"),), (_table8("central"),), by=0.555, most=0.565),),
            "0.56 worse": (Better((_table8("central"),), (_table8("share"),), by=0.555, most=0.565),),
            "within 2.3 % of it": (Similar(_table8("share"), _table8("central"), within=2.3, relative=True),),
        },
    ),
    Claim(
        "6b",
        "which are lower than single within 1 on PPL",
        "section 5.2, of EmdAvg and Head-Emd Avg on GPT",
        (Better((_table8("single"),), tuple(map(_table8, AVERAGED)), most=1.0),),
        reading="worse than Single Client, by no more than 1.",
        otherwise={
            "by no more than 2.6 % of it": (
                Better((_table8("single"),), tuple(map(_table8, AVERAGED)), most=2.6, relative=True),
            ),
            "with own transformers": (
                Better((_table8("single"),), (_table8("emdavg-own"), _table8("heavg-own")), most=1.0),
            ),
        },
    ),
    Claim(
        "6c",
        "the performance of EmdAvg and Head-Emd Avg patterns are similar",
        "section 5.2, on GPT",
        (Similar(_table8("emdavg"), _table8("heavg"), within=1.0),),
        reading="within 1 of perplexity; with a tied head both are one algorithm.",
    ),
    Claim(
        "6d",
        "the naive FedAvg seems not applicable for GPT pre-training, which dose not converge in our experiment",
        "section 5.2",
        (
            Better(
                tuple(map(_table8, ("central", "share", *AVERAGED, "single"))),
                (_table8("fedavg"),),
                by=_TWICE,
                relative=True,
            ),
        ),
        reading="FedAvg's perplexity is at least twice that of every other mode, Single Client's among them.",
        otherwise={
            "no better than how often each token stands": (Better((_table8("unigram"),), (_table8("fedavg"),)),),
            "no better than before": (Better((_table8("before"),), (_table8("fedavg"),)),),
        },
    ),
    Claim(
        "7a",
        "except RTE, other 6 tasks reveal a decreasing trend along with the increase of clients",
        "section 5.3",
        tuple(
            step
            for row in ("fedavg", "emdavg")
            for step in rising(
                (figure8(f"{row}-20"), figure8(row), figure8(f"{row}-5")), tuple(t for t in ALL if t not in RTE)
            )
        ),
        reading="20 clients below 10 below 5, of FedAvg and of EmdAvg, on each task but RTE; the text has no number.",
        otherwise={
            "perplexity": tuple(
                step
                for row in ("fedavg", "emdavg")
                for step in rising((pretraining(f"{row}-20"), pretraining(row), pretraining(f"{row}-5")))
            )
        },
    ),
    Claim(
        "7b",
        "FedAvg is better than EmdAvg on almost all tasks and the number of clients settings",
        "section 5.3",
        tuple(Better((figure8(f"fedavg{clients}"),), (figure8(f"emdavg{clients}"),)) for clients in ("-5", "", "-20")),
        reading="on all of them; which exceptions “almost” leaves is not said, and the text has no number.",
    ),
    Claim(
        "8a",
        "model averaged every 100 epochs outperforms 50 epochs in MNLI-MA, QQP, and SST-2",
        "section 5.4, of FedAvg, “and under-performs in RTE, MRPC, MNLI-MIS, and QNLI”",
        _period("fedavg", ((*MNLI, *MATCHED), QQP, SST2), (RTE, MRPC, (*MNLI, *MISMATCHED), QNLI)),
        reading="by any amount; RTE alone is stated in numbers.",
        otherwise={"RTE alone": _period("fedavg", (), (RTE,))},
    ),
    Claim(
        "8b",
        "The results of STS-B are both 75.4",
        "section 5.4, of FedAvg every 50 and every 100 epochs",
        (Similar(_figure9("fedavg-every-100"), _figure9("fedavg"), within=0.1, tasks=STSB),),
        reading="within 0.1 points, as both are rounded. Table 6 has 73.4 of FedAvg: see the audit.",
    ),
    Claim(
        "8c",
        "The biggest difference value 1.4 appears in RTE task",
        "section 5.4, of FedAvg",
        (Similar(_figure9("fedavg-every-100"), _figure9("fedavg"), within=1.4),),
        reading="no task differs by more than 1.4 points.",
        otherwise={"RTE alone": (Similar(_figure9("fedavg-every-100"), _figure9("fedavg"), 1.4, tasks=RTE),)},
    ),
    Claim(
        "8d",
        "model averaged every 50 epochs outperforms 100 in RTE, MNLI, QNLI, and QQP tasks",
        "section 5.4, of EmdAvg; every 100 “achieves better performance in MRPC, STS-B, and SST-2”",
        _EMD_PERIOD,
        reading="by any amount; RTE alone is stated in numbers.",
        otherwise={"RTE alone": _period("emdavg", (), (RTE,))},
    ),
    Claim(
        "8e",
        "the average period does not make much influence on the performance of the pre-trained models",
        "section 5.4",
        tuple(Similar(_figure9(f"{row}-every-100"), _figure9(row), within=2.5) for row in ("fedavg", "emdavg")),
        reading="not much is 2.5 points or less, the largest difference that the section calls so.",
        otherwise={
            "1 point": tuple(Similar(_figure9(f"{row}-every-100"), _figure9(row), 1.0) for row in ("fedavg", "emdavg")),
            "perplexity within 2 %": tuple(
                Similar(pretraining(f"{row}-every-100"), pretraining(row), within=2.0, relative=True)
                for row in ("fedavg", "emdavg")
            ),
        },
    ),
    Claim(
        "9",
        "the client in FSL can use less computing resources for training",
        "section 3.5, where T(W^E) + T(W^H) ≪ T(W^T) < T(W)",
        (
            CostShare(
                tuple(map(pretraining, ("share", *AVERAGED))),
                (pretraining("fedavg"),),
                "flops",
                _CORPUS,
                most=_MUCH_LESS,
            ),
        ),
        reading=f"much less is {_MUCH_LESS:g} % or less of FedAvg's client's FLOPs. Nothing is printed of it; Table 2 "
        "here has seconds, the audit what shapes give.",
        otherwise={
            "less at all": (
                CostShare(
                    tuple(map(pretraining, ("share", *AVERAGED))),
                    (pretraining("fedavg"),),
                    "flops",
                    _CORPUS,
                    most=100.0,
                ),
            )
        },
    ),
    Claim(
        "10",
        "sequential FSL has higher accuracy than parallel FSL",
        "section 3.5",
        above(("share",), PARALLEL),
        reading="Head-Emd Share above EmdAvg, Head-Emd Avg and Parallel FedAvg on every task of both tables, as 2b.",
        otherwise={
            TABLE_6_ALONE: above(("share",), PARALLEL, base=False),
            "GPT's perplexity": (Better((_table8("share"),), tuple(map(_table8, AVERAGED))),),
            "perplexity": perplexity("share", *PARALLEL),
        },
    ),
    Claim(
        "11",
        "which leads to slightly worse results on these five tasks",
        "section 5.1, of Head-Emd Share, whose learning rate had decayed to 0 midway",
        above(("central",), ("share",), FIVE, base=False, most=SLIGHTLY),
        reading=f"below Centralized, by no more than {SLIGHTLY:g} points, in Table 6. Here the schedule is as long as "
        "the run.",
        otherwise={
            "worse by any amount": above(("central",), ("share",), FIVE, base=False),
            "no more than 4 points": above(("central",), ("share",), FIVE, base=False, most=4.0),
        },
    ),
    Claim(
        "12",
        "the performance of federated pre-training under-performs the centralized one",
        "section 5.1, which finds it foreseeable",
        (*above(("central",), ("fedavg",)), Better((_table8("central"),), (_table8("fedavg"),))),
        reading="FedAvg below Centralized on every task, and above it in perplexity.",
        otherwise={
            "every federated mode": above(("central",), ("fedavg", "share", *PARALLEL)),
            "perplexity of RoBERTa": perplexity("central", "fedavg"),
        },
    ),
    Claim(
        "13",
        "parallel FSL and sequential FSL transmit the same amount of data",
        "section 3.5",
        (
            Cheaper(
                (pretraining("share"),),
                (pretraining("emdavg"),),
                0.99,
                _CORPUS,
                most=1.01,
                whole_run=True,
            ),
        ),
        reading="Head-Emd Share and EmdAvg within 1 % over the whole run, what is averaged and handed on included.",
        otherwise={
            "Head-Emd Avg": (
                Cheaper((pretraining("share"),), (pretraining("heavg"),), 0.99, _CORPUS, most=1.01, whole_run=True),
            )
        },
    ),
    Claim(
        "14",
        "the computational expensive layer is deployed on the powerful server with additional communication cost",
        "Conclusion",
        (
            Cheaper(
                (pretraining("fedavg"),), tuple(map(pretraining, ("share", *AVERAGED))), 1.0, _CORPUS, whole_run=True
            ),
        ),
        reading="FedAvg sends less over the whole run than each split mode; how much more is in Table 2 here.",
        otherwise={
            "a hundred times less": (
                Cheaper(
                    (pretraining("fedavg"),),
                    tuple(map(pretraining, ("share", *AVERAGED))),
                    100.0,
                    _CORPUS,
                    whole_run=True,
                ),
            )
        },
    ),
    Claim(
        "15",
        "users can protect sensitive data from sharing while using pre-trained models",
        "Conclusion",
        (
            AtMost(
                tuple(map(_attacked, ("nearest", "nearest-fp16", "inverter", "inverter-fp16"))),
                "test/text_recovery",
                percent=1.0,
                beside="test/token_recovery",
            ),
        ),
        reading="contradicted where the server, from the activations that it is sent, gets back more than 1 % of "
        "held-out texts whole, token by token; beside it the share of tokens.",
        headline=True,
    ),
)
