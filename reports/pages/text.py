"""What a page says in words: numbers and names as it writes them, and the notes under its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

from benchmarks.costs import byte_unit
from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.results import RunResult
from benchmarks.run_config import ENGINE_VERSION
from reports.evidence.gate import gates, home, levels
from reports.evidence.overlap import overlap_note
from reports.evidence.records import Request, agree, digests, machine
from reports.evidence.scores import score_label, unit_of
from reports.evidence.statistics import printed

DAGGER = "†"  # marks a row that the paper does not print
DERIVED = "≈"  # marks what rests on a number that the paper does not print, but that follows from its text
NOTHING = "–"
NOT_RUN = "not run"
UNDEFINED = "undefined"
REPRODUCED, REPORTED = "reproduced", "reported"  # ours, and what the paper prints or implies
ONE_TIME = ("one-time model", "distribution")  # what is sent before the first round, as a header
_LEVEL = {
    "demo": "generated data and a tiny model show the machinery; never compared with a paper's numbers",
    "lite": "reported values are not comparable in level: other encoder/scale; judged by orderings",
    "paper": "reported values are those that the paper prints",
}
_AT_ROUND = {
    "chosen": "at the round that is best on validation data (the last one where a run held none back)",
    "last": "at the last round",
    "best": "at the best round, chosen on the test score itself",
}


def row_name(row: Row) -> str:
    """The method's name, with a dagger where the paper does not print it."""
    return row.name if row.printed else f"{row.name} {DAGGER}"


def dagger_note(rows: Sequence[Row]) -> str:
    """What the dagger means, where one of the rows has it."""
    return "" if all(row.printed for row in rows) else f" {DAGGER} not in the paper."


def marked(text: str, is_derived: bool) -> str:
    """A text that says where it rests on a derived number; a dash stays one."""
    return f"{DERIVED} {text}" if is_derived and text != NOTHING else text


def human_bytes(count: float, gigabyte: int = 10**9) -> str:
    """Bytes in readable units."""
    size, name = byte_unit(count, gigabyte)
    return f"{count:.0f} B" if size == 1 else f"{printed(count / size)} {name}"


def human_seconds(seconds: float) -> str:
    """A duration in readable units."""
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.1f} s"


def number(value: float | None, sign: str = "", places: int = 2) -> str:
    """A number with so many decimals; a dash for none."""
    return NOTHING if value is None else f"{printed(value, places=places):{sign}}".replace("-", "−")


def joined(texts: Iterable[str]) -> str:
    """The texts of a cell's numbers as a paper prints them, a/b; one dash where there is none at all."""
    found = list(texts)
    return NOTHING if set(found) == {NOTHING} else "/".join(found)


def seed_counts(counts: Iterable[int]) -> str:
    """Numbers of seeds for a caption: " (n = 2 to 5)"; nothing without runs."""
    known = sorted({count for count in counts if count})
    return f" (n = {' to '.join(map(str, dict.fromkeys((known[0], known[-1]))))})" if known else ""


def scale_note(request: Request) -> str:
    """The scale, and what it may be compared with."""
    scale = request.scale
    return f"Scale {scale.id}: {request.label}; {_LEVEL.get(scale.id, _LEVEL['lite'])}."


def notes_under(
    request: Request, method: Iterable[str] = (), of_print: Iterable[str] = (), about: Iterable[str] = ()
) -> Iterator[str]:
    """The notes under any table: what the scale means, how the numbers came about, and all that follows.

    method: the view's own words on its numbers; of_print: on published ones; about: on single cells.
    """
    yield scale_note(request)
    yield from method
    if dagger := dagger_note(request.rows).strip():
        yield dagger
    yield from (f"{row.name}: {row.note}" for row in request.rows if row.note)
    yield from of_print
    yield from gate_notes(request)
    yield from data_notes(request, about)


def gate_notes(request: Request) -> Iterator[str]:
    """Which columns are evidence of an ordering, and which are none: where rows could judge them."""
    found = gates(request)
    names = {column.task: column.name for column in request.columns}
    is_open = [names[task] for task, gate in found.items() if gate.is_open]
    if is_open:
        learns = home(request.benchmark).yardstick.learns
        yield f"Orderings are evidence on {', '.join(is_open)}: there {learns}."
    shut: dict[str, list[str]] = {}
    for task, gate in found.items():
        if not gate.is_open:
            shut.setdefault(gate.why, []).append(names[task])
    yield from (f"Orderings are no evidence on {', '.join(columns)}: {why}." for why, columns in shut.items())
    yield from level_notes(request)


def level_notes(request: Request) -> Iterator[str]:
    """How well the encoder learns, beside what others report of its kind."""
    names = {column.task: column.name for column in request.columns}
    parts = [
        f"{names[task]} {metric(score).label} {number(own, places=1)} ({number(reported, places=1)}; n = {n})"
        for task, (score, own, reported, n) in levels(request).items()
    ]
    if parts and request.scale.elsewhere:
        name = home(request.benchmark).yardstick.name
        yield f"How far {name} comes: {', '.join(parts)}. In brackets {request.scale.elsewhere.of}."


def in_units(columns: Sequence[Column]) -> str:
    """The unit of the columns' scores in words: " in percent", with those that are plain numbers; or nothing."""
    plain = [f"{column.name} {score_label(column, column.averaged)}" for column in columns if not unit_of([column])]
    if len(plain) == len(columns):
        return ""
    return " in percent" + (f" ({', '.join(plain)}: plain)" if plain else "")


