"""The page of one record: its definition, scores, bytes, and the command that repeats it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.measures import TRAIN_LOSS, metric
from benchmarks.results import POOLED, Find, RunResult, all_stages, run_bytes, stage_bytes
from reports.evidence.records import is_partial
from reports.evidence.scores import scores_of
from reports.evidence.traffic import carried
from reports.pages.text import NOTHING, human_bytes, human_seconds, number, with_unit
from reports.site import html
from reports.site.charts import LINES, Chart, chart_of
from reports.site.site_data import CellInTable, SiteData

MOST_SEEDS = 24  # that a page names next to its own
Shown = tuple[str, str, str]  # text, name, note


def cell_pages(site: SiteData) -> Iterator[tuple[str, str]]:
    """One page per record, and one script with the curves of all seeds per cell."""
    written = set()
    for record in site.records:
        places = site.places.get(record.cell_id, ())
        every = places[0].records if places else (record,)
        has_curves = any(len(other.rounds) > 1 for other in every)
        data = f"data/seeds-{every[0].cell_id}.js"
        if has_curves and data not in written:
            written.add(data)
            yield data, html.script("seeds", _curves(every))
        yield html.cell_page(record.cell_id), _page(record, places, every, data if has_curves else "", site)


def _curves(every: Sequence[RunResult]) -> Chart:
    """Every score after each round, one line per seed; the page highlights its own."""
    names = score_names(max(every, key=lambda record: len(record.rounds)))
    values = [
        {"panel": name, "method": f"seed {record.cell.seed}", "round": place, "value": value, "ours": True}
        for record in every
        for name, scores in _by_round(record).items()
        for place, value in enumerate(scores, start=1)
        if value is not None
    ]
    titles = {name: title_of(name) for name in names}
    return chart_of(LINES, values, list(titles.items()), titles=titles)


def _page(
    record: RunResult, places: Sequence[CellInTable], every: Sequence[RunResult], data: str, site: SiteData
) -> str:
    place, cell = (places[0] if places else None), record.cell
    name = f"{place.row.name} on {place.column.name}" if place else f"{cell.algorithm} on {cell.task}"
    others = {at.request.benchmark.id: at.request for at in places if at.request is not places[0].request}
    unused = record.partition.get("unused_share")
    split = f"{record.partition.get('scheme', 'unknown')}, {len(record.clients)} clients"
    nearest = sorted(every, key=lambda other: abs(other.cell.seed - cell.seed))[: MOST_SEEDS + 1]
    return html.rendered(
        "cell",
        html.cell_page(record.cell_id),
        title=f"{name}, seed {cell.seed}, scale {cell.scale}",
        name=name,
        here=place.request.benchmark.paper.id if place else "",
        site=site,
        record=record,
        place=place,
        others=list(others.values()),
        seeds=sorted((each.cell.seed, html.cell_page(each.cell_id)) for each in nearest),
        reached=list(_reached(record)),
        costs=list(_costs(record, site.find)),
        script=data,
        rounds=_rounds(record),
        clients=_clients(record),
        ledger=_ledger(record),
        split=split + ("" if unused is None else f"; {100 * unused:.1f} % of the data unused") + ".",
        command=_command(place, record, site) if place else "",
        digest=str(record.inputs["data"]["digest"]),
        commit=str(record.environment.get("revision") or ""),
        details=_details(record),
    )


def score_names(record: RunResult) -> tuple[str, ...]:
    """Every score of a record ("test/f1", …): test first, then those of all clients together, then the loss."""
    if not record.rounds:
        return ()
    first = record.rounds[0]
    order = sorted(first.scores, key=lambda evaluation: (evaluation != "test", evaluation))
    names = [f"{evaluation}/{name}" for evaluation in order for name in first.scores[evaluation]]
    names += [f"test/{name}" for name in first.of_clients.get("test", ())]
    names += [f"{POOLED}/{name}" for name in first.pooled_scores.get("test", {})]
    return (*names, *([TRAIN_LOSS] if first.train_loss is not None else []))


def title_of(score: str) -> str:
    """A score's title, such as "F1, test", with its unit."""
    measure, evaluation = metric(score), score.rpartition("/")[0]
    where = "test, all clients' examples together" if evaluation == POOLED else evaluation
    return with_unit(", ".join(filter(None, (measure.label, where))), measure.unit)


def _by_round(record: RunResult) -> dict[str, list[float | None]]:
    """Score -> its value after every round, in its unit."""
    return {name: list(scores_of([record], name).shown[0]) for name in score_names(record)}


def _reached(record: RunResult) -> Iterator[Shown]:
    """The scores in the scored round, with the test set's sampling error."""
    for name in score_names(record):
        if name != TRAIN_LOSS and not record.diverged:
            scores = scores_of([record], name)
            value, error = scores.at()[0], scores.errors[0]
            text = "undefined" if value is None else html.compact(value, scores.metric.unit)
            yield text, title_of(name), "" if error is None else f"± {number(error)} test set"


