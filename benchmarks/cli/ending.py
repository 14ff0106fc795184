"""The summary of a table on the terminal: scores as one matrix, what they are worth, and the bytes sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.costs import byte_unit
from benchmarks.experiment import Column, Row
from benchmarks.results import RunBytes, all_stages, stage_bytes
from reports.evidence.gate import gates
from reports.evidence.published import AVERAGE
from reports.evidence.records import Request
from reports.evidence.scores import known, score_label, scores_of
from reports.evidence.statistics import mean, sample_sd
from reports.evidence.traffic import measured_cost
from reports.pages.page import Page
from reports.pages.text import NOTHING, human_bytes, number, row_name

_LONGEST_NAME = 36  # characters of a method in the matrix


def ending(page: Page, width: int) -> list[str]:
    """A heading, each method's score on each task, what the scores are worth, and bytes. width: of the matrix."""
    request = page.request
    lines = [f"{request.heading}: {page.run} of {page.cells} cells run"]
    if page.ranks and page.run:
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
    """Methods as lines, tasks as columns, without those that have no score; several blocks if one is too wide."""
    request, averages = page.request, _averages(page)
    values = {
        row.id: {column.task: _values(request, row, column) for column in request.columns} for row in request.rows
    }
    rows = [row for row in request.rows if any(values[row.id].values())]
    columns = [column for column in request.columns if any(values[row.id][column.task] for row in rows)]
    counts = sorted({len(values[row.id][column.task]) for row in rows for column in columns} - {0})
    what = "Score" if counts == [1] else "Mean ± standard deviation"
    seeds = "(n) seeds" if len(counts) > 1 else f"{counts[0]} seed{'s' * (counts != [1])}" if counts else "no seed"
    yield f"{what} of {seeds}; † marks methods that are not in the paper."
    texts = [["", *(row_name(row)[:_LONGEST_NAME] for row in rows)]]
    for column in columns:
        cells = (_cell(values[row.id][column.task], len(counts) > 1) for row in rows)
        texts.append([f"{column.name} {score_label(column, column.averaged)}", *cells])
    if averages:
        texts.append(["Average", *(number(averages.get(row.id)) for row in rows)])
    names, *blocks = [[f"{text:{max(map(len, block))}}" for text in block] for block in texts]
    lines = names
    for block in ([f"  {text.strip():>{len(text)}}" for text in block] for block in blocks):
        if lines is not names and len(lines[0]) + len(block[0]) > width:
            yield from lines
            lines = names
        lines = [line + text for line, text in zip(lines, block, strict=True)]
    yield from lines


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
    if {len(selection.records) for selection in request.selections.values()} - {0} == {1}:
        yield "1 seed: no ordering."
    for column in request.columns:
        gate = gates(request).get(column.task)
        if gate and gate.is_shut:
            yield f"Not evidence of an ordering on {column.name}: {gate.why}."


def _sent(request: Request) -> Iterator[str]:
    """Bytes of a round by method, as the paper counts them, in one unit; then those of all runs."""
    benchmark, runs, sent = request.benchmark, dict[str, RunBytes](), []  # runs: each of them once, with earlier ones
    for row in request.rows:
        cells = [(column, request.records_of(row, column)) for column in request.columns]
        found = (measured_cost(benchmark, column, records, request.find) for column, records in cells)
        costs = [cost for cost in found if cost is not None]
        for record in (record for _, records in cells for record in records):
            runs |= {stage.cell_id: stage_bytes(stage) for stage in all_stages(record, request.find) or [record]}
        if any(cost.round_bytes for cost in costs):
            sent.append((mean([cost.round_bytes for cost in costs]), row_name(row)))
    if sent:
        gigabyte = benchmark.paper.gigabyte
        yield f"Communication cost per round: {'; '.join(_in_one_unit(sorted(sent), gigabyte))}."
        names = enumerate(("uplink", "downlink"))
        sums = [(float(sum(size[way] for size in runs.values())), name) for way, name in names]
        yield f"All runs together: {', '.join(_in_one_unit(sums, gigabyte))}."


def _in_one_unit(sizes: Sequence[tuple[float, str]], gigabyte: int) -> Iterator[str]:
    """Names and their bytes in the unit that suits the largest; a very small number has its own unit."""
    size, unit = byte_unit(max(sizes)[0] / 10, gigabyte)
    for count, name in sizes:
        text = f"{number(count / size, places=1)} {unit}" if 10 * count >= size else human_bytes(count, gigabyte)
        yield f"{name} {text}"
