"""The texts of a page: numbers, names and units, and the notes under tables."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import combinations, product

from benchmarks.costs import byte_unit
from benchmarks.encoders.backbones import note_of
from benchmarks.experiment import Column, Row
from benchmarks.measures import metric
from benchmarks.results import RunResult
from benchmarks.run_config import ENGINE_VERSION
from fedsim.errors import plural
from reports.evidence.gate import gates, home, levels
from reports.evidence.records import DAGGER, Request, agree, digests, machine
from reports.evidence.scores import LATE_ROUNDS, is_trained, score_label, unit_of
from reports.evidence.statistics import printed
from reports.pages.page import deviation_note

DERIVED = "≈"  # marks a number that the paper does not print, but that follows from its text
NOTHING = "–"
NOT_RUN = "not run"
UNDEFINED = "undefined"
MEASURED, REPORTED = "measured", "reported"  # our number, and the number that the paper prints or implies
_NUMBERS = ("one", "two", "three")
_LISTED = 10  # largest number of clients that a note lists one by one
ONE_TIME = ("one-time model", "distribution")  # header for the bytes before the first round
_LEVEL = {
    "demo": "generated data and a tiny model show the machinery; never compared with a paper's numbers",
    "lite": "small encoder: compare rankings, not score levels, with the paper",
    "paper": "reported values are the published ones",
}
AT_ROUND = {  # the scored round -> its words; of late rounds: `at_round`
    "chosen": "at the round that is best on validation data (the last one where a run held none back)",
    "last": "at the last round",
    "best": "at the best round, chosen on the test score itself",
}


def at_round(request: Request, at: str = "") -> str:
    """The scored round in words; of late rounds, the number that the runs have. at: "" for the request's round."""
    at = at or request.scored_at
    if at != "late":
        return AT_ROUND[at]
    records = [record for cell in product(request.rows, request.columns) for record in request.records_of(*cell)]
    trained = [record for record in records if is_trained(record)]
    counts = {min(len(record.rounds), LATE_ROUNDS) for record in trained or records} or {LATE_ROUNDS}
    if counts == {1}:
        return AT_ROUND["last"]
    number = " to ".join(_NUMBERS[count - 1] for count in sorted({min(counts), max(counts)}))
    return f"in the mean of the last {number} rounds"


def dagger_note(request: Request, rows: Sequence[Row] | None = None) -> str:
    """The meaning of the dagger, if one of the rows has it; rows: all of the request's by default."""
    names = map(request.name_of, request.rows if rows is None else rows)
    return f" {DAGGER} not a row of the paper's table." if any(DAGGER in name for name in names) else ""


def marked(text: str, is_derived: bool) -> str:
    """A text with a mark if its number is derived; a dash stays a dash."""
    return f"{DERIVED} {text}" if is_derived and text != NOTHING else text


def human_bytes(count: float, gigabyte: int = 10**9) -> str:
    """Bytes in readable units."""
    size, name = byte_unit(count, gigabyte)
    return f"{count:.0f} B" if size == 1 else f"{printed(count / size)} {name}"


def in_one_unit(sizes: Sequence[float], gigabyte: int = 10**9, places: int = 2) -> list[str]:
    """Bytes of one comparison in the largest one's unit, with at least two digits.

    A number below a ten-thousandth of the unit, such as a few labels next to a model, has its own unit.
    """
    size, name = byte_unit(max(sizes, default=0) / 10, gigabyte)

    def text(count: float) -> str:
        if size == 1 or count < size / 10_000:
            return human_bytes(count, gigabyte)
        return f"{printed(count / size, places=max(places, 1 - math.floor(math.log10(count / size))))} {name}"

    return list(map(text, sizes))


def human_seconds(seconds: float) -> str:
    """A duration in readable units."""
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.1f} s"


def number(value: float | Decimal | None, sign: str = "", places: int = 2) -> str:
    """A number with the given decimals; a dash for None."""
    return NOTHING if value is None else f"{printed(value, places=places):{sign}}".replace("-", "−")


