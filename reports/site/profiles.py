"""Methods over all tasks of a table at once: performance profiles and the probability of improvement.

Profiles follow Dolan and Moré (2002), by distance from the best in points, as scores of 0 have no ratio. Both are over
seeds and tasks as in Agarwal et al. (2021, section 4.3), with their stratified bootstrap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.measures import metric
from reports.evidence.inference import LEVEL
from reports.evidence.records import Request
from reports.evidence.scores import defined, scores_of
from reports.pages.text import NOTHING, span
from reports.site import html
from reports.site.charts import COLOUR, Chart, chart_of, fields
from reports.site.site_data import SiteData
from reports.views import view_class
from reports.views.scores import ScoreTable

RESAMPLES = 1000
FEWEST_TASKS = 3  # fewer tasks give no statement about "tasks"
STEPS = 61
Runs = dict[str, dict[str, np.ndarray]]  # method -> task -> scores in percent, one per seed, higher is better


def profile_page(site: SiteData) -> Iterator[tuple[str, str]]:
    """The page over tasks and its data, by path."""
    sections, data = [], ""
    for request in site.requests:
        if runs := runs_of(request):
            name = f"profiles-{request.benchmark.id}-{request.scale.id}"
            data += html.script(name, _chart(runs))
            seeds = span([len(scores) for tasks in runs.values() for scores in tasks.values()])
            tasks = [column.name for column in request.columns if column.task in next(iter(runs.values()))]
            sections.append((name, request, tasks, seeds, _improvements(runs)))
    if sections:
        yield "data/profiles.js", data
    values: Any = {"title": "Over tasks", "here": "profiles", "site": site, "sections": sections}
    yield html.PROFILES, html.rendered("profiles", html.PROFILES, **values)


def runs_of(request: Request) -> Runs:
    """The scores of methods that share at least three tasks; {} for fewer than two methods."""
    view = view_class(request.benchmark)
    if not (issubclass(view, ScoreTable) and view.averages):
        return {}
    columns = [column for column in request.columns if metric(column.averaged).unit == "%"]
    every = {
        row.name: {
            column.task: metric(column.averaged).sign * np.array(values)
            for column in columns
            if (values := defined(scores_of(request.records_of(row, column), column.averaged).at()))
        }
        for row in request.rows
    }
    tasks = _common([frozenset(scores) for scores in every.values()])
    if len(tasks) < FEWEST_TASKS:
        return {}
    kept = {name: scores for name, scores in every.items() if tasks <= set(scores)}
    return {name: {task: scores[task] for task in scores if task in tasks} for name, scores in kept.items()}


def _common(sets: Sequence[frozenset[str]]) -> frozenset[str]:
    """The set of tasks that compares two or more methods in the most cells."""
    options = {one & other for one, other in combinations(sets, 2)}
    sizes = {option: len(option) * sum(option <= tasks for tasks in sets) for option in options}
    return max(sorted(options, key=sorted), key=lambda option: sizes[option], default=frozenset())


def profile_shares(runs: Runs) -> tuple[list[float], dict[str, list[float]]]:
    """Distances from the best mean in points, and per method the share of runs within each, mean over tasks."""
    best = {task: max(float(scores[task].mean()) for scores in runs.values()) for task in next(iter(runs.values()))}
    gaps = {method: [best[task] - scores[task] for task in best] for method, scores in runs.items()}
    widest = max(float(gap.max()) for each in gaps.values() for gap in each)
    distances = np.linspace(0.0, max(widest, 1.0), STEPS).tolist()
    within = {
        method: [float(np.mean([np.mean(gap <= at + 1e-9) for gap in each])) for at in distances]
        for method, each in gaps.items()
    }
    return distances, within


def improvement(one: str, other: str, runs: Runs) -> tuple[float, tuple[float, float] | None]:
    """The probability that a run of the first method beats one of the second on a random task.

    Returns:
        The probability, and its interval by the stratified bootstrap over seeds; None if a method has one seed on some
        task.
    """
    pairs = [(runs[one][task], runs[other][task]) for task in runs[one]]
    probability = float(np.mean([_wins(*pair).mean() for pair in pairs]))
    if min(len(values) for pair in pairs for values in pair) < 2:
        return probability, None
    rng, means = np.random.default_rng(0), np.zeros(RESAMPLES)
    for pair in pairs:
        first, second = (_resampled(len(scores), rng) for scores in pair)
        means += ((first @ _wins(*pair)) * second).sum(axis=1) / len(pairs)
    low, high = np.quantile(means, (LEVEL, 1 - LEVEL))
    return probability, (float(low), float(high))


def _resampled(n: int, rng: np.random.Generator) -> np.ndarray:
    """The share of each of n seeds in every resample, [RESAMPLES, n]."""
    return rng.multinomial(n, [1 / n] * n, RESAMPLES) / n


def _wins(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """1 if a run of the first beats one of the second, ½ for ties: [n], [m] -> [n, m]."""
    gap = first[:, None] - second[None, :]
    return np.asarray((gap > 1e-9) + 0.5 * (np.abs(gap) <= 1e-9))


def _improvements(runs: Runs) -> html.Sheet:
    """The probability that the method on the left beats the one above."""
    lines = []
    for one in runs:
        line = [html.Entry(one, kind="row")]
        for other in runs:
            probability, interval = improvement(one, other, runs)
            note = " to ".join(f"{100 * end:.0f}" for end in interval or ())
            shown = html.Entry(f"{100 * probability:.0f} %", str(probability), note=note)
            line.append(html.Entry(NOTHING) if one == other else shown)
        lines.append(line)
    return html.sheet(("Method", *runs), lines)


def _chart(runs: Runs) -> Chart:
    """The share of runs within each distance in points from the best."""
    distances, within = profile_shares(runs)
    values = [
        {"method": method, "points": at, "share": share}
        for method, shares in within.items()
        for at, share in zip(distances, shares, strict=True)
    ]
    x = fields("points", title="within so many points of the best method's mean")
    y = fields("share", scale={"domain": [0, 1]}, title="share of runs, over tasks", axis={"format": "%"})
    tip = [{"field": "method"}, {"field": "points", "format": ".1f"}, {"field": "share", "format": ".0%"}]
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    encoding = {"x": x, "y": y, "color": COLOUR, "tooltip": tip}
    return chart_of({"height": 280, "mark": line, "encoding": encoding}, values)
