"""What MLflow is told of a cell: parameters, tags and metrics, as plain values cut to MLflow's limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from benchmarks.record import POOLED, RoundRecord, RunRecord
from benchmarks.spec import JSON, Cell, canonical_json
from benchmarks.tracking.shown import About, Shown, table_values
from benchmarks.tracking.views import REFERENCE

# Limits of MLflow's REST API; longer texts are refused, not cut, by some of its servers.
MAX_KEY_LENGTH = 250
MAX_PARAM_LENGTH = 6000
MAX_TAG_LENGTH = 8000

Scores = Mapping[str, Mapping[str, float | None]]
Points = dict[tuple[str, int], float]  # (metric, step) -> value; the step is the round


def params(cell: Cell, shown: Shown) -> dict[str, str]:
    """The method, and all fields of a cell, nested ones with dots: `training.rounds`, `options.critical_layer`."""
    fields = {key(name): cut(_text(value), MAX_PARAM_LENGTH) for name, value in _flat(cell.to_json())}
    return {"method": cut(method(cell, shown), MAX_PARAM_LENGTH), **fields}


def method(cell: Cell, shown: Shown) -> str:
    """How people call what a cell runs."""
    return shown.method or cell.algorithm


def cell_tags(cell: Cell, cell_id: str, table: str, shown: Shown) -> dict[str, str]:
    """What one searches cells by."""
    tags = {
        "kind": "cell",
        "table": table,
        "cell_id": cell_id,
        "spec_id": cell.spec_id,
        "task": cell.task,
        "method": method(cell, shown),
        "algorithm": cell.algorithm,
        "seed": str(cell.seed),
        "scale": cell.scale,
        REFERENCE: "yes" if shown.is_reference else "no",
    }
    return tags | ({"rows": ",".join(shown.rows)} if shown.rows else {})


def run_name(cell: Cell, shown: Shown) -> str:
    """Name of a cell beside others of its table, such as `mrpc fedavg-fp16 s0`."""
    return f"{cell.task} {'/'.join(shown.rows) or cell.algorithm} s{cell.seed}"


def description(cell: Cell, table: str, shown: Shown, stage: str = "") -> str:
    """A cell in a sentence or two, as Markdown; stage: the page of the run from which it begins."""
    data = "" if cell.holdout == "test" else " on validation data"
    score = f" The score is {shown.score}{data} at the chosen round." if shown.score else ""
    begins = f" It begins from [the outcome of an earlier run]({stage})." if stage else ""
    what = f"**{method(cell, shown)}** on **{cell.task}**, seed {cell.seed}, scale {cell.scale}, of {table}."
    return f"{what}{score}{begins} Bytes are summed over rounds and clients; the record is among the artifacts."


def end_tags(record: RunRecord) -> dict[str, str]:
    """What is known at the end: full digests of what went in, the code's commit, and how it ended."""
    tags = {f"{name}_digest": str(entry["digest"]) for name, entry in record.inputs.items()}
    if record.environment.get("revision"):
        tags["mlflow.source.git.commit"] = str(record.environment["revision"])
        tags["code_modified"] = str(bool(record.environment.get("modified"))).lower()
    return {**tags, "status": record.divergence or "finished"}


def round_points(rounds: Iterable[RoundRecord], up: int = 0, down: int = 0) -> Points:
    """Metrics of rounds; up, down: the bytes that crossed the wire before them."""
    points: Points = {}
    for entry in rounds:
        up, down = up + entry.up_bytes, down + entry.down_bytes
        values: dict[str, float | None] = {
            "train_loss": entry.train_loss,
            "bytes/uplink": up,
            "bytes/downlink": down,
            "bytes/total": up + down,
            "bytes/uplink_per_round": entry.up_bytes,
            "bytes/downlink_per_round": entry.down_bytes,
            **_by_name(entry.scores),
            **_by_name({POOLED: entry.pooled_scores.get("test", {})}),
        }
        digits = len(str(max(len(entry.client_scores) - 1, 0)))
        for client, scores in enumerate(entry.client_scores):
            # one group that stands behind all others, as pages sort metrics by name
            values |= {
                f"z_clients/{name.replace('/', '.')}.client{client:0{digits}}": value
                for name, value in _by_name(scores).items()
            }
        points |= _at(entry.round, values)
    return points


def record_points(record: RunRecord, shown: Shown, about: About) -> Points:
    """Metrics of a finished cell: those of its rounds, then what is known only at the end."""
    last = record.rounds[-1].round if record.rounds else 0
    final: dict[str, float | None] = {
        **table_values(record, shown, about),
        "bytes/one_time_distribution": record.setup_bytes,
        **_by_name(record.sampling_errors, "sampling_error/"),
        **{f"timing/{name}": value for name, value in record.timing.items()},
    }
    return round_points(record.rounds) | _at(last, final)


def data_profile(record: RunRecord) -> str:
    """What is known of a run's data whoever reads them, as JSON: examples, held-out sets, skipped rows, notes."""
    data: Mapping[str, JSON] = record.inputs["data"]
    return canonical_json({name: value for name, value in data.items() if name not in ("digest", "origin")})


def period(record: RunRecord) -> tuple[int, int]:
    """Start and end of a record's computation, in milliseconds since 1970."""
    end = round(datetime.fromisoformat(record.finished).replace(tzinfo=UTC).timestamp() * 1000)
    seconds = sum(value for name, value in record.timing.items() if name.endswith("_seconds"))
    return end - round(seconds * 1000), end


def key(name: str) -> str:
    """A name with MLflow's characters only."""
    return re.sub(r"[^\w\-. :/]", "_", name)[:MAX_KEY_LENGTH]


def cut(text: str, length: int) -> str:
    """A text of at most `length` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _by_name(scores: Scores, prefix: str = "") -> dict[str, float | None]:
    return {
        f"{prefix}{evaluation}/{metric}": value
        for evaluation, values in scores.items()
        for metric, value in values.items()
    }


def _at(step: int, values: Mapping[str, float | None]) -> Points:
    return {(key(name), step): float(value) for name, value in values.items() if value is not None}


def _flat(values: Mapping[str, JSON], prefix: str = "") -> Iterator[tuple[str, JSON]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else canonical_json(value)
