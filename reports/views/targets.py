"""The view of bytes until a target: rounds and bytes, the gain over a baseline, and what the gain comes from.

Options: targets, task -> printed target in its metric's unit; baseline, the row that gains are over and whose best
round is the scale-free target; not_derivable, rows whose printed sizes no reading of the method yields.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.experiment import Column
from benchmarks.measures import metric
from benchmarks.run_config import JSON
from reports.evidence.published import as_decimal, is_printed_as
from reports.evidence.scores import score_label
from reports.evidence.statistics import printed
from reports.evidence.targets import KINDS, Derived, Gain, Kind, Outcome, Targets, is_comparable
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.plots import HOLLOW, Dots, Panel, digits, dot_plot, with_points
from reports.pages.text import NOTHING, ONE_TIME, dagger_note, not_run, notes_under, number, over_clients, row_name
from reports.views.costs import AS_PRINTED, DIFFERS

MEGABYTE = 10**6  # as the text's unit is read
NOT_DERIVABLE = "not derivable"
FIELDS = [
    *(*KEYS, "score", "encoder", "target", "target_percent", "quantity", "relation", "value", "published"),
    *("n_seeds", "n_reached"),
]
_WAYS = {("up",): "uplink", ("down",): "downlink", ("up", "down"): "uplink and downlink"}


join = Targets


def _kind_label(found: Targets, kind: Kind) -> str:
    if kind == "baseline":
        return f"the best that {found.baseline.name} reaches after any round"
    return f"the printed target, set for {found.request.paper_scale.backbone}"


def target_text(column: Column, target: float | None) -> str:
    """The score and its target, in the metric's unit: "Acc ≥ 62.00 %", or ≤ where lower is better."""
    measured = metric(column.averaged)
    sign = "≥" if measured.higher_is_better else "≤"
    known = NOTHING if target is None else measured.in_unit(number(target))
    return f"{score_label(column, column.averaged)} {sign} {known}"


def notes(found: Targets) -> Iterator[str]:
    """Every note under the tables."""
    return notes_under(found.request, _method(found))


def _method(found: Targets) -> Iterator[str]:
    request, base = found.request, found.baseline.name
    wanted = request.benchmark.view.options["targets"]
    named = ", ".join(
        f"{column.name} {score_label(column, at)} {metric(at).in_unit(f'{wanted[column.task]:g}')}"
        for column, at in ((column, column.averaged) for column in request.columns)
    )
    yield (
        f"Two targets: {_kind_label(found, 'baseline')}, seed by seed; and the printed one ({named}), which was set "
        f"for {request.paper_scale.backbone} and means little for another encoder."
    )
    yield (
        f"Rounds: until the first whose score, {over_clients(request.columns)}, is at the target or better; mean over "
        "n seeds. A method with a seed that does not reach it is censored: all rounds of that seed count (>), and it "
        f"has no gain. Where {base} is censored, the gain is at least (≥) the number."
    )
    yield f"Bytes: {request.benchmark.paper.bytes_convention}, without the one-time model distribution."
    yield f"Gain: {base}'s bytes over the method's: layers (values per round) × rounds × precision (bytes a value)."
    if found.derived:
        yield (
            "Derived: one round of the real channel on the encoder's shapes; rounds from the printed cost and size, "
            f"{base}'s for rows that are not printed. Cost and first gain are computed as in the paper, from sizes "
            "rounded to two decimals; the second gain from exact bytes."
        )
    names = {row.id: row.name for row in request.rows} | {column.task: column.name for column in request.columns}
    comparable = "" if is_comparable(request) else "; not comparable with this encoder's bytes"
    for (row, task), (sign, size) in found.stated.items():
        yield f"Stated in the text: {names[row]} on {names[task]}: {sign} {size:g} MB{comparable}."


def factor(value: Fraction) -> str:
    """A whole number without decimals, another one with two."""
    return str(value.numerator) if value.denominator == 1 else f"{printed(as_decimal(value))}"


def _product(gain: Gain | None, is_bound: bool = False) -> str:
    if gain is None:
        return NOTHING
    return f"{factor(gain.layers)} × {'≥ ' if is_bound else ''}{factor(gain.rounds)} × {factor(gain.precision)}"


def _rounds(outcome: Outcome) -> str:
    if outcome.sent is None:
        return NOTHING
    if outcome.is_complete:
        return factor(outcome.sent.rounds)
    most = max(found.rounds for found in outcome.attempts if not found.is_reached)
    late = f"not within {most} round{'s' if most > 1 else ''}"
    return f"{outcome.reached} of {len(outcome.attempts)} seeds; others {late}" if outcome.reached else late


def _megabytes(outcome: Outcome) -> float:
    return 0.0 if outcome.sent is None else float(outcome.sent.bytes) / MEGABYTE


