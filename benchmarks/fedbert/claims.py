"""FedBERT's checkable sentences. Quotations are literal, from the paper's text (TeX's signs as they print)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from benchmarks.claims import At, Better, Claim, CostBound, hides_texts, rising, similar
from benchmarks.fedbert import claims_glue as glue
from benchmarks.fedbert.claims_glue import above, figure8, perplexity, pretraining
from benchmarks.fedbert.paper import BLOCKS

_table2, _table8, _figure9 = (partial(At, f"fedbert-{name}") for name in ("table2", "table8", "figure9"))
_attacked = partial(At, "fedbert-inversion")

_MUCH_LESS = 10.0  # percent
_ACCEPTABLE = 5.0  # points
_CORPUS, _GPT_CORPUS = ("wikitext",), ("wikitext-causal",)
Relations = tuple[CostBound, ...]
_SPLIT_MODES = ("share", *glue.AVERAGED)


def _period(row: str, better: tuple[tuple[str, ...], ...], worse: tuple[tuple[str, ...], ...]) -> tuple[Better, ...]:
    """Every 100 epochs above every 50 on the first tasks, below on the others; a place is a task, maybe a score."""
    long, short = _figure9(f"{row}-every-100"), _figure9(row)
    return tuple(
        Better((high,), (low,), tasks=(place[0],), scores=place[1:])
        for high, low, places in ((long, short, better), (short, long, worse))
        for place in places
    )


def _similar_periods(at: Callable[[str], At], within: float, relative: bool = False) -> tuple[Better, ...]:
    """FedAvg and EmdAvg score similarly with both averaging periods."""
    rows = ("fedavg", "emdavg")
    return tuple(similar(at(f"{row}-every-100"), at(row), within, relative=relative) for row in rows)


def _fewer_clients_are_better(at: Callable[[str], At], tasks: tuple[str, ...] = ()) -> tuple[Better, ...]:
    """FedAvg and EmdAvg with 20 clients are below those with 10, and these below those with 5."""
    return tuple(
        step for row in ("fedavg", "emdavg") for step in rising((at(f"{row}-20"), at(row), at(f"{row}-5")), tasks)
    )


def _above_single(*rivals: str, most: float, relative: bool = False) -> Better:
    """GPT's Single Client is better than these modes, by no more than `most`."""
    return Better((_table8("single"),), tuple(map(_table8, rivals)), most=most, relative=relative)


def _cheaper(rows: tuple[str, ...], than: tuple[str, ...], factor: float, most: float = math.inf) -> Relations:
    """Modes send fewer bytes than others in a whole run of pre-training, with RoBERTa-small and with RoBERTa-base."""
    return tuple(
        CostBound(tuple(map(at, rows)), tuple(map(at, than)), tasks, least=factor, most=most, of="run", texts=BLOCKS)
        for at, tasks in ((pretraining, _CORPUS), (glue.table7, glue.RTE))
    )


def _client_flops(most: float) -> Relations:
    """A split client's FLOPs in percent of FedAvg's client's, with RoBERTa-small, RoBERTa-base and GPT-2."""
    return tuple(
        CostBound(tuple(map(at, _SPLIT_MODES)), (at("fedavg"),), tasks, most=most, of="flops", share=True)
        for at, tasks in ((pretraining, _CORPUS), (glue.table7, glue.RTE), (_table8, _GPT_CORPUS))
    )


