"""Figure 6 and Table VI: rounds and bytes until a target, the gain over FedAvg, and its factors.

One target is the published one, the other FedAvg's best round, which exists at every scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product

from matplotlib.figure import Figure

from benchmarks.experiment import Column, Row
from benchmarks.fedsplitbert.paper import FEDADAM, FEDAVG
from benchmarks.fedsplitbert.tables import TARGETS
from benchmarks.measures import metric
from benchmarks.results import RunResult
from benchmarks.run_config import JSON
from reports.evidence.published import (
    AS_PUBLISHED,
    DIFFERS,
    MEGABYTE,
    Numbers,
    as_decimal,
    is_printed_as,
    published_for,
)
from reports.evidence.published_files import read_published
from reports.evidence.records import PAPER
from reports.evidence.scores import best_by_seed, score_label
from reports.evidence.statistics import mean, printed
from reports.evidence.targets import Attempt, attempt, factors, gain_over, mean_attempt
from reports.evidence.traffic import derived_cost, measured_cost
from reports.frame import Place, Quantities
from reports.pages.page import Grid, Group, Line, keys_of
from reports.pages.plots import HOLLOW, Dots, Panel, digits, dot_plot, with_points
from reports.pages.text import NOTHING, ONE_TIME, dagger_note, not_run, number, over_clients

KINDS = ("baseline", "printed")
_SIGNS = {"stated/megabytes_nearly": "≈", "stated/megabytes_at_least": "≥", "stated/megabytes_below": "<"}
# Published quantities, for the paper's encoder.
_PRINTED = ("derived_size_gb", "derived_cost_gb", "gain_of_rounded_sizes")


def factor(value: float) -> str:
    """A whole number without decimals, any other with two."""
    return f"{value:.0f}" if value == int(value) else number(value)


class Targets(Quantities):
    """Uplink bytes until each target: measured, derived for the paper's encoder, and stated.

    A line's relation is "="; ">" for a method with a seed that misses the target, where all its rounds count; "≥" for a
    gain over such a baseline. ReportError for a damaged record or published value.
    """

    ranks = True
    place_fields = ("column", "target", "quantity")

    @cached_property
    def baseline(self) -> Row:
        return self.request.benchmark.row(FEDAVG.id)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns with a run, or all if there is none."""
        return self.request.columns_run or self.request.columns

    @cached_property
    def is_comparable(self) -> bool:
        """Whether measured bytes are comparable with the stated ones: same encoder and settings."""
        return self.request.scale.id == PAPER and not self.request.scale.changed

    @cached_property
    def stated(self) -> dict[tuple[str, str], tuple[str, float]]:
        """(row id, task) -> sign and megabytes in the text, such as "≥" and 5000; empty at the demo scale."""
        values = published_for(self.request)
        return {
            (row.id, column.task): (sign, values[row.id, column.task, score].value)
            for column, row, (score, sign) in product(self.request.columns, self.request.rows, _SIGNS.items())
            if (row.id, column.task, score) in values
        }

    # ---- the long form ---------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[dict[str, JSON]]:
        """Lines for measured, derived and stated values."""
        request, papers = self.request, {"encoder": self.request.paper_scale.backbone}
        for kind, column in product(KINDS, request.columns):
            yield from self._measured(column, kind)
        yield from (papers | line for line in self.derived)
        for column, row in product(request.columns, request.rows):
            if (row.id, column.task) in self.stated:
                sign, size = self.stated[row.id, column.task]
                common = keys_of(request, row, column) | papers | {"score": column.averaged, "target": "printed"}
                yield common | {"quantity": "stated_megabytes", "relation": sign, "published": size}

    def _targets(self, column: Column, kind: str) -> Mapping[int, float]:
        """Targets by seed, as recorded: the published one, or the baseline's best score after any round."""
        request = self.request
        if kind == "baseline":
            return best_by_seed(request.records_of(self.baseline, column), column.averaged)
        wanted = TARGETS[column.task] / metric(column.averaged).factor
        rows = (self.baseline, *request.rows)
        return {record.cell.seed: wanted for row in rows for record in request.records_of(row, column)}

    def _measured(self, column: Column, kind: str) -> Iterator[dict[str, JSON]]:
        request, score, targets = self.request, column.averaged, self._targets(column, kind)
        common: dict[str, JSON] = {"score": score, "encoder": request.scale.backbone, "target": kind}
        common |= {"target_percent": metric(score).shown(mean(list(targets.values()))) if targets else None}

        def attempts(records: Sequence[RunResult]) -> list[Attempt[int]]:
            return [attempt(one, score, targets[one.cell.seed]) for one in records if one.cell.seed in targets]

        base = mean_attempt(attempts(request.records_of(self.baseline, column)))
        for row in request.rows:
            records = request.records_of(row, column)
            cost, row_attempts = measured_cost(request.benchmark, column, records, request.find), attempts(records)
            reached = sum(one.is_reached for one in row_attempts) if row_attempts else None
            line = keys_of(request, row, column) | common | {"n_seeds": len(records), "n_reached": reached}
            if cost is None:
                yield line | {"quantity": "status", "relation": not_run(request, row, column)}
                continue
            sent = mean_attempt(row_attempts)
            numbers = [("=", "round_bytes", cost.round_bytes), ("=", "setup_bytes", cost.setup_bytes)]
            if sent is not None:
                relation = "=" if sent.is_reached else ">"
                numbers += [(relation, "rounds", float(sent.rounds)), (relation, "bytes", float(sent.bytes))]
            if base is not None and sent is not None and sent.is_reached:
                bound = "=" if base.is_reached else "≥"
                for name, value in factors(gain_over(base, sent)):
                    numbers.append((bound if name in ("gain", "gain_rounds") else "=", name, value))
            yield from (line | {"quantity": name, "relation": sign, "value": value} for sign, name, value in numbers)

    @cached_property
    def derived(self) -> list[dict[str, JSON]]:
        """Lines for methods that send bytes, from bytes per round by shapes and the paper's rounds.

        An unpublished row takes the baseline's rounds. Empty if bytes are not derived or sizes not published.
        """
        request, place, lines = self.request, self.request.benchmark.place, list[dict[str, JSON]]()
        numbers = Numbers.of(read_published(request.benchmark.published_csv))
        # Row id -> a round's size, the cost until the target, and the gain, in the paper's GB.
        costs = {
            row.id: [numbers.at(place, row.id, column) for column in ("parameter_gb", "cost_gb", "gain")]
            for row in (self.baseline, *request.rows)
            if (place, row.id, "parameter_gb", "") in numbers.values
        }
        rounds = {row: Fraction(cost) / Fraction(size) for row, (size, cost, _) in costs.items()}
        if self.baseline.id not in costs:
            return []
        base = self._derived_sent(self.baseline, rounds[self.baseline.id])
        for row in request.rows:
            sent = self._derived_sent(row, rounds.get(row.id, rounds[self.baseline.id]))
            gain = gain_over(base, sent) if base and sent else None
            if base is None or sent is None or gain is None:
                continue
            size, base_size = (self._size_gb(one) for one in (sent, base))  # rounded, as the paper computes
            cost, base_cost = size * as_decimal(sent.rounds), base_size * as_decimal(base.rounds)
            values: dict[str, JSON] = dict(zip(_PRINTED, (size, cost, base_cost / cost), strict=True))
            values |= {"derived_round_bytes": int(sent.bytes / sent.rounds), "implied_rounds": sent.rounds}
            values |= {f"exact_{name}": value for name, value in factors(gain)}
            published = dict(zip(_PRINTED, costs.get(row.id, ()), strict=False))
            common = keys_of(request, row, request.columns[0]) | {"relation": "="}
            common |= {"score": request.columns[0].averaged}
            for name, value in values.items():
                printed_value = float(published[name]) if name in published else None
                lines.append(common | {"quantity": name, "value": float(value), "published": printed_value})
        return lines

    def _size_gb(self, sent: Attempt[Fraction]) -> Decimal:
        return printed(as_decimal(sent.bytes / sent.rounds) / self.request.benchmark.paper.gigabyte)

    def _derived_sent(self, row: Row, rounds: Fraction) -> Attempt[Fraction] | None:
        """A method's bytes in the given rounds, in fp32 and as coded; None if not derived."""
        in_fp32, coded = (derived_cost(self.request, one) for one in (row.changed({"codec": "fp32"}), row))
        if in_fp32 is None or coded is None:
            return None
        return Attempt(rounds, rounds * int(in_fp32.round_bytes), rounds * int(coded.round_bytes))

    # ---- tables ----------------------------------------------------------------------------------------------------

    def _label(self, kind: str) -> str:
        if kind == "baseline":
            return f"the best that {self.baseline.name} reaches after any round"
        return f"the printed target, set for {self.request.paper_scale.backbone}"

    def _line(self, row: Row, column: Column, kind: str, name: str) -> Mapping[str, JSON] | None:
        return self.by_place.get((row.id, (column.task, kind, name)))

    def _product(self, row: Row, place: Place, prefix: str = "gain", bound: str = "") -> str:
        parts = [self.value(row, (*place, f"{prefix}_{name}")) for name in ("layers", "rounds", "precision")]
        texts = [factor(part) for part in parts if part is not None]
        return f"{texts[0]} × {bound}{texts[1]} × {texts[2]}" if texts else NOTHING

    def _cells(self, row: Row, column: Column, kind: str) -> tuple[str, ...]:
        sizes = [self.value(row, (column.task, kind, name)) for name in ("round_bytes", "setup_bytes")]
        if None in sizes:
            return (not_run(self.request, row, column), *[""] * 6)
        round_size, setup = (number((size or 0) / MEGABYTE) for size in sizes)
        n = str(len(self.request.records_of(row, column)))
        rounds, sent, gain = (self._line(row, column, kind, name) for name in ("rounds", "bytes", "gain"))
        if rounds is None or sent is None:
            return (n, round_size, *[NOTHING] * 4, setup)
        is_late = rounds["relation"] == ">"
        reached = f" ({rounds['n_reached']} of {n})" if is_late else ""
        late, size = "> " if is_late else "", sent["value"]
        bound = "≥ " if gain and gain["relation"] == "≥" else ""
        saved = f"{bound}{number(gain['value'])}×" if gain else NOTHING if is_late or size else "sends nothing"
        product_text = self._product(row, (column.task, kind), bound=bound)
        until = NOTHING if is_late and not size else f"{late}{number(size / MEGABYTE)}"
        return (n, round_size, f"{late}{factor(rounds['value'])}{reached}", until, saved, product_text, setup)

    def _measured_grid(self, kind: str) -> Grid:
        request = self.request
        headers = (
            *(("n", "seeds"), ("per round", "MB uplink"), ("rounds", "to target"), ("to target", "MB uplink")),
            *(("gain", f"over {self.baseline.name}"), ("layers × rounds", "× precision"), (*ONE_TIME, "MB")),
        )
        columns = [column for column in self.columns if self._targets(column, kind)] or self.columns
        titles = {column.task: f"{column.name} {self._target(column, kind)}" for column in columns}
        groups = [
            Group(
                self.request.name_of(row),
                tuple(Line(titles[at.task], self._cells(row, at, kind), True) for at in columns),
            )
            for row in request.rows
        ]
        return Grid(f"{request.heading}: bytes to {self._label(kind)}", headers, tuple(groups))

    def _target(self, column: Column, kind: str) -> str:
        """The score and its target, in the metric's unit: "Acc ≥ 62.00 %"."""
        lines = (line for (_, place), line in self.by_place.items() if place[:2] == (column.task, kind))
        target = next((line.get("target_percent") for line in lines), None)
        threshold = NOTHING if target is None else metric(column.averaged).in_unit(number(target))
        return f"{score_label(column, column.averaged)} ≥ {threshold}"

    def _derived_group(self, row: Row) -> Group:
        task = self.request.columns[0].task
        size, cost, ratio = (self.by_place[row.id, (task, name)] for name in _PRINTED)
        rounds, exact = (self.value(row, (task, name)) or 0 for name in ("implied_rounds", "exact_gain"))
        whose = factor(rounds) + (f" ({self.baseline.name}'s)" if size["published"] is None else "")
        gains = number(ratio["value"], places=1), number(exact), self._product(row, (task,), "exact_gain")
        lines = [Line("derived", (number(size["value"]), whose, number(cost["value"]), *gains), is_main=True)]
        if size["published"] is not None:
            # FedAdam's published sizes follow from no interpretation of the method.
            otherwise = "not derivable" if row.id == FEDADAM.id else DIFFERS
            pairs = [[Decimal(str(one[name])) for name in ("value", "published")] for one in (size, cost, ratio)]
            verdicts = [AS_PUBLISHED if is_printed_as(*pair) else otherwise for pair in pairs]
            texts = [f"{published.normalize():f}" for _, published in pairs]
            for label, (first, second, third) in (("reported", texts), ("verdict", verdicts)):
                lines.append(Line(label, (first, "", second, third, "", "")))
        return Group(self.request.name_of(row), tuple(lines))

    def grids(self) -> Iterator[Grid]:
        """A table per kind of target, and the derived sizes if the paper publishes sizes."""
        yield from map(self._measured_grid, KINDS)
        headers = (
            *(("size", "GB per round"), ("rounds", "cost ÷ size, as published"), ("cost", "GB")),
            *(("gain", "of rounded sizes"), ("gain", "of exact bytes"), ("layers × rounds", "× precision")),
        )
        encoder, task = self.request.paper_scale.label, self.request.columns[0].name
        about = f"derived for the paper's encoder ({encoder}), without training, {task}: the same at every scale"
        derived = {line["row"] for line in self.derived}
        if groups := tuple(self._derived_group(row) for row in self.request.rows if row.id in derived):
            yield Grid(self.title(about), headers, groups)

    def method(self) -> Iterator[str]:
        """Targets, rounds, bytes, gains, and what the text states."""
        request, base = self.request, self.baseline.name
        named = ", ".join(
            f"{column.name} {score_label(column, at)} {metric(at).in_unit(f'{TARGETS[column.task]:g}')}"
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
        for kind, column in product(KINDS, self.columns):
            sent = {row.name: self._line(row, column, kind, "bytes") for row in request.rows}
            idle = [name for name, line in sent.items() if line and not line["value"] and line["relation"] != ">"]
            if idle:
                target = f"{column.name} {self._target(column, kind)}"
                yield f"{target} is reached without bytes, by {' and '.join(idle)}, so gains there are not evidence."
        yield f"Bytes: {request.benchmark.paper.bytes_convention}, without the one-time model distribution."
        yield f"Gain: {base}'s bytes over the method's: layers (values/round) × rounds × precision (bytes/value)."
        if self.derived:
            yield (
                "Derived: one round of the real channel on the encoder's shapes; rounds from the printed cost and "
                f"size, {base}'s for rows that are not printed. Cost and first gain are computed as in the paper, from "
                "sizes rounded to two decimals; the second gain from exact bytes."
            )
        names = {row.id: row.name for row in request.rows} | {column.task: column.name for column in request.columns}
        comparable = "" if self.is_comparable else "; not comparable with this encoder's bytes"
        for (row_id, task), (sign, size) in self.stated.items():
            yield f"Stated in the text: {names[row_id]} on {names[task]}: {sign} {size:g} MB{comparable}."

    def _panel(self, kind: str, column: Column) -> Panel:
        reached, missed, texts = dict[str, float](), dict[str, float](), dict[str, str]()
        for row in self.request.rows:
            sent, name = self._line(row, column, kind, "bytes"), self.request.name_of(row)
            texts[name] = "no target" if self.request.records_of(row, column) else "not run"
            if sent is not None:
                is_late, size = sent["relation"] == ">", sent["value"] / MEGABYTE
                (missed if is_late else reached)[name] = size
                texts[name] = "not reached" if is_late else f"{digits(size)} MB"
            if (row.id, column.task) in self.stated:
                sign, size = self.stated[row.id, column.task]
                texts[name] += f"; stated: {sign} {size:g} MB"
        series = [Dots("target reached", reached), Dots("not reached in all rounds", missed, HOLLOW | {"marker": ">"})]
        return Panel(f"{column.name}: {self._target(column, kind)}", list(texts), series, texts)

    def plot(self) -> Figure:
        """A panel per task with a target: megabytes until it, by method."""
        request, kind = self.request, KINDS[self.is_comparable]
        columns, left_out = with_points(
            request.columns, lambda at: any(self._line(row, at, kind, "bytes") for row in request.rows)
        )
        caption = (
            f"Uplink of all clients until the first round at {self._label(kind)}; mean over seeds. "
            "Hollow: bytes of all rounds, as some seed does not reach it. Stated: in the paper's text, its MBits "
            f"interpreted as megabytes.{dagger_note(request)}{left_out}"
        )
        panels = [self._panel(kind, column) for column in columns]
        return dot_plot(request.heading, panels, "uplink until the target, MB", caption, across=2)