def _gain(outcome: Outcome) -> str:
    """The gain over the baseline; a bound where that is censored, nothing where the method is."""
    if outcome.gain is not None:
        return f"{'≥ ' if outcome.is_bound else ''}{number(float(outcome.gain.total))}×"
    return "sends nothing" if outcome.is_complete and not _megabytes(outcome) else NOTHING


def _line(found: Targets, outcome: Outcome) -> Line:
    label = f"{outcome.column.name} {target_text(outcome.column, outcome.target)}"
    if outcome.cost is None:
        return Line(label, (not_run(found.request, outcome.row, outcome.column), *[""] * 6), is_main=True)
    size = _megabytes(outcome)
    cells = (
        str(outcome.seeds),
        number(outcome.cost.round_bytes / MEGABYTE),
        _rounds(outcome),
        f"{'' if outcome.is_complete else '> '}{number(size)}" if outcome.is_complete or size else NOTHING,
        _gain(outcome),
        _product(outcome.gain, outcome.is_bound),
        number(outcome.cost.setup_bytes / MEGABYTE),
    )
    return Line(label, cells, is_main=True)


def _measured_grid(found: Targets, kind: Kind) -> Grid:
    ways = " + ".join(f"{way}link" for way in found.request.benchmark.paper.directions)
    headers = (
        *(("n", "seeds"), ("per round", f"MB {ways}"), ("rounds", "to target"), ("to target", f"MB {ways}")),
        *(("gain", f"over {found.baseline.name}"), ("layers × rounds", "× precision"), (*ONE_TIME, "MB")),
    )
    by_row: dict[str, list[Line]] = {row.id: [] for row in found.request.rows}
    for column in found.columns:
        for outcome in found.outcomes[kind, column.task]:
            by_row[outcome.row.id].append(_line(found, outcome))
    groups = tuple(Group(row_name(row), tuple(by_row[row.id])) for row in found.request.rows)
    return Grid(f"{found.request.heading}: bytes to {_kind_label(found, kind)}", headers, groups)


def _derived_group(found: Targets, derived: Derived) -> Group:
    known, rounds = derived.published, factor(derived.sent.rounds)
    gains = f"{printed(derived.rounded_gain, places=1)}", number(float(derived.gain.total)), _product(derived.gain)
    whose = rounds if known else f"{rounds} ({found.baseline.name}'s)"
    lines = [Line("derived", (f"{derived.size_gb}", whose, f"{printed(derived.cost_gb)}", *gains), is_main=True)]
    if known is not None:
        pairs = (derived.size_gb, known.size_gb), (derived.cost_gb, known.cost_gb), (derived.rounded_gain, known.gain)
        not_derivable = found.request.benchmark.view.options.get("not_derivable", ())
        otherwise = NOT_DERIVABLE if derived.row.id in not_derivable else DIFFERS
        texts = [f"{value.normalize():f}" for _, value in pairs]
        words = [AS_PRINTED if is_printed_as(*pair) else otherwise for pair in pairs]
        for label, (size, cost, gain) in (("reported", texts), ("verdict", words)):
            lines.append(Line(label, (size, "", cost, gain, "", "")))
    return Group(row_name(derived.row), tuple(lines))


def grids(found: Targets) -> tuple[Grid, ...]:
    """A table for each kind of target, and what is derived where the paper prints sizes."""
    request, tables = found.request, [_measured_grid(found, kind) for kind in KINDS]
    headers = (
        *(("size", "GB per round"), ("rounds", "cost ÷ size, as printed"), ("cost", "GB")),
        *(("gain", "of rounded sizes"), ("gain", "of exact bytes"), ("layers × rounds", "× precision")),
    )
    title = (
        f"{request.benchmark.paper.name}, {request.benchmark.place} · derived for the paper's encoder "
        f"({request.paper_scale.label}), without training, {request.columns[0].name}: the same at every scale"
    )
    groups = tuple(_derived_group(found, derived) for derived in found.derived)
    return (*tables, Grid(title, headers, groups)) if groups else tuple(tables)


Quantity = tuple[str, str, float | None]  # name, relation ("=", ">" censored, "≥" its bound), value


def _gain_quantities(gain: Gain, relation: str = "=") -> Iterator[Quantity]:
    yield "gain", relation, float(gain.total)
    yield "gain_layers", "=", float(gain.layers)
    yield "gain_rounds", relation, float(gain.rounds)
    yield "gain_precision", "=", float(gain.precision)


