"""What the paper prints of sizes, costs and gains, beside what its own encoder's shapes give, without training."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from benchmarks.spec import Row
from reports.audit.finding import Numbers
from reports.gain import Gain, Sent, gain_over
from reports.page import Derive, Request
from reports.printed_costs import PrintedCost, as_decimal, has_cost, is_printed_as, printed_cost
from reports.published import read_published
from reports.statistics import printed
from reports.views.targets.outcomes import baseline_of

AS_PRINTED, NOT_DERIVABLE, DIFFERS = "as printed", "not derivable", "differs"


@dataclass(frozen=True)
class Derived:
    """One method: a round's bytes from shapes, rounds from print, and what follows from both.

    size_gb: as the paper rounds it; cost_gb: that times the rounds, as the paper computes; rounded_gain: ratio of such
    costs; gain: ratio of exact bytes.
    """

    row: Row
    size_bytes: int
    size_gb: Decimal
    rounds: Fraction
    cost_gb: Decimal
    rounded_gain: Decimal
    gain: Gain
    published: PrintedCost | None  # None for a row that is not printed, whose rounds are the baseline's

    @property
    def agreements(self) -> tuple[bool, bool, bool] | None:
        """Whether size, cost and gain come out to the printed digits; None for a row that is not printed."""
        if self.published is None:
            return None
        size, cost, gain = self.published.size_gb, self.published.cost_gb, self.published.gain
        return (
            is_printed_as(self.size_gb, size),
            is_printed_as(self.cost_gb, cost),
            is_printed_as(self.rounded_gain, gain),
        )


def _sent(row: Row, rounds: Fraction, request: Request, derive: Derive) -> Sent | None:
    """What a method sends in so many rounds, its numbers in the unit of their bytes in fp32; None where not derived."""
    column, paper = request.columns[0], request.benchmark.scale("paper")
    in_fp32, own = derive(row.changed({"codec": "fp32"}), column, paper), derive(row, column, paper)
    if in_fp32 is None or own is None:
        return None
    return Sent(rounds, rounds * in_fp32.up_bytes, rounds * own.up_bytes)


def _printed(sent: Sent, gigabyte: int) -> tuple[Decimal, Decimal]:
    """Size of a round and cost in GB as the paper computes: the size rounded, then times the rounds."""
    size = printed(as_decimal(sent.bytes / sent.rounds) / gigabyte)
    return size, size * as_decimal(sent.rounds)


def derive_costs(request: Request) -> tuple[Derived, ...]:
    """Every method that sends something; none where bytes are not derived, or the paper prints no sizes."""
    benchmark, derive, base = request.benchmark, request.derive, baseline_of(request)
    numbers = Numbers.of(read_published(benchmark.published_csv))
    if derive is None or not has_cost(numbers, benchmark.place, base.id):
        return ()
    base_rounds = printed_cost(numbers, benchmark.place, base.id).rounds
    baseline = _sent(base, base_rounds, request, derive)
    if baseline is None:
        return ()
    _, base_cost = _printed(baseline, benchmark.paper.gigabyte)
    found = []
    for row in request.rows:
        is_printed = has_cost(numbers, benchmark.place, row.id)
        published = printed_cost(numbers, benchmark.place, row.id) if is_printed else None
        sent = _sent(row, published.rounds if published else base_rounds, request, derive)
        gain = gain_over(baseline, sent) if sent else None
        if sent and gain:
            size, cost = _printed(sent, benchmark.paper.gigabyte)
            size_bytes = int(sent.bytes / sent.rounds)
            found.append(Derived(row, size_bytes, size, sent.rounds, cost, base_cost / cost, gain, published))
    return tuple(found)
