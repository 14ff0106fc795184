"""The view of a table of label distributions: what each client was to hold of a task, and what it got.

Option: labels, task -> its labels in the order of print as (id, name); a task with scores has none. The numbers are
those of any record's partition report, so the benchmark's row is one that costs nothing; its scores are not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from reports.comparison import DEMO
from reports.notes import data_notes, deviation_notes, scale_note, selection_notes
from reports.page import Page, Request
from reports.views.labels.distribution import Distribution, distributions, largest_seed_gap, records_of
from reports.views.labels.plot import distribution_plot
from reports.views.labels.tables import distribution_grid, frame


def _scale(request: Request) -> Iterator[str]:
    """The scale; unlike scores, label distributions of real data may be held against print at every one."""
    if request.scale.id == DEMO:
        yield scale_note(request.scale)
    else:
        yield (
            f"Scale {request.scale.id}: {request.scale.label}. The encoder plays no part in this table: where the data "
            "are whole, its numbers are those of every scale."
        )


def _method(request: Request, found: Mapping[str, Distribution]) -> Iterator[str]:
    """What the lines are."""
    yield (
        "Obtained: each client's training and test part together; shares in percent, in the order of print (each "
        "column's header). The cells are those of the local majority, which trains nothing; its scores are no part of "
        "this table."
    )
    if any(value.published is not None for entry in found.values() for part in entry.parts for value in part.values):
        yield "Difference: obtained - published, both to two decimals, in points; of scores in their own unit."
    if any(entry.unused for entry in found.values()):
        yield (
            "In the data, between: bounds of the first label's percentage in the whole data. Records do not count the "
            "labels of unused examples, so these are none or all of them."
        )
    if any(not entry.data_ranges for entry in found.values()):
        yield ("Scores: mean (lowest–highest) of each client; requested is one of equal parts in the order of scores.")


def _seeds(request: Request) -> Iterator[str]:
    """Which seed is shown, and what the others would have shown."""
    for column in request.columns:
        records = records_of(request, column)
        seeds = [record.cell.seed for record in records]
        if len(seeds) > 1:
            gap = largest_seed_gap(records)
            others = (
                f"differ by up to {gap:g} in a client's label count or mean score" if gap else "have the same numbers"
            )
            yield f"{column.name}: seed {seeds[0]} shown; seeds {', '.join(map(str, seeds[1:]))} {others}."


def _test_parts(found: Mapping[str, Distribution]) -> Iterator[str]:
    """Whether training and test part of a client have the same shares, as far as records say."""
    gaps = {
        entry.column.name: max(part.test_gap for part in entry.parts if part.test_gap is not None)
        for entry in found.values()
        if all(part.test_gap is not None for part in entry.parts)
    }
    if gaps:
        agree = [name for name, gap in gaps.items() if gap <= 1]
        others = [f"{name} (by {gap:.1f})" for name, gap in gaps.items() if gap > 1]
        text = (
            "The most frequent label's share of each client's test part (its local majority's accuracy) is its share "
            f"of the whole client to within one example: {', '.join(agree) or 'no task'}"
        )
        yield text + (f"; not so: {', '.join(others)}." if others else ".")
    kept = [entry for entry in found.values() if any(part.test for part in entry.parts)]
    unknown = [entry.column.name for entry in kept if entry.column.name not in gaps]
    if unknown:
        yield f"Labels or scores of the test parts alone are not in the records: {', '.join(unknown)}."


def _label_order(request: Request, found: Mapping[str, Distribution]) -> Iterator[str]:
    """Whether the data settle in which order two labels are printed."""
    if request.scale.id == DEMO:
        return
    settled, level = [], []
    for entry in found.values():
        if len(entry.means) == 2:
            low, high = entry.data_ranges[0]
            ours, other = entry.means
            if abs(ours - other) < 1:
                level.append(entry.column.name)
            elif (low > 50) == (high > 50) == (ours > 50):
                settled.append(f"{entry.column.name} ({ours:.1f} against {other:.1f}; data {low:.1f} to {high:.1f})")
    if settled:
        yield (
            "Label order: read as in the header, the first label's mean over clients is nearer to its percentage in "
            f"the data than read the other way round: {', '.join(settled)}."
        )
    if level:
        yield f"Label order: both readings have the same mean over clients: {', '.join(level)}."


def _notes(request: Request, found: Mapping[str, Distribution]) -> Iterator[str]:
    """Every note under the tables."""
    yield from _scale(request)
    yield from _method(request, found)
    yield from _seeds(request)
    yield from _test_parts(found)
    yield from _label_order(request, found)
    yield from data_notes(request)
    yield from selection_notes(request)
    yield from deviation_notes(request)


def labels(request: Request) -> Page:
    """What every client holds of each task, beside what was requested and printed."""
    found = distributions(request)
    return request.page(
        grids=(distribution_grid(request, found),),
        notes=tuple(_notes(request, found)),
        frame=partial(frame, request, found),
        figure=partial(distribution_plot, request, found),
    )