def with_interval(
    value: float | None, interval: Sequence[float] | None, sign: str = "", places: int = 2, between: str = " "
) -> str:
    """A number followed by its interval, if it has one."""
    return number(value, sign, places) + (f"{between}{in_brackets(interval, sign, places)}" if interval else "")


def compared(value: float, interval: Sequence[float]) -> str:
    """A difference in points, in words: "1.0 points better", or that it is not measurable."""
    is_measurable = interval[0] > 0 or interval[1] < 0
    by = f"{number(abs(value), places=1)} points {'better' if value > 0 else 'worse'}"
    return by if is_measurable else "not measurably better or worse"


def in_brackets(interval: Sequence[float] | None, sign: str = "", places: int = 2) -> str:
    """An interval in brackets; a dash for None."""
    return f"[{', '.join(number(end, sign, places) for end in interval)}]" if interval else NOTHING


def joined(texts: Iterable[str]) -> str:
    """The texts of a cell's numbers as a paper prints them, a/b; one dash without any number."""
    numbers = list(texts)
    return NOTHING if set(numbers) == {NOTHING} else "/".join(numbers)


def with_unit(name: str, unit: str) -> str:
    """A name with its unit, if any: "Acc (%)"."""
    return f"{name} ({unit})" if unit else name


def span(counts: Collection[int], between: str = " to ") -> str:
    """The smallest and the largest number: "2 to 5"; one number if they are equal."""
    return between.join(dict.fromkeys((str(min(counts)), str(max(counts)))))


def seed_counts(counts: Iterable[int]) -> str:
    """Numbers of seeds for a caption: " (n = 2 to 5)"; "" without runs."""
    seeds = [count for count in counts if count]
    return f" (n = {span(seeds)})" if seeds else ""


def scale_note(request: Request) -> str:
    """The scale, and with which numbers it is comparable."""
    scale = request.scale
    return f"{scale.id.capitalize()} scale: {request.label}; {_LEVEL.get(scale.id, _LEVEL['lite'])}."


def in_units(columns: Sequence[Column]) -> str:
    """The unit of the columns' scores: " in percent", naming scores that are plain numbers; or ""."""
    plain = [f"{column.name} {score_label(column, column.averaged)}" for column in columns if not unit_of([column])]
    if len(plain) == len(columns):
        return ""
    return " in percent" + (f" ({', '.join(plain)}: plain)" if plain else "")


def over_clients(columns: Sequence[Column]) -> str:
    """How clients' scores are averaged: "mean over clients", or geometric for some metrics."""
    kinds = {metric(column.averaged).over_clients for column in columns}
    return " or ".join("mean over clients" if kind == "mean" else f"{kind} mean over clients" for kind in sorted(kinds))


def not_run(request: Request, row: Row, column: Column) -> str:
    """The text for a cell without numbers: not run, or diverged; a dash if it needs no run."""
    if row.corrects:
        return NOTHING
    return request.selections[row.id, column.task].divergence or NOT_RUN


def status(request: Request, row: Row, column: Column) -> str:
    """A cell's status in the long form: whether it was run, and when its seeds diverged."""
    divergence = request.selections[row.id, column.task].divergence
    return ", ".join(filter(None, ("run" if request.records_of(row, column) else "", divergence))) or NOT_RUN


# ---- notes ---------------------------------------------------------------------------------------------------------


def notes_under(
    request: Request, method: Iterable[str] = (), published: Iterable[str] = (), cells: Iterable[str] = ()
) -> Iterator[str]:
    """The notes under any table: the scale, the method, the rows, the evidence, the data, the deviations.

    Args:
        request: The table's rows, columns and records.
        method: How the view's numbers were obtained.
        published: Notes about published values.
        cells: Notes about single cells.
    """
    yield scale_note(request)
    records = (record for cell in product(request.rows, request.columns) for record in request.records_of(*cell))
    yield from filter(None, dict.fromkeys(note_of(record.cell.backbone) for record in records))
    yield from method
    if dagger := dagger_note(request).strip():
        yield dagger
    yield from (f"{row.name}: {row.note}" for row in request.rows if row.note)
    yield from published
    yield from _evidence_notes(request)
    yield from data_notes(request, cells)


