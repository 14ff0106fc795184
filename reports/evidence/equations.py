"""Equations beside bytes: a paper's closed forms with its printed parameters, and with sizes of its own encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from benchmarks.costs import ClosedForm, ModelSizes, Terms
from benchmarks.experiment import Row
from reports.evidence.published import Numbers, PrintedCost, as_decimal, is_printed_as, read_published
from reports.evidence.records import Request
from reports.evidence.statistics import printed
from reports.evidence.traffic import Cost, Gain, Sent, derived_cost, derived_sizes, gain_over, gains_over, measured_cost

BERTS_OWN = "pooled"  # the head of the whole model, SizeOf(BERT)


def numbers_of(request: Request) -> Numbers:
    """What the benchmark's own file publishes."""
    return Numbers.of(read_published(request.benchmark.published_csv))


@dataclass(frozen=True)
class Closed:
    """One method's equation.

    printed_gb: with the printed parameters, as the paper computes it. consistent_bytes: with sizes of the paper's own
    encoder, every byte counted alike; None where those are not derived. gains: baseline's row id -> the ratio of such
    costs. published: baseline's row id -> gain as printed.
    """

    row: Row
    form: ClosedForm
    printed_gb: float
    printed_gains: Mapping[str, float]
    consistent_bytes: float | None
    consistent_gains: Mapping[str, float]
    published: Mapping[str, Decimal]


@dataclass(frozen=True)
class Costs:
    """Equations, what the paper's own encoder sends by its shapes, and what our records say was sent.

    Everything that is derived is empty where nobody derives it. The view's option `baselines` names the rows that
    gains are over. ReportError where a record is damaged or a printed parameter is missing.
    """

    request: Request

    @cached_property
    def baselines(self) -> tuple[Row, ...]:
        return self.request.rows_named("baselines")

    @cached_property
    def terms(self) -> Terms:
        return numbers_of(self.request).terms(self.request.benchmark.place)

    @cached_property
    def sizes(self) -> dict[str, ModelSizes]:
        rows = (*self.request.benchmark.rows, self.baselines[0].changed({"head": BERTS_OWN}))
        found = {row.head: derived_sizes(self.request, row, int(self.terms.n_s)) for row in rows}
        return {head: sizes for head, sizes in found.items() if sizes is not None}

    def term_bytes(self, head: str) -> dict[str, int]:
        """A SizeOf term of the equations -> its bytes on the encoder's shapes, under a head."""
        own, whole = self.sizes[head], self.sizes[BERTS_OWN].model_bytes
        return {"W_s": own.head_bytes, "BL": own.layer_bytes, "BE": own.embeddings_bytes, "BERT": whole}

    @cached_property
    def derived(self) -> dict[str, Cost]:
        costs = {row.id: self.derived_run(row) for row in self.request.benchmark.rows}
        return {name: cost for name, cost in costs.items() if cost is not None}

    def derived_run(self, row: Row) -> Cost | None:
        """All rounds of one row by the paper's own encoder, with as many texts as the paper has."""
        return derived_cost(self.request, row, int(self.terms.n_s)) if self.request.derive else None

    @cached_property
    def measured(self) -> dict[str, Cost]:
        every = replace(self.request, rows=self.request.benchmark.rows)  # gains need baselines that are not shown
        column = every.columns[0]
        costs = {row.id: measured_cost(every.benchmark, column, every.records_of(row, column)) for row in every.rows}
        return {name: cost for name, cost in costs.items() if cost is not None}

    def gains(self, costs: Mapping[str, Cost]) -> dict[str, dict[str, float]]:
        """Row id -> baseline's row id -> gain, of derived or of measured costs."""
        return gains_over(costs, self.baselines)

    @cached_property
    def closed(self) -> tuple[Closed, ...]:
        """The equation of every row shown that has one.

        The printed SizeOf(W_s) is that of the printed rows; another row's is its own head's, so it is left out where
        that is not derived.
        """
        benchmark, numbers = self.request.benchmark, numbers_of(self.request)
        forms, gigabyte, place = benchmark.closed_forms, benchmark.paper.gigabyte, benchmark.place

        def cost_gb(row: Row) -> float:
            own = self.terms if row.printed else replace(self.terms, W_s=self.sizes[row.head].head_bytes)
            return forms[row.id].cost_gb(own, gigabyte)

        def cost_bytes(row: Row) -> float:
            """With sizes counted on the encoder's shapes."""
            terms = replace(self.terms, dim_emb=self.sizes[row.head].width, **self.term_bytes(row.head))
            return forms[row.id].cost_bytes(terms)

        found = []
        for row in self.request.rows:
            if row.id not in forms or not (row.printed or self.sizes):
                continue
            gb, exact = cost_gb(row), cost_bytes(row) if self.sizes else None
            gains = {base.id: cost_gb(base) / gb for base in self.baselines}
            exact_gains = {base.id: cost_bytes(base) / exact for base in self.baselines} if exact else {}
            places = {base.id: (place, row.id, f"gain_over_{base.id}", "") for base in self.baselines}
            published = {name: numbers.values[at] for name, at in places.items() if at in numbers.values}
            found.append(Closed(row, forms[row.id], gb, gains, exact, exact_gains, published))
        return tuple(found)


@dataclass(frozen=True)
class Derived:
    """One method until a target: a round's bytes from shapes, rounds from print, and what follows from both.

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
        if self.published is None:
            return None
        size = is_printed_as(self.size_gb, self.published.size_gb)
        cost = is_printed_as(self.cost_gb, self.published.cost_gb)
        return size, cost, is_printed_as(self.rounded_gain, self.published.gain)


def _sent(row: Row, rounds: Fraction, request: Request) -> Sent | None:
    """What a method sends in so many rounds, its numbers in the unit of their bytes in fp32; None where not derived."""
    in_fp32, own = derived_cost(request, row.changed({"codec": "fp32"})), derived_cost(request, row)
    if in_fp32 is None or own is None:
        return None
    return Sent(rounds, rounds * int(in_fp32.round_bytes), rounds * int(own.round_bytes))


def _in_gigabytes(sent: Sent, gigabyte: int) -> tuple[Decimal, Decimal]:
    """Size of a round and cost as the paper computes: the size rounded, then times the rounds."""
    size = printed(as_decimal(sent.bytes / sent.rounds) / gigabyte)
    return size, size * as_decimal(sent.rounds)


def derive_costs(request: Request) -> tuple[Derived, ...]:
    """Every method that sends something; none where bytes are not derived, or the paper prints no sizes."""
    (base,) = request.rows_named("baseline")
    numbers, place, gigabyte = numbers_of(request), request.benchmark.place, request.benchmark.paper.gigabyte
    if request.derive is None or not numbers.has_cost(place, base.id):
        return ()
    base_rounds = numbers.cost(place, base.id).rounds
    baseline = _sent(base, base_rounds, request)
    if baseline is None:
        return ()
    _, base_cost = _in_gigabytes(baseline, gigabyte)
    found = []
    for row in request.rows:
        published = numbers.cost(place, row.id) if numbers.has_cost(place, row.id) else None
        sent = _sent(row, published.rounds if published else base_rounds, request)
        gain = gain_over(baseline, sent) if sent else None
        if sent and gain:
            size, cost = _in_gigabytes(sent, gigabyte)
            size_bytes = int(sent.bytes / sent.rounds)
            found.append(Derived(row, size_bytes, size, sent.rounds, cost, base_cost / cost, gain, published))
    return tuple(found)
