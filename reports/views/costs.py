"""The view of communication costs: a paper's equations, and the bytes on the wire, derived and measured.

Options: baselines, the rows that gains are over. The benchmark says by `closed_forms` which equation is a row's, and
publishes the equations' terms at the row "parameters" and gains at the columns "gain_over_<row>". The bytes are for the
benchmark's first task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from decimal import Decimal

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.costs import Terms, byte_unit
from benchmarks.experiment import Row
from benchmarks.run_config import JSON
from reports.evidence.equations import Closed, Costs
from reports.evidence.published import is_printed_as, places_of
from reports.evidence.statistics import printed
from reports.evidence.traffic import Cost
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form, one_line
from reports.pages.plots import HOLLOW, Dots, Panel, digits, dot_plot
from reports.pages.text import NOTHING, ONE_TIME, dagger_note, human_bytes, not_run, notes_under, number, row_name

AS_PRINTED, DIFFERS = "as printed", "differs"
DEPENDS = "depends on texts"
KINDS = {"features": "features", "masks": "masks", "labels": "labels", "parameters": "weights"}  # and their names
RANKS = False
FIELDS = [*KEYS, "encoder", "counted", "quantity", "over", "value", "published", "n_seeds"]

join = Costs


def notes(found: Costs) -> Iterator[str]:
    """Every note under the tables."""
    paper, backbone, terms = found.request.benchmark.paper, found.request.paper_scale.backbone, found.terms
    named = ", ".join(f"{term.name} {getattr(terms, term.name):,.10g}" for term in fields(Terms))
    method = [
        f"Bytes: {paper.bytes_convention}, without the one-time model distribution. Gain: the baseline's bytes over "
        "the method's.",
        f"Closed forms, first line: the equation with the printed parameters ({named}; sizes in bytes). In consistent "
        f"bytes: the same equation with sizes counted on {backbone}'s shapes, every byte alike.",
    ]
    if found.derived:
        method.append(
            f"On the wire, derived: one round of the real channel on {backbone}'s shapes, times the rounds, with "
            f"{terms.n_s:,.0f} texts. Next to a method: how many layers' embeddings it sends of each text."
        )
    method.append("Measured: the ledger's bytes of all rounds, mean over n seeds.")
    return notes_under(found.request, method)


def _gb(size: float) -> str:
    return number(size) if size >= 0.005 else "<0.01"


def _gains(found: Costs, gains: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(number(gains.get(base.id)) for base in found.baselines)


def _closed_group(found: Costs, closed: Closed) -> Group:
    gigabyte, names = found.request.benchmark.paper.gigabyte, [base.id for base in found.baselines]
    known = {name: closed.published[name] for name in names if name in closed.published}
    places = [places_of(known[name]) if name in known else 1 for name in names]
    gains = [str(printed(closed.printed_gains[name], places=n)) for name, n in zip(names, places, strict=True)]
    label = f"eq. {closed.form.equation}: {closed.form.text}"
    lines = [Line(label, (_gb(closed.printed_gb), *gains), is_main=True)]
    if known:
        same = {name: is_printed_as(Decimal(str(closed.printed_gains[name])), gain) for name, gain in known.items()}
        texts = {name: f"{gain.normalize():f}" for name, gain in known.items()}
        words = {name: AS_PRINTED if same[name] else DIFFERS for name in known}
        for label, cells in (("reported", texts), ("verdict", words)):
            lines.append(Line(label, ("", *(cells.get(name, "") for name in names))))
    if closed.consistent_bytes is not None:
        exact = _gb(closed.consistent_bytes / gigabyte)
        lines.append(Line("in consistent bytes", (exact, *_gains(found, closed.consistent_gains))))
    if wire := found.derived.get(closed.row.id):
        gains_on_wire = found.gains(found.derived)[closed.row.id]
        lines.append(Line("on the wire", (_gb(wire.total_bytes / gigabyte), *_gains(found, gains_on_wire))))
    return Group(row_name(closed.row), tuple(lines))


def _features_sent(found: Costs, row: Row) -> str:
    """How many layers' embeddings of each text a method sends, or [CLS] for one token of one layer; "" if unknown.

    Bytes that shapes alone do not give depend on the texts: they include embeddings.
    """
    known, sizes = found.derived.get(row.id), found.sizes.get(row.head)
    if sizes is None:
        return ""
    if known is not None and "features" not in known.kinds:
        return NOTHING
    return f"{sizes.layers_read} layer{'s' if sizes.layers_read > 1 else ''}" if sizes.all_tokens else "[CLS]"


def _unknown(found: Costs, row: Row, is_measured: bool) -> str:
    return not_run(found.request, row, found.request.columns[0]) if is_measured else DEPENDS


def _bytes_grid(found: Costs, title: str, costs: Mapping[str, Cost], is_measured: bool) -> Grid:
    """Rows are methods: bytes by direction and kind, with gains."""
    gigabyte, gains = found.request.benchmark.paper.gigabyte, found.gains(costs)
    headers: list[tuple[str, ...]] = [("n", "seeds")] if is_measured else []
    headers += [("uplink",), ("downlink",), ("both",), *_gain_headers(found)]
    headers += [*(("of which", name) for name in KINDS.values()), ONE_TIME]

    def cells(row: Row) -> tuple[str, ...]:
        cost = costs.get(row.id)
        if cost is None:
            return (_unknown(found, row, is_measured), *[""] * (len(headers) - 1))
        sizes = [cost.up_bytes, cost.down_bytes, cost.total_bytes, *(cost.kinds.get(kind, 0) for kind in KINDS)]
        texts = [human_bytes(size, gigabyte) if size else NOTHING for size in (*sizes, cost.setup_bytes)]
        return (*([str(cost.seeds)] if is_measured else []), *texts[:3], *_gains(found, gains[row.id]), *texts[3:])

    groups = (one_line(row_name(row), cells(row), _features_sent(found, row)) for row in found.request.rows)
    return Grid(title, tuple(headers), tuple(groups))


def _gain_headers(found: Costs) -> tuple[tuple[str, ...], ...]:
    return tuple(("gain over", *row.name.split(" · ")) for row in found.baselines)


def grids(found: Costs) -> tuple[Grid, ...]:
    """Equations (groups are methods, lines the ways to count), then the wire, derived and measured."""
    benchmark, label = found.request.benchmark, found.request.paper_scale.label
    for_paper = f"for the paper's encoder ({label}), without training: the same at every scale"
    name = f"{benchmark.paper.name}, {benchmark.place}"
    groups = tuple(_closed_group(found, closed) for closed in found.closed)
    tables = [Grid(f"{name} · closed forms {for_paper}", (("cost", "GB"), *_gain_headers(found)), groups)]
    if found.derived:
        tables.append(_bytes_grid(found, f"{name} · bytes on the wire, derived {for_paper}", found.derived, False))
    return (*tables, _bytes_grid(found, f"{found.request.heading}: bytes on the wire, measured", found.measured, True))


def _quantities(cost: Cost | None, gains: Mapping[str, float], unknown: str) -> Iterator[dict[str, JSON]]:
    if cost is None:
        yield {"quantity": unknown}
        return
    sizes = {"bytes": cost.total_bytes, "up_bytes": cost.up_bytes, "down_bytes": cost.down_bytes}
    sizes |= {f"{name}_bytes": cost.kinds.get(kind, 0) for kind, name in KINDS.items()}
    yield from ({"quantity": name, "value": size} for name, size in (sizes | {"setup_bytes": cost.setup_bytes}).items())
    yield from ({"quantity": "gain", "over": base, "value": gain} for base, gain in gains.items())


def _closed_lines(closed: Closed) -> Iterator[dict[str, JSON]]:
    paper, consistent = {"counted": "equation, as printed"}, {"counted": "equation, consistent bytes"}
    yield paper | {"quantity": "cost_gb", "value": closed.printed_gb}
    for base, gain in closed.printed_gains.items():
        known = closed.published.get(base)
        published = None if known is None else float(known)
        yield paper | {"quantity": "gain", "over": base, "value": gain, "published": published}
    if closed.consistent_bytes is not None:
        yield consistent | {"quantity": "bytes", "value": closed.consistent_bytes}
        for base, gain in closed.consistent_gains.items():
            yield consistent | {"quantity": "gain", "over": base, "value": gain}


def frame(found: Costs) -> pd.DataFrame:
    """All costs as a data frame of FIELDS; bytes of all rounds, clients and, where not said, both directions."""
    request, lines = found.request, []
    equations = {closed.row.id: closed for closed in found.closed}
    for row in request.rows:
        common = keys_of(request, row, request.columns[0])
        papers, ours = (common | {"encoder": scale.backbone} for scale in (request.paper_scale, request.scale))
        lines += [papers | line for line in _closed_lines(equations[row.id])] if row.id in equations else []
        for counted, costs, base in (("derived", found.derived, papers), ("measured", found.measured, ours)):
            if costs or counted == "measured":
                cost = costs.get(row.id)
                base |= {"counted": f"wire, {counted}", "n_seeds": (cost.seeds or None) if cost else None}
                unknown = _unknown(found, row, counted == "measured")
                lines += [base | line for line in _quantities(cost, found.gains(costs).get(row.id, {}), unknown)]
    return long_form(lines, FIELDS, {"Int64": ("n_seeds",), "Float64": ("value", "published")})


def _panel(found: Costs, title: str, costs: Mapping[str, Cost], series: list[Dots], unknown: str) -> Panel:
    gigabyte, gains = found.request.benchmark.paper.gigabyte, found.gains(costs)
    unit, _ = byte_unit(_largest(found), gigabyte)
    names, texts = {row.id: row_name(row) for row in found.request.rows}, {}
    for row_id, name in names.items():
        cost = costs.get(row_id)
        over = " and ".join(f"{digits(float(gain))}×" for gain in gains[row_id].values()) if cost else ""
        size = human_bytes(cost.total_bytes, gigabyte) if cost else unknown
        texts[name] = ", ".join(filter(None, (size, over)))
    sums = {names[row_id]: cost.total_bytes / unit for row_id, cost in costs.items() if row_id in names}
    return Panel(title, list(names.values()), [Dots("on the wire", sums), *series], texts)


def _largest(found: Costs) -> float:
    return max((cost.total_bytes for costs in (found.derived, found.measured) for cost in costs.values()), default=0)


def plot(found: Costs) -> Figure:
    """Measured at the left, derived for the paper's own encoder at the right where that is known."""
    request, gigabyte = found.request, found.request.benchmark.paper.gigabyte
    unit, name = byte_unit(_largest(found), gigabyte)
    panels = [_panel(found, f"measured, {request.scale.backbone}", found.measured, [], "not run")]
    if found.derived:
        exact = {row_name(closed.row): closed.consistent_bytes for closed in found.closed}
        equations = {label: size / unit for label, size in exact.items() if size is not None}
        series = [Dots("the paper's equation", equations, HOLLOW | {"markersize": 8})]
        panels.append(_panel(found, f"derived, {request.paper_scale.backbone}", found.derived, series, DEPENDS))
    baselines = " and ".join(row.name for row in found.baselines)
    caption = (
        "Bytes of all clients, without the one-time model distribution; next to each mark its gains over "
        f"{baselines}. Diamonds: the paper's equations in consistent bytes.{dagger_note(request.rows)}"
    )
    return dot_plot(request.heading, panels, f"{name}, all rounds, both directions", caption, across=2)
