"""FedBERT's sentences on Tables 6 and 7, the first five of its claims. Quotations are literal."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from benchmarks.claims import At, Better, Claim, Relation, similar

_table6, table7, _table8 = (partial(At, f"fedbert-table{number}") for number in (6, 7, 8))
figure8, pretraining = partial(At, "fedbert-figure8"), partial(At, "fedbert-pretraining")

_SAME, SLIGHTLY, _AROUND_5 = 1.0, 2.0, 5.5  # points
_ABOUT_1 = (0.5, 1.5)
RTE, MRPC, STSB = ("rte-central",), ("mrpc-central",), ("stsb-central",)
QNLI, QQP, SST2, MNLI = ("qnli-central",), ("qqp-central",), ("sst2-whole-central",), ("mnli-central",)
FIVE = (*MNLI, *QNLI, *QQP, *STSB, *SST2)
ALL = (*RTE, *MRPC, *FIVE)
MATCHED, MISMATCHED = ("test/accuracy",), ("mismatched/accuracy",)
AVERAGED = ("emdavg", "heavg")
PARALLEL = (*AVERAGED, "parallel-fedavg")
_ANY_CLIENTS = ("fedavg-5", "fedavg", "fedavg-20", "emdavg-5", "emdavg", "emdavg-20")
TABLE_6_ALONE = "Table 6 alone"


def above(
    rows: tuple[str, ...],
    rivals: tuple[str, ...],
    tasks: tuple[str, ...] = (),
    small: bool = True,
    base: bool = True,
    **bounds: Any,
) -> tuple[Better, ...]:
    """Rows above rivals in Table 6 (small) and Table 7 (base), which has no Parallel FedAvg."""
    tables = [(_table6, ())] * small + [(table7, ("parallel-fedavg",))] * base
    sides = (([at(row) for row in rows if row not in absent] for rows in (rows, rivals)) for at, absent in tables)
    return tuple(Better(tuple(better), tuple(worse), tasks=tasks, **bounds) for better, worse in sides)


def _above_all(*args: Any, **options: Any) -> tuple[Better, ...]:
    """Centralised pre-training above every other mode."""
    return above(("central",), ("fedavg", "share", *PARALLEL, "single"), *args, **options)


def _alike(row: str, other: str, within: float, tasks: tuple[str, ...] = (), base: bool = True) -> tuple[Better, ...]:
    """Two rows within the given points in Table 6, and in Table 7 if base."""
    tables = [_table6] + [table7] * base
    return tuple(similar(at(row), at(other), within, tasks) for at in tables)


def _same_as_fedavg(*rows: str, base: bool = True) -> tuple[Better, ...]:
    """Split modes within a point of FedAvg."""
    return above(rows, ("fedavg",), base=base, by=-_SAME, most=_SAME, over_failed=True)


def perplexity(row: str, *rivals: str) -> tuple[Better, ...]:
    """Lower perplexity of masked tokens, which the paper does not publish."""
    return (Better((pretraining(row),), tuple(map(pretraining, rivals))),)


def _by_task(base: bool = True) -> tuple[Better, ...]:
    """FedAvg above Head-Emd Avg on MRPC, SST-2 and MNLI-Matched, below on the other tasks."""
    first, second = ("fedavg",), ("heavg",)
    return (
        *above(first, second, (*MRPC, *SST2), base=base),
        *above(first, second, MNLI, base=base, scores=MATCHED),
        *above(second, first, (*RTE, *QNLI, *QQP, *STSB), base=base),
        *above(second, first, MNLI, base=base, scores=MISMATCHED),
    )


def _worst(small: bool = True, base: bool = True, *more: str) -> tuple[Relation, ...]:
    """EmdAvg below the others, except on MRPC, where it is above FedAvg and Head-Emd Avg."""
    rest = tuple(task for task in ALL if task not in MRPC)
    others = ("central", "fedavg", "share", "heavg", "parallel-fedavg", *more)
    return (
        *above(others, ("emdavg",), rest, small, base),
        *above(("emdavg",), ("fedavg", "heavg"), MRPC, small, base, most=SLIGHTLY),
    )


def _stsb_drops(**tables: bool) -> tuple[Better, ...]:
    """EmdAvg on STS-B 11 % below Centralized and 7.5 % below Head-Emd Share, as rounded."""
    return (
        *above(("central",), ("emdavg",), STSB, by=10.5, most=11.5, **tables),
        *above(("share",), ("emdavg",), STSB, by=7.45, most=7.55, **tables),
    )


def _drops(most: float, but: tuple[str, ...], base: bool = True) -> tuple[Better, ...]:
    """EmdAvg at most `most` points below Centralized and Head-Emd Share, on all tasks except `but`."""
    tasks = tuple(task for task in ALL if task not in but)
    return above(("central", "share"), ("emdavg",), tasks, base=base, by=-math.inf, most=most)


CLAIMS = (
    Claim(
        "1a",
        "It has the best performance except for the RTE and MRPC task",
        "section 5.1, of centralized training; the exception is RoBERTa-small's",
        (*_above_all(FIVE, base=False), *_above_all(small=False)),
        reading="above every other mode: in Table 6 on the five other tasks, in Table 7 on all.",
        otherwise={
            "on RTE and MRPC it is not the best": (
                Better((_table6("share"), _table6("parallel-fedavg")), (_table6("central"),), tasks=RTE, some=True),
                Better((_table6("share"),), (_table6("central"),), tasks=MRPC),
            ),
            "perplexity": perplexity("central", "fedavg", "share", *PARALLEL, "single"),
        },
    ),
    Claim(
        "1b",
        "the centralized model has the best performance as it is trained on the whole dataset",
        "section 5, of Tables 6, 7 and 8",
        (
            *_above_all(),
            Better((_table8("central"),), tuple(map(_table8, ("fedavg", "share", *AVERAGED, "single")))),
        ),
        reading="above every other mode on every task, and below it in perplexity.",
    ),
    Claim(
        "1c",
        "As expected, the Centralized way presents the best performance",
        "section 5.3",
        (Better((figure8("central"),), tuple(map(figure8, _ANY_CLIENTS))),),
        reading="above FedAvg and EmdAvg with any number of clients, on every task; the text has no numbers.",
    ),
    Claim(
        "2a",
        "split federated learning approaches can achieve the same performance as classical federate learning",
        "section 5; Conclusion",
        _same_as_fedavg("share", *PARALLEL),
        reading=f"the same is within {_SAME:g} point of FedAvg, either way, on every task; no margin is stated.",
        otherwise={
            f"no more than {_SAME:g} point below": above(("share", *PARALLEL), ("fedavg",), by=-_SAME),
            "Head-Emd Share alone (Conclusion)": _same_as_fedavg("share"),
            TABLE_6_ALONE: _same_as_fedavg("share", *PARALLEL, base=False),
            "Head-Emd Share in Table 6": _same_as_fedavg("share", base=False),
            "perplexity of Head-Emd Share": perplexity("share", "fedavg"),
        },
    ),
    Claim(
        "2b",
        "among four split learning training methods, Head-Emd share achieves the best performance",
        "section 5.2, from Table 6, Table 7",
        above(("share",), PARALLEL),
        reading="above EmdAvg, Head-Emd Avg and Parallel FedAvg on every task of both tables.",
        otherwise={
            TABLE_6_ALONE: above(("share",), PARALLEL, base=False),
            "perplexity": perplexity("share", *PARALLEL),
            "perplexity, own transformers": perplexity("share", "emdavg-own", "heavg-own"),
        },
    ),
    Claim(
        "2c",
        "Among several federated split learning models, Head-Emd Avg achieves the best performance",
        "section 5.1",
        above(("heavg",), ("share", "emdavg", "parallel-fedavg")),
        reading="above Head-Emd Share, EmdAvg and Parallel FedAvg everywhere; section 5.2 says it of Head-Emd Share.",
        otherwise={
            "FedAvg and EmdAvg alone": above(("heavg",), ("fedavg", "emdavg")),
            "EmdAvg alone": above(("heavg",), ("emdavg",)),
        },
    ),
    Claim(
        "2d",
        "EmdAvg is the worst model except that it outperforms slightly than FedAvg and Head-Emd Avg on MRPC",
        "section 5.2, from Table 6, Table 7",
        _worst(),
        reading=f"below Centralized and every federated mode on all tasks but MRPC; there up to {SLIGHTLY:g} points "
        "above FedAvg and Head-Emd Avg.",
        otherwise={
            TABLE_6_ALONE: _worst(True, False),
            "below Single Client too, Table 6 alone": _worst(True, False, "single"),
            "perplexity, worst of the federated": (
                Better(tuple(map(pretraining, ("fedavg", "share", "heavg"))), (pretraining("emdavg"),)),
            ),
        },
    ),
    Claim(
        "3a",
        "FedAvg under-performs about 1% than Head-Emd Avg",
        "section 5.1, on MNLI, QNLI, QQP, STS-B, and SST-2",
        above(("heavg",), ("fedavg",), FIVE, base=False, by=_ABOUT_1[0], most=_ABOUT_1[1]),
        reading=f"Head-Emd Avg {_ABOUT_1[0]:g} to {_ABOUT_1[1]:g} points above FedAvg in Table 6 on each of them.",
        otherwise={
            "above by any amount": above(("heavg",), ("fedavg",), FIVE, base=False),
            "Table 7": above(("heavg",), ("fedavg",), FIVE, small=False),
        },
    ),
    Claim(
        "3b",
        "while it outperforms EmdAvg on MNLI, QNLI, QQP, STS-B, and SST-2",
        "section 5.1, of FedAvg",
        above(("fedavg",), ("emdavg",), FIVE),
        reading="FedAvg above EmdAvg on these five, in both tables.",
    ),
    Claim(
        "3c",
        "The FedAvg achieves the same performance to Head-Emd Avg except for RTE task",
        "section 5.2, from Table 6, Table 7",
        _alike("fedavg", "heavg", _SAME, (*MRPC, *FIVE)),
        reading=f"the same is within {_SAME:g} point, in both tables.",
        otherwise={"within 2 points, Table 6 alone": _alike("fedavg", "heavg", 2.0, (*MRPC, *FIVE), base=False)},
    ),
    Claim(
        "3d",
        "On MRPC, MNLI-Matched, and SST-2 tasks, FedAvg is better, while HE Avg outperforms on other tasks",
        "section 5.2, from Table 6, Table 7",
        _by_task(),
        reading="by any amount, in both tables; 3a contradicts it, with Head-Emd Avg ahead on MNLI and SST-2.",
        otherwise={TABLE_6_ALONE: _by_task(base=False)},
    ),
    Claim(
        "4a",
        "parallel FedAvg and naive FedAvg achieve the same performance on all tasks except RTE",
        "section 5.1",
        _alike("parallel-fedavg", "fedavg", _SAME, (*MRPC, *FIVE), base=False),
        reading=f"the same is within {_SAME:g} point; Table 7 has no Parallel FedAvg.",
        otherwise={
            "within 2 points": _alike("parallel-fedavg", "fedavg", 2.0, (*MRPC, *FIVE), base=False),
            "on RTE too, within 1 point": _alike("parallel-fedavg", "fedavg", _SAME, base=False),
        },
    ),
    Claim(
        "4b",
        "Logically, parallel FSL on FedAvg and naive FedAvg are equal",
        "section 5.1",
        (similar(pretraining("parallel-fedavg"), pretraining("fedavg"), within=1.0, relative=True),),
        reading="perplexity within 1 %: same steps, other random numbers and rounding; without dropout the same run.",
    ),
    Claim(
        "5a",
        "The worst one is STS-B, which decreases 11% and 7.5%",
        "section 5.1, of EmdAvg against the centralized and the sharing pattern",
        _stsb_drops(base=False),
        reading="differences in Table 6, in points, that round to the stated ones.",
        otherwise={
            "at least 5 points below both": above(("central", "share"), ("emdavg",), STSB, base=False, by=5.0),
            "Table 7": _stsb_drops(small=False),
        },
    ),
    Claim(
        "5b",
        "The rest tasks have a decrease around or below 5%",
        "section 5.1",
        _drops(_AROUND_5, STSB),
        reading=f"EmdAvg no more than {_AROUND_5:g} points below Centralized and Head-Emd Share, in both tables.",
        otherwise={
            TABLE_6_ALONE: _drops(_AROUND_5, STSB, base=False),
            "6 points, all but RTE, Table 6 alone": _drops(6.0, (*STSB, *RTE), base=False),
        },
    ),
    Claim(
        "5c",
        "all tasks under-perform the centralized and sharing pattern",
        "section 5.1, of EmdAvg",
        above(("central", "share"), ("emdavg",)),
        reading="EmdAvg below Centralized and Head-Emd Share on every task of both tables.",
        otherwise={
            TABLE_6_ALONE: above(("central", "share"), ("emdavg",), base=False),
            "perplexity": tuple(case for row in ("central", "share") for case in perplexity(row, "emdavg")),
        },
    ),
)
