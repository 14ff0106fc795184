"""A table's compact form: one line a method, `75.3 ± 0.4 (5)` in a cell, the reported value beside, and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.results import RunResult
from reports.evidence.records import Request
from reports.evidence.scores import score_label
from reports.evidence.traffic import Cost
from reports.pages.text import NOT_RUN, NOTHING, human_bytes, marked, number, row_name
from reports.site.addresses import cell_page
from reports.views.comparison import CellResult, Comparison, ScoreResult, compare


@dataclass(frozen=True)
class Entry:
    """A cell of a table. text: ours; reported: "" where none; sort: "" where there is no number."""

    text: str
    reported: str = ""
    sort: str = ""
    link: str = ""
    title: str = ""
    kind: str = ""  # "best", "open" (not run, diverged) or ""


@dataclass(frozen=True)
class Line:
    """One method: a cell a score, then its bytes."""

    name: str
    note: str
    entries: tuple[Entry, ...]
    bytes: tuple[Entry, ...]


@dataclass(frozen=True)
class Matrix:
    """A table: (task, score) of each column of scores, and its lines."""

    headers: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    tasks: int

    @property
    def has_bytes(self) -> bool:
        return any(entry.sort for line in self.lines for entry in line.bytes)


def comparison_in(found: Any, request: Request) -> Comparison:
    """The comparison that a view made, or one of its own where it makes none."""
    if isinstance(found, Comparison):
        return found
    inner = getattr(found, "comparison", None)
    return inner if isinstance(inner, Comparison) else compare(request)


def compact(value: float, unit: str) -> str:
    """A score in three digits or so: 75.3 of percent, 0.812 or 123.4 of plain numbers."""
    return number(value, places=1 if unit == "%" or abs(value) >= 10 else 3)


def compact_score(result: ScoreResult) -> str:
    """Mean, sd over seeds and their number: 75.3 ± 0.4 (5)."""
    unit = metric(result.score).unit
    if result.ours is None:
        return "undefined" if result.is_held else NOTHING
    spread = "" if result.sd is None else f" ± {compact(result.sd, unit)}"
    return f"{compact(result.ours, unit)}{spread} ({result.seeds})"


def matrix(comparison: Comparison) -> Matrix:
    """The compact table of a comparison, with all of its columns, whether they were run or not."""
    request = comparison.request
    places = [(column, score) for column in request.columns for score in column.scores]
    headers = tuple((column.name, score_label(column, score)) for column, score in places)
    best = {(column.task, score): _best(comparison, column, score) for column, score in places}
    lines = []
    for row in request.rows:
        entries = tuple(_entry(comparison, row, column, score, best[column.task, score]) for column, score in places)
        lines.append(Line(row_name(row), row.note, entries, _bytes(comparison, row)))
    return Matrix(headers, tuple(lines), len(request.columns))


def _result(cell: CellResult, score: str) -> ScoreResult:
    return next(result for result in cell.scores if result.score == score)


def _best(comparison: Comparison, column: Column, score: str) -> float | None:
    """Our best value of a column; None where fewer than two methods have one."""
    values = [_result(comparison.cell(row, column), score).ours for row in comparison.request.rows]
    known = [value for value in values if value is not None]
    return metric(score).best(known) if len(known) > 1 else None


def _entry(comparison: Comparison, row: Row, column: Column, score: str, best: float | None) -> Entry:
    cell, request = comparison.cell(row, column), comparison.request
    result, selection = _result(cell, score), request.selections[row.id, column.task]
    unit = metric(score).unit
    reported = ""
    if comparison.shows_published and row.printed and result.published is not None:
        reported = marked(number(result.published), result.is_derived)
    link = _link([*selection.records, *selection.diverged])
    if not cell.is_run:
        sort = "" if result.published is None or not reported else repr(result.published)
        return Entry(selection.divergence or NOT_RUN, reported, sort, link, kind="open")
    numbers = {
        "± test set": result.sampling_error,
        "reported": result.published if reported else None,
        "difference to reported": result.difference,
    }
    about = [f"{name} {metric(score).in_unit(number(value))}" for name, value in numbers.items() if value is not None]
    if result.interval is not None:
        about.insert(0, f"90 % interval {number(result.interval[0])} to {number(result.interval[1])}")
    if result.verdict:
        about.append(result.verdict)
    kind = "best" if best is not None and result.ours == best else ""
    sort = "" if result.ours is None else repr(result.ours)
    seeds = ", ".join(map(str, cell.seeds))
    title = f"{row.name}, {column.name} {score_label(column, score)} {unit}: seeds {seeds}; {'; '.join(about)}"
    return Entry(compact_score(result), reported, sort, link, title, kind)


def _link(records: Sequence[RunResult]) -> str:
    return cell_page(min(records, key=lambda record: record.cell.seed).cell_id) if records else ""


def _bytes(comparison: Comparison, row: Row) -> tuple[Entry, ...]:
    """Sent up and down over the tasks run, all rounds and clients, the set-up apart."""
    cells = (comparison.cell(row, column) for column in comparison.request.columns)
    costs = [cell.cost for cell in cells if cell.cost is not None]
    return tuple(
        _size(costs, [getattr(cost, name) for cost in costs], comparison)
        for name in ("up_bytes", "down_bytes", "setup_bytes")
    )


def _size(costs: Sequence[Cost], sizes: Sequence[float], comparison: Comparison) -> Entry:
    if not costs:
        return Entry(NOTHING)
    tasks = len(comparison.request.columns)
    note = "" if len(costs) == tasks else f"{len(costs)} of {tasks} tasks"
    total = sum(sizes)
    return Entry(human_bytes(total, comparison.request.benchmark.paper.gigabyte), note, repr(float(total)))
