"""The page of one record: what was run, what it reached and sent, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.measures import TRAIN_LOSS, metric
from benchmarks.results import POOLED, Find, RunResult, all_stages, run_bytes, stage_bytes
from benchmarks.run_config import JSON
from reports.evidence.scores import scores_of
from reports.evidence.traffic import carried
from reports.pages.text import NOTHING, human_bytes, human_seconds, number
from reports.site.addresses import cell_page, data_script
from reports.site.charts import SEEDS
from reports.site.material import Material, Place
from reports.site.tables import Entry, Sheet, compact, count, sheet, size
from reports.site.templates import rendered, script

MOST_SEEDS = 24  # that a page names next to its own
Fact = tuple[str, str, str]  # text, name, note
Pairs = list[tuple[str, str]]


def cell_pages(material: Material) -> Iterator[tuple[str, str]]:
    """A page a record, and a script of curves for all seeds of a cell."""
    written = set()
    for record in material.records:
        places = material.places.get(record.cell_id, ())
        every = places[0].records if places else (record,)
        has_curves = any(len(other.rounds) > 1 for other in every)
        data = data_script(f"seeds-{every[0].cell_id}")
        if has_curves and data not in written:
            written.add(data)
            yield data, script("seeds", _curves(every))
        yield cell_page(record.cell_id), _page(record, places, every, data if has_curves else "", material)


def _curves(every: Sequence[RunResult]) -> dict[str, object]:
    runs = [{"seed": record.cell.seed, "scores": _by_round(record)} for record in every]
    names = score_names(max(every, key=lambda record: len(record.rounds)))
    titles = {name: title_of(name) for name in names}
    return {"spec": SEEDS, "seeds": runs, "choices": {"panel": list(map(list, titles.items()))}, "titles": titles}


def _page(record: RunResult, places: Sequence[Place], every: Sequence[RunResult], data: str, material: Material) -> str:
    place = places[0] if places else None
    name = f"{place.row.name} on {place.column.name}" if place else f"{record.cell.algorithm} on {record.cell.task}"
    others = {own.request.benchmark.id: own for own in reversed(places) if own.request is not places[0].request}
    unused = record.partition.get("unused_share")
    words = f"{record.partition.get('scheme', 'unknown')}, {len(record.clients)} clients"
    nearest = sorted(every, key=lambda other: abs(other.cell.seed - record.cell.seed))[: MOST_SEEDS + 1]
    return rendered(
        "cell",
        cell_page(record.cell_id),
        title=f"{name}, seed {record.cell.seed}, scale {record.cell.scale}",
        here=place.request.benchmark.paper.id if place else "",
        material=material,
        record=record,
        place=place,
        others=list(reversed(others.values())),
        seeds=sorted((each.cell.seed, cell_page(each.cell_id)) for each in nearest),
        reached=list(_reached(record)),
        costs=list(_costs(record, material.find)),
        script=data,
        rounds=_rounds(record),
        clients=_clients(record),
        ledger=_ledger(record),
        partition=_partition(record),
        partition_words=words + ("" if unused is None else f"; {100 * unused:.1f} % of the data unused") + ".",
        command=_command(place, record) if place else "",
        details=_details(record),
    )


def score_names(record: RunResult) -> tuple[str, ...]:
    """Every score of a record ("test/f1", …): test first, then those of all clients together, then the loss."""
    if not record.rounds:
        return ()
    first = record.rounds[0]
    order = sorted(first.scores, key=lambda evaluation: (evaluation != "test", evaluation))
    names = [f"{evaluation}/{name}" for evaluation in order for name in first.scores[evaluation]]
    names += [f"{POOLED}/{name}" for name in first.pooled_scores.get("test", {})]
    return (*names, *([TRAIN_LOSS] if first.train_loss is not None else []))


def title_of(score: str) -> str:
    """A score in words: "F1, test", with its unit."""
    found, evaluation = metric(score), score.rpartition("/")[0]
    where = "test, all clients' examples together" if evaluation == POOLED else evaluation
    return ", ".join(filter(None, (found.label, where))) + (f" ({found.unit})" if found.unit else "")


def _by_round(record: RunResult) -> dict[str, list[float | None]]:
    """Score -> its value after every round, in its unit."""
    return {name: list(scores_of([record], name).shown[0]) for name in score_names(record)}


def _reached(record: RunResult) -> Iterator[Fact]:
    """The scores at the round that counts, with the test set's sampling error."""
    for name in score_names(record):
        if name != TRAIN_LOSS and not record.diverged:
            found = scores_of([record], name)
            value, error = found.at()[0], found.errors[0]
            text = "undefined" if value is None else compact(value, found.metric.unit)
            yield text, title_of(name), "" if error is None else f"± {number(error)} test set"


