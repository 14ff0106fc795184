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
    values = {
        (row.id, column.task): _values(request, row, column) for row in request.rows for column in request.columns
    }
    rows = [row for row in request.rows if any(values[row.id, column.task] for column in request.columns)]
    counts = sorted({len(scores) for scores in values.values() if scores})
    if not rows:
        return
    what = "Score" if counts == [1] else "Mean ± standard deviation"
    seeds = "(n) seeds" if len(counts) > 1 else f"{counts[0]} seed{'s' * (counts != [1])}"
    yield f"{what} of {seeds}; † marks methods that are not in the paper."
    lines = [["", *(f"{column.name} {score_label(column, column.averaged)}" for column in request.columns)]]
    for row in rows:
        cells = (_cell(values[row.id, column.task], len(counts) > 1) for column in request.columns)
        lines.append([row_name(row)[:_LONGEST_NAME], *cells])
    if averages := _averages(page):
        for line, text in zip(lines, ["Average", *(number(averages.get(row.id)) for row in rows)], strict=True):
            line.append(text)
    first, *columns = zip(*lines, strict=True)
    names = [f"{name:{max(map(len, first))}}" for name in first]
    while columns:
        block = names
        while columns and (block is names or len(block[0]) + max(map(len, columns[0])) + 2 <= width):
            column, wide = columns[0], max(map(len, columns[0]))
            block = [f"{line}  {text:>{wide}}" for line, text in zip(block, column, strict=True)]
            columns = columns[1:]
        yield from block


def _values(request: Request, row: Row, column: Column) -> tuple[float, ...]:
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
    up = down = 0.0
    sent = []
    for row in request.rows:
        found = (measured_cost(benchmark, column, request.records_of(row, column)) for column in request.columns)
        costs = [cost for cost in found if cost is not None]
        up += sum(cost.up_bytes * cost.seeds for cost in costs)
        down += sum(cost.down_bytes * cost.seeds for cost in costs)
        if any(cost.round_bytes for cost in costs):
            sent.append((mean([cost.round_bytes for cost in costs]), row_name(row)))
    if sent:
        size, unit = byte_unit(min(sent)[0], gigabyte)
        yield f"Bytes per round: {'; '.join(f'{name} {number(count / size, places=1)} {unit}' for count, name in sorted(sent))}."
        size, unit = byte_unit(min(up, down) or up + down, gigabyte)
        yield f"All runs together: {number(up / size, places=1)} {unit} up, {number(down / size, places=1)} {unit} down."
