"""Tables of the site: entries with links and sort keys, and a benchmark's table in compact form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.results import RunResult
from reports.evidence.records import Request
from reports.evidence.scores import score_label
from reports.pages.text import NOT_RUN, NOTHING, human_bytes, marked, number, row_name
from reports.site.addresses import cell_page
from reports.views.comparison import Comparison, ScoreResult, compare

BYTES = (("uplink", "all rounds"), ("downlink", "all rounds"), ("one-time model", "distribution"))


@dataclass(frozen=True)
class Entry:
    """A cell of a table.

    Args:
        sort: What a number is sorted by; "" for a text.
        note: In small below the text, such as the published value.
        kind: "best", "open" (not run, diverged), "wrap" (a long text), "row" (a method's name with its colour), "code".
    """

    text: str
    sort: str = ""
    link: str = ""
    note: str = ""
    title: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table. headers: each with a second line, "" for none. filters: the headers by whose texts lines are hidden."""

    headers: tuple[tuple[str, str], ...]
    lines: tuple[tuple[Entry, ...], ...]
    filters: tuple[str, ...] = ()

    @property
    def is_number(self) -> list[bool]:
        """Whether each column holds numbers."""
        return [any(line[place].sort for line in self.lines) for place in range(len(self.headers))]

    @property
    def options(self) -> dict[str, list[tuple[str, int]]]:
        """Filter -> (text, number of lines) of each choice."""
        texts = {name: [line[self.place(name)].text for line in self.lines] for name in self.filters}
        return {name: [(text, own.count(text)) for text in sorted(set(own))] for name, own in texts.items()}

    def place(self, name: str) -> int:
        """The place of a header."""
        return [header for header, _ in self.headers].index(name)


def sheet(headers: Iterable[str], lines: Iterable[Sequence[Entry | str]], filters: Sequence[str] = ()) -> Sheet:
    """A table of entries or plain texts."""
    entries = (tuple(one if isinstance(one, Entry) else Entry(one) for one in line) for line in lines)
    return Sheet(tuple((header, "") for header in headers), tuple(entries), tuple(filters))


def count(value: int) -> Entry:
    """A whole number with thin spaces between thousands."""
    return Entry(f"{value:,}".replace(",", "\u202f"), str(value))


def size(value: float, gigabyte: int = 10**9) -> Entry:
    """Bytes in readable units."""
    return Entry(human_bytes(value, gigabyte), repr(value))


def compact(value: float, unit: str) -> str:
    """A score in about three digits: 75.3 for percent, 0.812 or 123.4 for plain numbers."""
    return number(value, places=1 if unit == "%" or abs(value) >= 10 else 3)


def comparison_in(found: Any, request: Request) -> Comparison:
    """The comparison that a view made, or a new one if it made none."""
    inner = found if isinstance(found, Comparison) else getattr(found, "comparison", None)
    return inner if isinstance(inner, Comparison) else compare(request)


def matrix(comparison: Comparison) -> Sheet:
    """The compact table: a line a method, `75.3 ± 0.4 (5)` in a cell, the published value below, then its bytes."""
    request = comparison.request
    places = [(column, score) for column in request.columns for score in column.scores]
    lines = []
    for row in request.rows:
        name = Entry(row_name(row), title=row.note, kind="row")
        scores = (_entry(comparison, row, *place) for place in places)
        lines.append((name, *scores, *_bytes(comparison, row)))
    headers = [("Method", ""), *((column.name, score_label(column, score)) for column, score in places), *BYTES]
    if not any(entry.sort for line in lines for entry in line[-len(BYTES) :]):
        headers, lines = headers[: -len(BYTES)], [line[: -len(BYTES)] for line in lines]
    return Sheet(tuple(headers), tuple(lines))


def _result(comparison: Comparison, row: Row, column: Column, score: str) -> ScoreResult:
    return next(result for result in comparison.cell(row, column).scores if result.score == score)


def _entry(comparison: Comparison, row: Row, column: Column, score: str) -> Entry:
    cell, request, unit = comparison.cell(row, column), comparison.request, metric(score).unit
    result, selection = _result(comparison, row, column, score), request.selections[row.id, column.task]
    published = result.published if comparison.shows_published and row.printed else None
    note = "" if published is None else marked(number(published), result.is_derived)
    link = _link([*selection.records, *selection.diverged])
    if not cell.is_run:
        sort = "" if published is None else repr(published)
        return Entry(selection.divergence or NOT_RUN, sort, link, note, kind="open")
    numbers = {"± test set": result.sampling_error, "reported": published, "difference to reported": result.difference}
    about = [f"{name} {metric(score).in_unit(number(value))}" for name, value in numbers.items() if value is not None]
    if result.interval is not None:
        about.insert(0, f"90 % interval {number(result.interval[0])} to {number(result.interval[1])}")
    if result.verdict:
        about.append(result.verdict)
    seeds = ", ".join(map(str, cell.seeds))
    title = f"{row.name}, {column.name} {score_label(column, score)} {unit}: seeds {seeds}; {'; '.join(about)}"
    if result.ours is None:
        return Entry("undefined" if result.is_held else NOTHING, "", link, note, title)
    spread = "" if result.sd is None else f" ± {compact(result.sd, unit)}"
    text = f"{compact(result.ours, unit)}{spread} ({result.seeds})"
    return Entry(
        text, repr(result.ours), link, note, title, "best" if row.id in comparison.bold[column.task, score] else ""
    )


def _link(records: Sequence[RunResult]) -> str:
    return cell_page(min(records, key=lambda record: record.cell.seed).cell_id) if records else ""


def _bytes(comparison: Comparison, row: Row) -> list[Entry]:
    """Sent up and down over the tasks that ran, all rounds and clients, and the set-up."""
    request = comparison.request
    costs = [cost for column in request.columns if (cost := comparison.cell(row, column).cost) is not None]
    if not costs:
        return [Entry(NOTHING)] * len(BYTES)
    note = "" if len(costs) == len(request.columns) else f"{len(costs)} of {len(request.columns)} tasks"
    totals = [float(sum(getattr(cost, f"{way}_bytes") for cost in costs)) for way in ("up", "down", "setup")]
    return [Entry(human_bytes(total, request.benchmark.paper.gigabyte), repr(total), note=note) for total in totals]
