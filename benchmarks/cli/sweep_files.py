"""The trials of a benchmark's sweeps as files: a table, pictures, and a section for the paper's page."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.experiment import Benchmark, Scale
from benchmarks.measures import metric
from benchmarks.registry import benchmark, folder_of
from benchmarks.results import write_bytes
from fedsim.files import read_text
from reports.pages.plots import KINDS, render
from reports.pages.render import escape
from reports.pages.text import human_bytes
from reports.sweeps import figures, heading_of, seeds_of

SECTION = "section.md"
SHOWN = 5  # whole trials of a study in the section
Result = Mapping[str, Any]  # a study as the sweep's file has it


def write_sweeps(results: Sequence[Result], table: Benchmark, scale: Scale, folder: Path) -> list[Path]:
    """Write trials.csv, importances.csv, pictures and a section for the paper's page into a folder; the paths."""
    results = [result for result in results if result.get("metric") and result["trials"]]
    trials, shares = [], []
    for result in results:
        place = {name: result[name] for name in ("task", "method", "scale", "study")}
        shares += [{**place, "field": name, "importance": share} for name, share in result["importances"].items()]
        for trial in result["trials"]:
            scores = {
                "score": result["metric"],
                "mean": trial["mean"],
                "sd": trial["sd"],
                "seeds": len(trial["scores"]),
            }
            outcome = {"uplink_bytes": trial["uplink_bytes"], "state": state(result, trial)}
            trials.append({**place, "trial": trial["number"], **scores, **outcome, **trial["values"]})
    tables = {"trials.csv": trials} | ({"importances.csv": shares} if shares else {})
    contents = {
        name: pd.DataFrame(rows, dtype=object).to_csv(index=False, lineterminator="\n").encode()
        for name, rows in tables.items()
    }
    pictures = figures(results, table, scale)
    for name, figure in pictures.items():
        contents |= dict(zip((f"{name}.{kind}" for kind in KINDS), render(figure, *KINDS), strict=True))
    contents[SECTION] = _section(results, table, scale, [*pictures]).encode()
    for name, content in contents.items():
        write_bytes(folder / name, content)
    return [folder / name for name in contents]


def sections(ids: Iterable[str], scale: str | None) -> list[str]:
    """The sections of the committed sweeps of these benchmarks, at one scale or at all."""
    folders = [
        folder_of(table.paper.id) / "sweeps" / table.id / at.id
        for table in map(benchmark, ids)
        for at in table.scales
        if scale in (None, at.id)
    ]
    return [read_text(folder / SECTION).strip() for folder in folders if (folder / SECTION).is_file()]


def names_of(result: Result, table: Benchmark) -> tuple[str, str]:
    """Task and method of a study, by name."""
    tasks, rows = {column.task: column.name for column in table.columns}, {row.id: row.name for row in table.rows}
    task, method = str(result["task"]), str(result["method"])
    return tasks.get(task, task), rows.get(method, method)


def measure(result: Result) -> str:
    """The metric of a study, with its unit."""
    by = metric(result["metric"])
    return f"{by.label}, {by.unit}" if by.unit else by.label


def shown(trial: Mapping[str, Any], result: Result, table: Benchmark, scale: Scale) -> tuple[str, ...]:
    """A trial's row in a table: values, score, deviation, number of seeds, uplink, and its state."""
    by, mean, missing = metric(result["metric"]), trial["mean"], len(result["seeds"]) - len(trial["scores"])
    score = f"{by.shown(mean):.2f}" if mean is not None else "failed" if missing else "undefined"
    deviation = "" if trial["sd"] is None else f"{by.shown(trial['sd']):.2f}"
    uplink = "" if trial["uplink_bytes"] is None else human_bytes(trial["uplink_bytes"])
    values = ", ".join(table.shown(name, value, scale) for name, value in trial["values"].items())
    return values, score, deviation, str(len(trial["scores"])), uplink, state(result, trial)


def state(result: Result, trial: Mapping[str, Any]) -> str:
    """Whether a trial of a study is the best, a tie, on the front, or pruned; "" for any other."""
    if "given_up_after" in trial:
        return f"pruned after round {trial['given_up_after']}"
    number, ties = trial["number"], result["ties"]
    marks = {
        "best": result["best"] is not None and number == result["best"]["number"],
        f"tie of {len(ties)}": number in ties and len(ties) > 1,
        "front": number in (result["front"] or ()),
    }
    return ", ".join(mark for mark, holds in marks.items() if holds)


def _section(results: Sequence[Result], table: Benchmark, scale: Scale, pictures: Sequence[str]) -> str:
    """The part of the paper's page: the best trials of each study, and the pictures."""
    about = "Validation data alone: no test example was seen. Bold: the best trial, and what equals it."
    parts = [f"### {escape(heading_of(results, table, scale))}", about]
    for result in results:
        by, ties = metric(result["metric"]), {*result["ties"], *(result["front"] or ())}
        scored = [t for t in result["trials"] if "given_up_after" not in t and t["mean"] is not None]
        scored.sort(key=lambda trial: (-by.sign * trial["mean"], trial["number"]))
        pruned = sum("given_up_after" in trial for trial in result["trials"])
        names = " · ".join(names_of(result, table))
        title = f"{names}, {measure(result)} {result['score'].partition(' ')[2]}, {seeds_of([result])}"
        lines = [f"**{escape(title)}: {len(result['trials'])} trials, {pruned} of them pruned**", ""]
        lines += ["| tried | score | sd | n | uplink | |", "| --- | --: | --: | --: | --: | --- |"]
        for place, trial in enumerate(scored):
            if place < SHOWN or trial["number"] in ties:
                bold = "**" if trial["number"] in result["ties"] else ""
                cells = (cell and f"{bold}{escape(cell)}{bold}" for cell in shown(trial, result, table, scale))
                lines.append(f"| {' | '.join(cells)} |")
        parts += ["\n".join(lines), f"```sh\n{command(result, table, scale)}\n```"]
    folder = f"sweeps/{table.id}/{scale.id}"
    parts += [f"![Sweep of {table.place}, {name}]({folder}/{name}.png)" for name in pictures if name != "history"]
    return "\n\n".join(parts) + "\n"


def command(result: Result, table: Benchmark, scale: Scale) -> str:
    """The command that runs a study again."""
    arguments = ["--trials", str(result["budget"])]
    for name, values in result["grid"].items():
        if isinstance(values, Mapping):
            arguments += ["--range", f"{name}={values['low']}:{values['high']}{':log' if values['log'] else ''}"]
        else:
            arguments += ["--grid", f"{name}={','.join(map(str, values))}"]
    rungs = sorted({trial["given_up_after"] for trial in result["trials"] if "given_up_after" in trial})
    arguments += ["--rungs", ",".join(map(str, rungs))] if rungs else []
    arguments += ["--pareto"] if result["front"] is not None else []
    named = f"SCALE={scale.id} TASKS={result['task']} METHODS={result['method']} DATA_DIR=/data"
    return f"make sweep-{table.id} {named} \\\n  ARGS={shlex.quote(shlex.join(arguments))}"
