"""FedSplitBERT's Table VI and the text about it: sizes, rounds, costs and gains.

The table counts one direction, summed over its three clients, in GB of 10^9 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

from reports import ReportError
from reports.audit.checks import Finding, against_exact, digits, show
from reports.audit.fedsplitbert.tables import METHODS
from reports.evidence.published import Numbers, PrintedCost, as_decimal
from reports.evidence.traffic import Sent, gain_over

PRINTED = "Table VI by its own numbers"
EXACT = "Table VI by exact bytes"
ROWS = {row: name for row, name in METHODS.items() if row != "fedprox"} | {"fedavg": "FedAvg/FedProx"}
DERIVABLE = ("fedavg", "fedsplitbert", "fedsplitbert-qat")  # the rows whose bytes follow from the model
GIGABYTE = Decimal(10**9)
_UNKNOWN = "FedAdam's size is not derivable: it sends the tensors that FedAvg sends"


def _row(numbers: Numbers, row: str) -> PrintedCost:
    return numbers.cost("Table VI", row)


def rounds(numbers: Numbers) -> Iterator[Finding]:
    """A cost is a size times a whole number of rounds, which the paper does not print."""
    for row, name in ROWS.items():
        implied = _row(numbers, row).rounds
        statement = f"{name}: the cost is a whole number of rounds"
        stated = f"{digits(_row(numbers, row).cost_gb)} GB"
        given = f"{digits(as_decimal(implied))} × {digits(_row(numbers, row).size_gb)} GB"
        how = "size as printed, so the cost carries its rounding"
        yield Finding(f"rounds, {row}", PRINTED, statement, stated, given, implied.denominator == 1, how)


def gains(numbers: Numbers) -> Iterator[Finding]:
    """A gain is FedAvg's cost over the row's, both as printed; FedAdam's rests on a size that cannot be derived."""
    for row, name in ROWS.items():
        exact = _row(numbers, "fedavg").cost_gb / _row(numbers, row).cost_gb
        gain = _row(numbers, row).gain
        statement = f"{name}: the gain is the ratio of the printed costs"
        found = against_exact(f"gain, {row}", PRINTED, statement, gain, exact, 1, ("round",))
        if row == "fedadam" and found.agrees:
            found = replace(found, agrees=None, explanation=f"{found.explanation}; {_UNKNOWN}")
        yield found


def fedadam_size(numbers: Numbers) -> Iterator[Finding]:
    """FedAdam's 1.7 GB a round."""
    size, fedavg = _row(numbers, "fedadam").size_gb, _row(numbers, "fedavg").size_gb
    statement = "FedAdam: the size of a round is FedAvg's"
    agrees = True if size == fedavg else None
    how = f"{show(size / fedavg)} times FedAvg's; {_UNKNOWN}"
    yield Finding("size, fedadam", PRINTED, statement, f"{digits(size)} GB", f"{digits(fedavg)} GB", agrees, how)


def megabits(numbers: Numbers) -> Iterator[Finding]:
    """Section IV-C on RTE: "3 communication rounds which costs nearly 1000 MBits", baselines "at least 5000 MBits"."""
    nearly = numbers.at("Figure 6", "fedsplitbert", "rte", "stated/megabytes_nearly")
    at_least = numbers.at("Figure 6", "fedavg", "rte", "stated/megabytes_at_least")
    size, fedavg = (1000 * _row(numbers, row).size_gb for row in ("fedsplitbert", "fedavg"))  # MB
    three = 3 * size
    statement = f"Section IV-C: three rounds of FedSplitBERT on RTE cost nearly {digits(nearly)} (read as MB)"
    agrees = abs(three - nearly) <= nearly / 10
    how = f"within 10 %; at c = 4, two thirds of the layers, {digits(three * 4 / 6)}"
    yield Finding("rte three rounds", PRINTED, statement, digits(nearly), f"{digits(three)} at c = 6", agrees, how)
    statement = f"Section IV-C and Figures 5, 6: {digits(at_least)} MBits hold at least one round of FedAvg"
    stated, given = f"{digits(at_least)} Mbit", f"{digits(8 * fedavg)} Mbit a round"
    how = f"read as megabytes, five rounds are {digits(5 * fedavg)} MB"
    yield Finding("megabits", PRINTED, statement, stated, given, 8 * fedavg <= at_least, how)


def exact_bytes(numbers: Numbers, round_bytes: Mapping[str, int]) -> Iterator[Finding]:
    """Table VI from the bytes that one round sends in one direction, all three clients together.

    round_bytes: row id -> bytes, for "fedavg", "fedsplitbert" (c = 6) and "fedsplitbert-qat"; ReportError without one.
    """
    missing = [row for row in DERIVABLE if row not in round_bytes]
    if missing:
        raise ReportError(f"audit: expected bytes of a round for {', '.join(DERIVABLE)}, found none for {missing[0]}.")
    exact = {row: round_bytes[row] / GIGABYTE for row in DERIVABLE}
    for row in DERIVABLE:
        statement = f"{ROWS[row]}: size of a round in GB, one direction"
        yield against_exact(
            f"exact size, {row}", EXACT, statement, _row(numbers, row).size_gb, exact[row], 2, ("round",)
        )
    both = 2 * exact["fedavg"]
    caption = "Caption: the size covers uploading and downloading (FedAvg)"
    found = against_exact("both directions", EXACT, caption, _row(numbers, "fedavg").size_gb, both, 2, ("round",))
    yield replace(found, explanation=f"{found.explanation}; the printed size is one direction")
    for row in DERIVABLE:
        cost = as_decimal(_row(numbers, row).rounds) * exact[row]
        statement = f"{ROWS[row]}: cost in GB, exact size × rounds"
        yield against_exact(f"exact cost, {row}", EXACT, statement, _row(numbers, row).cost_gb, cost, 2, ("round",))
    for row in DERIVABLE[1:]:
        yield _exact_gain(numbers, row, round_bytes)


def _exact_gain(numbers: Numbers, row: str, round_bytes: Mapping[str, int]) -> Finding:
    baseline, method = (_sent(numbers, name, round_bytes) for name in ("fedavg", row))
    exact = gain_over(baseline, method)
    if exact is None:
        raise ReportError(f"audit: expected bytes of a round for {', '.join(DERIVABLE)}, found 0 for one of them.")
    gain = _row(numbers, row).gain
    statement = f"{ROWS[row]}: the gain by exact sizes"
    found = against_exact(f"exact gain, {row}", EXACT, statement, gain, as_decimal(exact.total), 1, ("round",))
    layers, fewer_rounds, precision = map(as_decimal, (exact.layers, exact.rounds, exact.precision))
    product = f"{show(layers)} (layers) × {digits(fewer_rounds)} (rounds) × {digits(precision)} (precision)"
    return replace(found, printed=digits(gain), recomputed=show(as_decimal(exact.total)), explanation=product)


def _sent(numbers: Numbers, row: str, round_bytes: Mapping[str, int]) -> Sent:
    """What a row sends until the target; its numbers as bytes in fp32, which quantised FedSplitBERT shares."""
    needed = _row(numbers, row).rounds
    in_fp32 = round_bytes["fedsplitbert" if row == "fedsplitbert-qat" else row]
    return Sent(needed, needed * in_fp32, needed * round_bytes[row])
