"""The paper's equations, evaluated twice: with its printed parameters in its units, and in bytes of its encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from benchmarks.costs import ClosedForm, ModelSizes, Terms, WirePlan
from benchmarks.spec import Row
from reports import printed_costs
from reports.audit.finding import Numbers
from reports.page import Request
from reports.published import read_published

BERTS_OWN = "pooled"  # the head of the whole model, SizeOf(BERT)


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


def baselines_of(request: Request) -> tuple[Row, ...]:
    """The rows that gains are over, by the view's options."""
    rows = {row.id: row for row in request.benchmark.rows}
    return tuple(rows[name] for name in request.benchmark.view.options["baselines"])


def printed_terms(request: Request) -> Terms:
    """The parameters that the paper prints; ReportError where one is not published."""
    benchmark = request.benchmark
    return printed_costs.printed_terms(Numbers.of(read_published(benchmark.published_csv)), benchmark.place)


def derived_plan(request: Request, row: Row) -> WirePlan | None:
    """A round of the paper's own encoder with as many texts as the paper has; None where it is not derived."""
    if request.derive is None:
        return None
    texts = int(printed_terms(request).n_s)
    return request.derive(row, request.columns[0], request.benchmark.scale("paper"), texts)


def sizes_by_head(request: Request) -> dict[str, ModelSizes]:
    """Head -> the paper's own encoder under it: the same whatever the method; empty where nothing is derived."""
    plans = {row.head: plan for row in request.benchmark.rows if (plan := derived_plan(request, row)) is not None}
    if whole := derived_plan(request, baselines_of(request)[0].changed({"head": BERTS_OWN})):
        plans[BERTS_OWN] = whole
    return {head: plan.sizes for head, plan in plans.items()}


def _derived_terms(printed: Terms, own: ModelSizes, whole: ModelSizes) -> Terms:
    """The printed parameters with sizes counted on the encoder's shapes."""
    return replace(
        printed,
        dim_emb=own.width,
        W_s=own.head_bytes,
        BL=own.layer_bytes,
        BE=own.embeddings_bytes,
        BERT=whole.model_bytes,
    )


def _published(request: Request, row: Row) -> dict[str, Decimal]:
    """Baseline's row id -> the gain that the paper states."""
    numbers = Numbers.of(read_published(request.benchmark.published_csv))
    places = {base.id: (request.benchmark.place, row.id, f"gain_over_{base.id}", "") for base in baselines_of(request)}
    return {name: numbers.values[place] for name, place in places.items() if place in numbers.values}


def closed_forms(request: Request) -> tuple[Closed, ...]:
    """The equation of every row shown that has one.

    The printed SizeOf(W_s) is that of the printed rows; another row's is its own head's, so it is left out where that
    is not derived.
    """
    forms, gigabyte = request.benchmark.closed_forms, request.benchmark.paper.gigabyte
    printed, sizes = printed_terms(request), sizes_by_head(request)

    def cost_gb(row: Row) -> float:
        own = printed if row.printed else replace(printed, W_s=sizes[row.head].head_bytes)
        return forms[row.id].cost_gb(own, gigabyte)

    def cost_bytes(row: Row) -> float:
        return forms[row.id].cost_bytes(_derived_terms(printed, sizes[row.head], sizes[BERTS_OWN]))

    found = []
    for row in request.rows:
        if row.id not in forms or not (row.printed or sizes):
            continue
        gb, exact = cost_gb(row), cost_bytes(row) if sizes else None
        gains = {base.id: cost_gb(base) / gb for base in baselines_of(request)}
        exact_gains = {base.id: cost_bytes(base) / exact for base in baselines_of(request)} if exact else {}
        found.append(Closed(row, forms[row.id], gb, gains, exact, exact_gains, _published(request, row)))
    return tuple(found)