def _costs(record: RunResult, find: Find) -> Iterator[Shown]:
    """The bytes and time of the run, including its parent runs."""
    stage, whole = stage_bytes(record), run_bytes(record, find)
    for name, stage_size, sent in zip(("uplink", "downlink"), stage, whole or stage, strict=True):
        note = "all rounds and clients"
        if whole is None:
            note += " of this stage; the record of a parent run is missing"
        elif len(all_stages(record, find) or ()) > 1:
            note += f", with the parent run from which it starts; {human_bytes(stage_size)} in this stage"
        yield human_bytes(sent), name, note
    yield human_bytes(record.setup_bytes), "one-time model distribution", "once, not in the other numbers"
    rounds = f"of {record.cell.training.last_round}; chosen: {record.chosen_round}"
    yield str(len(record.rounds)), "rounds", rounds
    if "train_seconds" in record.timing:
        yield human_seconds(record.timing["train_seconds"]), "training", "wall time on a shared machine"


def _ledger(record: RunResult) -> html.Sheet:
    """The ledger by direction and kind."""
    lines = (
        (
            "rounds" if each.round else "one-time distribution",
            "uplink" if each.direction == "up" else "downlink",
            each.kind,
            *(html.count(each.messages), html.count(each.values), html.size(each.bytes), html.count(each.bytes)),
        )
        for each in carried(record)
    )
    return html.sheet(("when", "direction", "kind", "messages", "values", "size", "bytes"), lines)


def _clients(record: RunResult) -> html.Sheet:
    """Each client's examples, label distribution, and scores in the scored round."""
    parts = list(dict.fromkeys(key for client in record.clients for key in client if key != "client"))
    scores = record.rounds[record.chosen_round - 1].client_scores if record.rounds and not record.diverged else ()
    names = [(part, name) for part, values in (scores[0] if scores else {}).items() for name in values]
    counts, requested = (record.partition.get(name) or () for name in ("obtained_counts", "requested_shares"))
    labels = (record.partition.get("label_ids") or ()) if counts else ()
    lines = []
    for place, client in enumerate(record.clients):
        sizes = [html.count(int(client[part])) if part in client else html.Entry(NOTHING) for part in parts]
        shares = [100 * each / (sum(counts[place]) or 1) for each in counts[place]] if labels else []
        notes = [f"requested {100 * share:.1f}" for share in requested[place]] if requested else [""] * len(shares)
        split = [
            html.Entry(f"{share:.1f} %", repr(share), note=note) for share, note in zip(shares, notes, strict=True)
        ]
        reached: Mapping[str, Any] = scores[place] if place < len(scores) else {}
        shown = (html.scored(f"{part}/{name}", reached.get(part, {}).get(name)) for part, name in names)
        lines.append((html.count(int(client["client"]) + 1), *sizes, *split, *shown))
    headers = [*(f"{part} examples" for part in parts), *(f"label {label}" for label in labels)]
    headers += [title_of(f"{part}/{name}") for part, name in names]
    return html.sheet(("client", *headers), lines)


def _rounds(record: RunResult) -> html.Sheet:
    """Every round: loss, scores, bytes."""
    values = {name: scores for name, scores in _by_round(record).items() if not name.startswith(f"{POOLED}/")}
    lines = []
    for place, entry in enumerate(record.rounds):
        reached = (scores[place] for scores in values.values())
        shown = (html.Entry(number(value, places=3), "" if value is None else repr(value)) for value in reached)
        sizes = html.size(entry.up_bytes), html.size(entry.down_bytes)
        lines.append((html.count(entry.round), html.count(len(entry.cohort)), *shown, *sizes))
    return html.sheet(("round", "clients", *map(title_of, values), "up", "down"), lines)


def _details(record: RunResult) -> dict[str, str]:
    """The run's settings, inputs and machine, as in its file."""
    parts = {
        "Settings": record.cell.to_json(),
        "Inputs": dict(record.inputs),
        "Environment": {**record.environment, "timing": dict(record.timing), "finished": record.finished},
    }
    return {name: json.dumps(part, indent=1, ensure_ascii=False, default=dict) for name, part in parts.items()}


def _command(place: CellInTable, record: RunResult, site: SiteData) -> str:
    """The command that computes this record again."""
    command = ["python", "-m", "benchmarks", "run", place.request.benchmark.id, "--scale", record.cell.scale]
    command += ["--tasks", place.column.task, "--methods", place.row.id, "--seed", str(record.cell.seed)]
    command += [word for folder in site.included.get(place.request.benchmark.id, ()) for word in ("--include", folder)]
    command += ["--data-dir", "/data"] if str(record.inputs["data"].get("origin")).startswith("folder") else []
    command += ["--lenient"] if record.inputs["data"].get("skipped") or is_partial(record) else []
    return shlex.join(command)
