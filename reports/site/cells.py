"""The page of one record: what the cell was, found and sent, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.measures import TRAIN_LOSS, metric
from benchmarks.results import POOLED, RunResult
from benchmarks.run_config import JSON
from reports.evidence.scores import scores_of
from reports.evidence.traffic import carried
from reports.pages.text import NOTHING, human_bytes, human_seconds, number
from reports.site.addresses import cell_page
from reports.site.material import Place
from reports.site.tables import compact

MOST_SEEDS = 24  # that a page names beside its own


@dataclass(frozen=True)
class Fact:
    """A name and what stands behind it."""

    name: str
    text: str
    note: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table of plain texts, with what each is sorted by."""

    headers: tuple[str, ...]
    lines: tuple[tuple[tuple[str, str], ...], ...]  # (text, sort key)


def score_names(record: RunResult) -> tuple[str, ...]:
    """Every score of a record ("test/f1", …), test first and those of all clients together last; the training loss."""
    if not record.rounds:
        return ()
    first = record.rounds[0]
    order = sorted(first.scores, key=lambda evaluation: (evaluation != "test", evaluation))
    names = [f"{evaluation}/{name}" for evaluation in order for name in first.scores[evaluation]]
    names += [f"{POOLED}/{name}" for name in first.pooled_scores.get("test", {})]
    return (*names, *([TRAIN_LOSS] if first.train_loss is not None else []))


def title_of(score: str) -> str:
    """A score in words: "F1, test", with its unit."""
    found = metric(score)
    evaluation = score.rpartition("/")[0]
    where = "test, all clients' examples together" if evaluation == POOLED else evaluation
    return ", ".join(filter(None, (found.label, where))) + (f" ({found.unit})" if found.unit else "")


def by_round(record: RunResult) -> dict[str, list[float | None]]:
    """Score -> its value after every round, in its unit."""
    return {name: list(scores_of([record], name).shown[0]) for name in score_names(record)}


def reached(record: RunResult) -> Iterator[Fact]:
    """What it reached at the round that counts, with the test set's sampling error."""
    for name in score_names(record):
        if name == TRAIN_LOSS or record.diverged:
            continue
        found = scores_of([record], name)
        value, error = found.at()[0], found.errors[0]
        text = "undefined" if value is None else compact(value, found.metric.unit)
        yield Fact(title_of(name), text, "" if error is None else f"± {number(error)} test set")


def cost_facts(record: RunResult) -> Iterator[Fact]:
    """What it sent and how long it took."""
    found = carried(record)
    for way, name in (("up", "uplink"), ("down", "downlink")):
        size = sum(each.bytes for each in found if each.direction == way and not each.is_setup)
        yield Fact(name, human_bytes(size), "all rounds and clients")
    yield Fact("one-time model distribution", human_bytes(record.setup_bytes), "once, in none of the others")
    yield Fact(
        "rounds", str(len(record.rounds)), f"of {record.cell.training.last_round}; chosen: {record.chosen_round}"
    )
    if "train_seconds" in record.timing:
        yield Fact("training", human_seconds(record.timing["train_seconds"]), "wall time, beside other work")


def ledger_sheet(record: RunResult) -> Sheet:
    """The ledger by direction and kind."""
    lines = tuple(
        (
            ("one-time distribution" if each.is_setup else "rounds", ""),
            ("uplink" if each.direction == "up" else "downlink", ""),
            (each.kind, ""),
            _count(each.messages),
            _count(each.values),
            (human_bytes(each.bytes), str(each.bytes)),
            _count(each.bytes),
        )
        for each in carried(record)
    )
    return Sheet(("when", "direction", "kind", "messages", "values", "size", "bytes"), lines)


def _count(value: int) -> tuple[str, str]:
    return f"{value:,}".replace(",", "\u202f"), str(value)


def clients_sheet(record: RunResult) -> Sheet:
    """Each client: its examples, and its scores at the round that counts."""
    parts = list(dict.fromkeys(key for client in record.clients for key in client if key != "client"))
    scores = record.rounds[record.chosen_round - 1].client_scores if record.rounds and not record.diverged else ()
    names = [f"{evaluation}/{name}" for evaluation in (scores[0] if scores else {}) for name in scores[0][evaluation]]
    lines = []
    for place, client in enumerate(record.clients):
        cells = [(str(int(client["client"]) + 1), str(client["client"]))]
        cells += [_count(int(client[part])) if part in client else (NOTHING, "") for part in parts]
        for name in names:
            evaluation, measured = name.split("/")
            value = scores[place].get(evaluation, {}).get(measured) if place < len(scores) else None
            cells.append(_shown(name, value))
        lines.append(tuple(cells))
    return Sheet(("client", *(f"{part} examples" for part in parts), *map(title_of, names)), tuple(lines))


