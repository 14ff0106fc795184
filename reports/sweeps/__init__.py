"""Pictures of sweeps: scores by trial, over two fields, and against uplink bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks.measures import metric
from benchmarks.spec import Benchmark, Scale
from reports.pages.plots import finish, mark, panels_of, say_not_run, tidy

LAYER, RATE = "options.critical_layer", "training.learning_rate"
Entry = Mapping[str, Any]
Draw = Callable[[Axes, Entry], None]


def figures(entries: Sequence[Entry], benchmark: Benchmark, scale: Scale) -> dict[str, Callable[[], Figure]]:
    """The pictures that these studies have, by name: a panel a study."""
    drawn: dict[str, tuple[Sequence[Entry], Draw, str, str]] = {
        "history": (
            entries,
            _history,
            "trial",
            "Line: the best so far. Hollow: pruned, by an early score.",
        ),
        "heatmap": (
            [entry for entry in entries if len(entry["grid"]) > 1],
            partial(_heatmap, benchmark=benchmark),
            "",
            "Of further fields the best. Bold: the best, and what equals it. In brackets: pruned, by the score after "
            "fewer rounds.",
        ),
        "front": (
            [entry for entry in entries if entry["front"] is not None],
            _front,
            "uplink, MB",
            "Uplink: all clients and rounds, mean over seeds. Line: none is as good in both and better in one.",
        ),
    }
    heading, about = heading_of(entries, benchmark, scale), f"Validation data, {seeds_of(entries)}."
    return {
        name: partial(_figure, studies, benchmark, heading, draw, xlabel, f"{about} {caption}")
        for name, (studies, draw, xlabel, caption) in drawn.items()
        if studies
    }


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
    """Scores over two fields, the better, the brighter; of several trials at a place the best whole one."""
    by, fields = metric(entry["metric"]), _fields(entry)
    shown: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for trial in sorted([*_scored(entry, True), *_scored(entry, False)], key=lambda t: by.sign * t["mean"]):
        place = tuple(_position(entry, name, trial["values"][name]) for name in fields)
        if place not in shown or "given_up_after" not in trial or "given_up_after" in shown[place]:
            shown[place] = trial
    for (x, y), trial in shown.items():
        text = f"{by.shown(trial['mean']):.1f}"
        weight = "bold" if trial["number"] in entry["ties"] else "normal"
        pruned = "given_up_after" in trial
        axes.text(x, y, f"({text})" if pruned else text, ha="center", va="bottom", fontsize=7, fontweight=weight)
    whole = {place: by.sign * trial["mean"] for place, trial in shown.items() if "given_up_after" not in trial}
    if whole:
        axes.scatter(*zip(*whole, strict=True), c=list(whole.values()), cmap="viridis", marker="s", s=60)
    axes.margins(0.2)
    tidy(axes, grid="both")
    axis = (axes.set_xlabel, axes.set_xticks, axes.set_xscale), (axes.set_ylabel, axes.set_yticks, axes.set_yscale)
    for name, (label, ticks, scaled) in zip(fields, axis, strict=True):
        unit = benchmark.units.get(name)
        label(f"{unit.name}, of {unit.of}" if unit else name.rpartition(".")[2].replace("_", " "), fontsize=8)
        if isinstance(entry["grid"][name], Mapping):
            scaled("log" if entry["grid"][name]["log"] else "linear")
        else:
            values = _in_order([trial["values"][name] for trial in entry["trials"]])
            ticks(range(len(values)), [f"{v:.3g}" if isinstance(v, float) else str(v) for v in values])


def _position(entry: Entry, name: str, value: Any) -> Any:
    """Where a value stands on its axis: numbers of a range by size, values of a grid one after the other."""
    if isinstance(entry["grid"][name], Mapping):
        return value
    return _in_order([trial["values"][name] for trial in entry["trials"]]).index(value)


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
    once = [value for place, value in enumerate(values) if value not in values[:place]]
    return sorted(once) if all(isinstance(value, int | float) for value in once) else once
