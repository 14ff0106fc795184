"""The view of bytes until a target: rounds and bytes, the gain over a baseline, and what the gain comes from.

Options: targets, task -> printed target in its metric's unit; baseline, the row that gains are over and whose best
round is the scale-free target; not_derivable, rows whose printed sizes no reading of the method yields.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pandas as pd

from benchmarks.experiment import Column
from benchmarks.measures import metric
from benchmarks.run_config import JSON
from reports.evidence.equations import Derived
from reports.evidence.published import as_decimal
from reports.evidence.scores import score_label
from reports.evidence.statistics import printed
from reports.evidence.targets import KINDS, Kind, Outcome, Targets, find_targets, is_comparable
from reports.evidence.traffic import Gain
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.text import NOTHING, ONE_TIME, not_run, notes_under, number, over_clients, row_name

MEGABYTE = 10**6  # as the text's unit is read
AS_PRINTED, NOT_DERIVABLE, DIFFERS = "as printed", "not derivable", "differs"
FIELDS = [
    *(*KEYS, "score", "encoder", "target", "target_percent", "quantity", "relation", "value", "published"),
    *("n_seeds", "n_reached"),
]

join = find_targets


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


def _method(found: Targets) -> Iterator[str]:
    request, base = found.request, found.baseline.name
    wanted = request.benchmark.view.options["targets"]
    named = ", ".join(
        f"{column.name} {score_label(column, at)} {metric(at).in_unit(f'{wanted[column.task]:g}')}"
        for column, at in ((column, column.averaged) for column in request.columns)
    )
    is_above = {metric(column.averaged).higher_is_better for column in request.columns} == {True}
    yield (
        f"Two targets: {_kind_label(found, 'baseline')}, seed by seed, for any encoder; and the printed one "
        f"({named}), which was set for {request.paper_scale.backbone} and means little for another encoder."
    )
    yield (
        f"Rounds: until the first whose score, {over_clients(request.columns)}, is at the target or "
        f"{'above' if is_above else 'better'}; mean over the method's n "
        "seeds. Where a seed does not reach it, the method is censored: its bytes count all rounds of that seed (>), "
        f"and it has no gain. Where {base} is censored, the gain is at least (≥) the number."
    )
    yield (
        f"Bytes: {request.benchmark.paper.bytes_convention}, as the ledger counted them; per round: mean over rounds. "
        "The one-time model distribution (the pre-trained model, to all clients) is in no other number."
    )
    yield (
        f"Gain: {base}'s bytes over the method's, which is the product of layers (values sent per round) × rounds × "
        "precision (bytes a value)."
    )
    if found.derived:
        yield (
            "Derived: one round of the real channel on the encoder's shapes, without training; the rounds are those "
            f"that the printed cost and size imply, {base}'s for rows that are not printed. Cost and the first gain "
            "are computed as the paper's are, from sizes rounded to two decimals; the second gain from exact bytes."
        )
    for fact in found.stated:
        comparable = "" if is_comparable(request) else "; not comparable with this encoder's bytes"
        yield f"Stated in the text: {fact.row.name} on {fact.column.name}: {fact.text}{comparable}."


def notes(found: Targets) -> Iterator[str]:
    """Every note under the tables."""
    return notes_under(found.request, _method(found))


def factor(value: Fraction) -> str:
    """A whole number as it is, another one with two decimals."""
    return str(value.numerator) if value.denominator == 1 else f"{printed(as_decimal(value))}"


def _product(gain: Gain, is_bound: bool = False) -> str:
    rounds = f"≥ {factor(gain.rounds)}" if is_bound else factor(gain.rounds)
    return f"{factor(gain.layers)} × {rounds} × {factor(gain.precision)}"


def _rounds(outcome: Outcome) -> str:
    if outcome.sent is None:
        return NOTHING
    if outcome.is_complete:
        return factor(outcome.sent.rounds)
    most = max(found.rounds for found in outcome.attempts if not found.is_reached)
    late = f"not within {most} round{'s' if most > 1 else ''}"
    return f"{outcome.reached} of {len(outcome.attempts)} seeds; others {late}" if outcome.reached else late


def _bytes(outcome: Outcome) -> str:
    """Megabytes to the target; more than those of all rounds where it is not reached."""
    sent = outcome.sent
    if sent is None or not (outcome.is_complete or sent.bytes):
        return NOTHING
    return f"{'' if outcome.is_complete else '> '}{number(float(sent.bytes) / MEGABYTE)}"


def _gain(outcome: Outcome) -> str:
    """The gain over the baseline; a bound where that is censored, nothing where the method is."""
    if outcome.gain is not None:
        return f"{'≥ ' if outcome.is_bound else ''}{number(float(outcome.gain.total))}×"
    sends_nothing = outcome.is_complete and outcome.sent is not None and not outcome.sent.bytes
    return "sends nothing" if sends_nothing else NOTHING


def _line(found: Targets, outcome: Outcome) -> Line:
    label = f"{outcome.column.name} {target_text(outcome.column, outcome.target_shown)}"
    if outcome.cost is None:
        return Line(label, (not_run(found.request, outcome.row, outcome.column), *[""] * 6), is_main=True)
    cells = (
        str(len(outcome.seeds)),
        number(outcome.cost.round_bytes / MEGABYTE),
        _rounds(outcome),
        _bytes(outcome),
        _gain(outcome),
        NOTHING if outcome.gain is None else _product(outcome.gain, outcome.is_bound),
        number(outcome.cost.setup_bytes / MEGABYTE),
    )
    return Line(label, cells, is_main=True)


def _measured_grid(found: Targets, kind: Kind) -> Grid:
    ways = " + ".join(f"{way}link" for way in found.request.benchmark.paper.directions)
    headers = (
        *(("n", "seeds"), ("per round", f"MB {ways}"), ("rounds", "to target"), ("to target", f"MB {ways}")),
        *(("gain", f"over {found.baseline.name}"), ("layers × rounds", "× precision"), (*ONE_TIME, "MB")),
    )
    at, columns = found.at, found.columns
    lines = {row.id: tuple(_line(found, at(kind, row, column)) for column in columns) for row in found.request.rows}
    groups = tuple(Group(row_name(row), lines[row.id]) for row in found.request.rows)
    return Grid(f"{found.request.heading}: bytes to {_kind_label(found, kind)}", headers, groups)


def _derived_group(found: Targets, derived: Derived) -> Group:
    rounds = factor(derived.rounds) if derived.published else f"{factor(derived.rounds)} ({found.baseline.name}'s)"
    cells = (
        f"{derived.size_gb}",
        rounds,
        f"{printed(derived.cost_gb)}",
        f"{printed(derived.rounded_gain, places=1)}",
        number(float(derived.gain.total)),
        _product(derived.gain),
    )
    lines = [Line("derived", cells, is_main=True)]
    if derived.published is not None and derived.agreements is not None:
        known = derived.published
        size, cost, gain = (f"{value.normalize():f}" for value in (known.size_gb, known.cost_gb, known.gain))
        lines.append(Line("reported", (size, "", cost, gain, "", "")))
        not_derivable = found.request.benchmark.view.options.get("not_derivable", ())
        otherwise = NOT_DERIVABLE if derived.row.id in not_derivable else DIFFERS
        size, cost, gain = (AS_PRINTED if same else otherwise for same in derived.agreements)
        lines.append(Line("verdict", (size, "", cost, gain, "", "")))
    return Group(row_name(derived.row), tuple(lines))


def _derived_grid(found: Targets) -> Grid:
    request = found.request
    headers = (
        *(("size", "GB per round"), ("rounds", "cost ÷ size, as printed"), ("cost", "GB")),
        *(("gain", "of rounded sizes"), ("gain", "of exact bytes"), ("layers × rounds", "× precision")),
    )
    title = (
        f"{request.benchmark.paper.name}, {request.benchmark.place} · derived for the paper's encoder "
        f"({request.paper_scale.label}), without training, {request.columns[0].name}: the same at every scale"
    )
    return Grid(title, headers, tuple(_derived_group(found, derived) for derived in found.derived))


def grids(found: Targets) -> tuple[Grid, ...]:
    """A table for each kind of target, and what is derived where the paper prints sizes."""
    measured = tuple(_measured_grid(found, kind) for kind in KINDS)
    return (*measured, _derived_grid(found)) if found.derived else measured


Quantity = tuple[str, str, float | None]  # name, relation ("=", ">" censored, "≥" its bound, "not run"), value


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
    size, cost, gain = (float(known.size_gb), float(known.cost_gb), float(known.gain)) if known else (None, None, None)
    yield "derived_round_bytes", found.size_bytes, None
    yield "derived_size_gb", float(found.size_gb), size
    yield "implied_rounds", float(found.rounds), None
    yield "derived_cost_gb", float(found.cost_gb), cost
    yield "gain_of_rounded_sizes", float(found.rounded_gain), gain
    for name, _, value in _gain_quantities(found.gain):
        yield f"exact_{name}", value, None


def _lines(found: Targets) -> Iterator[dict[str, JSON]]:
    request, papers = found.request, {"encoder": found.request.paper_scale.backbone}
    for outcome in (entry for kind in KINDS for column in request.columns for entry in found.of(kind, column)):
        common = keys_of(request, outcome.row, outcome.column) | {"score": outcome.column.averaged}
        common |= {"encoder": request.scale.backbone, "target": outcome.kind, "target_percent": outcome.target_shown}
        common |= {"n_seeds": len(outcome.seeds), "n_reached": outcome.reached if outcome.attempts else None}
        for quantity, relation, value in _quantities(found, outcome):
            yield common | {"quantity": quantity, "relation": relation, "value": value}
    column = request.columns[0]
    for derived in found.derived:
        common = keys_of(request, derived.row, column) | papers | {"score": column.averaged, "relation": "="}
        for name, value, published in _derived_quantities(derived):
            yield common | {"quantity": name, "value": value, "published": published}
    for fact in found.stated:
        common = keys_of(request, fact.row, fact.column) | papers | {"score": fact.column.averaged, "target": "printed"}
        yield common | {"quantity": "stated_megabytes", "relation": fact.sign, "published": fact.megabytes}


def frame(found: Targets) -> pd.DataFrame:
    """All outcomes as a data frame of FIELDS: measured, derived and stated; bytes in the paper's directions."""
    types = {"Int64": ("n_seeds", "n_reached"), "Float64": ("value", "published")}
    return long_form(_lines(found), FIELDS, types)