def over_clients(columns: Sequence[Column]) -> str:
    """How one score became of the clients': "mean over clients", geometric where the metric says so."""
    kinds = {metric(column.averaged).over_clients for column in columns}
    return " or ".join("mean over clients" if kind == "mean" else f"{kind} mean over clients" for kind in sorted(kinds))


def at_round(score_at: str) -> str:
    """Which round the scores are of, in words."""
    return _AT_ROUND[score_at]


def not_run(request: Request, row: Row, column: Column) -> str:
    """What stands in place of the numbers of a cell that has none: that it was not run, or that it diverged."""
    return request.selections[row.id, column.task].divergence or NOT_RUN


def status(request: Request, row: Row, column: Column) -> str:
    """What the long form says of a cell: whether it was run, and when its seeds diverged."""
    divergence = request.selections[row.id, column.task].divergence
    return ", ".join(filter(None, ("run" if request.records_of(row, column) else "", divergence))) or NOT_RUN


def divergence_notes(request: Request) -> Iterator[str]:
    """Which seeds of which cells diverged, and why."""
    for row, column in product(request.rows, request.columns):
        found = request.selections[row.id, column.task]
        for record in found.diverged:
            rest = ", which the mean over the others leaves out" if found.records else ""
            yield (
                f"{row.name}, {column.name}: seed {record.cell.seed} {record.divergence} of "
                f"{record.cell.training.last_round}{rest} ({record.diverged['reason']})."
            )


def _records(request: Request, column: Column) -> list[RunResult]:
    return [record for row in request.rows for record in request.records_of(row, column)]


def data_notes(request: Request, about: Iterable[str] = ()) -> Iterator[str]:
    """On what was computed what, what was left out, `about` single cells, and where the scale leaves the paper."""
    runs = {task for (_, task), found in request.selections.items() if found.is_run}
    missing = [column.name for column in request.columns if column.task not in runs]
    if missing:
        yield f"Not run: {', '.join(missing)}."
    for column in request.columns:
        data = [record.inputs["data"] for record in _records(request, column)]
        for note in dict.fromkeys(str(note) for entry in data for note in entry.get("notes", ())):
            yield f"Data of {column.name}: {note}."
        lists = [entry.get("skipped") or 0 for entry in data]  # of rows, or how many
        skipped = max((rows if isinstance(rows, int) else len(rows) for rows in lists), default=0)
        if skipped:
            yield f"Data of {column.name}: malformed rows skipped: {skipped}."
        yield from filter(None, (overlap_note(column.name, name, _records(request, column)) for name in _tests(column)))
    yield from _untuned_notes(request)
    yield from _selection_notes(request)
    yield from divergence_notes(request)
    yield from about
    for deviation in request.benchmark.deviations:
        if request.scale.id in deviation.scales:
            yield f"Deviation {deviation.id}: {deviation.text}"


def _untuned_notes(request: Request) -> Iterator[str]:
    """Which cells were run before their settings were chosen, where the scale's are to be."""
    for column in request.columns:
        open_rows = {row.id for row in request.benchmark.untuned(column, request.scale)}
        names = [row.name for row in request.rows if row.id in open_rows and request.records_of(row, column)]
        if names:
            yield f"{column.name}: run before settings were chosen by the scale's search: {', '.join(names)}."


def _tests(column: Column) -> list[str]:
    """The evaluations whose scores a column shows."""
    return list(dict.fromkeys(score.partition("/")[0] for score in column.scores))


def _selection_notes(request: Request) -> Iterator[str]:
    """What was left out, and what does not match."""
    older: dict[int, list[str]] = {}
    for column in request.columns:
        for version in {r.cell.engine_version for r in _records(request, column)} - {ENGINE_VERSION}:
            older.setdefault(version, []).append(column.name)
    for version, names in older.items():
        yield f"Computed by engine version {version} (this is {ENGINE_VERSION}): {', '.join(names)}."
    for column in request.columns:
        found = {(r.cell.backbone, *sorted(digests(r).items())): r for r in _records(request, column)}
        if not all(agree(*pair) for pair in combinations(found.values(), 2)):
            yield f"{column.name}: the methods ran on different data or weights: compare them with care."
        anew = [row.name for row in request.rows if _begun_anew(request.records_of(row, column))]
        if anew:
            these = ", ".join(anew)
            yield f"{column.name}: seeds begin from several trainings of one stage, on machines that differ: {these}."
        for row in request.rows:
            left_out = request.selections[row.id, column.task].left_out
            cell = f"{row.name}, {column.name}"
            if left_out:
                yield f"{cell}: records of other data or weights left out (the newest record decides): {left_out}."
            yield from _machine_notes(cell, request.records_of(row, column))


def _begun_anew(records: Sequence[RunResult]) -> bool:
    """Whether a stage from which they begin was trained more than once: its weights were no longer at hand."""
    begun = {(r.cell.initial.spec_id, r.inputs["initial"]["digest"]) for r in records if r.cell.initial is not None}
    return len(begun) > len({stage for stage, _ in begun})


def _machine_notes(cell: str, records: Sequence[RunResult]) -> Iterator[str]:
    """Which seeds of a cell were computed in which precision, on which kind of device, where they differ."""
    seeds: dict[tuple[str, ...], list[str]] = {}
    for record in records:
        seeds.setdefault(machine(record, "precision", "device"), []).append(str(record.cell.seed))
    if len(seeds) > 1:
        parts = "; ".join(
            f"seed{'s' if len(found) > 1 else ''} {', '.join(found)} in {precision} on {device}"
            for (precision, device), found in seeds.items()
        )
        yield f"{cell}: the mean is over seeds that were not computed alike: {parts}."
