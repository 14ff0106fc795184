"""What MLflow is told of a cell: parameters, tags and metrics, as plain values cut to MLflow's limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from benchmarks.record import RoundRecord, RunRecord
from benchmarks.spec import JSON, Cell, canonical_json

# Limits of MLflow's REST API; longer texts are refused, not cut, by some of its servers.
MAX_KEY_LENGTH = 250
MAX_PARAM_LENGTH = 6000
MAX_TAG_LENGTH = 8000

Scores = Mapping[str, Mapping[str, float | None]]
Points = dict[tuple[str, int], float]  # (metric, step) -> value; the step is the round


def params(cell: Cell) -> dict[str, str]:
    """All fields of a cell, nested ones with dots: `training.rounds`, `options.critical_layer`."""
    return {key(name): cut(_text(value), MAX_PARAM_LENGTH) for name, value in _flat(cell.to_json())}


def cell_tags(cell: Cell, cell_id: str, row_ids: Sequence[str]) -> dict[str, str]:
    """What one searches cells by; row_ids: the rows of the table that show the cell."""
    tags = {
        "cell_id": cell_id,
        "spec_id": cell.spec_id,
        "task": cell.task,
        "algorithm": cell.algorithm,
        "seed": str(cell.seed),
        "scale": cell.scale,
    }
    return tags | ({"rows": ",".join(row_ids)} if row_ids else {})


def run_name(cell: Cell, row_ids: Sequence[str]) -> str:
    """Name of a cell beside others of its table, such as `mrpc fedavg-fp16 s0`."""
    return f"{cell.task} {'/'.join(row_ids) or cell.algorithm} s{cell.seed}"


def digest_tags(record: RunRecord) -> dict[str, str]:
    """The full digests of what went into a run."""
    return {f"{name}_digest": str(entry["digest"]) for name, entry in record.inputs.items()}


def round_points(rounds: Iterable[RoundRecord], total_bytes: int = 0) -> Points:
    """Metrics of rounds; total_bytes: what crossed the wire before them, both ways."""
    points: Points = {}
    for entry in rounds:
        total_bytes += entry.up_bytes + entry.down_bytes
        values: dict[str, float | None] = {
            "train_loss": entry.train_loss,
            "up_bytes": entry.up_bytes,
            "down_bytes": entry.down_bytes,
            "total_bytes": total_bytes,
            **_by_name(entry.scores),
        }
        for client, scores in enumerate(entry.client_scores):
            values |= _by_name(scores, f"client{client}/")
        points |= _at(entry.round, values)
    return points


def record_points(record: RunRecord) -> Points:
    """Metrics of a finished cell: those of its rounds, then what is known only at the end."""
    last = record.rounds[-1].round if record.rounds else 0
    final: dict[str, float | None] = {
        "setup_bytes": record.setup_bytes,
        **_by_name(record.sampling_errors, "sampling_error/"),
        **{f"timing/{name}": value for name, value in record.timing.items()},
    }
    return round_points(record.rounds) | _at(last, final)


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
