"""Pictures of sweeps: scores by trial, over two fields, and against uplink bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks.measures import metric
from benchmarks.spec import Benchmark, Scale
from reports.pages.plots import beside, finish, mark, panels_of, say_not_run, tidy

LAYER, RATE = "options.critical_layer", "training.learning_rate"
Entry = Mapping[str, Any]
Draw = Callable[[Axes, Entry], None]


def figures(entries: Sequence[Entry], benchmark: Benchmark, scale: Scale) -> dict[str, Callable[[], Figure]]:
    """The pictures that these studies have, by name: a panel a study."""
    heading = heading_of(entries, benchmark, scale)
    of_data = f"Validation data, {seeds_of(entries)}."
    found: dict[str, Callable[[], Figure]] = {}
    given_up = "Hollow: given up at a rung, by the score after fewer rounds."
    found["history"] = partial(
        _figure, entries, benchmark, heading, _history, "trial", f"{of_data} Line: the best so far. {given_up}"
    )
    two = [entry for entry in entries if len(entry["grid"]) > 1]
    if two:
        caption = (
            f"{of_data} Of further fields the best. Bold or ringed: the best, and what equals it. In brackets: "
            "given up, by the score after fewer rounds."
        )
        found["heatmap"] = partial(
            _figure, two, benchmark, heading, partial(_heatmap, benchmark=benchmark), "", caption
        )
    ahead = [entry for entry in entries if entry["front"] is not None]
    if ahead:
        caption = f"{of_data} Uplink: all clients and rounds, mean over seeds. Line: none is as good in both "
        caption += "and better in one."
        found["front"] = partial(_figure, ahead, benchmark, heading, _front, "uplink, MB", caption)
    return found


def heading_of(entries: Sequence[Entry], benchmark: Benchmark, scale: Scale) -> str:
    """What stands above studies: whose they are, and on which data and encoders, by task where these differ."""
    tasks = {entry["task"] for entry in entries}
    label = benchmark.label(scale, [column for column in benchmark.columns if column.task in tasks])
    return f"{benchmark.paper.name}, {benchmark.place}, sweep · scale {scale.id}: {label}"


def seeds_of(entries: Sequence[Entry]) -> str:
    """The seeds of studies in words: "seed 1000"."""
    seeds = list(dict.fromkeys(str(seed) for entry in entries for seed in entry["seeds"]))
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"


def _figure(
    entries: Sequence[Entry], benchmark: Benchmark, heading: str, draw: Draw, xlabel: str, caption: str
) -> Figure:
    names = {column.task: column.name for column in benchmark.columns}
    rows = {row.id: row.name for row in benchmark.rows}
    figure, panels = panels_of(len(entries), 3, (3.6, 3.0), xlabel, 5.2, 1.2)
    for axes, entry in zip(panels, entries, strict=True):
        by = metric(entry["metric"])
        title = f"{names.get(entry['task'], entry['task'])} · {rows.get(entry['method'], entry['method'])}"
        places = [(other["task"], other["method"]) for other in entries]
        study = f"\nstudy {entry['study'][-8:]}" if places.count((entry["task"], entry["method"])) > 1 else ""
        axes.set_title(title + study, fontsize=9)
        axes.set_ylabel(by.label + (f" [{by.unit}]" if by.unit else ""), fontsize=8)
        axes.tick_params(labelsize=7.5)
        draw(axes, entry)
        if not axes.has_data():
            say_not_run(axes)
    return finish(figure, heading, [], caption)


def _scored(entry: Entry, whole: bool) -> list[Mapping[str, Any]]:
    """Trials with a score, in the order of their numbers: the whole ones, or those that were given up."""
    trials = [trial for trial in entry["trials"] if trial["mean"] is not None]
    return sorted((t for t in trials if ("given_up_after" in t) is not whole), key=lambda trial: trial["number"])


def _history(axes: Axes, entry: Entry) -> None:
    by = metric(entry["metric"])
    for whole, style in ((True, mark(0)), (False, {**mark(0), "markerfacecolor": "white"})):
        points = [(trial["number"], by.shown(trial["mean"])) for trial in _scored(entry, whole)]
        if points:
            axes.plot(*zip(*points, strict=True), linestyle="none", markersize=5, **style)
        if points and whole:
            best = [by.best([y for _, y in points[: place + 1]]) or 0.0 for place in range(len(points))]
            axes.step([x for x, _ in points], best, where="post", color="0.4", linewidth=1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axes)


def _fields(entry: Entry) -> tuple[str, str]:
    """The two fields of a heatmap, across and down: learning rate and critical layer, where they were swept."""
    names = sorted(entry["grid"], key=lambda name: (name not in (LAYER, RATE), name))[:2]
    return (names[1], names[0]) if names[0] == LAYER or names[1] == RATE else (names[0], names[1])


def _heatmap(axes: Axes, entry: Entry, benchmark: Benchmark) -> None:
    by, (across, down) = metric(entry["metric"]), _fields(entry)
    is_drawn = any(isinstance(values, Mapping) for values in entry["grid"].values())
    for name, label in ((across, axes.set_xlabel), (down, axes.set_ylabel)):
        unit = benchmark.units.get(name)
        label(f"{unit.name}, of {unit.of}" if unit else name.rpartition(".")[2].replace("_", " "), fontsize=8)
    if is_drawn and not all(
        isinstance(trial["values"][name], str) for trial in entry["trials"] for name in (across, down)
    ):
        _scatter(axes, entry, across, down)
        return
    axis = {name: _in_order([trial["values"][name] for trial in entry["trials"]]) for name in (across, down)}
    shown: dict[tuple[int, int], tuple[float, str, bool]] = {}
    for whole in (False, True):  # a whole trial's score stands above one that was given up
        for trial in _scored(entry, whole):
            place = axis[across].index(trial["values"][across]), axis[down].index(trial["values"][down])
            text = f"{by.shown(trial['mean']):.1f}" if whole else f"({by.shown(trial['mean']):.1f})"
            old = shown.get(place)
            if old is None or old[1].startswith("(") or by.gain(trial["mean"], old[0]) > 0:
                shown[place] = trial["mean"], text, trial["number"] in entry["ties"]
    colours = [[float("nan")] * len(axis[across]) for _ in axis[down]]
    for (x, y), (mean, text, is_best) in shown.items():
        if not text.startswith("("):
            colours[y][x] = by.sign * mean
        weight = "bold" if is_best else "normal"
        box = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1}
        axes.text(x, y, text, ha="center", va="center", fontsize=7, fontweight=weight, bbox=box)
    axes.imshow(colours, cmap=_colours(), aspect="auto", origin="lower")
    axes.set_facecolor("0.9")
    axes.set_xticks(range(len(axis[across])), [_written(value) for value in axis[across]], rotation=30)
    axes.set_yticks(range(len(axis[down])), [_written(value) for value in axis[down]])


def _scatter(axes: Axes, entry: Entry, across: str, down: str) -> None:
    """Points that were drawn out of a range: the better, the brighter."""
    by, trials = metric(entry["metric"]), _scored(entry, True)
    places = [[trial["values"][name] for trial in trials] for name in (across, down)]
    means = [by.sign * trial["mean"] for trial in trials]
    edges = ["black" if trial["number"] in entry["ties"] else "none" for trial in trials]
    axes.scatter(places[0], places[1], c=means, cmap=_colours(), s=45, edgecolors=edges)
    for trial, x, y in zip(trials, *places, strict=True):
        beside(axes, f"{by.shown(trial['mean']):.1f}", x, y)
    for name, scale in ((across, axes.set_xscale), (down, axes.set_yscale)):
        if isinstance(entry["grid"][name], Mapping) and entry["grid"][name]["log"]:
            scale("log")
    tidy(axes, grid="both")


def _front(axes: Axes, entry: Entry) -> None:
    by = metric(entry["metric"])
    points = [(t["uplink_bytes"] / 1e6, by.shown(t["mean"]), t["number"]) for t in _scored(entry, True)]
    for x, y, number in points:
        style = mark(0) if number in entry["front"] else {"color": "0.5", "marker": "."}
        axes.plot([x], [y], linestyle="none", markersize=6, **style)
    ahead = sorted((x, y) for x, y, number in points if number in entry["front"])
    axes.step([x for x, _ in ahead], [y for _, y in ahead], where="post", color="0.4", linewidth=1)
    tidy(axes, grid="both")


def _in_order(values: Sequence[Any]) -> list[Any]:
    """Each value once: numbers by size, and others as they come."""
    found = [value for place, value in enumerate(values) if value not in values[:place]]
    return sorted(found) if all(isinstance(value, int | float) for value in found) else found


def _written(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _colours() -> Any:
    return mpl.colormaps["viridis"]
