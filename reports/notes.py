"""What stands under a table: how it was made, what it lacks and where it leaves the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.record import RunRecord
from benchmarks.spec import JSON, Benchmark, Column, Row, Scale
from reports.selection import Selection, digests

DAGGER = "†"  # marks a row that the paper does not print
Selections = Mapping[tuple[str, str], Selection]  # (row id, task) -> its records

_LEVEL = {
    "demo": "generated data and a tiny model show the machinery; never compared with a paper's numbers",
    "lite": "published values are not comparable in level: other encoder/scale; judged by orderings",
    "paper": "published values are those that the paper prints",
}

_RULE_WORDS = {"truncate": "truncated", "round": "rounded"}


def _records(selections: Selections, column: Column) -> list[RunRecord]:
    """Every record used in a column."""
    chosen = (selection for (_, task), selection in selections.items() if task == column.task)
    return [record for selection in chosen for record in selection.records]


def _count(skipped: JSON) -> int:
    """Rows skipped, given as a number or as a list of them."""
    return len(skipped) if isinstance(skipped, (list, tuple)) else int(skipped or 0)


def _method(benchmark: Benchmark, scale: Scale, score_at: str) -> Iterator[str]:
    """How the numbers came about."""
    yield f"Scale {scale.id}: {scale.label}; {_LEVEL.get(scale.id, _LEVEL['lite'])}."
    at = "at the last round" if score_at == "last" else "at the best round, chosen on the test score itself"
    yield (
        f"Scores in percent: mean over clients {at}, then over n seeds; ± sd over seeds (n - 1); ± test set "
        "is the sampling error of the finite test sets of the last round, root mean square over seeds; test: "
        "examples in all clients' test sets."
    )
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


def _rows(rows: Sequence[Row]) -> Iterator[str]:
    """What the rows are."""
    if any(not row.printed for row in rows):
        yield f"{DAGGER} not in the paper."
    for row in rows:
        if row.note:
            yield f"{row.name}: {row.note}"


def _data(columns: Sequence[Column], selections: Selections) -> Iterator[str]:
    """What the columns were computed on, and which were not computed."""
    missing = [column.name for column in columns if not _records(selections, column)]
    if missing:
        yield f"Not run: {', '.join(missing)}."
    for column in columns:
        data = [record.inputs["data"] for record in _records(selections, column)]
        for note in dict.fromkeys(str(note) for entry in data for note in entry.get("notes", ())):
            yield f"Data of {column.name}: {note}."
        skipped = max((_count(entry.get("skipped")) for entry in data), default=0)
        if skipped:
            yield f"Data of {column.name}: malformed rows skipped: {skipped}."


def _selected(rows: Sequence[Row], columns: Sequence[Column], selections: Selections, score_at: str) -> Iterator[str]:
    """What was left out, does not match or has no value."""
    for column in columns:
        versions = {(r.cell.backbone, *sorted(digests(r).items())) for r in _records(selections, column)}
        if len(versions) > len({version[0] for version in versions}):
            yield f"{column.name}: the methods ran on different data or weights: compare them with care."
        for row in rows:
            chosen = selections[row.id, column.task]
            if chosen.left_out:
                yield (
                    f"{row.name}, {column.name}: records of other data or weights left out (the newest record "
                    f"decides): {chosen.left_out}."
                )
            for score in column.scores:
                undefined = sum(record.score(score, score_at) is None for record in chosen.records)
                if undefined:
                    seeds = f"{undefined} of {len(chosen.records)} seeds, which the mean leaves out"
                    yield f"{row.name}, {column.name}: {score} undefined in {seeds}."


def notes(
    benchmark: Benchmark,
    scale: Scale,
    rows: Sequence[Row],
    columns: Sequence[Column],
    selections: Selections,
    score_at: str,
) -> Iterator[str]:
    """Every note of a comparison, from what always holds to the deviations of this scale."""
    yield from _method(benchmark, scale, score_at)
    yield from _rows(rows)
    yield from _data(columns, selections)
    yield from _selected(rows, columns, selections, score_at)
    for deviation in benchmark.deviations:
        if scale.id in deviation.scales:
            yield f"Deviation {deviation.id}: {deviation.text}"