def _shown(score: str, value: float | None) -> tuple[str, str]:
    if value is None:
        return NOTHING, ""
    found = metric(score)
    return compact(found.shown(value), found.unit), repr(value)


def rounds_sheet(record: RunResult) -> Sheet:
    """Every round: loss, scores, bytes."""
    found = by_round(record)
    names = [name for name in found if not name.startswith(f"{POOLED}/")]
    lines = []
    for place, entry in enumerate(record.rounds):
        cells = [(str(entry.round), str(entry.round)), (str(len(entry.cohort)), str(len(entry.cohort)))]
        for name in names:
            value = found[name][place]
            cells.append((NOTHING, "") if value is None else (number(value, places=3), repr(value)))
        cells += [(human_bytes(size), str(size)) for size in (entry.up_bytes, entry.down_bytes)]
        lines.append(tuple(cells))
    return Sheet(("round", "clients", *map(title_of, names), "up", "down"), tuple(lines))


def partition_sheet(record: RunResult) -> Sheet | None:
    """Who holds what: each client's examples by label, asked for and obtained; None where labels are not counted."""
    counts, labels = record.partition.get("obtained_counts"), record.partition.get("label_ids")
    if not counts or not labels:
        return None
    asked = record.partition.get("requested_shares")
    lines = []
    for place, own in enumerate(counts):
        total = sum(own) or 1
        cells = [(str(place + 1), str(place)), _count(sum(own))]
        for label, count in enumerate(own):
            share = 100 * count / total
            wanted = f" (asked {100 * asked[place][label]:.1f})" if asked else ""
            cells.append((f"{share:.1f} %{wanted}", repr(share)))
        lines.append(tuple(cells))
    return Sheet(("client", "examples", *(f"label {label}" for label in labels)), tuple(lines))


def flat(value: JSON, before: str = "") -> Iterator[tuple[str, str]]:
    """A nested value's fields as "training.rounds" and their texts."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from flat(inner, f"{before}.{name}" if before else str(name))
    elif isinstance(value, list | tuple) and any(isinstance(inner, Mapping) for inner in value):
        for place, inner in enumerate(value):
            yield from flat(inner, f"{before}.{place}")
    else:
        yield before, "–" if value is None else str(value)


def settings(record: RunResult) -> list[tuple[str, str]]:
    """Every field of the cell, with those of the cell that it begins from."""
    return list(flat(record.cell.to_json()))


def identity(record: RunResult) -> list[tuple[str, str]]:
    """Ids and digests: what the record is known by."""
    found = [("cell_id", record.cell_id), ("definition_id", record.cell.definition_id)]
    found += [(f"inputs.{name}.digest", str(entry["digest"])) for name, entry in record.inputs.items()]
    found += [
        (f"inputs.{name}.origin{'.' if key else ''}{key}", text)
        for name, entry in record.inputs.items()
        for key, text in flat(entry.get("origin"))
    ]
    if record.predictions:
        found.append(("predictions.sha256", str(record.predictions["sha256"])))
    return [*found, ("schema", str(record.schema)), ("finished", record.finished)]


def surroundings(record: RunResult) -> list[tuple[str, str]]:
    """Where and on what it ran, and what was timed."""
    timing = ((f"timing.{name}", f"{value:g}") for name, value in record.timing.items())
    return [*flat(record.environment), *timing]


def command(place: Place, record: RunResult) -> str:
    """What computes this record again, where it is not finished."""
    words = ["python", "-m", "benchmarks", "run", place.request.benchmark.id, "--scale", record.cell.scale]
    words += ["--tasks", place.column.task, "--methods", place.row.id, "--seed", str(record.cell.seed)]
    return shlex.join(words)


def seeds_beside(record: RunResult, every: Sequence[RunResult]) -> list[tuple[int, str]]:
    """(seed, page) of the nearest other seeds and this one, in their order."""
    nearest = sorted(every, key=lambda other: abs(other.cell.seed - record.cell.seed))[: MOST_SEEDS + 1]
    return [(each.cell.seed, cell_page(each.cell_id)) for each in sorted(nearest, key=lambda each: each.cell.seed)]
