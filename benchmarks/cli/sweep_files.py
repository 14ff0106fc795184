"""What the sweeps of a benchmark tried, as files: tables of all trials, and pictures of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import write_bytes
from benchmarks.spec import Benchmark, Scale


def write_sweeps(entries: Sequence[Mapping[str, Any]], benchmark: Benchmark, scale: Scale, folder: Path) -> list[Path]:
    """Write trials.csv, importances.csv, and history, heatmap and front as PNG and SVG, where there is one; the paths.

    entries: of the sweep's file, one a study.
    """
    from reports.pages.plots import KINDS, render
    from reports.sweeps import figures

    entries = [entry for entry in entries if entry.get("metric") and entry["trials"]]
    contents = {"trials.csv": _csv([row for entry in entries for row in _trials(entry)])}
    shares = [
        {**_place(entry), "field": name, "importance": share}
        for entry in entries
        for name, share in entry["importances"].items()
    ]
    if shares:
        contents["importances.csv"] = _csv(shares)
    for name, figure in figures(entries, benchmark, scale).items():
        contents |= dict(zip((f"{name}.{kind}" for kind in KINDS), render(figure, *KINDS), strict=True))
    for name, content in contents.items():
        write_bytes(folder / name, content)
    return [folder / name for name in contents]


def _place(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ("task", "method", "scale", "study")}


def state(entry: Mapping[str, Any], trial: Mapping[str, Any]) -> str:
    """What came of a trial of a study: the best, a tie, on the front, given up, or nothing of that."""
    if "given_up_after" in trial:
        return f"given up after {trial['given_up_after']}"
    tie = "tie" if len(entry["ties"]) > 1 else ""
    marks = {"ties": f"best {tie}".strip(), "front": "front"}
    return ", ".join(mark for name, mark in marks.items() if trial["number"] in (entry[name] or ()))


def _trials(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A line a trial: where it stands, what came of it, and its value of each field."""
    return [
        {
            **_place(entry),
            "trial": trial["number"],
            "score": entry["metric"],
            "mean": trial["mean"],
            "sd": trial["sd"],
            "seeds": len(trial["scores"]),
            "uplink_bytes": trial["uplink_bytes"],
            "state": state(entry, trial),
            **trial["values"],
        }
        for trial in entry["trials"]
    ]


def _csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Lines under the headings that any of them has."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()