CLAIMS = (
    *glue.CLAIMS,
    Claim(
        "6a",
        "the share pattern gets a negligible decrease of 0.56 on PPL compared to centralized training",
        "section 5.1, of GPT",
        (similar(_table8("share"), _table8("central"), within=0.56),),
        reading="negligible is within 0.56 either way. The text lists 0.56 among losses, but in Table 8 the perplexity "
        "of Head-Emd Share is 0.56 lower, and lower is better.",
        otherwise={
            "a gain: 0.56 lower": (Better((_table8("share"),), (_table8("central"),), by=0.555, most=0.565),),
            "a loss, as the text lists it: 0.56 higher": (
                Better((_table8("central"),), (_table8("share"),), by=0.555, most=0.565),
            ),
            "within 2.3 % of it": (similar(_table8("share"), _table8("central"), within=2.3, relative=True),),
        },
    ),
    Claim(
        "6b",
        "which are lower than single within 1 on PPL",
        "section 5.2, of EmdAvg and Head-Emd Avg on GPT",
        (_above_single(*glue.AVERAGED, most=1.0),),
        reading="worse than Single Client, by no more than 1.",
        otherwise={
            "by no more than 2.6 % of it": (_above_single(*glue.AVERAGED, most=2.6, relative=True),),
            "with own transformers": (_above_single("emdavg-own", "heavg-own", most=1.0),),
        },
    ),
    Claim(
        "6c",
        "the performance of EmdAvg and Head-Emd Avg patterns are similar",
        "section 5.2, on GPT",
        (similar(_table8("emdavg"), _table8("heavg"), within=1.0),),
        reading="perplexity within 1; with a tied head both are one algorithm.",
    ),
    Claim(
        "6d",
        "the naive FedAvg seems not applicable for GPT pre-training, which dose not converge in our experiment",
        "section 5.2",
        (
            Better(
                tuple(map(_table8, ("central", "share", *glue.AVERAGED, "single"))),
                (_table8("fedavg"),),
                by=50.0,  # percent of the rival's perplexity
                relative=True,
            ),
        ),
        reading="FedAvg's perplexity is at least twice that of every other mode, including Single Client.",
        otherwise={
            "no better than how often each token stands": (Better((_table8("unigram"),), (_table8("fedavg"),)),),
            "no better than before": (Better((_table8("before"),), (_table8("fedavg"),)),),
        },
    ),
    Claim(
        "7a",
        "except RTE, other 6 tasks reveal a decreasing trend along with the increase of clients",
        "section 5.3",
        _fewer_clients_are_better(figure8, tuple(task for task in glue.ALL if task not in glue.RTE)),
        reading="20 clients below 10, 10 below 5, for FedAvg and EmdAvg, on all but RTE; the text has no numbers.",
        otherwise={"perplexity": _fewer_clients_are_better(pretraining)},
    ),
    Claim(
        "7b",
        "FedAvg is better than EmdAvg on almost all tasks and the number of clients settings",
        "section 5.3",
        tuple(Better((figure8(f"fedavg{clients}"),), (figure8(f"emdavg{clients}"),)) for clients in ("-5", "", "-20")),
        reading="on all of them; the text names no exceptions and has no numbers.",
    ),
    Claim(
        "8a",
        "model averaged every 100 epochs outperforms 50 epochs in MNLI-MA, QQP, and SST-2",
        "section 5.4, of FedAvg, “and under-performs in RTE, MRPC, MNLI-MIS, and QNLI”",
        _period(
            "fedavg",
            ((*glue.MNLI, *glue.MATCHED), glue.QQP, glue.SST2),
            (glue.RTE, glue.MRPC, (*glue.MNLI, *glue.MISMATCHED), glue.QNLI),
        ),
        reading="by any amount; the text has numbers only for RTE.",
        otherwise={"RTE alone": _period("fedavg", (), (glue.RTE,))},
    ),
    Claim(
        "8b",
        "The results of STS-B are both 75.4",
        "section 5.4, of FedAvg every 50 and every 100 epochs",
        (similar(_figure9("fedavg-every-100"), _figure9("fedavg"), within=0.1, tasks=glue.STSB),),
        reading="within 0.1 points, as both are rounded. Table 6 has 73.4 for FedAvg: see the audit.",
    ),
    Claim(
        "8c",
        "The biggest difference value 1.4 appears in RTE task",
        "section 5.4, of FedAvg",
        (similar(_figure9("fedavg-every-100"), _figure9("fedavg"), within=1.4),),
        reading="no task differs by more than 1.4 points.",
        otherwise={"RTE alone": (similar(_figure9("fedavg-every-100"), _figure9("fedavg"), 1.4, tasks=glue.RTE),)},
    ),
    Claim(
        "8d",
        "model averaged every 50 epochs outperforms 100 in RTE, MNLI, QNLI, and QQP tasks",
        "section 5.4, of EmdAvg; every 100 “achieves better performance in MRPC, STS-B, and SST-2”",
        _period("emdavg", (glue.MRPC, glue.STSB, glue.SST2), (glue.RTE, glue.MNLI, glue.QNLI, glue.QQP)),
        reading="by any amount; the text has numbers only for RTE.",
        otherwise={"RTE alone": _period("emdavg", (), (glue.RTE,))},
    ),
    Claim(
        "8e",
        "the average period does not make much influence on the performance of the pre-trained models",
        "section 5.4",
        _similar_periods(_figure9, 2.5),
        reading="not much is at most 2.5 points, the largest difference for which the section says so.",
        otherwise={
            "1 point": _similar_periods(_figure9, 1.0),
            "perplexity within 2 %": _similar_periods(pretraining, 2.0, relative=True),
        },
    ),
    Claim(
        "9",
        "the client in FSL can use less computing resources for training",
        "section 3.5, where T(W^E) + T(W^H) ≪ T(W^T) < T(W)",
        _client_flops(_MUCH_LESS),
        reading=f"much less is {_MUCH_LESS:g} % or less of the FLOPs of FedAvg's client. The paper gives no number; "
        "our Table 2 has seconds, the audit has FLOPs by shapes.",
        otherwise={"less at all": _client_flops(100.0)},
    ),
    Claim(
        "10",
        "sequential FSL has higher accuracy than parallel FSL",
        "section 3.5",
        above(("share",), glue.PARALLEL),
        reading="Head-Emd Share above EmdAvg, Head-Emd Avg and Parallel FedAvg on every task of both tables, as 2b.",
        otherwise={
            glue.TABLE_6_ALONE: above(("share",), glue.PARALLEL, tables=glue.TABLE_6),
            "GPT's perplexity": (Better((_table8("share"),), tuple(map(_table8, glue.AVERAGED))),),
            "perplexity": perplexity("share", *glue.PARALLEL),
        },
    ),
    Claim(
        "11",
        "which leads to slightly worse results on these five tasks",
        "section 5.1, of Head-Emd Share, whose learning rate had decayed to 0 midway",
        above(("central",), ("share",), glue.FIVE, tables=glue.TABLE_6, most=glue.SLIGHTLY),
        reading=f"in Table 6 up to {glue.SLIGHTLY:g} points below Centralized. Here the schedule ends with the run.",
        otherwise={
            "worse by any amount": above(("central",), ("share",), glue.FIVE, tables=glue.TABLE_6),
            "no more than 4 points": above(("central",), ("share",), glue.FIVE, tables=glue.TABLE_6, most=4.0),
        },
    ),
    Claim(
        "12",
        "the performance of federated pre-training under-performs the centralized one",
        "section 5.1, which finds it foreseeable",
        (*above(("central",), ("fedavg",)), Better((_table8("central"),), (_table8("fedavg"),))),
        reading="FedAvg below Centralized on every task, and above it in perplexity.",
        otherwise={
            "every federated mode": above(("central",), ("fedavg", "share", *glue.PARALLEL)),
            "perplexity of RoBERTa": perplexity("central", "fedavg"),
        },
    ),
    Claim(
        "13",
        "parallel FSL and sequential FSL transmit the same amount of data",
        "section 3.5",
        _cheaper(("share",), ("emdavg",), 0.99, 1.01),
        reading="Head-Emd Share and EmdAvg within 1 % over the whole run, including what is averaged or passed on.",
        otherwise={"Head-Emd Avg": _cheaper(("share",), ("heavg",), 0.99, 1.01)},
    ),
    Claim(
        "14",
        "the computational expensive layer is deployed on the powerful server with additional communication cost",
        "Conclusion",
        _cheaper(("fedavg",), _SPLIT_MODES, 1.0),
        reading="FedAvg sends less over the whole run than each split mode; Table 2 here shows how much.",
        otherwise={"a hundred times less": _cheaper(("fedavg",), _SPLIT_MODES, 100.0)},
    ),
    Claim(
        "15",
        "users can protect sensitive data from sharing while using pre-trained models",
        "Conclusion",
        (hides_texts(map(_attacked, ("nearest", "nearest-fp16", "inverter", "inverter-fp16"))),),
        reading="contradicted if the server recovers all tokens of more than 1 % of held-out texts from the "
        "activations that it receives; we also show the share of tokens.",
        headline="A split-learning server recovers {value:.0f} % of held-out sentences word for word from the clients' "
        "embeddings, here those of MiniLM's pre-trained embedding layer",
    ),
    Claim(
        "16",
        "the data exchange between parallel FSL is N times faster than sequential FSL",
        "section 3.5",
        (CostBound((_table2("emdavg"),), (_table2("share"),), _CORPUS, least=10.0, of="time", texts=BLOCKS),),
        reading="a run with N = 10 clients, computed for typical networks and devices, with computation on both sides; "
        "the exchange alone is N times faster if every client has separate bandwidth.",
    ),
    Claim(
        "17",
        "keeps the state-of-the-art performance",
        "Conclusion",
        above(("share", *glue.PARALLEL), ("central",), by=-1.0),
        reading="each split mode no more than 1 point below Centralized on every task of Tables 6 and 7; the paper "
        "names no state of the art and no margin.",
        otherwise={
            "Head-Emd Share alone": above(("share",), ("central",), by=-1.0),
            glue.TABLE_6_ALONE: above(("share", *glue.PARALLEL), ("central",), tables=glue.TABLE_6, by=-1.0),
        },
    ),
    Claim(
        "18",
        "with an acceptable performance decrease",
        "section 1",
        above(("share", *glue.PARALLEL), ("central",), by=-_ACCEPTABLE),
        reading=f"each split mode no more than {_ACCEPTABLE:g} points below Centralized on every task of both "
        "tables; the paper states no margin; section 5.1 has a decrease around or below 5 %.",
        otherwise={
            "Head-Emd Share alone": above(("share",), ("central",), by=-_ACCEPTABLE),
            glue.TABLE_6_ALONE: above(("share", *glue.PARALLEL), ("central",), tables=glue.TABLE_6, by=-_ACCEPTABLE),
        },
    ),
    Claim(
        "19",
        "Among all the evaluated tasks, RTE is the most sensitive task to the average period",
        "section 5.4",
        tuple(
            similar(_figure9(f"{row}-every-100"), _figure9(row), most, tasks=(*glue.MRPC, *glue.FIVE))
            for row, most in (("fedavg", 1.4), ("emdavg", 2.5))
        ),
        reading="no other task differs by more than RTE's published 1.4 points (FedAvg) and 2.5 points (EmdAvg).",
    ),
)
