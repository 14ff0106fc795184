"""Pictures of sweeps: scores by trial, over two fields, and against uplink bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks.experiment import Benchmark, Scale
from benchmarks.measures import metric
from reports.pages.plots import finish, mark, panels_of, say_not_run, tidy

LAYER, RATE = "options.critical_layer", "training.learning_rate"
Result = Mapping[str, Any]  # a study as the sweep's file has it
Trial = Mapping[str, Any]
Draw = Callable[[Axes, Result], None]


def figures(results: Sequence[Result], benchmark: Benchmark, scale: Scale) -> dict[str, Callable[[], Figure]]:
    """The pictures that these studies have, by name: a panel a study."""
    heading, about = heading_of(results, benchmark, scale), f"Validation data, {seeds_of(results)}."
    draws: dict[str, tuple[Sequence[Result], Draw, str, str]] = {
        "history": (results, _history, "trial", "Line: the best so far. Hollow: pruned, by an early score."),
        "heatmap": (
            [result for result in results if len(result["grid"]) > 1],
            partial(_heatmap, benchmark=benchmark),
            "",
            "Of further fields the best. Bold: the best, and what equals it. In brackets: pruned, by an early score.",
        ),
        "front": (
            [result for result in results if result["front"] is not None],
            _front,
            "uplink, MB",
            "Uplink: all clients and rounds, mean over seeds. Line: none is as good in both and better in one.",
        ),
    }
    return {
        name: partial(_figure, studies, benchmark, heading, draw, xlabel, f"{about} {caption}")
        for name, (studies, draw, xlabel, caption) in draws.items()
        if studies
    }


def heading_of(results: Sequence[Result], benchmark: Benchmark, scale: Scale) -> str:
    """What stands above studies: whose they are, and on which data and encoders, by task where these differ."""
    tasks = {result["task"] for result in results}
    label = benchmark.label(scale, [column for column in benchmark.columns if column.task in tasks])
    return f"{benchmark.paper.name}, {benchmark.place}, sweep · scale {scale.id}: {label}"


def seeds_of(results: Sequence[Result]) -> str:
    """The seeds of studies in words: "seed 1000"."""
    seeds = list(dict.fromkeys(str(seed) for result in results for seed in result["seeds"]))
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"


def _figure(
    results: Sequence[Result], benchmark: Benchmark, heading: str, draw: Draw, xlabel: str, caption: str
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
        draw(axes, result)
        if not axes.has_data():
            say_not_run(axes)
    return finish(figure, heading, [], caption)


def _scored(result: Result, whole: bool) -> list[Trial]:
    """Trials with a score, in the order of their numbers: the whole ones, or those that were pruned."""
    trials = [trial for trial in result["trials"] if trial["mean"] is not None]
    return sorted((t for t in trials if ("given_up_after" in t) is not whole), key=lambda trial: trial["number"])


Points = Sequence[tuple[float, float]]


def _points(axes: Axes, points: Points, line: Points = (), **style: Any) -> None:
    for x, y in points:
        axes.plot([x], [y], linestyle="none", markersize=5, **{**mark(0), **style})
    axes.step([x for x, _ in line], [y for _, y in line], where="post", color="0.4", linewidth=1)
    tidy(axes, grid="both")


def _history(axes: Axes, result: Result) -> None:
    by = metric(result["metric"])
    whole, pruned = ([(t["number"], by.shown(t["mean"])) for t in _scored(result, kind)] for kind in (True, False))
    best = [by.best([y for _, y in whole[: place + 1]]) or 0.0 for place in range(len(whole))]
    _points(axes, pruned, markerfacecolor="white")
    _points(axes, whole, [(x, y) for (x, _), y in zip(whole, best, strict=True)])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _front(axes: Axes, result: Result) -> None:
    by, ahead = metric(result["metric"]), result["front"]
    points = [(t["number"] in ahead, (t["uplink_bytes"] / 1e6, by.shown(t["mean"]))) for t in _scored(result, True)]
    first = sorted(point for is_ahead, point in points if is_ahead)
    _points(axes, [point for is_ahead, point in points if not is_ahead], color="0.5", marker=".")
    _points(axes, first, first)


def _heatmap(axes: Axes, result: Result, benchmark: Benchmark) -> None:
    """Scores over two fields, the better, the brighter; of several trials at a place the best whole one."""
    by, grid = metric(result["metric"]), result["grid"]
    names = sorted(grid, key=lambda name: (name != RATE, name != LAYER, name))[:2]  # across and down
    values = {name: _in_order([trial["values"][name] for trial in result["trials"]]) for name in names}
    shown: dict[Any, Trial] = {}  # by place
    for kind in (False, True):
        for trial in sorted(_scored(result, kind), key=lambda trial: by.sign * trial["mean"]):
            found = [trial["values"][name] for name in names]
            is_range = [isinstance(grid[name], Mapping) for name in names]
            place = (v if r else values[n].index(v) for n, v, r in zip(names, found, is_range, strict=True))
            shown[tuple(place)] = trial
    for (x, y), trial in shown.items():
        weight = "bold" if trial["number"] in result["ties"] else "normal"
        text = f"{by.shown(trial['mean']):.1f}"
        text = f"({text})" if "given_up_after" in trial else text
        axes.annotate(text, (x, y), (0, 5), textcoords="offset points", ha="center", fontsize=7, fontweight=weight)
    if shown:
        across, down = zip(*shown, strict=True)
        colours = [by.sign * trial["mean"] for trial in shown.values()]
        axes.scatter(across, down, c=colours, cmap="viridis", marker="s", s=60)
    axes.margins(0.2)
    tidy(axes, grid="both")
    axis: Any = (axes.set_xlabel, axes.set_xticks, axes.set_xscale), (axes.set_ylabel, axes.set_yticks, axes.set_yscale)
    for name, (label, ticks, scaled) in zip(names, axis, strict=True):
        unit = benchmark.units.get(name)
        label(f"{unit.name}, of {unit.of}" if unit else name.rpartition(".")[2].replace("_", " "), fontsize=8)
        if isinstance(grid[name], Mapping):
            scaled("log" if grid[name]["log"] else "linear")
        else:
            ticks(range(len(values[name])), [f"{v:.3g}" if isinstance(v, float) else str(v) for v in values[name]])


def _in_order(values: Sequence[Any]) -> list[Any]:
    """Each value once: numbers by size, and others as they come."""
    once = [value for place, value in enumerate(values) if value not in values[:place]]
    return sorted(once) if all(isinstance(value, int | float) for value in once) else once
