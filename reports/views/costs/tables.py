"""Costs as text: equations beside print, and bytes on the wire, derived and measured."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from benchmarks.spec import Row
from reports.layout import NOT_RUN, NOTHING, Grid, Group, Line, human_bytes, number, row_name
from reports.page import Request
from reports.printed_costs import is_printed_as, places_of
from reports.statistics import printed
from reports.views.costs.closed import Closed
from reports.views.costs.join import Costs
from reports.views.costs.traffic import KINDS, Traffic

AS_PRINTED, DIFFERS = "as printed", "differs"
DEPENDS = "depends on texts"


def as_printed(value: float, published: Decimal | None) -> Decimal:
    """A gain with as many decimals as the printed one has; with one where none is printed."""
    return printed(value, places=1 if published is None else places_of(published))


def agreement(closed: Closed, baseline: str) -> str:
    """Whether a gain comes out to the printed digits, in words; nothing where none is printed."""
    if baseline not in closed.published:
        return ""
    is_same = is_printed_as(Decimal(str(closed.printed_gains[baseline])), closed.published[baseline])
    return AS_PRINTED if is_same else DIFFERS


def _gain_headers(found: Costs) -> tuple[tuple[str, ...], ...]:
    """A header for each baseline, its name in short lines."""
    return tuple(("gain over", *row.name.split(" · ")) for row in found.baselines)


def _gains(found: Costs, gains: Mapping[str, float]) -> tuple[str, ...]:
    """Over each baseline, with two decimals."""
    return tuple(number(gains.get(base.id)) for base in found.baselines)


def _gb(size: float) -> str:
    """Gigabytes with two decimals."""
    return number(size) if size >= 0.005 else "<0.01"


def _closed_group(found: Costs, closed: Closed) -> Group:
    """One equation: computed as the paper does, printed, and in consistent bytes beside the wire's."""
    gigabyte, names = found.request.benchmark.paper.gigabyte, [base.id for base in found.baselines]
    own = tuple(str(as_printed(closed.printed_gains[name], closed.published.get(name))) for name in names)
    label = f"eq. {closed.form.equation}: {closed.form.text}"
    lines = [Line(label, (_gb(closed.printed_gb), *own), is_main=True)]
    if closed.published:
        texts = [f"{closed.published[name].normalize():f}" if name in closed.published else "" for name in names]
        lines.append(Line("published", ("", *texts)))
        lines.append(Line("verdict", ("", *(agreement(closed, name) for name in names))))
    if closed.consistent_bytes is not None:
        exact = _gb(closed.consistent_bytes / gigabyte)
        lines.append(Line("in consistent bytes", (exact, *_gains(found, closed.consistent_gains))))
    if wire := found.derived.get(closed.row.id):
        lines.append(Line("on the wire", (_gb(wire.total_bytes / gigabyte), *_gains(found, wire.gains))))
    return Group(row_name(closed.row), tuple(lines))


def _for_the_papers(found: Costs, what: str) -> str:
    """The title of a table that no record enters."""
    benchmark, paper = found.request.benchmark, found.paper_scale
    return (
        f"{benchmark.paper.name}, {benchmark.place} · {what} for the paper's encoder ({paper.label}), without "
        "training: the same at every scale"
    )


def _closed_grid(found: Costs) -> Grid:
    """Groups are methods, lines the ways to count."""
    groups = tuple(_closed_group(found, closed) for closed in found.closed)
    return Grid(_for_the_papers(found, "closed forms"), (("cost", "GB"), *_gain_headers(found)), groups)


def _bytes(request: Request, size: float) -> str:
    """Bytes in readable units; a dash for none."""
    return human_bytes(size, request.benchmark.paper.gigabyte) if size else NOTHING


def _cells(found: Costs, traffic: Traffic) -> tuple[str, ...]:
    """What one method sends, as in _headers."""
    sizes = [traffic.up_bytes, traffic.down_bytes, traffic.total_bytes]
    kinds = [traffic.kinds.get(kind, 0) for kind in KINDS]
    return (
        *(_bytes(found.request, size) for size in sizes),
        *_gains(found, traffic.gains),
        *(_bytes(found.request, size) for size in (*kinds, traffic.setup_bytes)),
    )


def _headers(found: Costs) -> tuple[tuple[str, ...], ...]:
    """Of the tables of bytes."""
    kinds = [("of which", name) for name in KINDS.values()]
    return (("up",), ("down",), ("both",), *_gain_headers(found), *kinds, ("set-up", "once"))


def _group(found: Costs, row: Row, cells: tuple[str, ...]) -> Group:
    """A method's one line."""
    return Group(row_name(row), (Line(found.sent_of_a_text(row), cells),))


def _derived_grid(found: Costs) -> Grid:
    """The paper's own encoder, by row."""
    headers = _headers(found)
    unknown = (DEPENDS, *[""] * (len(headers) - 1))
    groups = tuple(
        _group(found, row, _cells(found, found.derived[row.id]) if row.id in found.derived else unknown)
        for row in found.request.rows
    )
    return Grid(_for_the_papers(found, "what crosses the wire, derived"), headers, groups)


def _measured_grid(found: Costs) -> Grid:
    """Our records, by row."""
    headers = (("n", "seeds"), *_headers(found))
    not_run = (NOT_RUN, *[""] * (len(headers) - 1))

    def cells(row: Row) -> tuple[str, ...]:
        traffic = found.measured.get(row.id)
        return not_run if traffic is None else (str(traffic.seeds), *_cells(found, traffic))

    groups = tuple(_group(found, row, cells(row)) for row in found.request.rows)
    return Grid(f"{found.request.heading}: what crossed the wire, measured", headers, groups)


def grids(found: Costs) -> tuple[Grid, ...]:
    """Equations, the wire as derived where it is, and as measured."""
    return (_closed_grid(found), *([_derived_grid(found)] if found.derived else []), _measured_grid(found))
