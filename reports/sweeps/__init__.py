"""Pictures of sweeps: scores by trial, and over two fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks.experiment import Benchmark, Scale
from benchmarks.measures import metric
from reports.pages.plots import finish, mark, panels_of, say_not_run, tidy

SECTION = "section.md"  # of a sweep's files: the part of the paper's page
LAYER, RATE = "options.critical_layer", "training.learning_rate"
Result = Mapping[str, Any]  # a study as the sweep's file has it


def figures(results: Sequence[Result], benchmark: Benchmark, scale: Scale) -> dict[str, Callable[[], Figure]]:
    """The pictures of studies, by name: a panel a study."""
    heading, about = heading_of(results, benchmark, scale), f"Validation data, {seeds_of(results)}."
    joint = [result for result in results if len(result["grid"]) > 1]
    history = "Line: the best so far. Hollow: pruned, by an early score."
    heatmap = "At each place the best trial. Framed: the best of all, and ties. In brackets: pruned, by an early score."
    pictures = {
        "history": (results, benchmark, heading, _history, "trial", f"{about} {history}"),
        "heatmap": (joint, benchmark, heading, _heatmap, "", f"{about} {heatmap}"),
    }
    return {name: partial(_figure, *arguments) for name, arguments in pictures.items() if arguments[0]}


def heading_of(results: Sequence[Result], benchmark: Benchmark, scale: Scale) -> str:
    """The heading above studies: their table, and their data and encoders, by task if these differ."""
    tasks = {result["task"] for result in results}
    label = benchmark.label(scale, [column for column in benchmark.columns if column.task in tasks])
    return f"{benchmark.paper.name}, {benchmark.place}, sweep · scale {scale.id}: {label}"


def seeds_of(results: Sequence[Result]) -> str:
    """The seeds of studies in words: "seed 1000"."""
    seeds = list(dict.fromkeys(str(seed) for result in results for seed in result["seeds"]))
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"


def _figure(
    results: Sequence[Result], benchmark: Benchmark, heading: str, draw: Callable, xlabel: str, caption: str
) -> Figure:
    names = {column.task: column.name for column in benchmark.columns} | {row.id: row.name for row in benchmark.rows}
    figure, panels = panels_of(len(results), 3, (3.6, 3.0), xlabel, 5.2, 1.2)
    for axes, result in zip(panels, results, strict=True):
        by, place = metric(result["metric"]), (result["task"], result["method"])
        is_alone = [(other["task"], other["method"]) for other in results].count(place) == 1
        study = "" if is_alone else f"\nstudy {result['study'][-8:]}"
        axes.set_title(" · ".join(str(names.get(name, name)) for name in place) + study, fontsize=9)
        axes.set_ylabel(by.label + (f" [{by.unit}]" if by.unit else ""), fontsize=8)
        axes.tick_params(labelsize=7.5)
        draw(axes, result, benchmark)
        tidy(axes, grid="both")
        if not axes.has_data():
            say_not_run(axes)
    return finish(figure, heading, [], caption)


def _scored(result: Result) -> list[tuple[Any, float, bool]]:
    """The trials with a score, by number: the trial, its score in the metric's unit, and whether it was pruned."""
    trials = sorted(result["trials"], key=lambda trial: trial["number"])
    shown = metric(result["metric"]).shown
    return [(t, shown(t["mean"]), "given_up_after" in t) for t in trials if t["mean"] is not None]


def _history(axes: Axes, result: Result, _: Benchmark) -> None:
    by, trials = metric(result["metric"]), _scored(result)
    for trial, score, is_pruned in trials:
        axes.plot([trial["number"]], [score], **mark(0) | ({"mfc": "white"} if is_pruned else {}))
    whole = [(trial["number"], score) for trial, score, is_pruned in trials if not is_pruned]
    best = accumulate((score for _, score in whole), max if by.higher_is_better else min)
    axes.step([number for number, _ in whole], list(best), where="post", color="0.4", linewidth=1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _heatmap(axes: Axes, result: Result, benchmark: Benchmark) -> None:
    """Scores over two fields, the better, the brighter; of several trials at a place the best whole one."""
    by = metric(result["metric"])
    across, down = sorted(result["grid"], key=lambda name: (name != RATE, name != LAYER, name))[:2]
    xs, ys = (_axis(axes, which, name, result, benchmark) for which, name in (("x", across), ("y", down)))
    shown = {}  # the last one at a place is the best
    for trial, score, is_pruned in sorted(_scored(result), key=lambda entry: (not entry[2], by.sign * entry[1])):
        shown[xs(trial["values"][across]), ys(trial["values"][down])] = trial, score, is_pruned
    for place, (trial, score, is_pruned) in shown.items():
        weight = "bold" if trial["number"] in result["ties"] else "normal"
        text = f"({score:.1f})" if is_pruned else f"{score:.1f}"
        axes.annotate(text, place, (0, 5), textcoords="offset points", ha="center", fontsize=7, fontweight=weight)
    if shown:
        colours = [score for _, score, _ in shown.values()]
        rings = ["black" if trial["number"] in result["ties"] else "none" for trial, _, _ in shown.values()]
        style: Any = {"cmap": "viridis" if by.higher_is_better else "viridis_r", "marker": "s", "s": 60}
        marks = axes.scatter([x for x, _ in shown], [y for _, y in shown], c=colours, edgecolors=rings, **style)
        bar = axes.figure.colorbar(marks, ax=axes)  # a panel's own: studies are of other tasks and metrics
        bar.ax.tick_params(labelsize=7)
        bar.set_label(by.label + (f" ({by.unit})" if by.unit else ""), fontsize=7.5)
    axes.margins(0.2)


def _axis(axes: Axes, which: str, name: str, result: Result, benchmark: Benchmark) -> Callable[[Any], float]:
    """Label an axis with a field and its values; gives the place of a value."""
    unit, within = benchmark.units.get(name), result["grid"][name]
    label = f"{unit.name}, of {unit.of}" if unit else name.rpartition(".")[2].replace("_", " ")
    getattr(axes, f"set_{which}label")(label, fontsize=8)
    if isinstance(within, Mapping):
        getattr(axes, f"set_{which}scale")("log" if within["log"] else "linear")
        return float
    values = [trial["values"][name] for trial in result["trials"]]
    values = [value for place, value in enumerate(values) if value not in values[:place]]
    if all(isinstance(value, int | float) for value in values):
        values.sort()
    texts = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in values]
    getattr(axes, f"set_{which}ticks")(range(len(values)), texts)
    return values.index
