"""Sweeps: all trials as one frame and as a table, and the figure of their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.experiment import Benchmark, Scale
from benchmarks.measures import metric
from reports.pages.plots import finish, log_axis, mark, panels_of, say_not_run, tidy
from reports.pages.render import escape, table_line
from reports.pages.text import UNDEFINED, number

SECTION = "section.md"  # of a sweep's files: the part of the paper's page
Result = Mapping[str, Any]  # a study as the sweep's file has it


def trials_frame(results: Sequence[Result]) -> pd.DataFrame:
    """A line for each trial of some studies, with a column for each field."""
    lines = [
        {
            **{name: result[name] for name in ("task", "method", "scale", "study")},
            "trial": trial["number"],
            "score": result["metric"],
            "mean": trial["mean"],
            "sd": trial["sd"],
            "seeds": len(trial["scores"]),
            "uplink_bytes": trial["uplink_bytes"],
            "state": state(result, trial),
            **trial["values"],
        }
        for result in results
        for trial in result["trials"]
    ]
    return pd.DataFrame(lines, dtype=object)


def state(result: Result, trial: Mapping[str, Any]) -> str:
    """Whether a trial of a study is the best, a tie, or pruned; "" for any other."""
    if "given_up_after" in trial:
        return f"pruned after round {trial['given_up_after']}"
    number, ties = trial["number"], result["ties"]
    is_best = result["best"] is not None and number == result["best"]["number"]
    is_tied = number in ties and len(ties) > 1
    return ", ".join([*["best"] * is_best, *[f"tie of {len(ties)}"] * is_tied])


def names_of(result: Result, benchmark: Benchmark) -> tuple[str, str]:
    """The task's and method's names in a study."""
    tasks, rows = (
        {column.task: column.name for column in benchmark.columns},
        {row.id: row.name for row in benchmark.rows},
    )
    task, method = str(result["task"]), str(result["method"])
    return tasks.get(task, task), rows.get(method, method)


def section(results: Sequence[Result], benchmark: Benchmark, scale: Scale) -> str:
    """The part of the paper's page: a table of all trials, with a line for each study."""
    lines = [table_line(("Task", "Method", "Tried: score")), table_line((":--",) * 3)]
    for result in results:
        ordered = sorted(result["trials"], key=lambda trial: [*trial["values"].values()])
        first, *others = (_trial(result, trial, benchmark, scale) for trial in ordered)
        if len(result["grid"]) == 1:  # name the field once
            others = [text.replace(f"{first.strip('*').partition('=')[0]}=", "") for text in others]
        texts = "; ".join([first, *others])
        ties = f" ({len(result['ties'])} tie; chosen: {result['tie']})" if len(result["ties"]) > 1 else ""
        lines.append(table_line([*map(escape, names_of(result, benchmark)), texts + escape(ties)]))
    scores = "; ".join(
        dict.fromkeys(
            f"{each['score'].replace(each['metric'], metric(each['metric']).label)}, seed {each['seeds'][0]}"
            for each in results
        )
    )
    return "\n".join(
        [
            f"### {benchmark.paper.name}, {benchmark.place}, sweeps · scale {scale.id}: {scale.label}\n",
            f"Validation data alone: no test example was seen. Score: {escape(scores)}. Bold: the chosen trial. "
            "A round in brackets: the trial was pruned after it.\n",
            *lines,
        ]
    )


def _trial(result: Result, trial: Mapping[str, Any], benchmark: Benchmark, scale: Scale) -> str:
    """A trial's values and score."""
    values = ", ".join(benchmark.shown(name, value, scale) for name, value in trial["values"].items())
    score = UNDEFINED if trial["mean"] is None else number(metric(result["metric"]).shown(trial["mean"]))
    ended = f" (round {trial['given_up_after']})" if "given_up_after" in trial else ""
    is_best = result["best"] is not None and trial["number"] == result["best"]["number"]
    return f"**{escape(values)}: {score}**" if is_best else f"{escape(values)}: {score}{ended}"


def figure(results: Sequence[Result], benchmark: Benchmark, scale: Scale) -> Figure:
    """A panel for each study and field: the scores of its trials by the field's values."""
    places = [(result, name) for result in results for name in result["grid"]]
    figure, panels = panels_of(len(places), 3, (3.6, 3.0), "", 5.2, 1.2)
    for axes, (result, name) in zip(panels, places, strict=True):
        by, unit = metric(result["metric"]), benchmark.units.get(name)
        axes.set_title(f"{' · '.join(names_of(result, benchmark))}\nstudy {result['study'][-8:]}", fontsize=9)
        axes.set_ylabel(by.label + (f" [{by.unit}]" if by.unit else ""), fontsize=8)
        axes.set_xlabel(f"{unit.name}, of {unit.of}" if unit else name.rpartition(".")[2].replace("_", " "), fontsize=8)
        axes.tick_params(labelsize=7.5)
        tidy(axes, grid="both")
        trials = [trial for trial in result["trials"] if trial["mean"] is not None]
        values = [trial["values"][name] for trial in trials]
        is_number = all(type(value) in (int, float) for value in values)
        for trial, value in zip(trials, values, strict=True):
            style = mark(0) | ({"markerfacecolor": "white"} if "given_up_after" in trial else {})
            axes.plot([value if is_number else str(value)], [by.shown(trial["mean"])], **style)
        if is_number:
            log_axis(axes, "x", values)
        if not trials:
            say_not_run(axes)
    heading = f"{benchmark.paper.name}, {benchmark.place}, sweep · scale {scale.id}"
    return finish(figure, heading, [], "Scores on validation data, one mark per trial. Hollow: pruned early.")
