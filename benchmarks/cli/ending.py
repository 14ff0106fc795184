"""What a run ends with on the terminal: about ten lines; the whole table and every note lie in files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.experiment import Column, Row
from benchmarks.measures import metric

if TYPE_CHECKING:
    from reports.evidence.records import Request
    from reports.pages.page import Page

WIDTH = 110
_MOST = 8  # methods of which bytes are said
_SIDE_BY_SIDE = 5  # from so many tasks on, two stand in a line where there is room


def ending(page: Page, width: int) -> list[str]:
    """The best method of each task or what a study found, averages over all tasks, what was sent: in short lines."""
    from reports.pages.text import row_name

    request = page.request
    lines = [f"{request.heading}: {page.run} of {page.cells} cells run"]
    best = [text for column in request.columns if page.ranks and (text := _best(request, column))]
    lines += ["Best of each task, by the score that counts (rows marked † stand aside):"] if best else []
    lines += _side_by_side(best, min(width, WIDTH))
    lines += [": ".join(page.finding)] if page.finding else []
    lost = [
        f"{row_name(row)} on {column.name} {found.divergence}"
        for row in request.rows
        for column in request.columns
        if (found := request.selections[row.id, column.task]).diverged
    ]
    lines += [f"Diverged: {'; '.join(lost)}"] if lost else []
    averages = _averages(page)
    lines += [f"Average: {'; '.join(averages)}"] if averages else []
    sent = _sent(request)
    return [*lines, *([f"Communication cost per round: {sent}"] if sent else [])]


def _best(request: Request, column: Column) -> str:
    """A column's best method with its scores; "" where nothing was scored."""
    from reports.evidence.scores import score_label
    from reports.pages.text import joined, number, row_name

    means = {row.id: _mean(request, row, column, column.averaged) for row in request.rows}
    known = [row for row in request.rows if means[row.id] is not None]
    known = [row for row in known if row.printed] or known
    top = metric(column.averaged).best(means[row.id] for row in known)
    first = [row for row in known if means[row.id] == top]
    if not first:
        return ""
    scores = joined(number(_mean(request, first[0], column, score)) for score in column.scores)
    labels = "/".join(score_label(column, score) for score in column.scores)
    tie = f" and {len(first) - 1} more" if len(first) > 1 else ""
    return f"{column.name}  {row_name(first[0])}{tie}  {scores} {labels}"


def _mean(request: Request, row: Row, column: Column, score: str) -> float | None:
    """Mean over seeds at the request's round, in the metric's unit; None where it is not known."""
    from reports.evidence.scores import known, scores_of
    from reports.evidence.statistics import mean

    values = known(scores_of(request.records_of(row, column), score).at(request.score_at))
    return mean(values) if values else None


def _side_by_side(texts: Sequence[str], width: int) -> list[str]:
    longest = max(map(len, texts), default=0)
    if len(texts) < _SIDE_BY_SIDE or 2 * longest + 6 > width:
        return [f"  {text}" for text in texts]
    half = (len(texts) + 1) // 2
    left, right = texts[:half], [*texts[half:], *[""] * (len(texts) % 2)]
    return [f"  {one:{longest}}    {other}".rstrip() for one, other in zip(left, right, strict=True)]


def _averages(page: Page) -> list[str]:
    """Of each method of a table of scores that has one, by the paper's rule; nothing in other views."""
    from reports.evidence.published import AVERAGE
    from reports.pages.text import number, row_name

    if page.request.benchmark.view.name != "scores" or len(page.request.columns) == 1:
        return []
    frame = page.frame()
    found = frame[(frame["column"] == AVERAGE) & frame["ours"].notna()]
    values = dict(zip(found["row"], found["ours"], strict=True))
    return [f"{row_name(row)} {number(values[row.id])}" for row in page.request.rows if row.id in values]


def _sent(request: Request) -> str:
    """Bytes of a round by method, as the paper counts them, and those of all that was run; "" where nothing is sent."""
    from reports.evidence.statistics import mean
    from reports.evidence.traffic import measured_cost
    from reports.pages.text import human_bytes, row_name

    benchmark, gigabyte = request.benchmark, request.benchmark.paper.gigabyte
    places = ((row, column, request.records_of(row, column)) for row in request.rows for column in request.columns)
    costs = [(row, cost) for row, column, found in places if (cost := measured_cost(benchmark, column, found))]
    up, down = (sum(getattr(cost, f"{way}_bytes") for _, cost in costs) for way in ("up", "down"))
    if not up + down:
        return ""
    sizes = [(row, [cost.round_bytes for other, cost in costs if other is row]) for row in request.rows]
    sending = [(mean(found), row) for row, found in sizes if any(found)]
    sending = [entry for entry in sending if entry[1].printed] or sending
    ordered = sorted(sending, key=lambda entry: entry[0])
    texts = [f"{row_name(row)} {human_bytes(size, gigabyte)}" for size, row in ordered]
    texts = texts if len(texts) <= _MOST else [*texts[: _MOST - 1], "…", texts[-1]]
    whole = f"all that was run: {human_bytes(up, gigabyte)} uplink, {human_bytes(down, gigabyte)} downlink"
    return f"{'; '.join(texts)} ({whole})"