def _quantities(found: Targets, outcome: Outcome) -> Iterator[Quantity]:
    if outcome.cost is None:
        yield "status", not_run(found.request, outcome.row, outcome.column), None
        return
    yield "round_bytes", "=", outcome.cost.round_bytes
    yield "setup_bytes", "=", outcome.cost.setup_bytes
    if outcome.sent is not None:
        relation = "=" if outcome.is_complete else ">"
        yield "rounds", relation, float(outcome.sent.rounds)
        yield "bytes", relation, float(outcome.sent.bytes)
    if outcome.gain is not None:
        yield from _gain_quantities(outcome.gain, "≥" if outcome.is_bound else "=")


def _derived_quantities(found: Derived) -> Iterator[tuple[str, float | None, float | None]]:
    known = found.published
    size, cost, gain = (float(known.size_gb), float(known.cost_gb), float(known.gain)) if known else (None,) * 3
    yield "derived_round_bytes", int(found.sent.bytes / found.sent.rounds), None
    yield "derived_size_gb", float(found.size_gb), size
    yield "implied_rounds", float(found.sent.rounds), None
    yield "derived_cost_gb", float(found.cost_gb), cost
    yield "gain_of_rounded_sizes", float(found.rounded_gain), gain
    yield from ((f"exact_{name}", value, None) for name, _, value in _gain_quantities(found.gain))


def _lines(found: Targets) -> Iterator[dict[str, JSON]]:
    request, papers = found.request, {"encoder": found.request.paper_scale.backbone}
    for outcome in (entry for entries in found.outcomes.values() for entry in entries):
        common = keys_of(request, outcome.row, outcome.column) | {"score": outcome.column.averaged}
        common |= {"encoder": request.scale.backbone, "target": outcome.kind, "target_percent": outcome.target}
        common |= {"n_seeds": outcome.seeds, "n_reached": outcome.reached if outcome.attempts else None}
        for quantity, relation, value in _quantities(found, outcome):
            yield common | {"quantity": quantity, "relation": relation, "value": value}
    column = request.columns[0]
    for derived in found.derived:
        common = keys_of(request, derived.row, column) | papers | {"score": column.averaged, "relation": "="}
        for name, value, published in _derived_quantities(derived):
            yield common | {"quantity": name, "value": value, "published": published}
    for column, row in product(request.columns, request.rows):
        if (row.id, column.task) in found.stated:
            sign, size = found.stated[row.id, column.task]
            common = keys_of(request, row, column) | papers | {"score": column.averaged, "target": "printed"}
            yield common | {"quantity": "stated_megabytes", "relation": sign, "published": size}


def frame(found: Targets) -> pd.DataFrame:
    """All outcomes as a data frame of FIELDS: measured, derived and stated; bytes in the paper's directions."""
    types = {"Int64": ("n_seeds", "n_reached"), "Float64": ("value", "published")}
    return long_form(_lines(found), FIELDS, types)


def _text(found: Targets, outcome: Outcome) -> str:
    text = "no target" if outcome.seeds else "not run"
    if outcome.sent is not None:
        text = f"{digits(_megabytes(outcome))} MB" if outcome.is_complete else "not reached"
    sign, size = found.stated.get((outcome.row.id, outcome.column.task), ("", 0.0))
    return f"{text}; stated: {sign} {size:g} MB" if sign else text


def _panel(found: Targets, kind: Kind, column: Column) -> Panel:
    outcomes = {row_name(outcome.row): outcome for outcome in found.outcomes[kind, column.task]}
    sent = {name: outcome for name, outcome in outcomes.items() if outcome.sent is not None}
    reached, missed = (
        {name: _megabytes(outcome) for name, outcome in sent.items() if outcome.is_complete == is_complete}
        for is_complete in (True, False)
    )
    series = [Dots("target reached", reached), Dots("not reached in all rounds", missed, HOLLOW | {"marker": ">"})]
    texts = {name: _text(found, outcome) for name, outcome in outcomes.items()}
    target = next(iter(outcomes.values())).target
    return Panel(f"{column.name}: {target_text(column, target)}", list(outcomes), series, texts)


def plot(found: Targets) -> Figure:
    """A panel for each task that has a target: megabytes until it, by method."""
    request, kind = found.request, KINDS[is_comparable(found.request)]
    ways = _WAYS[request.benchmark.paper.directions]
    columns, left_out = with_points(
        request.columns, lambda at: any(outcome.sent for outcome in found.outcomes[kind, at.task])
    )
    caption = (
        f"{ways.capitalize()} of all clients until the first round at {_kind_label(found, kind)}; mean over seeds. "
        "Hollow: bytes of all rounds, as some seed does not reach it. Stated: in the paper's text, its MBits read as "
        f"megabytes.{dagger_note(request.rows)}{left_out}"
    )
    panels = [_panel(found, kind, column) for column in columns]
    return dot_plot(request.heading, panels, f"{ways} until the target, MB", caption, across=2)
