"""The bars of Figure 6."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from benchmarks.fedsplitbert.figure6 import BENCHMARK as FIGURE6
from benchmarks.record import RunRecord
from reports.evidence.records import request_for
from reports.pages.page import Page
from reports.pages.plots import render
from reports.views import page
from reports.views.targets import join
from reports.views.targets_plot import plot as target_plot

RunOf = Callable[..., RunRecord]
Shown = Callable[..., Page]
COLUMNS = {column.task: column for column in FIGURE6.columns}


def panels(records: Sequence[RunRecord], scale: str = "lite") -> dict[str, Axes]:
    """Task -> its panel of Figure 6."""
    drawn = target_plot(join(request_for(FIGURE6, FIGURE6.scale(scale), records)))
    names = {column.name: task for task, column in COLUMNS.items()}
    return {names[axes.get_title().partition(":")[0]]: axes for axes in drawn.axes if axes.axison}


def bars(axes: Axes) -> list[tuple[int, float, bool]]:
    """Place, megabytes at its end and hatch of every bar."""
    found = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    ends = ((bar, round(float(bar.get_x() + bar.get_width()), 9)) for bar in found)
    return [(round(bar.get_y() + bar.get_height() / 2), end, bool(bar.get_hatch())) for bar, end in ends]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_bars_are_megabytes_to_the_scale_free_target(run_of: RunOf) -> None:
    axes = panels(
        [
            run_of("fedavg", "rte", 0.5, 0.6),
            run_of("fedprox", "rte", 0.5, 0.5),
            run_of("fedsplitbert", "rte", 0.7, 0.5),
        ]
    )["rte"]
    assert axes.get_title() == "RTE: Acc ≥ 60.00 % (FedAvg's best round)"
    assert bars(axes) == [(0, 80, False), (1, 80, True), (2, 20, False)]  # rows that were run; hatched: censored
    assert texts(axes) == [
        "80 MB, 2 rounds\nstated: ≥ 5000 MB",
        "> 80 MB: not reached\nstated: ≥ 5000 MB",
        "20 MB, 1 round\nstated: ≈ 1000 MB",
    ]
    assert len({bar.get_edgecolor() if bar.get_hatch() else bar.get_facecolor() for bar in axes.patches}) == 3
    assert not axes.lines  # other encoder: what is stated is no length on this axis


def test_at_the_papers_scale_the_target_is_the_printed_one_and_facts_are_marked(run_of: RunOf) -> None:
    axes = panels([run_of("fedavg", "rte", 0.5, 0.7, 0.6, scale="paper")], "paper")["rte"]
    assert axes.get_title() == "RTE: Acc ≥ 64.00 % (printed)"
    assert bars(axes) == [(0, 80, False)]
    assert axes.get_xscale() == "log"
    marks = [point for line in axes.lines for point in np.asarray(line.get_xydata()).tolist()]
    assert marks == [[5000, 0]]


def test_a_changed_scale_is_not_comparable(run_of: RunOf) -> None:
    changed = replace(FIGURE6.scale("paper"), changes=("on another encoder",))
    request = request_for(FIGURE6, changed, [run_of("fedavg", "rte", 0.7, scale="paper")])
    drawn = target_plot(join(request))
    assert not drawn.axes[0].lines
    assert "stated: ≥ 5000 MB" in texts(drawn.axes[0])[0]
    stated = [note for note in page(request).notes if note.startswith("Stated")]
    assert stated
    assert all("not comparable" in note for note in stated)


def test_the_demo_shows_nothing_stated(shown: Shown, run_of: RunOf) -> None:
    axes = panels([run_of("fedsplitbert", "rte", 0.7, scale="demo")], "demo")["rte"]
    assert not any("stated" in text for text in texts(axes))
    made = shown([run_of("fedsplitbert", "rte", 0.7, scale="demo")], FIGURE6, "demo")
    assert not any(note.startswith("Stated") for note in made.notes)
    assert texts(axes) == ["no target"]  # FedAvg, which sets it, was not run
    assert axes.get_title() == "RTE: FedAvg, which sets the target, was not run"


def test_seeds_that_miss_are_counted_in_the_figure(run_of: RunOf) -> None:
    base = [run_of("fedavg", "wnli", 0.5, 0.4), run_of("fedavg", "wnli", 0.3, 0.5, seed=1)]
    axes = panels([*base, run_of("fedprox", "wnli", 0.4, 0.4), run_of("fedprox", "wnli", 0.3, 0.6, seed=1)])["wnli"]
    # Target 0.5 in both: after round 1 in seed 0, after round 2 in seed 1.
    assert texts(axes) == ["60 MB, 1.50 rounds", "> 80 MB: not reached by 1 of 2 seeds"]
    assert bars(axes) == [(0, 60, False), (1, 80, True)]


def test_what_sends_nothing_has_no_bound(run_of: RunOf) -> None:
    records = [
        run_of("fedavg", "mrpc", 0.5, 0.7),
        run_of("local-majority", "mrpc", 0.6),
        run_of("fedprox", "mrpc", 0.6),
    ]
    assert texts(panels(records)["mrpc"])[:3] == ["not reached", "80 MB, 2 rounds", "> 40 MB: not reached"]


def test_only_tasks_with_bytes_until_a_target_have_a_panel(shown: Shown, run_of: RunOf) -> None:
    records = [run_of("fedavg", "rte", 0.5), run_of("fedsplitbert", "mrpc", 0.5)]  # of MRPC, no FedAvg: no target
    assert list(panels(records)) == ["rte"]
    drawn = target_plot(join(request_for(FIGURE6, FIGURE6.scale("lite"), records)))
    said = " ".join(drawn.legends[0].get_title().get_text().split())
    assert said.endswith("were not run: MRPC, WNLI, QNLI.")


def test_where_nothing_was_run_every_panel_says_so(shown: Shown, run_of: RunOf) -> None:
    found = panels([])
    assert [texts(found[task]) for task in COLUMNS] == [["not run"]] * 4
    made = shown([run_of("fedavg", "rte", 0.5)], FIGURE6)
    assert made.figure is not None
    assert render(made.figure, "png")[0].startswith(b"\x89PNG")
