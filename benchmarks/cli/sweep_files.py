"""What the sweeps of a benchmark tried, as files: tables of all trials, and pictures of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import write_bytes
from benchmarks.spec import Benchmark, Scale

HEADINGS = (
    "task",
    "method",
    "scale",
    "study",
    "trial",
    "tried",
    "score",
    "mean",
    "sd",
    "seeds",
    "uplink_bytes",
    "state",
)


def write_sweeps(entries: Sequence[Mapping[str, Any]], benchmark: Benchmark, scale: Scale, folder: Path) -> list[Path]:
    """Write trials.csv, importances.csv, and history, heatmap and front as PNG and SVG, where there is one; the paths.

    entries: of the sweep's file, one a study.
    """
    from reports.pages.plots import render
    from reports.sweeps import figures

    entries = [entry for entry in entries if entry.get("metric") and entry["trials"]]
    contents = {"trials.csv": _csv(HEADINGS, [row for entry in entries for row in _trials(entry)])}
    shares = [(e["task"], e["method"], e["study"], *share) for e in entries for share in e["importances"].items()]
    if shares:
        contents["importances.csv"] = _csv(("task", "method", "study", "field", "importance"), shares)
    for name, figure in figures(entries, benchmark, scale).items():
        contents |= {f"{name}.{kind}": render(figure, kind) for kind in ("png", "svg")}
    for name, content in contents.items():
        write_bytes(folder / name, content)
    return [folder / name for name in contents]


def _trials(entry: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    def state(trial: Mapping[str, Any]) -> str:
        if "given_up_after" in trial:
            return f"given up after {trial['given_up_after']}"
        marks = [name for name in ("ties", "front") if trial["number"] in (entry[name] or ())]
        return " ".join({"ties": "best", "front": "front"}[name] for name in marks)

    return [
        (
            *(entry[name] for name in ("task", "method", "scale", "study")),
            trial["number"],
            "; ".join(f"{name}={value}" for name, value in trial["values"].items()),
            entry["metric"],
            *(trial[name] for name in ("mean", "sd")),
            len(trial["scores"]),
            trial["uplink_bytes"],
            state(trial),
        )
        for trial in entry["trials"]
    ]


def _csv(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows([headings, *rows])
    return file.getvalue().encode()
