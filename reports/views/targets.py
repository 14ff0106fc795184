"""The view of bytes until a target: rounds and bytes, the gain over a baseline, and what the gain comes from.

Options: targets, task -> printed target in its metric's unit; baseline, the row that gains are over and whose best
round is the scale-free target; not_derivable, rows whose printed sizes no reading of the method yields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Literal

from matplotlib.figure import Figure

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.results import RunResult
from benchmarks.run_config import JSON
from reports import ReportError
from reports.evidence.published import (
    MEGABYTE,
    Numbers,
    as_decimal,
    is_printed_as,
    published_for,
    read_published,
)
from reports.evidence.records import PAPER
from reports.evidence.scores import best_by_seed, score_label
from reports.evidence.statistics import mean, printed
from reports.evidence.targets import (
    Attempt,
    ByteGain,
    DerivedTarget,
    TargetResult,
    attempt,
    gain_over,
    mean_attempt,
)
from reports.evidence.traffic import derived_cost, measured_cost
from reports.frame import View
from reports.pages.page import KEYS, Grid, Group, Line, keys_of
from reports.pages.plots import HOLLOW, Dots, Panel, digits, dot_plot, with_points
from reports.pages.text import NOTHING, ONE_TIME, dagger_note, not_run, number, over_clients, row_name
from reports.views.costs import AS_PRINTED, DIFFERS

Kind = Literal["printed", "baseline"]
KINDS: tuple[Kind, ...] = ("baseline", "printed")
NOT_DERIVABLE = "not derivable"
_SIGNS = {"stated/megabytes_nearly": "≈", "stated/megabytes_at_least": "≥", "stated/megabytes_below": "<"}
_WAYS = {("up",): "uplink", ("down",): "downlink", ("up", "down"): "uplink and downlink"}


def _texts(one: TargetResult) -> Iterator[str]:
    """n, a round's bytes, rounds, bytes, the gain and its factors, and the set-up, as a table shows them."""
    if one.cost is None:
        return
    size, bound, late = one.megabytes, "≥ " if one.relation == "≥" else "", "" if one.is_complete else "> "
    yield str(one.cost.seeds)
    yield number(one.cost.round_bytes / MEGABYTE)
    yield _rounds(one)
    yield f"{late}{number(size)}" if one.is_complete or size else NOTHING
    nothing = "sends nothing" if one.is_complete and not size else NOTHING
    yield nothing if one.gain is None else f"{bound}{number(float(one.gain.total))}×"
    yield _product(one.gain, bound)
    yield number(one.cost.setup_bytes / MEGABYTE)


def _rounds(one: TargetResult) -> str:
    if one.sent is None:
        return NOTHING
    if one.is_complete:
        return factor(one.sent.rounds)
    reached = sum(each.is_reached for each in one.attempts)
    most = max(each.rounds for each in one.attempts if not each.is_reached)
    late = f"not within {most} round{'s' if most > 1 else ''}"
    return f"{reached} of {len(one.attempts)} seeds; others {late}" if reached else late


def factor(value: Fraction) -> str:
    """A whole number without decimals, another one with two."""
    return str(value.numerator) if value.denominator == 1 else f"{printed(as_decimal(value))}"


def _product(gain: ByteGain | None, bound: str = "") -> str:
    factors = gain and (factor(gain.layers), f"{bound}{factor(gain.rounds)}", factor(gain.precision))
    return " × ".join(factors) if factors else NOTHING


def target_text(column: Column, target: float | None) -> str:
    """The score and its target, in the metric's unit: "Acc ≥ 62.00 %", or ≤ where lower is better."""
    measured = metric(column.averaged)
    sign = "≥" if measured.higher_is_better else "≤"
    known = NOTHING if target is None else measured.in_unit(number(target))
    return f"{score_label(column, column.averaged)} {sign} {known}"


