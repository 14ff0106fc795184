"""The summary of a table on the terminal: scores as one matrix, what they are worth, and the bytes sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.costs import byte_unit
from benchmarks.experiment import Column, Row
from reports.evidence.gate import gates
from reports.evidence.published import AVERAGE
from reports.evidence.records import Request
from reports.evidence.scores import known, score_label, scores_of
from reports.evidence.statistics import mean, sample_sd
from reports.evidence.traffic import measured_cost
from reports.pages.page import Page
from reports.pages.text import NOTHING, number, row_name

_LONGEST_NAME = 36  # characters of a method in the matrix
_MOST = 8  # methods whose bytes are listed


def ending(page: Page, width: int) -> list[str]:
    """A heading, each method's score on each task, what the scores are worth, and bytes: lines of at most so many
    characters, but for the last ones.
    """
    request = page.request
    lines = [f"{request.heading}: {page.run} of {page.cells} cells run"]
    if page.ranks:
        lines += [*_matrix(page, width), *_worth(request)]
    lines += [": ".join(page.finding)] if page.finding else []
    diverged = [
        f"{row_name(row)} on {column.name} {selection.divergence}"
        for row in request.rows
        for column in request.columns
        if (selection := request.selections[row.id, column.task]).diverged
    ]
    lines += [f"Diverged: {'; '.join(diverged)}"] if diverged else []
    return [*lines, *_sent(request)]


def _matrix(page: Page, width: int) -> Iterator[str]:
    """Methods as lines, tasks as columns; several blocks where one is too wide."""
    request = page.request
    scores = {
        (row.id, column.task): _scores(request, row, column) for row in request.rows for column in request.columns
    }
    rows = [row for row in request.rows if any(scores[row.id, column.task] for column in request.columns)]
    if not rows:
        return
    counts = {len(values) for values in scores.values() if values}
    seeds = f"{counts.copy().pop()} seed{'s' * (counts != {1})}" if len(counts) == 1 else "(n) seeds"
    what = f"Mean ± standard deviation of {seeds}" if counts != {1} else f"Score of {seeds}"
    yield f"{what}; † marks methods that are not in the paper."
    columns = [
        [f"{column.name} {score_label(column, column.averaged)}"]
        + [_cell(scores[row.id, column.task], len(counts) > 1) for row in rows]
        for column in request.columns
    ]
    if averages := _averages(page):
        columns.append(["Average", *(number(averages.get(row.id)) for row in rows)])
    names = ["", *(row_name(row)[:_LONGEST_NAME] for row in rows)]
    wide = max(map(len, names))
    while columns:
        fitting = 1
        while fitting < len(columns) and wide + sum(_wide(column) + 2 for column in columns[: fitting + 1]) <= width:
            fitting += 1
        block, columns = columns[:fitting], columns[fitting:]
        for place, name in enumerate(names):
            yield f"{name:{wide}}" + "".join(f"  {column[place]:>{_wide(column)}}" for column in block)


def _wide(column: Sequence[str]) -> int:
    return max(map(len, column))


def _scores(request: Request, row: Row, column: Column) -> tuple[float, ...]:
    """The defined values of the headline score, one a seed, in the metric's unit."""
    return known(scores_of(request.records_of(row, column), column.averaged).at(request.score_at))


def _cell(values: Sequence[float], with_count: bool) -> str:
    if not values:
        return NOTHING
    sd = sample_sd(values)
    spread = "" if sd is None else f" ± {number(sd)}"
    return f"{number(mean(values))}{spread}{f' ({len(values)})' if with_count else ''}"


def _averages(page: Page) -> dict[str, float]:
    """Row id -> average over tasks by the paper's rule, in a table of scores that has one."""
    if page.request.benchmark.view.name != "scores" or len(page.request.columns) == 1:
        return {}
    frame = page.frame()
    averages = frame[(frame["column"] == AVERAGE) & frame["ours"].notna()]
    return dict(zip(averages["row"], averages["ours"], strict=True))


def _worth(request: Request) -> Iterator[str]:
    """Why the scores are no evidence of an ordering of methods, where they are not."""
    if request.scale.id == "demo":
        yield "Generated data: the scores say nothing about the methods."
    counts = {len(selection.records) for selection in request.selections.values()} - {0}
    if counts == {1}:
        yield "1 seed: no ordering."
    reasons: dict[str, list[str]] = {}
    names = {column.task: column.name for column in request.columns}
    for task, gate in gates(request).items():
        if gate.is_shut:
            reasons.setdefault(gate.why, []).append(names[task])
    yield from (f"Not evidence of an ordering on {', '.join(tasks)}: {why}." for why, tasks in reasons.items())


def _sent(request: Request) -> Iterator[str]:
    """Bytes of a round by method, as the paper counts them, in one unit; then those of all runs."""
    benchmark, gigabyte = request.benchmark, request.benchmark.paper.gigabyte
    places = ((row, column, request.records_of(row, column)) for row in request.rows for column in request.columns)
    costs = [(row, cost) for row, column, records in places if (cost := measured_cost(benchmark, column, records))]
    up, down = (sum(getattr(cost, f"{way}_bytes") * cost.seeds for _, cost in costs) for way in ("up", "down"))
    if not up + down:
        return
    sizes = [(row, [cost.round_bytes for other, cost in costs if other is row]) for row in request.rows]
    sending = sorted(((mean(found), row) for row, found in sizes if any(found)), key=lambda entry: entry[0])
    if len(sending) > _MOST:
        sending = [entry for entry in sending if entry[1].printed] or sending
    size, unit = byte_unit(sending[0][0], gigabyte)
    texts = [f"{row_name(row)} {number(sent / size, places=1)} {unit}" for sent, row in sending]
    yield f"Communication cost per round: {'; '.join(texts)}."
    size, unit = byte_unit(min(up, down) or up + down, gigabyte)
    totals = (f"{number(sent / size, places=1)} {unit} {way}" for sent, way in ((up, "uplink"), (down, "downlink")))
    yield f"All runs together: {', '.join(totals)}."
