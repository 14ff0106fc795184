"""A run's MLflow entries: parameters, tags, metrics and small files, from its configuration and record."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measures import metric
from benchmarks.predictions import predictions_file, read_predictions
from benchmarks.results import POOLED, RoundRecord, RunBytes, RunResult
from benchmarks.run_config import RunConfig, canonical_json
from benchmarks.tasks import task
from benchmarks.tracking.table import Table

MAX_LENGTH = 250  # for names of runs and metrics in MLflow
NOTE = "mlflow.note.content"  # the description on MLflow's pages
SOURCE, COMMIT = "mlflow.source.name", "mlflow.source.git.commit"  # MLflow shows the commit only next to a source

Points = dict[tuple[str, int], float]  # (metric, round) -> value


def params(cell: RunConfig, table: Table) -> dict[str, str]:
    """The method, the user's changes, and all fields of a run, nested ones with dots: `training.rounds`."""
    (fields,) = pd.json_normalize(cell.to_json(), sep=".").to_dict("records")
    fields |= {"method": table.shown(cell).method} | ({"changes": table.changes} if table.changes else {})
    return {name: value if isinstance(value, str) else canonical_json(value) for name, value in fields.items()}


def run_name(cell: RunConfig, table: Table) -> str:
    """A run's name in its table: `mrpc fedavg-fp16 s0`, with a user's changes in brackets."""
    rows = "/".join(table.shown(cell).rows) or cell.algorithm
    name = f"{cell.task} {rows} s{cell.seed}{f' ({table.changes})' if table.changes else ''}"
    return textwrap.shorten(name, MAX_LENGTH, placeholder="…")


def table_tags(table: Table, kind: str) -> dict[str, str]:
    """The tags that the table's run ("table") and its child runs ("run") share."""
    return {"table": table.name, "changes": table.changes, "_table": table.id, "_kind": kind}


def start_tags(cell: RunConfig, cell_id: str, table: Table) -> dict[str, str]:
    """Tags for searching runs; tags for internal use begin with an underscore."""
    shown = table.shown(cell)
    return table_tags(table, "run") | {
        "task": cell.task,
        "method": shown.method,
        "algorithm": cell.algorithm,
        "seed": str(cell.seed),
        "scale": cell.scale,
        "status": "running",
        "published": shown.published_text,
        "_cell_id": cell_id,
        "_spec_id": cell.spec_id,
        "_rows": ",".join(shown.rows),
        "_reference": "yes" if shown.is_reference else "no",
        SOURCE: shown.command,
        NOTE: f"**{shown.method}** on **{cell.task}**, seed {cell.seed}, of {table.name}. The score is "
        f"{shown.score or 'not defined'}{' on validation data' if cell.holdout != 'test' else ''} "
        f"{table.scored_at}".rstrip()
        + ".",
    }


def end_tags(record: RunResult, table: Table) -> dict[str, str]:
    """Digests of the inputs, the code's commit, and how the run ended."""
    shown, code = table.shown(record.cell), record.environment
    not_comparable = "" if table.is_comparable(record) else " (not comparable)"
    return {
        **{f"{name}_digest": str(entry["digest"]) for name, entry in record.inputs.items()},
        COMMIT: str(code.get("revision") or ""),
        "code_modified": str(bool(code.get("modified"))).lower() if code.get("revision") else "",
        "diverged": f"{record.divergence}: {record.diverged['reason']}" if record.diverged else "",
        "published": shown.published_text and shown.published_text + not_comparable,
        "status": record.divergence or "finished",
    }