def _costs(record: RunResult, find: Find) -> Iterator[Fact]:
    """What the run sent, with the earlier runs from which it starts, and how long it took."""
    stage, whole = stage_bytes(record), run_bytes(record, find)
    for name, own, sent in zip(("uplink", "downlink"), stage, whole or stage, strict=True):
        note = "all rounds and clients"
        if whole is None:
            note += " of this stage; the record of an earlier run is missing"
        elif len(all_stages(record, find) or ()) > 1:
            note += f", with the earlier run from which it starts; {human_bytes(own)} in this stage"
        yield human_bytes(sent), name, note
    yield human_bytes(record.setup_bytes), "one-time model distribution", "once, in none of the others"
    rounds = f"of {record.cell.training.last_round}; chosen: {record.chosen_round}"
    yield str(len(record.rounds)), "rounds", rounds
    if "train_seconds" in record.timing:
        yield human_seconds(record.timing["train_seconds"]), "training", "wall time, beside other work"


def _ledger(record: RunResult) -> Sheet:
    """The ledger by direction and kind."""
    lines = (
        (
            "rounds" if each.round else "one-time distribution",
            "uplink" if each.direction == "up" else "downlink",
            each.kind,
            *(count(each.messages), count(each.values), size(each.bytes), count(each.bytes)),
        )
        for each in carried(record)
    )
    return sheet(("when", "direction", "kind", "messages", "values", "size", "bytes"), lines)


def _clients(record: RunResult) -> Sheet:
    """Each client: its examples, and its scores at the round that counts."""
    parts = list(dict.fromkeys(key for client in record.clients for key in client if key != "client"))
    scores = record.rounds[record.chosen_round - 1].client_scores if record.rounds and not record.diverged else ()
    names = [f"{evaluation}/{name}" for evaluation in (scores[0] if scores else {}) for name in scores[0][evaluation]]
    lines = []
    for place, client in enumerate(record.clients):
        sizes = [count(int(client[part])) if part in client else Entry(NOTHING) for part in parts]
        own: Mapping[str, Any] = scores[place] if place < len(scores) else {}
        split = [(metric(name), own.get(name.split("/")[0], {}).get(name.split("/")[1])) for name in names]
        shown = (
            Entry(NOTHING) if value is None else Entry(compact(by.shown(value), by.unit), repr(value))
            for by, value in split
        )
        lines.append((count(int(client["client"]) + 1), *sizes, *shown))
    return sheet(("client", *(f"{part} examples" for part in parts), *map(title_of, names)), lines)


def _rounds(record: RunResult) -> Sheet:
    """Every round: loss, scores, bytes."""
    values = {name: own for name, own in _by_round(record).items() if not name.startswith(f"{POOLED}/")}
    lines = (
        (
            *(count(entry.round), count(len(entry.cohort))),
            *(
                Entry(number(own[place], places=3), "" if own[place] is None else repr(own[place]))
                for own in values.values()
            ),
            *(size(entry.up_bytes), size(entry.down_bytes)),
        )
        for place, entry in enumerate(record.rounds)
    )
    return sheet(("round", "clients", *map(title_of, values), "up", "down"), lines)


def _partition(record: RunResult) -> Sheet | None:
    """Each client's examples by label, asked for and obtained; None if labels are not counted."""
    counts, labels = record.partition.get("obtained_counts"), record.partition.get("label_ids")
    if not counts or not labels:
        return None
    asked, lines = record.partition.get("requested_shares"), []
    for place, own in enumerate(counts):
        shares = [100 * each / (sum(own) or 1) for each in own]
        wanted = [f" (asked {100 * share:.1f})" for share in asked[place]] if asked else [""] * len(own)
        texts = (Entry(f"{share:.1f} %{text}", repr(share)) for share, text in zip(shares, wanted, strict=True))
        lines.append((count(place + 1), count(sum(own)), *texts))
    return sheet(("client", "examples", *(f"label {label}" for label in labels)), lines)


def _flat(value: JSON, before: str = "") -> Iterator[tuple[str, str]]:
    """A nested value's fields as "training.rounds" and their texts."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{before}.{name}" if before else str(name))
    elif isinstance(value, list | tuple) and any(isinstance(inner, Mapping) for inner in value):
        for place, inner in enumerate(value):
            yield from _flat(inner, f"{before}.{place}")
    else:
        yield before, "–" if value is None else str(value)


def _details(record: RunResult) -> dict[str, Pairs]:
    """The run's settings, what identifies it, and where it ran."""
    identity = [("cell_id", record.cell_id), ("definition_id", record.cell.definition_id)]
    identity += [(f"inputs.{name}.digest", str(entry["digest"])) for name, entry in record.inputs.items()]
    for name, entry in record.inputs.items():
        identity += _flat(entry.get("origin"), f"inputs.{name}.origin")
    if record.predictions:
        identity.append(("predictions.sha256", str(record.predictions["sha256"])))
    identity += [("schema", str(record.schema)), ("finished", record.finished)]
    timing = [(f"timing.{name}", f"{value:g}") for name, value in record.timing.items()]
    surroundings = [*_flat(record.environment), *timing]
    return {"Settings": list(_flat(record.cell.to_json())), "Digests": identity, "Environment": surroundings}


def _command(place: Place, record: RunResult) -> str:
    """What computes this record again, if it is not finished."""
    words = ["python", "-m", "benchmarks", "run", place.request.benchmark.id, "--scale", record.cell.scale]
    words += ["--tasks", place.column.task, "--methods", place.row.id, "--seed", str(record.cell.seed)]
    return shlex.join(words)
