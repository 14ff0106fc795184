"""The view of gains: how much better each row is than a reference, and what remains beyond a simpler part of it.

Options: reference, the row that gains are over; part, the row that shows how much of the gains something simple gives
by itself; told, the row whose remainder the first page reports. All are paired by seed, by the rules that verdicts rest
on (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.results import RunResult
from benchmarks.run_config import JSON
from reports.evidence.inference import confidence
from reports.evidence.paired import difference
from reports.evidence.records import Request, paired
from reports.evidence.scores import known, score_label, scores_of
from reports.evidence.statistics import Estimate, mean
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.plots import Dots, Panel, dot_plot, with_points
from reports.pages.text import (
    NOTHING,
    at_round,
    dagger_note,
    in_units,
    not_run,
    notes_under,
    number,
    over_clients,
    row_name,
    status,
)

RANKS = False
INTERVAL = "95 % CI"
_ANY = ((-float("inf"), float("inf")),)
FIELDS = [*KEYS, "score", "status", "ours", "gain", "gain_low", "gain_high", "n_gain"]
FIELDS += ["beyond", "beyond_low", "beyond_high", "n_beyond", "share"]


@dataclass(frozen=True)
class RowGain:
    """One row on one task, in the metric's unit.

    ours: mean over its seeds. over: how much better it is than the reference; beyond: than the part. share: the part's
    gain in percent of the row's, on the seeds that all three have; None where it is not certain that the row gains.
    None where two rows share no seed, or the row is the reference or the part itself.
    """

    ours: float | None = None
    over: Estimate | None = None
    beyond: Estimate | None = None
    share: float | None = None


def ci(found: Estimate | None) -> tuple[float, float] | None:
    """Its 95 % interval; None below three seeds."""
    return None if found is None else confidence([found], _ANY)


@dataclass(frozen=True)
class Gains:
    """Every row's gain, also where the rows that the options name are not asked for."""

    request: Request

    def named(self, option: str) -> Row:
        return self.request.rows_named(option)[0]

    @cached_property
    def by_cell(self) -> dict[tuple[str, str], RowGain]:
        named = {row.id: row for row in map(self.named, ("reference", "part", "told"))}
        rows = named | {row.id: row for row in self.request.rows}
        wide = replace(self.request, rows=tuple(rows.values()))
        return {(row.id, at.task): self._gain(wide, row, at) for row, at in product(wide.rows, wide.columns)}

    def _gain(self, request: Request, row: Row, column: Column) -> RowGain:
        score, records = column.averaged, request.records_of(row, column)
        reference, part = (request.records_of(self.named(option), column) for option in ("reference", "part"))
        ours = known(scores_of(records, score).at(request.score_at))

        def over(some: Sequence[RunResult], others: Sequence[RunResult]) -> Estimate | None:
            pairs = paired(some, others)
            return difference(pairs, score, request.score_at) if pairs else None

        centre, is_reference = mean(ours) if ours else None, row.id == self.named("reference").id
        gain = None if is_reference else over(records, reference)
        if is_reference or row.id == self.named("part").id:
            return RowGain(centre, gain)
        seeds = {record.cell.seed for record, _ in paired(part, reference)}
        common = [record for record in records if record.cell.seed in seeds]
        whole, simple = over(common, reference), over([record for record, _ in paired(part, common)], reference)
        ends, share = ci(whole), None
        if whole and simple and whole.value and simple.value is not None and ends and ends[0] > 0:
            share = 100 * simple.value / whole.value
        return RowGain(centre, gain, over(records, part), share)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns with runs of both the part and the reference; all where no column has them."""
        part = self.named("part").id
        run = tuple(at for at in self.request.columns if self.by_cell[part, at.task].over is not None)
        return run or self.request.columns


join = Gains


def notes(found: Gains) -> Iterator[str]:
    """Every note under the table."""
    request = found.request
    method = (
        f"Gains{in_units(request.columns)}, {over_clients(request.columns)} {at_round(request.scored_at)}: means of "
        f"differences paired by seed, with their {INTERVAL} from three seeds on (n: seeds that both rows have; "
        "docs/statistics.md).",
        f"Share: the gain of {found.named('part').name} in percent of the row's gain, on the seeds that all three "
        "have, where the row's interval lies above 0 there. The lines above it show what remains, and its interval.",
    )
    yield from notes_under(request, method)


def _interval(found: Estimate | None) -> str:
    if found is None:
        return NOTHING
    ends = ci(found)
    text = NOTHING if ends is None else f"[{number(ends[0], '+')}, {number(ends[1], '+')}]"
    return f"{text} ({found.n})"


def _value(found: Estimate | None) -> str:
    return NOTHING if found is None else number(found.value, "+")


def _lines(found: Gains, row: Row) -> Iterator[Line]:
    gains = [found.by_cell[row.id, column.task] for column in found.columns]
    reference, part = found.named("reference"), found.named("part")
    is_reference = row.id == reference.id
    cells = (
        not_run(found.request, row, column)
        if gain.ours is None
        else number(gain.ours)
        if is_reference
        else _value(gain.over)
        for column, gain in zip(found.columns, gains, strict=True)
    )
    yield Line("score" if is_reference else f"over {reference.name}", tuple(cells), is_main=True)
    if is_reference:
        return
    yield Line(f"{INTERVAL} (n)", tuple(_interval(gain.over) for gain in gains))
    if any(gain.beyond is not None for gain in gains):
        yield Line(f"over {part.name}", tuple(_value(gain.beyond) for gain in gains))
        yield Line(f"{INTERVAL} (n)", tuple(_interval(gain.beyond) for gain in gains))
    if any(gain.share is not None for gain in gains):
        yield Line("share", tuple(NOTHING if gain.share is None else f"{gain.share:.0f} %" for gain in gains))


def finding(found: Gains) -> tuple[str, str] | None:
    """For the first page: the part's gain, and what remains of a row's gain beyond it; None without records."""
    part, told = found.named("part"), found.named("told")
    cells = [(at.name, found.by_cell[part.id, at.task].over, found.by_cell[told.id, at.task]) for at in found.columns]
    numbers = [
        f"{name} {_value(over)}, beyond it {_value(row.beyond)} {_interval(row.beyond)}"
        for name, over, row in cells
        if over is not None and row.beyond is not None
    ]
    title = f"Gain of {part.name} over {found.named('reference').name}, and of {told.name} beyond that"
    return (title, "; ".join(numbers)) if numbers else None


def grids(found: Gains) -> tuple[Grid, ...]:
    """Groups are methods, columns tasks."""
    headers = tuple((column.name, score_label(column, column.averaged)) for column in found.columns)
    groups = tuple(Group(row_name(row), tuple(_lines(found, row))) for row in found.request.rows)
    return (Grid(f"{found.request.heading}: gains over {found.named('reference').name}", headers, groups),)


def _frame_line(found: Gains, row: Row, column: Column) -> dict[str, JSON]:
    gain = found.by_cell[row.id, column.task]
    line = keys_of(found.request, row, column) | {"score": column.averaged, "ours": gain.ours, "share": gain.share}
    for name, each in (("gain", gain.over), ("beyond", gain.beyond)):
        if each is not None:
            low, high = ci(each) or (None, None)
            line |= {name: each.value, f"{name}_low": low, f"{name}_high": high, f"n_{name}": each.n}
    return line | {"status": status(found.request, row, column)}


def frame(found: Gains) -> pd.DataFrame:
    """The gains as a data frame of FIELDS, in the metrics' units; intervals of 95 %."""
    cells = product(found.request.rows, found.request.columns)
    return long_form((_frame_line(found, *cell) for cell in cells), FIELDS, {"Int64": ("n_gain", "n_beyond")})


