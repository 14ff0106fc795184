"""What stands under a table: how it was made, what it lacks and where it leaves the paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.record import RunRecord
from benchmarks.spec import JSON, Column, Published, Row, Scale
from reports.layout import DAGGER, DERIVED
from reports.page import Request
from reports.selection import digests
from reports.verdicts import RULE

_LEVEL = {
    "demo": "generated data and a tiny model show the machinery; never compared with a paper's numbers",
    "lite": "published values are not comparable in level: other encoder/scale; judged by orderings",
    "paper": "published values are those that the paper prints",
}

_RULE_WORDS = {"truncate": "truncated", "round": "rounded"}


def _records(request: Request, column: Column) -> list[RunRecord]:
    """Every record used in a column."""
    return [record for row in request.rows for record in request.records_of(row, column)]


def _count(skipped: JSON) -> int:
    """Rows skipped, given as a number or as a list of them."""
    return len(skipped) if isinstance(skipped, (list, tuple)) else int(skipped or 0)


def scale_note(scale: Scale) -> str:
    """The scale, and what it may be compared with."""
    return f"Scale {scale.id}: {scale.label}; {_LEVEL.get(scale.id, _LEVEL['lite'])}."


def _method(request: Request) -> Iterator[str]:
    """How the scores came about."""
    benchmark = request.benchmark
    at = "at the last round" if request.score_at == "last" else "at the best round, chosen on the test score itself"
    yield (
        f"Scores in percent: mean over clients {at}, then over n seeds; ± sd over seeds (n - 1); 95 % interval: "
        "Student's t over seeds (of the average: stratified bootstrap over the seeds of each task); ± test set "
        "is the sampling error of the finite test sets of the last round, root mean square over seeds; test: "
        "examples in all clients' test sets, partial where the data were."
    )
    if request.scale.id == "paper":
        yield RULE
    if len(benchmark.columns) > 1:
        averaged = ", ".join(f"{column.name} {column.averaged}" for column in benchmark.columns)
        yield (
            f"Average: one score a task ({averaged}), {_RULE_WORDS[benchmark.average]} to two decimals "
            "as the paper's; given only where every task was run."
        )
    yield (
        f"Bytes a round: {benchmark.paper.bytes_convention}; mean over rounds. Up and down: all clients, "
        "rounds and tasks run, mean over seeds. Set-up is sent once a task and counted apart. Training is wall time of "
        "each cell's last start, beside whatever else its machine did: no comparison of methods."
    )


def row_notes(rows: Sequence[Row]) -> Iterator[str]:
    """What the rows are."""
    if any(not row.printed for row in rows):
        yield f"{DAGGER} not in the paper."
    for row in rows:
        if row.note:
            yield f"{row.name}: {row.note}"


def derivation_notes(request: Request, published: Iterable[Published]) -> Iterator[str]:
    """Which published values are not printed but follow from the text, and how."""
    names = {row.id: row.name for row in request.benchmark.rows}
    shown = {row.id for row in request.rows}
    texts = [
        f"{names[entry.row]} = {re.sub(r'{([^{}]+)}', lambda found: names[found[1]], entry.derivation)}"
        for entry in published
        if entry.derivation and entry.row in shown
    ]
    if texts:
        yield (
            f"{DERIVED} derived from the text's relative gains, the printed table was not at hand: "
            f"{'; '.join(texts)}. What rests on such a number is marked too."
        )


def data_notes(request: Request) -> Iterator[str]:
    """What the columns were computed on, and which were not computed."""
    missing = [column.name for column in request.columns if not _records(request, column)]
    if missing:
        yield f"Not run: {', '.join(missing)}."
    for column in request.columns:
        data = [record.inputs["data"] for record in _records(request, column)]
        for note in dict.fromkeys(str(note) for entry in data for note in entry.get("notes", ())):
            yield f"Data of {column.name}: {note}."
        skipped = max((_count(entry.get("skipped")) for entry in data), default=0)
        if skipped:
            yield f"Data of {column.name}: malformed rows skipped: {skipped}."


def selection_notes(request: Request) -> Iterator[str]:
    """What was left out, and what does not match."""
    for column in request.columns:
        versions = {(r.cell.backbone, *sorted(digests(r).items())) for r in _records(request, column)}
        if len(versions) > len({version[0] for version in versions}):
            yield f"{column.name}: the methods ran on different data or weights: compare them with care."
        for row in request.rows:
            left_out = request.selections[row.id, column.task].left_out
            if left_out:
                yield (
                    f"{row.name}, {column.name}: records of other data or weights left out (the newest record "
                    f"decides): {left_out}."
                )


def _undefined(request: Request) -> Iterator[str]:
    """Which scores have no value for some seeds."""
    for column in request.columns:
        for row in request.rows:
            records = request.records_of(row, column)
            for score in column.scores:
                undefined = sum(record.score(score, request.score_at) is None for record in records)
                if undefined:
                    seeds = f"{undefined} of {len(records)} seeds, which the mean leaves out"
                    yield f"{row.name}, {column.name}: {score} undefined in {seeds}."


def deviation_notes(request: Request) -> Iterator[str]:
    """Where this scale leaves the paper."""
    for deviation in request.benchmark.deviations:
        if request.scale.id in deviation.scales:
            yield f"Deviation {deviation.id}: {deviation.text}"


def notes(request: Request, published: Iterable[Published] = ()) -> Iterator[str]:
    """Every note of a table of scores, from what always holds to the deviations of this scale.

    published: what stands beside our scores.
    """
    yield scale_note(request.scale)
    yield from _method(request)
    yield from row_notes(request.rows)
    yield from derivation_notes(request, published)
    yield from data_notes(request)
    yield from selection_notes(request)
    yield from _undefined(request)
    yield from deviation_notes(request)
