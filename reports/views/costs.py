"""The view of communication costs: a paper's equations, and the bytes that cross the wire, derived and measured.

Options: baselines, the rows that gains are over. The benchmark says by `closed_forms` which equation is a row's, and
publishes the equations' terms at the row "parameters" and gains at the columns "gain_over_<row>". The bytes are those
of the benchmark's first task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from decimal import Decimal
from functools import partial

import pandas as pd

from benchmarks.costs import Terms
from benchmarks.experiment import Row
from benchmarks.run_config import JSON
from reports.evidence.equations import Closed, Costs
from reports.evidence.published import is_printed_as, places_of
from reports.evidence.statistics import printed
from reports.evidence.traffic import Cost
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.text import NOTHING, ONE_TIME, human_bytes, not_run, notes_under, number, row_name

AS_PRINTED, DIFFERS = "as printed", "differs"
DEPENDS = "depends on texts"
KINDS = {"features": "features", "masks": "masks", "labels": "labels", "parameters": "weights"}  # and their names
RANKS = False
FIELDS = [*KEYS, "encoder", "counted", "quantity", "over", "value", "published", "n_seeds"]

join = Costs


def _method(found: Costs) -> Iterator[str]:
    paper, backbone, terms = found.request.benchmark.paper, found.request.paper_scale.backbone, found.terms
    named = ", ".join(f"{term.name} {getattr(terms, term.name):,.10g}" for term in fields(Terms))
    yield f"Bytes: {paper.bytes_convention}. Gain: the baseline's bytes over the method's."
    yield f"Closed forms, first line: the equation with the printed parameters ({named}; sizes in bytes)."
    yield (
        f"In consistent bytes: the same equation with sizes counted on {backbone}'s shapes, every byte alike; also "
        "where a head's SizeOf(W_s) is not printed."
    )
    if found.derived:
        yield (
            f"On the wire, derived: one round of the real channel on {backbone}'s shapes, times the rounds, with "
            f"{terms.n_s:,.0f} texts. Beside a method: how many layers' embeddings of each text it sends, all "
            "tokens' or, of one layer, [CLS] alone."
        )
    yield (
        "Measured: the ledger's bytes of all rounds, mean over n seeds. The one-time model distribution, the "
        "pre-trained model to every client, is left out by the paper and is in no other number."
    )


def notes(found: Costs) -> Iterator[str]:
    """Every note under the tables."""
    return notes_under(found.request, _method(found))


def _gain_headers(found: Costs) -> tuple[tuple[str, ...], ...]:
    return tuple(("gain over", *row.name.split(" · ")) for row in found.baselines)


def _gains(found: Costs, gains: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(number(gains.get(base.id)) for base in found.baselines)


def _gb(size: float) -> str:
    return number(size) if size >= 0.005 else "<0.01"


def _closed_group(found: Costs, closed: Closed, wire_gains: Mapping[str, Mapping[str, float]]) -> Group:
    gigabyte, names = found.request.benchmark.paper.gigabyte, [base.id for base in found.baselines]
    known = {name: closed.published[name] for name in names if name in closed.published}
    places = [places_of(known[name]) if name in known else 1 for name in names]
    own = [str(printed(closed.printed_gains[name], places=n)) for name, n in zip(names, places, strict=True)]
    label = f"eq. {closed.form.equation}: {closed.form.text}"
    lines = [Line(label, (_gb(closed.printed_gb), *own), is_main=True)]
    if known:
        same = {name: is_printed_as(Decimal(str(closed.printed_gains[name])), gain) for name, gain in known.items()}
        texts = [f"{known[name].normalize():f}" if name in known else "" for name in names]
        words = [(AS_PRINTED if same[name] else DIFFERS) if name in known else "" for name in names]
        lines += [Line("reported", ("", *texts)), Line("verdict", ("", *words))]
    if closed.consistent_bytes is not None:
        exact = _gb(closed.consistent_bytes / gigabyte)
        lines.append(Line("in consistent bytes", (exact, *_gains(found, closed.consistent_gains))))
    if wire := found.derived.get(closed.row.id):
        sent = _gb(wire.total_bytes / gigabyte)
        lines.append(Line("on the wire", (sent, *_gains(found, wire_gains[closed.row.id]))))
    return Group(row_name(closed.row), tuple(lines))


def _for_the_papers(found: Costs, what: str) -> str:
    benchmark, label = found.request.benchmark, found.request.paper_scale.label
    return (
        f"{benchmark.paper.name}, {benchmark.place} · {what} for the paper's encoder ({label}), without "
        "training: the same at every scale"
    )


def sent_of_a_text(found: Costs, row: Row) -> str:
    """How many layers' embeddings a method sends of each text, or [CLS] for one token's of one layer.

    Nothing where it is not known. What shapes alone do not give depends on the texts: it holds embeddings of them.
    """
    known, sizes = found.derived.get(row.id), found.sizes.get(row.head)
    if sizes is None:
        return ""
    if known is not None and "features" not in known.kinds:
        return NOTHING
    return f"{sizes.layers_read} layer{'s' if sizes.layers_read > 1 else ''}" if sizes.all_tokens else "[CLS]"


def _bytes_grid(
    found: Costs, title: str, costs: Mapping[str, Cost], unknown: Callable[[Row], str], has_seeds: bool
) -> Grid:
    """Rows are methods: bytes by direction and kind, with gains. unknown: stands where a method's are not known."""
    gigabyte, gains = found.request.benchmark.paper.gigabyte, found.gains(costs)
    headers: list[tuple[str, ...]] = [("n", "seeds")] if has_seeds else []
    headers += [("uplink",), ("downlink",), ("both",), *_gain_headers(found)]
    headers += [*(("of which", name) for name in KINDS.values()), ONE_TIME]

    def texts(sizes: list[float]) -> list[str]:
        return [human_bytes(size, gigabyte) if size else NOTHING for size in sizes]

    def cells(row: Row) -> tuple[str, ...]:
        cost = costs.get(row.id)
        if cost is None:
            return (unknown(row), *[""] * (len(headers) - 1))
        seeds = [str(cost.seeds)] if has_seeds else []
        kinds = [cost.kinds.get(kind, 0) for kind in KINDS]
        ways = texts([cost.up_bytes, cost.down_bytes, cost.total_bytes])
        return (*seeds, *ways, *_gains(found, gains[row.id]), *texts([*kinds, cost.setup_bytes]))

    groups = (Group(row_name(row), (Line(sent_of_a_text(found, row), cells(row)),)) for row in found.request.rows)
    return Grid(title, tuple(headers), tuple(groups))