def _evidence_notes(request: Request) -> Iterator[str]:
    """The columns whose rankings count, and do not count, as evidence, and how well the encoder learns."""
    names, reference = {column.task: column.name for column in request.columns}, home(request.benchmark).yardstick
    for yardstick in {
        each.of: each for each in (reference, *(row.yardstick or reference for row in request.rows))
    }.values():
        by_reason: dict[str, list[str]] = {}
        for task, gate in gates(request, yardstick).items():
            by_reason.setdefault(gate.why, []).append(names[task])
        for why, columns in sorted(by_reason.items(), key=lambda entry: bool(entry[0])):
            count = "do not count" if why else "count"
            reason = why or yardstick.learns
            yield f"Rankings{yardstick.of} {count} as evidence on {', '.join(columns)}: {reason}."
    parts = [
        f"{names[task]} {metric(score).label} {number(measured, places=1)} ({number(reported, places=1)}; n = {n})"
        for task, (score, measured, reported, n) in levels(request).items()
    ]
    if parts and request.scale.elsewhere:
        yield f"Scores of {reference.name}: {', '.join(parts)}. In brackets: {request.scale.elsewhere.of}."


def data_notes(request: Request, cells: Iterable[str] = ()) -> Iterator[str]:
    """Notes about each column's data, settings and machines, and the scale's deviations from the paper.

    cells: the view's own notes about single cells.
    """
    missing = [column.name for column in request.columns if column not in request.columns_run]
    if missing:
        yield f"Not run: {', '.join(missing)}."
    for column in request.columns:
        yield from _column_notes(request, column)
        yield from _record_notes(request, column)
    yield from _machine_notes(request)
    yield from cells
    for deviation in request.benchmark.deviations:
        if request.scale.id in deviation.scales:
            yield deviation_note(deviation)


def skipped_note(column: Column, records: Iterable[RunResult]) -> Iterator[str]:
    """The number of malformed rows that `--lenient` skipped, if any, with their lines and the examples left."""
    counts = dict[str, None]()
    for record in records:
        data = record.inputs["data"]
        skipped = data.get("skipped") or 0  # rows, or how many
        if rows := skipped if isinstance(skipped, int) else len(skipped):
            lines = f" ({data['skipped_lines']} lines)" if "skipped_lines" in data else ""
            counts[f"{rows}{lines}; {plural(data['examples'], 'example')} left"] = None
    yield from (f"Data of {column.name}: malformed rows skipped: {count}." for count in counts)


def _column_notes(request: Request, column: Column) -> Iterator[str]:
    """Notes about a column's data, splits and settings, and its cells' records."""
    by_row = [(row, request.records_of(row, column)) for row in request.rows]
    records = [record for _, runs in by_row for record in runs]
    data = [record.inputs["data"] for record in records]
    for note in dict.fromkeys(str(note) for entry in data for note in entry.get("notes", ())):
        yield f"Data of {column.name}: {note}."
    yield from skipped_note(column, records)
    drawn = dict.fromkeys(", ".join(record.inputs["backbone"].get("drawn", ())) for record in records)
    if parts := "; ".join(filter(None, drawn)):
        yield f"{column.name}: drawn at random, not read from the encoder's files: {parts}."
    yield from _cut_note(column.name, "train", records)
    for evaluation in dict.fromkeys(score.partition("/")[0] for score in column.scores):
        yield from _overlap_note(column.name, evaluation, records)
        yield from _cut_note(column.name, evaluation, records)
    open_rows = {row.id for row in request.benchmark.untuned(column, request.scale)}
    if names := [row.name for row, runs in by_row if row.id in open_rows and runs]:
        yield f"{column.name}: run before settings were chosen by the scale's search: {', '.join(names)}."
    inputs = {(record.cell.backbone, *sorted(digests(record).items())): record for record in records}
    if not all(agree(*pair) for pair in combinations(inputs.values(), 2)):
        yield f"{column.name}: the methods ran on different data or weights: compare them with care."
    if names := [row.name for row, runs in by_row if _is_retrained(runs)]:
        rows = ", ".join(names)
        yield f"{column.name}: seeds start from different parent runs of one definition, on different machines: {rows}."
    if versions := sorted({record.cell.engine_version for record in records} - {ENGINE_VERSION}):
        older = ", ".join(map(str, versions))
        yield f"{column.name}: computed by engine version {older} (this is {ENGINE_VERSION})."


