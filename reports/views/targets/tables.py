"""Bytes to a target and gains as text: measured by target and method, and derived beside print."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from reports.gain import Gain
from reports.layout import NOT_RUN, NOTHING, Grid, Group, Line, number, row_name, score_label
from reports.page import Request
from reports.printed_costs import as_decimal
from reports.statistics import printed
from reports.views.targets.derived import AS_PRINTED, DIFFERS, NOT_DERIVABLE, Derived
from reports.views.targets.outcomes import KINDS, Kind, Outcome, Outcomes, baseline_of

MEGABYTE = 10**6  # as the text's unit is read


def kind_label(request: Request, kind: Kind) -> str:
    """The target in words."""
    if kind == "baseline":
        return f"what {baseline_of(request).name} reaches after its last round"
    return f"the printed target, set for {request.benchmark.scale('paper').backbone}"


def factor(value: Fraction) -> str:
    """A whole number as it is, another one with two decimals."""
    return str(value.numerator) if value.denominator == 1 else f"{printed(as_decimal(value))}"


def product(gain: Gain, is_bound: bool = False) -> str:
    """Layers × rounds × precision; where the baseline is censored the rounds are at least so many."""
    rounds = f"≥ {factor(gain.rounds)}" if is_bound else factor(gain.rounds)
    return f"{factor(gain.layers)} × {rounds} × {factor(gain.precision)}"


def rounds_text(outcome: Outcome) -> str:
    """Rounds to the target, or how many seeds reach it."""
    sent = outcome.sent
    if sent is None:
        return NOTHING
    if outcome.is_complete:
        return factor(sent.rounds)
    most = max(found.rounds for found in outcome.attempts if not found.is_reached)
    late = f"not within {most} round{'s' if most > 1 else ''}"
    return f"{outcome.reached} of {len(outcome.attempts)} seeds; others {late}" if outcome.reached else late


def _megabytes(size: float) -> str:
    """Bytes in megabytes."""
    return number(size / MEGABYTE)


def bytes_text(outcome: Outcome) -> str:
    """Megabytes to the target; more than those of all rounds where it is not reached."""
    sent = outcome.sent
    if sent is None or not (outcome.is_complete or sent.bytes):
        return NOTHING
    return f"{'' if outcome.is_complete else '> '}{_megabytes(float(sent.bytes))}"


def gain_text(outcome: Outcome) -> str:
    """The gain over the baseline; a bound where that is censored, nothing where the method is."""
    if outcome.gain is not None:
        return f"{'≥ ' if outcome.is_bound else ''}{number(float(outcome.gain.total))}×"
    sends_nothing = outcome.is_complete and outcome.sent is not None and not outcome.sent.bytes
    return "sends nothing" if sends_nothing else NOTHING


def _line(outcome: Outcome) -> Line:
    """One method on one task."""
    target = NOTHING if outcome.target is None else f"{number(100 * outcome.target)} %"
    label = f"{outcome.column.name} {score_label(outcome.column.averaged)} ≥ {target}"
    if outcome.cost is None:
        return Line(label, (NOT_RUN, *[""] * 6), is_main=True)
    cells = (
        str(len(outcome.seeds)),
        _megabytes(outcome.cost.round_bytes),
        rounds_text(outcome),
        bytes_text(outcome),
        gain_text(outcome),
        NOTHING if outcome.gain is None else product(outcome.gain, outcome.is_bound),
        _megabytes(outcome.cost.setup_bytes),
    )
    return Line(label, cells, is_main=True)


def _measured_grid(found: Outcomes, kind: Kind) -> Grid:
    """Groups are methods, lines tasks."""
    request = found.request
    over = f"over {baseline_of(request).name}"
    headers = (
        ("n", "seeds"),
        ("a round", "MB up"),
        ("rounds", "to target"),
        ("to target", "MB up"),
        ("gain", over),
        ("layers × rounds", "× precision"),
        ("set-up", "MB, once"),
    )
    groups = tuple(
        Group(row_name(row), tuple(_line(found.at(kind, row, column)) for column in found.columns))
        for row in request.rows
    )
    return Grid(f"{request.heading}: bytes to {kind_label(request, kind)}", headers, groups)


def _digits(value: Decimal) -> str:
    """A printed number as it is printed: 1 where a CSV says 1.0."""
    return f"{value.normalize():f}"


def _derived_group(request: Request, derived: Derived) -> Group:
    """A method: derived, published, and whether they are the same digits."""
    baseline = baseline_of(request).name
    rounds = factor(derived.rounds) if derived.published else f"{factor(derived.rounds)} ({baseline}'s)"
    cells = (
        f"{derived.size_gb}",
        rounds,
        f"{printed(derived.cost_gb)}",
        f"{printed(derived.rounded_gain, places=1)}",
        number(float(derived.gain.total)),
        product(derived.gain),
    )
    lines = [Line("derived", cells, is_main=True)]
    if derived.published is not None and derived.agreements is not None:
        known = derived.published
        size, cost, gain = map(_digits, (known.size_gb, known.cost_gb, known.gain))
        lines.append(Line("published", (size, "", cost, gain, "", "")))
        otherwise = DIFFERS
        if derived.row.id in request.benchmark.view.options.get("not_derivable", ()):
            otherwise = NOT_DERIVABLE
        size, cost, gain = (AS_PRINTED if same else otherwise for same in derived.agreements)
        lines.append(Line("verdict", (size, "", cost, gain, "", "")))
    return Group(row_name(derived.row), tuple(lines))


def _derived_grid(request: Request, derived: Sequence[Derived]) -> Grid:
    """Groups are methods: sizes, costs and gains of the paper's own encoder."""
    paper = request.benchmark.scale("paper")
    task = request.columns[0].name
    headers = (
        ("size", "GB a round"),
        ("rounds", "cost ÷ size, as printed"),
        ("cost", "GB"),
        ("gain", "of rounded sizes"),
        ("gain", "of exact bytes"),
        ("layers × rounds", "× precision"),
    )
    title = (
        f"{request.benchmark.paper.name}, {request.benchmark.place} · derived for the paper's encoder ({paper.label}), "
        f"without training, {task}: the same at every scale"
    )
    return Grid(title, headers, tuple(_derived_group(request, found) for found in derived))


def grids(found: Outcomes, derived: Sequence[Derived]) -> tuple[Grid, ...]:
    """A table for each kind of target, and what is derived where the paper prints sizes."""
    measured = tuple(_measured_grid(found, kind) for kind in KINDS)
    return (*measured, _derived_grid(found.request, derived)) if derived else measured