def plot(found: Gains) -> Figure:
    """A panel for each task, a mark for each row, and a line where the simple part alone comes."""
    request, part, reference = found.request, found.named("part"), found.named("reference")
    columns, left_out = with_points(
        request.columns, lambda at: found.by_cell[part.id, at.task].over is not None, f"Without {part.name}"
    )
    rows = {row.id: row_name(row) for row in request.rows if row.id != reference.id}
    panels = []
    for column in columns:
        gains = {name: found.by_cell[row_id, column.task].over for row_id, name in rows.items()}
        known_gains = {name: gain for name, gain in gains.items() if gain is not None and gain.value is not None}
        values = {name: gain.value for name, gain in known_gains.items() if gain.value is not None}
        whiskers = {name: ends for name, gain in known_gains.items() if (ends := ci(gain)) is not None}
        alone = found.by_cell[part.id, column.task].over
        levels = {} if alone is None or alone.value is None else {f"{part.name} alone": alone.value}
        points = " (points)" if metric(column.averaged).unit else ""
        title = f"{column.name}, {score_label(column, column.averaged)}{points}"
        panels.append(Panel(title, list(rows.values()), [Dots("gain", values, {}, whiskers)], levels=levels))
    caption = (
        "Means of differences paired by seed, with 95 % intervals from three seeds on; no mark: not run."
        f"{dagger_note(request.rows)}{left_out}"
    )
    return dot_plot(request.heading, panels, f"gain over {reference.name}", caption, across=2)