def round_points(rounds: Iterable[RoundRecord], earlier: RunBytes | None) -> Points:
    """The metrics of a run's rounds. earlier: its earlier runs' bytes; None if unknown."""
    points: Points = {}
    up = down = 0
    for entry in rounds:
        up, down = up + entry.up_bytes, down + entry.down_bytes
        values: dict[str, float | None] = {
            "train_loss": entry.train_loss,
            "bytes/uplink_stage": up,
            "bytes/downlink_stage": down,
            "bytes/uplink_per_round": entry.up_bytes,
            "bytes/downlink_per_round": entry.down_bytes,
            **_by_name({**entry.scores, POOLED: entry.pooled_scores.get("test", {})}),
            # MLflow's names have no "@".
            **{name.replace("@", "-"): value for name, value in _by_name(entry.of_clients).items()},
        }
        if earlier is not None:
            values |= {"bytes/uplink": earlier.up + up, "bytes/downlink": earlier.down + down}
        digits = len(str(max(len(entry.client_scores) - 1, 0)))
        for client, scores in enumerate(entry.client_scores):  # pages sort metrics by name, so clients come last
            named = _by_name(scores).items()
            values |= {f"z_clients/{name.replace('/', '.')}.client{client:0{digits}}": value for name, value in named}
        points |= _at(entry.round, values)
    return points


def final_points(record: RunResult, table: Table, total: RunBytes | None) -> Points:
    """The metrics at the end of a run. total: its bytes including earlier runs; None if unknown."""
    shown = table.shown(record.cell)
    score = table.score_of(record, shown.score) if shown.score else None
    values: dict[str, float | None] = {
        "score": score,
        "bytes/one_time_distribution": record.setup_bytes,
        **_by_name({f"sampling_error/{name}": errors for name, errors in record.sampling_errors.items()}),
        **{f"timing/{name}": value for name, value in record.timing.items()},
    }
    if total is not None:
        values |= {"uplink_MB": float(f"{total.up / 1e6:.4g}"), "downlink_MB": float(f"{total.down / 1e6:.4g}")}
    if score is not None:
        in_unit = metric(shown.score).shown(score)
        values["score_percent"] = round(in_unit, 2) if metric(shown.score).unit == "%" else None
        if shown.published is not None and table.is_comparable(record):
            values["difference_to_published"] = round(in_unit - shown.published, 4)
    return _at(record.rounds[-1].round if record.rounds else 0, values)


def clients_csv(record: RunResult) -> str:
    """Each client's number of examples and scores at the chosen round; "" for a record without clients."""
    scores = record.rounds[record.chosen_round - 1].client_scores if record.rounds else ()
    rows = [{**client, **_by_name(parts)} for client, parts in zip(record.clients, scores, strict=bool(scores))]
    return str(pd.DataFrame(rows).to_csv(index=False)) if rows else ""


def answers_file(record: RunResult, records_dir: Path) -> Path | None:
    """The file with a run's predictions, next to its record or in the results folder; None if it is missing."""
    folders = [folder for folder in (record.folder, records_dir) if folder is not None and record.predictions]
    return next((path for path in (predictions_file(folder, record) for folder in folders) if path.is_file()), None)


def confusion_csv(record: RunResult, answers: Path) -> str:
    """Test examples by label and prediction at the chosen round; "" for a task without one label per text."""
    labels = task(record.cell.task).labels
    parts = [entry for (_, part), entry in read_predictions(answers.parent, record).items() if part == "test"]
    if not labels or not parts or any(entry.chosen.shape != (len(entry.gold), len(labels)) for entry in parts):
        return ""
    gold, answered = (
        pd.Categorical.from_codes(np.concatenate(codes), list(labels))
        for codes in zip(*((entry.gold, entry.chosen.argmax(axis=1)) for entry in parts), strict=True)
    )
    return str(pd.crosstab(gold, answered, rownames=["label"], colnames=["answer"], dropna=False).to_csv())


def _by_name(scores: Mapping[str, Mapping[str, float | None]]) -> dict[str, float | None]:
    return {f"{part}/{name}": value for part, values in scores.items() for name, value in values.items()}


def _at(step: int, values: Mapping[str, float | None]) -> Points:
    """A round's points, with names that MLflow allows."""
    defined = {name: float(value) for name, value in values.items() if value is not None}
    return {(re.sub(r"[^\w\-. :/]", "_", name)[:MAX_LENGTH], step): value for name, value in defined.items()}
