"""The view of a table of label distributions: what each client was to hold of a task, and what it got.

Option: labels, task -> its labels in the order of print as (id, name); a task with scores has none. The numbers are
those of any record's partition report, so the benchmark's row is one that costs nothing; its scores are not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from benchmarks.run_config import JSON
from reports.evidence.labels import SORTED, Distribution, Part, Shared, labels_of, largest_seed_gap, records_of, shared
from reports.evidence.records import DEMO, Request
from reports.evidence.statistics import printed
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.text import NOT_RUN, NOTHING, data_notes, joined, number, scale_note

WHOLE = "all"  # stands for every client together
RANKS = False
FIELDS = [
    *(*KEYS[:4], "client", *KEYS[7:], "score", "label", "status", "requested", "obtained", "published", "difference"),
    *("lowest", "highest", "examples", "train", "validation", "test", "available", "data_low", "data_high"),
]

join = shared


def _scale(request: Request) -> Iterator[str]:
    if request.scale.id == DEMO:
        yield scale_note(request)
    else:
        yield (
            f"Scale {request.scale.id}: {request.label}. The encoder plays no part in this table: where the data "
            "are whole, its numbers are those of every scale."
        )


def _method(found: Sequence[Distribution]) -> Iterator[str]:
    yield (
        "Obtained: all parts of each client together; shares in percent, in the order of print (each "
        "column's header). The cells are those of each client's majority-class baseline, which trains nothing; its "
        "scores are no part of this table."
    )
    if any(value.published is not None for entry in found for part in entry.parts for value in part.values):
        yield "Difference: obtained - reported, both to two decimals, in points; of scores in their own unit."
    if any(entry.unused for entry in found):
        yield (
            "In the data, between: bounds of the first label's percentage in the whole data. Records do not count the "
            "labels of unused examples, so these are none or all of them."
        )
    if any(not entry.data_ranges for entry in found):
        yield ("Scores: mean (lowest–highest) of each client; requested is one of equal parts in the order of scores.")


def _seeds(request: Request) -> Iterator[str]:
    for column in request.columns:
        records = records_of(request, column)
        seeds = [record.cell.seed for record in records]
        if len(seeds) > 1:
            gap, others = largest_seed_gap(records), "have the same numbers"
            if gap:
                others = f"differ by up to {gap:g} in a client's label count or mean score"
            yield f"{column.name}: seed {seeds[0]} shown; seeds {', '.join(map(str, seeds[1:]))} {others}."


def _test_parts(found: Sequence[Distribution]) -> Iterator[str]:
    """Whether training and test part of a client have the same shares, as far as records say."""
    gaps = {
        entry.column.name: max(part.test_gap for part in entry.parts if part.test_gap is not None)
        for entry in found
        if all(part.test_gap is not None for part in entry.parts)
    }
    if gaps:
        agree = [name for name, gap in gaps.items() if gap <= 1]
        others = [f"{name} (by {gap:.1f})" for name, gap in gaps.items() if gap > 1]
        text = (
            "The most frequent label's share of each client's test part (its majority-class baseline's accuracy) is "
            f"its share of the whole client to within one example: {', '.join(agree) or 'no task'}"
        )
        yield text + (f"; not so: {', '.join(others)}." if others else ".")
    kept = [entry for entry in found if any(part.test for part in entry.parts)]
    unknown = [entry.column.name for entry in kept if entry.column.name not in gaps]
    if unknown:
        yield f"Labels or scores of the test parts alone are not in the records: {', '.join(unknown)}."


def _label_order(found: Sequence[Distribution]) -> Iterator[str]:
    """Whether the data settle in which order two labels are printed."""
    settled, level = [], []
    for entry in found:
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


def notes(found: Shared) -> Iterator[str]:
    """Every note under the tables."""
    request, entries = found.request, tuple(found.by_task.values())
    yield from _scale(request)
    yield from _method(entries)
    yield from _seeds(request)
    yield from _test_parts(entries)
    if request.scale.id != DEMO:
        yield from _label_order(entries)
    yield from data_notes(request)


def _short(value: float | None) -> str:
    return NOTHING if value is None else f"{printed(value).normalize():f}"


def _held(entries: Sequence[Distribution | None]) -> list[str]:
    """The parts that some client has: "train", and what is kept back of it."""
    parts = [part for entry in entries if entry is not None for part in entry.parts]
    return ["train", *(name for name in ("validation", "test") if any(getattr(part, name) for part in parts))]


def _part_texts(entry: Distribution, part: Part, held: Sequence[str]) -> dict[str, str]:
    """A client's lines: shares, or a place in the order of scores and the mean score with the lowest and highest."""
    is_shares, place = part.score_range is None, f"part {part.number} of {len(entry.parts)}"
    shares = joined(_short(value.requested) for value in part.values)
    obtained = joined(number(value.obtained) for value in part.values)
    range_ = "" if part.score_range is None else f" ({'–'.join(map(_short, part.score_range))})"
    return {
        "requested": place if entry.scheme == SORTED else shares,
        "obtained": obtained + range_,
        "reported": joined((_short if is_shares else number)(value.published) for value in part.values),
        "difference": joined(number(value.difference, "+") for value in part.values),
        " + ".join(held): " + ".join(str(getattr(part, name)) for name in held),
    }