def _record_notes(request: Request, column: Column) -> Iterator[str]:
    """The records of a column's cells that were left out, and the seeds that diverged."""
    for row in request.rows:
        selection, cell = request.selections[row.id, column.task], f"{row.name}, {column.name}"
        if selection.left_out:
            rule = "the newest record decides"
            yield f"{cell}: records of other data, weights or methods left out ({rule}): {selection.left_out}."
        for record in selection.diverged:
            rest = ", left out of the mean over the others" if selection.records else ""
            last, reason = record.cell.training.last_round, record.diverged["reason"]
            yield f"{cell}: seed {record.cell.seed} {record.divergence} of {last}{rest} ({reason})."


def _overlap_note(name: str, evaluation: str, records: Sequence[RunResult]) -> Iterator[str]:
    """The number of scored examples that share their first text with a training example, over records that have it.

    A record's `partition["overlap"][evaluation]` holds numbers of examples: "examples" that are scored, "shared" with
    the first text of an example on which some client trains, and "opposite", those whose text has mostly another label
    in training (None for scores).
    """
    entries = [entry for record in records if (entry := record.partition.get("overlap", {}).get(evaluation))]
    if entries:
        examples, shared = (sum(int(entry[key]) for entry in entries) for key in ("examples", "shared"))
        share, rest = 100 * shared / examples, ""
        if all(entry["opposite"] is not None for entry in entries):
            opposite = 100 * sum(int(entry["opposite"]) for entry in entries) / shared
            rest = f"; in {opposite:.1f} % of these cases most training examples with that text have a different label"
        said = f"{share:.1f} % of the {evaluation} examples have the first text of a training example{rest}"
        yield f"{name}: {said}. The setting grouped = true keeps such examples on one side."


def _cut_note(name: str, part: str, records: Sequence[RunResult]) -> Iterator[str]:
    """The number of truncated texts of a part, in total and by client, in the first seed's run that has any.

    A record's `partition["cut"][part]` has a number of texts for each client, or one number for a central set.
    """
    with_cuts = [record for record in records if part in record.partition.get("cut", {})]
    if with_cuts:
        record = min(with_cuts, key=lambda record: record.cell.seed)
        counts = record.partition["cut"][part]
        texts = sum(int(client[part]) for client in record.clients[: len(counts)])
        by_client = ", ".join(map(str, counts)) if len(counts) <= _LISTED else f"{min(counts)} to {max(counts)}"
        yield (
            f"{name}: {sum(counts)} of {texts} {part} texts were cut to {record.cell.training.max_length} tokens "
            f"(seed {record.cell.seed}{f'; by client: {by_client}' if len(counts) > 1 else ''})."
        )


def _is_retrained(records: Sequence[RunResult]) -> bool:
    """Whether these runs' parent run was trained more than once."""
    stages = {(r.cell.initial.spec_id, r.inputs["initial"]["digest"]) for r in records if r.cell.initial is not None}
    return len(stages) > len({stage for stage, _ in stages})


def _machine_notes(request: Request) -> Iterator[str]:
    """Cells whose seeds were computed in several precisions or on several devices, in one note for all of them."""
    mixed: dict[str, list[str]] = {}
    for row, column in product(request.rows, request.columns):
        groups: dict[tuple[str, ...], list[str]] = {}
        for record in request.records_of(row, column):
            groups.setdefault(machine(record, "precision", "device"), []).append(str(record.cell.seed))
        if len(groups) > 1:
            kinds = (f"{precision} on {device} ({', '.join(seeds)})" for (precision, device), seeds in groups.items())
            mixed.setdefault("; ".join(kinds), []).append(f"{row.name} on {column.name}")
    for machines, cells in mixed.items():
        yield f"Seeds were computed on different machines (seeds in brackets): {machines}: {', '.join(cells)}."
