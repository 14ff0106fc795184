"""FedBERT's sentences on Tables 6 and 7, the first five of its claims. Quotations are literal."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from benchmarks.claims import At, Better, Claim, Relation, similar

Tables: TypeAlias = tuple[Callable[[str], At], ...]
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
TABLE_6, TABLE_7 = (_table6,), (table7,)
_BOTH = (*TABLE_6, *TABLE_7)
TABLE_6_ALONE = "Table 6 alone"


def above(
    rows: tuple[str, ...],
    rivals: tuple[str, ...],
    tasks: tuple[str, ...] = (),
    tables: Tables = _BOTH,
    **bounds: Any,
) -> tuple[Better, ...]:
    """Rows above rivals in these tables; Table 7 has no Parallel FedAvg."""

    def of(table: Callable[[str], At], rows: tuple[str, ...]) -> tuple[At, ...]:
        return tuple(table(row) for row in rows if not (table is table7 and row == "parallel-fedavg"))

    return tuple(Better(of(table, rows), of(table, rivals), tasks=tasks, **bounds) for table in tables)


def _above_all(*args: Any, **options: Any) -> tuple[Better, ...]:
    """Centralised pre-training above every other mode."""
    return above(("central",), ("fedavg", "share", *PARALLEL, "single"), *args, **options)


def _alike(
    row: str, other: str, within: float, tasks: tuple[str, ...] = (), tables: Tables = _BOTH
) -> tuple[Better, ...]:
    """Two rows within the given points in these tables."""
    return tuple(similar(at(row), at(other), within, tasks) for at in tables)


def _same_as_fedavg(*rows: str, tables: Tables = _BOTH) -> tuple[Better, ...]:
    """Split modes within a point of FedAvg."""
    return above(rows, ("fedavg",), tables=tables, by=-_SAME, most=_SAME, over_failed=True)


def perplexity(row: str, *rivals: str) -> tuple[Better, ...]:
    """Lower perplexity of masked tokens, which the paper does not publish."""
    return (Better((pretraining(row),), tuple(map(pretraining, rivals))),)


def _by_task(tables: Tables = _BOTH) -> tuple[Better, ...]:
    """FedAvg above Head-Emd Avg on MRPC, SST-2 and MNLI-Matched, below on the other tasks."""
    first, second = ("fedavg",), ("heavg",)
    return (
        *above(first, second, (*MRPC, *SST2), tables=tables),
        *above(first, second, MNLI, tables=tables, scores=MATCHED),
        *above(second, first, (*RTE, *QNLI, *QQP, *STSB), tables=tables),
        *above(second, first, MNLI, tables=tables, scores=MISMATCHED),
    )


def _worst(*more: str, tables: Tables = _BOTH) -> tuple[Relation, ...]:
    """EmdAvg below the others, except on MRPC, where it is above FedAvg and Head-Emd Avg."""
    rest = tuple(task for task in ALL if task not in MRPC)
    others = ("central", "fedavg", "share", "heavg", "parallel-fedavg", *more)
    return (
        *above(others, ("emdavg",), rest, tables),
        *above(("emdavg",), ("fedavg", "heavg"), MRPC, tables, most=SLIGHTLY),
    )


def _stsb_drops(tables: Tables) -> tuple[Better, ...]:
    """EmdAvg on STS-B 11 % below Centralized and 7.5 % below Head-Emd Share, as rounded."""
    return (
        *above(("central",), ("emdavg",), STSB, tables, by=10.5, most=11.5),
        *above(("share",), ("emdavg",), STSB, tables, by=7.45, most=7.55),
    )


def _drops(most: float, but: tuple[str, ...], tables: Tables = _BOTH) -> tuple[Better, ...]:
    """EmdAvg at most `most` points below Centralized and Head-Emd Share, on all tasks except `but`."""
    tasks = tuple(task for task in ALL if task not in but)
    return above(("central", "share"), ("emdavg",), tasks, tables, by=-math.inf, most=most)


CLAIMS = (
    Claim(
        "1a",
        "It has the best performance except for the RTE and MRPC task",
        "section 5.1, of centralized training; the exception is RoBERTa-small's",
        (*_above_all(FIVE, tables=TABLE_6), *_above_all(tables=TABLE_7)),
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
            TABLE_6_ALONE: _same_as_fedavg("share", *PARALLEL, tables=TABLE_6),
            "Head-Emd Share in Table 6": _same_as_fedavg("share", tables=TABLE_6),
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
            TABLE_6_ALONE: above(("share",), PARALLEL, tables=TABLE_6),
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
            TABLE_6_ALONE: _worst(tables=TABLE_6),
            "below Single Client too, Table 6 alone": _worst("single", tables=TABLE_6),
            "perplexity, worst of the federated": (
                Better(tuple(map(pretraining, ("fedavg", "share", "heavg"))), (pretraining("emdavg"),)),
            ),
        },
    ),
    Claim(
        "3a",
        "FedAvg under-performs about 1% than Head-Emd Avg",
        "section 5.1, on MNLI, QNLI, QQP, STS-B, and SST-2",
        above(("heavg",), ("fedavg",), FIVE, tables=TABLE_6, by=_ABOUT_1[0], most=_ABOUT_1[1]),
        reading=f"Head-Emd Avg {_ABOUT_1[0]:g} to {_ABOUT_1[1]:g} points above FedAvg in Table 6 on each of them.",
        otherwise={
            "above by any amount": above(("heavg",), ("fedavg",), FIVE, tables=TABLE_6),
            "Table 7": above(("heavg",), ("fedavg",), FIVE, tables=TABLE_7),
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
        otherwise={"within 2 points, Table 6 alone": _alike("fedavg", "heavg", 2.0, (*MRPC, *FIVE), tables=TABLE_6)},
    ),
    Claim(
        "3d",
        "On MRPC, MNLI-Matched, and SST-2 tasks, FedAvg is better, while HE Avg outperforms on other tasks",
        "section 5.2, from Table 6, Table 7",
        _by_task(),
        reading="by any amount, in both tables; 3a contradicts it, with Head-Emd Avg ahead on MNLI and SST-2.",
        otherwise={TABLE_6_ALONE: _by_task(tables=TABLE_6)},
    ),
    Claim(
        "4a",
        "parallel FedAvg and naive FedAvg achieve the same performance on all tasks except RTE",
        "section 5.1",
        _alike("parallel-fedavg", "fedavg", _SAME, (*MRPC, *FIVE), tables=TABLE_6),
        reading=f"the same is within {_SAME:g} point; Table 7 has no Parallel FedAvg.",
        otherwise={
            "within 2 points": _alike("parallel-fedavg", "fedavg", 2.0, (*MRPC, *FIVE), tables=TABLE_6),
            "on RTE too, within 1 point": _alike("parallel-fedavg", "fedavg", _SAME, tables=TABLE_6),
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
        _stsb_drops(tables=TABLE_6),
        reading="differences in Table 6, in points, that round to the stated ones.",
        otherwise={
            "at least 5 points below both": above(("central", "share"), ("emdavg",), STSB, tables=TABLE_6, by=5.0),
            "Table 7": _stsb_drops(tables=TABLE_7),
        },
    ),
    Claim(
        "5b",
        "The rest tasks have a decrease around or below 5%",
        "section 5.1",
        _drops(_AROUND_5, STSB),
        reading=f"EmdAvg no more than {_AROUND_5:g} points below Centralized and Head-Emd Share, in both tables.",
        otherwise={
            TABLE_6_ALONE: _drops(_AROUND_5, STSB, tables=TABLE_6),
            "6 points, all but RTE, Table 6 alone": _drops(6.0, (*STSB, *RTE), tables=TABLE_6),
        },
    ),
    Claim(
        "5c",
        "all tasks under-perform the centralized and sharing pattern",
        "section 5.1, of EmdAvg",
        above(("central", "share"), ("emdavg",)),
        reading="EmdAvg below Centralized and Head-Emd Share on every task of both tables.",
        otherwise={
            TABLE_6_ALONE: above(("central", "share"), ("emdavg",), tables=TABLE_6),
            "perplexity": tuple(case for row in ("central", "share") for case in perplexity(row, "emdavg")),
        },
    ),
)