def _client_lines(place: int, entries: Sequence[Distribution | None]) -> Iterator[Line]:
    held = _held(entries)
    texts = [entry and _part_texts(entry, entry.parts[place], held) for entry in entries]
    values = [value for entry in entries if entry is not None for value in entry.parts[place].values]
    in_print = ["reported", "difference"] if any(value.published is not None for value in values) else []
    for label in ("requested", "obtained", *in_print, " + ".join(held)):
        is_main = label == "obtained"
        missing = NOT_RUN if is_main else NOTHING
        yield Line(label, tuple(known[label] if known else missing for known in texts), is_main)


def _whole_lines(entries: Sequence[Distribution | None]) -> Iterator[Line]:
    def line(label: str, text: Callable[[Distribution], str]) -> Line:
        return Line(label, tuple(NOTHING if entry is None else text(entry) for entry in entries))

    def first_in_data(entry: Distribution) -> str:
        return f"{'–'.join(dict.fromkeys(map(number, entry.data_ranges[0])))}" if entry.data_ranges else NOTHING

    yield line("mean over clients", lambda entry: "/".join(map(number, entry.means)))
    yield line("first label in the data, between", first_in_data)
    yield line("examples in the data", lambda entry: str(entry.available))
    yield line("used", lambda entry: str(entry.used))
    yield line("unused", lambda entry: f"{entry.unused} ({number(100 * entry.unused / entry.available)} %)")


def grids(found: Shared) -> tuple[Grid, ...]:
    """Groups are clients, columns tasks: requested, obtained, published; last what holds for all together."""
    request, columns = found.request, found.columns_shown
    entries = [found.by_task.get(column.task) for column in columns]
    groups = [Group(str(place + 1), tuple(_client_lines(place, entries))) for place in range(found.clients)]
    if found.by_task:
        groups.append(Group(WHOLE, tuple(_whole_lines(entries))))
    names = ("/".join(name for _, name in labels_of(request, column)) for column in columns)
    headers = tuple((column.name, name or "mean score") for column, name in zip(columns, names, strict=True))
    return (Grid(f"{request.heading}: label distributions", headers, tuple(groups), stub="Client"),)


def _part_lines(entry: Distribution) -> Iterator[dict[str, JSON]]:
    for part in entry.parts:
        low, high = part.score_range or (None, None)
        held = {name: getattr(part, name) for name in ("train", "validation", "test")}
        sizes = {"lowest": low, "highest": high, "examples": part.size} | held
        for value in part.values:
            known = {name: getattr(value, name) for name in ("requested", "obtained", "published", "difference")}
            yield {"client": str(part.number), "score": value.score, "label": value.name} | known | sizes
    for place, value in enumerate(entry.parts[0].values):
        low, high = entry.data_ranges[place] if entry.data_ranges else (None, None)
        sizes = {"examples": entry.used, "available": entry.available, "data_low": low, "data_high": high}
        known = {"score": value.score, "label": value.name, "obtained": entry.means[place]}
        yield {"client": WHOLE} | known | sizes


def frame(found: Shared) -> pd.DataFrame:
    """The distributions as a data frame of FIELDS: shares in percent; client "all" holds means over clients."""
    lines: list[dict[str, JSON]] = []
    for column in found.request.columns:
        common, entry = keys_of(found.request, column=column), found.by_task.get(column.task)
        if entry is None:
            lines.append(common | {"status": NOT_RUN})
        else:
            lines += [common | {"status": "run"} | line for line in _part_lines(entry)]
    return long_form(lines, FIELDS, {"Int64": ("examples", "train", "validation", "test", "available")})