def grids(found: Costs) -> tuple[Grid, ...]:
    """Equations (groups are methods, lines the ways to count), the wire as derived where it is, and as measured."""
    gains = found.gains(found.derived)
    groups = tuple(_closed_group(found, closed, gains) for closed in found.closed)
    tables = [Grid(_for_the_papers(found, "closed forms"), (("cost", "GB"), *_gain_headers(found)), groups)]
    if found.derived:
        title = _for_the_papers(found, "what crosses the wire, derived")
        tables.append(_bytes_grid(found, title, found.derived, lambda _: DEPENDS, has_seeds=False))
    title = f"{found.request.heading}: what crossed the wire, measured"
    return (*tables, _bytes_grid(found, title, found.measured, partial(_missing, found), has_seeds=True))


def _missing(found: Costs, row: Row) -> str:
    return not_run(found.request, row, found.request.columns[0])


Quantity = dict[str, JSON]


def _gain_lines(gains: Mapping[str, float]) -> Iterator[Quantity]:
    for baseline, gain in gains.items():
        yield {"quantity": "gain", "over": baseline, "value": gain}


def _closed_lines(closed: Closed) -> Iterator[Quantity]:
    paper, consistent = {"counted": "equation, as printed"}, {"counted": "equation, consistent bytes"}
    yield paper | {"quantity": "cost_gb", "value": closed.printed_gb}
    for entry in _gain_lines(closed.printed_gains):
        published = closed.published.get(entry["over"])
        yield paper | entry | {"published": None if published is None else float(published)}
    if closed.consistent_bytes is not None:
        yield consistent | {"quantity": "bytes", "value": closed.consistent_bytes}
        yield from (consistent | entry for entry in _gain_lines(closed.consistent_gains))


def _cost_lines(cost: Cost | None, gains: Mapping[str, float], unknown: str) -> Iterator[Quantity]:
    if cost is None:
        yield {"quantity": unknown}
        return
    sizes = {"bytes": cost.total_bytes, "up_bytes": cost.up_bytes, "down_bytes": cost.down_bytes}
    sizes |= {f"{name}_bytes": cost.kinds.get(kind, 0) for kind, name in KINDS.items()}
    for name, size in (sizes | {"setup_bytes": cost.setup_bytes}).items():
        yield {"quantity": name, "value": size}
    yield from _gain_lines(gains)


def _lines(found: Costs) -> Iterator[Quantity]:
    papers, ours = {"encoder": found.request.paper_scale.backbone}, {"encoder": found.request.scale.backbone}
    derived_gains, measured_gains = found.gains(found.derived), found.gains(found.measured)
    for row in found.request.rows:
        common = keys_of(found.request, row, found.request.columns[0])
        for closed in found.closed:
            if closed.row == row:
                yield from (common | papers | entry for entry in _closed_lines(closed))
        if found.derived:
            for entry in _cost_lines(found.derived.get(row.id), derived_gains.get(row.id, {}), DEPENDS):
                yield common | papers | {"counted": "wire, derived"} | entry
        measured = found.measured.get(row.id)
        counted = {"counted": "wire, measured", "n_seeds": measured.seeds if measured else None}
        for entry in _cost_lines(measured, measured_gains.get(row.id, {}), _missing(found, row)):
            yield common | ours | counted | entry


def frame(found: Costs) -> pd.DataFrame:
    """All costs as a data frame of FIELDS; bytes of all rounds, clients and, where not said, both directions."""
    return long_form(_lines(found), FIELDS, {"Int64": ("n_seeds",), "Float64": ("value", "published")})