class Targets(View):
    """Bytes in the paper's directions until each target: measured, derived for the paper's own encoder, and stated.

    ReportError where a record, an option or the published values are damaged.
    """

    fields = (
        *(*KEYS, "score", "encoder", "target", "target_percent", "quantity", "relation", "value", "published"),
        *("n_seeds", "n_reached"),
    )
    integers = ("n_seeds", "n_reached")
    floats = ("value", "published")

    @cached_property
    def baseline(self) -> Row:
        return self.request.rows_named("baseline")[0]

    @cached_property
    def results(self) -> dict[tuple[Kind, str], tuple[TargetResult, ...]]:
        """(kind, task) -> every row's result."""
        pairs = product(KINDS, self.request.columns)
        return {(kind, column.task): tuple(self._results(column, kind)) for kind, column in pairs}

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns in which a method was run, or all where none was."""
        run = (at for at in self.request.columns if any(one.cost for one in self.results["printed", at.task]))
        return tuple(run) or self.request.columns

    def _targets(self, column: Column, kind: Kind, records: Iterable[RunResult]) -> Mapping[int, float]:
        """By seed, as recorded: the printed target, or the best that the baseline scores after any round."""
        request = self.request
        if kind == "baseline":
            return best_by_seed(request.records_of(self.baseline, column), column.averaged)
        try:
            wanted = float(request.benchmark.view.options["targets"][column.task]) / metric(column.averaged).factor
        except KeyError:
            raise ReportError(f"{request.benchmark.id}: expected a target for {column.task}, found none.") from None
        return {record.cell.seed: wanted for record in records}

    def _results(self, column: Column, kind: Kind) -> Iterator[TargetResult]:
        request, score = self.request, column.averaged
        by_row = {row.id: request.records_of(row, column) for row in request.rows}
        baseline = request.records_of(self.baseline, column)
        records = (record for own in (baseline, *by_row.values()) for record in own)
        targets, ways = self._targets(column, kind, records), request.benchmark.paper.directions

        def attempts(own: Sequence[RunResult]) -> list[Attempt[int]]:
            return [attempt(one, score, targets[one.cell.seed], ways) for one in own if one.cell.seed in targets]

        base = mean_attempt(attempts(baseline))
        target = metric(score).shown(mean(list(targets.values()))) if targets else None
        for row in request.rows:
            cost, own = measured_cost(request.benchmark, column, by_row[row.id], request.find), attempts(by_row[row.id])
            sent = mean_attempt(own)
            gain = gain_over(base, sent) if sent is not None and sent.is_reached and base is not None else None
            relation = "=" if base is None or base.is_reached else "≥"
            yield TargetResult(row, column, kind, target, cost, own, gain, relation)

    @cached_property
    def is_comparable(self) -> bool:
        """Whether measured bytes are comparable with what is stated: the paper's encoder and settings."""
        return self.request.scale.id == PAPER and not self.request.scale.changed

    @cached_property
    def stated(self) -> dict[tuple[str, str], tuple[str, float]]:
        """(row id, task) -> sign and megabytes in the text, such as "≥" and 5000; nothing at the demo scale."""
        values = published_for(self.request)
        places = product(self.request.columns, self.request.rows, _SIGNS.items())
        entries = ((row.id, at.task, sign, values.get((row.id, at.task, score))) for at, row, (score, sign) in places)
        return {(row, task): (sign, entry.value) for row, task, sign, entry in entries if entry is not None}

    # ---- derived for the paper's encoder ---------------------------------------------------------------------------

    @cached_property
    def derived(self) -> tuple[DerivedTarget, ...]:
        """Every method that sends something; none where bytes are not derived, or the paper prints no sizes."""
        request, place = self.request, self.request.benchmark.place
        numbers = Numbers.of(read_published(request.benchmark.published_csv))
        if request.derive is None or not numbers.has_cost(place, self.baseline.id):
            return ()
        base_rounds = numbers.cost(place, self.baseline.id).rounds
        base, found = self._derived_sent(self.baseline, base_rounds), []
        for row in request.rows if base is not None else ():
            published = numbers.cost(place, row.id) if numbers.has_cost(place, row.id) else None
            sent = self._derived_sent(row, published.rounds if published else base_rounds)
            gain = gain_over(base, sent) if base and sent else None
            if base and sent and gain:
                size, base_size = (self._size_gb(one) for one in (sent, base))
                ratio = base_size * as_decimal(base.rounds) / (size * as_decimal(sent.rounds))
                found.append(DerivedTarget(row, sent, size, ratio, gain, published))
        return tuple(found)

    def _size_gb(self, sent: Attempt[Fraction]) -> Decimal:
        return printed(as_decimal(sent.bytes / sent.rounds) / self.request.benchmark.paper.gigabyte)

    def _derived_sent(self, row: Row, rounds: Fraction) -> Attempt[Fraction] | None:
        """What a method sends in so many rounds, its numbers in bytes of fp32; None where it is not derived."""
        in_fp32, coded = (derived_cost(self.request, one) for one in (row.changed({"codec": "fp32"}), row))
        if in_fp32 is None or coded is None:
            return None
        return Attempt(rounds, rounds * int(in_fp32.round_bytes), rounds * int(coded.round_bytes))

    # ---- tables ----------------------------------------------------------------------------------------------------

    def _label(self, kind: Kind) -> str:
        if kind == "baseline":
            return f"the best that {self.baseline.name} reaches after any round"
        return f"the printed target, set for {self.request.paper_scale.backbone}"

    def _measured_grid(self, kind: Kind) -> Grid:
        request = self.request
        ways = " + ".join(f"{way}link" for way in request.benchmark.paper.directions)
        headers = (
            *(("n", "seeds"), ("per round", f"MB {ways}"), ("rounds", "to target"), ("to target", f"MB {ways}")),
            *(("gain", f"over {self.baseline.name}"), ("layers × rounds", "× precision"), (*ONE_TIME, "MB")),
        )
        by_row: dict[str, list[Line]] = {row.id: [] for row in request.rows}
        for one in (one for column in self.columns for one in self.results[kind, column.task]):
            label = f"{one.column.name} {target_text(one.column, one.target)}"
            missing = (not_run(request, one.row, one.column), *[""] * (len(headers) - 1))
            by_row[one.row.id].append(Line(label, tuple(_texts(one)) or missing, is_main=True))
        groups = tuple(Group(row_name(row), tuple(by_row[row.id])) for row in request.rows)
        return Grid(f"{request.heading}: bytes to {self._label(kind)}", headers, groups)

    def _derived_group(self, derived: DerivedTarget) -> Group:
        rounds = factor(derived.sent.rounds)
        whose = rounds if derived.published else f"{rounds} ({self.baseline.name}'s)"
        gains = f"{printed(derived.ratio, places=1)}", number(float(derived.gain.total)), _product(derived.gain)
        lines = [Line("derived", (f"{derived.size_gb}", whose, f"{printed(derived.cost_gb)}", *gains), is_main=True)]
        if derived.published is not None:
            not_derivable = self.request.benchmark.view.options.get("not_derivable", ())
            otherwise = NOT_DERIVABLE if derived.row.id in not_derivable else DIFFERS
            texts = [f"{known.normalize():f}" for _, _, known in derived.compared() if known is not None]
            pairs = ((value, known) for _, value, known in derived.compared() if known is not None)
            words = [AS_PRINTED if is_printed_as(*pair) else otherwise for pair in pairs]
            for label, (size, cost, gain) in (("reported", texts), ("verdict", words)):
                lines.append(Line(label, (size, "", cost, gain, "", "")))
        return Group(row_name(derived.row), tuple(lines))

    def grids(self) -> Iterator[Grid]:
        """A table for each kind of target, and what is derived where the paper prints sizes."""
        yield from map(self._measured_grid, KINDS)
        headers = (
            *(("size", "GB per round"), ("rounds", "cost ÷ size, as printed"), ("cost", "GB")),
            *(("gain", "of rounded sizes"), ("gain", "of exact bytes"), ("layers × rounds", "× precision")),
        )
        encoder, task = self.request.paper_scale.label, self.request.columns[0].name
        about = f"derived for the paper's encoder ({encoder}), without training, {task}: the same at every scale"
        if groups := tuple(map(self._derived_group, self.derived)):
            yield Grid(self.title(about), headers, groups)

    def method(self) -> Iterator[str]:
        """Targets, rounds, bytes, gains, and what the text states."""
        request, base, wanted = self.request, self.baseline.name, self.request.benchmark.view.options["targets"]
        named = ", ".join(
            f"{column.name} {score_label(column, at)} {metric(at).in_unit(f'{wanted[column.task]:g}')}"
            for column, at in ((column, column.averaged) for column in request.columns)
        )
        yield (
            f"Two targets: {self._label('baseline')}, seed by seed; and the printed one ({named}), which was set "
            f"for {request.paper_scale.backbone} and means little for another encoder."
        )
        yield (
            f"Rounds: until the first whose score, {over_clients(request.columns)}, is at the target or better; mean "
            "over n seeds. A method with a seed that does not reach it is censored: all rounds of that seed count (>), "
            f"and it has no gain. Where {base} is censored, the gain is at least (≥) the number."
        )
        yield f"Bytes: {request.benchmark.paper.bytes_convention}, without the one-time model distribution."
        yield f"Gain: {base}'s bytes over the method's: layers (values per round) × rounds × precision (bytes a value)."
        if self.derived:
            yield (
                "Derived: one round of the real channel on the encoder's shapes; rounds from the printed cost and "
                f"size, {base}'s for rows that are not printed. Cost and first gain are computed as in the paper, from "
                "sizes rounded to two decimals; the second gain from exact bytes."
            )
        names = {row.id: row.name for row in request.rows} | {column.task: column.name for column in request.columns}
        comparable = "" if self.is_comparable else "; not comparable with this encoder's bytes"
        for (row, task), (sign, size) in self.stated.items():
            yield f"Stated in the text: {names[row]} on {names[task]}: {sign} {size:g} MB{comparable}."

    # ---- the long form and the figure ------------------------------------------------------------------------------

    def lines(self) -> Iterator[dict[str, JSON]]:
        """What is measured, derived and stated; bytes in the paper's directions."""
        request, papers = self.request, {"encoder": self.request.paper_scale.backbone}
        for one in (one for entries in self.results.values() for one in entries):
            common = keys_of(request, one.row, one.column) | {"score": one.column.averaged}
            common |= {"encoder": request.scale.backbone, "target": one.kind, "target_percent": one.target}
            reached = sum(each.is_reached for each in one.attempts) if one.attempts else None
            common |= {"n_seeds": one.cost.seeds if one.cost else 0, "n_reached": reached}
            missing = (not_run(request, one.row, one.column), "status", None)
            quantities = one.quantities() if one.cost else iter([missing])
            for relation, quantity, measured in quantities:
                yield common | {"quantity": quantity, "relation": relation, "value": measured}
        column = request.columns[0]
        for derived in self.derived:
            common = keys_of(request, derived.row, column) | papers | {"score": column.averaged, "relation": "="}
            for name, value, known in derived.quantities():
                published = None if known is None else float(known)
                yield common | {"quantity": name, "value": float(value), "published": published}
        for column, row in product(request.columns, request.rows):
            if (row.id, column.task) in self.stated:
                sign, size = self.stated[row.id, column.task]
                common = keys_of(request, row, column) | papers | {"score": column.averaged, "target": "printed"}
                yield common | {"quantity": "stated_megabytes", "relation": sign, "published": size}

    def _text(self, one: TargetResult) -> str:
        text = "no target" if one.cost else "not run"
        if one.sent is not None:
            text = f"{digits(one.megabytes)} MB" if one.is_complete else "not reached"
        sign, size = self.stated.get((one.row.id, one.column.task), ("", 0.0))
        return f"{text}; stated: {sign} {size:g} MB" if sign else text

    def _panel(self, kind: Kind, column: Column) -> Panel:
        results = {row_name(one.row): one for one in self.results[kind, column.task]}
        sent = {name: one for name, one in results.items() if one.sent is not None}
        reached, missed = (
            {name: one.megabytes for name, one in sent.items() if one.is_complete == is_complete}
            for is_complete in (True, False)
        )
        series = [Dots("target reached", reached), Dots("not reached in all rounds", missed, HOLLOW | {"marker": ">"})]
        texts = {name: self._text(one) for name, one in results.items()}
        target = next(iter(results.values())).target
        return Panel(f"{column.name}: {target_text(column, target)}", list(results), series, texts)

    def plot(self) -> Figure:
        """A panel for each task that has a target: megabytes until it, by method."""
        request, kind = self.request, KINDS[self.is_comparable]
        ways = _WAYS[request.benchmark.paper.directions]
        columns, left_out = with_points(
            request.columns, lambda at: any(one.sent for one in self.results[kind, at.task])
        )
        caption = (
            f"{ways.capitalize()} of all clients until the first round at {self._label(kind)}; mean over seeds. "
            "Hollow: bytes of all rounds, as some seed does not reach it. Stated: in the paper's text, its MBits read "
            f"as megabytes.{dagger_note(request.rows)}{left_out}"
        )
        panels = [self._panel(kind, column) for column in columns]
        return dot_plot(request.heading, panels, f"{ways} until the target, MB", caption, across=2)
