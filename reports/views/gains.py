"""The view of gains: by how much every row is better than a reference, and what is left of it beyond a part of it.

Options: reference, the row that others are held against; part, the row that shows how much of their gain something
simple gives by itself; told, the row of which the first page says what is left. All are paired by seed, by the rules
that verdicts rest on (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import pandas as pd

from benchmarks.experiment import Column, Row
from benchmarks.results import RunResult
from benchmarks.run_config import JSON
from reports.evidence.inference import confidence
from reports.evidence.paired import difference
from reports.evidence.records import Request, paired
from reports.evidence.scores import known, score_label, scores_of
from reports.evidence.statistics import Estimate, mean
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.text import NOTHING, at_round, in_units, not_run, notes_under, number, over_clients, row_name, status

RANKS = False
INTERVAL = "95 % CI"
_ANY = ((-float("inf"), float("inf")),)
FIELDS = [*KEYS, "score", "status", "ours", "gain", "gain_low", "gain_high", "n_gain"]
FIELDS += ["beyond", "beyond_low", "beyond_high", "n_beyond", "share"]


@dataclass(frozen=True)
class Gain:
    """Of one row on one task, all in the metric's unit.

    ours: mean over its seeds. over: it is better than the reference by so much; beyond: than the part. shared: its gain
    and the part's on the seeds that all three have. None where they share none, or the row is that one itself.
    """

    ours: float | None = None
    over: Estimate | None = None
    beyond: Estimate | None = None
    shared: tuple[Estimate, Estimate] | None = None

    @property
    def share(self) -> float | None:
        """The part's gain in percent of the row's; None where it is not sure that the row gains."""
        own, its = (each.value for each in self.shared) if self.shared else (None, None)
        ends = ci(self.shared[0]) if self.shared else None
        return 100 * its / own if own and its is not None and ends is not None and ends[0] > 0 else None


def ci(found: Estimate | None) -> tuple[float, float] | None:
    """Its 95 % interval; None below three seeds."""
    return None if found is None else confidence([found], _ANY)


@dataclass(frozen=True)
class Gains:
    """(row id, task) -> its gain; of all rows that are shown, and of those that the options name."""

    request: Request
    reference: Row
    part: Row
    told: Row
    by_cell: Mapping[tuple[str, str], Gain]

    def of(self, row: Row, column: Column) -> Gain:
        return self.by_cell[row.id, column.task]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those on which the part was run beside the reference; all where it was on none."""
        shown = {task for (name, task), gain in self.by_cell.items() if name == self.part.id and gain.over is not None}
        return tuple(column for column in self.request.columns if column.task in shown) or self.request.columns


def join(request: Request) -> Gains:
    """Every row's gain, also where the rows that the options name are not asked for."""
    reference, part, told = (request.rows_named(option)[0] for option in ("reference", "part", "told"))
    wide = replace(request, rows=(*(row for row in (reference, part, told) if row not in request.rows), *request.rows))
    cells = product(wide.rows, request.columns)
    found = {(row.id, column.task): _gain(wide, row, column, reference, part) for row, column in cells}
    return Gains(request, reference, part, told, found)


def _gain(request: Request, row: Row, column: Column, reference: Row, part: Row) -> Gain:
    score, own = column.averaged, request.records_of(row, column)
    base, beside = (request.records_of(rival, column) for rival in (reference, part))
    ours = known(scores_of(own, score).at(request.score_at))

    def over(records: Sequence[RunResult], rivals: Sequence[RunResult]) -> Estimate | None:
        pairs = paired(records, rivals)
        return difference(pairs, score, request.score_at) if pairs else None

    centre, gain = mean(ours) if ours else None, over(own, base) if row.id != reference.id else None
    if row.id in (reference.id, part.id):
        return Gain(centre, gain)
    seeds = {record.cell.seed for record, _ in paired(beside, base)}
    common = [record for record in own if record.cell.seed in seeds]
    both = over(common, base), over([record for record, _ in paired(beside, common)], base)
    shared = (both[0], both[1]) if both[0] is not None and both[1] is not None else None
    return Gain(centre, gain, over(own, beside), shared)


def notes(found: Gains) -> Iterator[str]:
    """Every note under the table."""
    request = found.request
    method = (
        f"Gains{in_units(request.columns)}, {over_clients(request.columns)} {at_round(request.scored_at)}: means of "
        f"differences that are paired by seed, with their {INTERVAL} from three seeds on (n: seeds that both rows "
        "have; docs/statistics.md).",
        f"Share: what {found.part.name} gains, in percent of the row's gain on the seeds that all three have, where "
        "the row's interval lies above 0 there. The line above says what is left beyond it, and how sure that is.",
    )
    yield from notes_under(request, method)


def _ends(found: Estimate | None) -> str:
    if found is None:
        return NOTHING
    low, high = ci(found) or (None, None)
    return f"[{number(low, '+')}, {number(high, '+')}] ({found.n})" if low is not None else f"{NOTHING} ({found.n})"


def _value(found: Estimate | None) -> str:
    return NOTHING if found is None else number(found.value, "+")


def _lines(found: Gains, row: Row) -> Iterator[Line]:
    gains = [found.of(row, column) for column in found.columns]
    if row.id == found.reference.id:
        yield Line("score", _main(found, row, gains, lambda gain: number(gain.ours)), is_main=True)
        return
    main = _main(found, row, gains, lambda gain: _value(gain.over))
    yield Line(f"over {found.reference.name}", main, is_main=True)
    yield Line(f"{INTERVAL} (n)", tuple(_ends(gain.over) for gain in gains))
    if any(gain.beyond is not None for gain in gains):
        yield Line(f"over {found.part.name}", tuple(_value(gain.beyond) for gain in gains))
        yield Line(f"{INTERVAL} (n)", tuple(_ends(gain.beyond) for gain in gains))
    if any(gain.share is not None for gain in gains):
        yield Line("share", tuple(NOTHING if gain.share is None else f"{gain.share:.0f} %" for gain in gains))


def _main(found: Gains, row: Row, gains: Sequence[Gain], of_row: Callable[[Gain], str]) -> tuple[str, ...]:
    """The row's first line: a number, or why there is none."""
    cells = zip(found.columns, gains, strict=True)
    return tuple(not_run(found.request, row, column) if gain.ours is None else of_row(gain) for column, gain in cells)


def finding(found: Gains) -> tuple[str, str] | None:
    """What the part gains, and what is left of a row's gain beyond it: said, and the numbers; None without records."""
    cells = [(column.name, found.of(found.part, column).over, found.of(found.told, column)) for column in found.columns]
    told = [
        f"{name} {_value(over)}, beyond it {_value(row.beyond)} {_ends(row.beyond)}"
        for name, over, row in cells
        if over is not None and row.beyond is not None
    ]
    said = f"What {found.part.name} gains over {found.reference.name}, and {found.told.name} beyond that"
    return (said, "; ".join(told)) if told else None


def grids(found: Gains) -> tuple[Grid, ...]:
    """Groups are methods, columns tasks."""
    headers = tuple((column.name, score_label(column, column.averaged)) for column in found.columns)
    groups = tuple(Group(row_name(row), tuple(_lines(found, row))) for row in found.request.rows)
    return (Grid(f"{found.request.heading}: gains over {found.reference.name}", headers, groups),)


def _frame_line(found: Gains, row: Row, column: Column) -> dict[str, JSON]:
    gain = found.of(row, column)
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
