"""Bytes and scores against the critical layer, from synthetic records of Figure 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from benchmarks.costs import ModelSizes, WirePlan
from benchmarks.fedsplitbert.figure5 import BENCHMARK as FIGURE5
from benchmarks.record import RunRecord
from benchmarks.spec import Column, Row, Scale
from reports.evidence.records import Request, request_for
from reports.pages.page import Grid, Line, Page
from reports.pages.plots import PALETTE, render
from reports.views import page
from reports.views.layers import join
from reports.views.layers_plot import plot as layer_plot

RecordOf = Callable[..., RunRecord]
LayerOf = Callable[..., RunRecord]
ROWS = {row.id: row for row in FIGURE5.rows}
COLUMNS = {column.task: column for column in FIGURE5.columns}
LAYER_BYTES = 10_000_000  # in one direction, all clients: a made-up size of one layer of the synthetic encoder


@pytest.fixture
def layer_of(record_of: RecordOf) -> LayerOf:
    """A record of Figure 5's cell with one score and as many bytes as its layers have."""

    def build(
        row: str, task: str, score: float, *, seed: int = 0, scale: str = "lite", error: float = 0.02
    ) -> RunRecord:
        name = COLUMNS[task].averaged
        cell = FIGURE5.cell(ROWS[row], COLUMNS[task], FIGURE5.scale(scale), seed)
        layers = 0 if row == "local-majority" else cell.options.get("critical_layer", FIGURE5.scale(scale).depth)
        up = (layers * LAYER_BYTES,) * 2
        base = record_of("fedavg", "mrpc", {name: score}, errors={name: error}, up=up)
        digests = {name: entry["digest"] for name, entry in base.inputs.items()}
        return replace(base, cell=cell, cell_id=cell.cell_id(digests))

    return build


@pytest.fixture
def records(layer_of: LayerOf) -> list[RunRecord]:
    """MRPC at three c, one of them with two seeds, and the local majority."""
    return [
        layer_of("c12", "mrpc", 0.70),
        layer_of("c6", "mrpc", 0.80),
        layer_of("c6", "mrpc", 0.82, seed=1),
        layer_of("c0", "mrpc", 0.78),
        layer_of("local-majority", "mrpc", 0.81),
    ]


def derive(row: Row, column: Column, scale: Scale, examples: int | None = None) -> WirePlan:
    """85 MB a layer of the scale's encoder."""
    size = 85_000_000 * int(FIGURE5.cell(row, column, scale, 0).options.get("critical_layer", scale.depth))
    return WirePlan(size, size, 0, {}, ModelSizes(0, 85_000_000, 0, 0, 0, 1, True))


def request(records: Sequence[RunRecord], scale: str = "lite", derived: bool = True) -> Request:
    return request_for(FIGURE5, FIGURE5.scale(scale), records, derive=derive if derived else None)


def panel(asked: Request, title: str) -> Axes:
    return next(axes for axes in layer_plot(join(asked)).axes if axes.get_title().startswith(title))


def points(line: Line2D) -> list[tuple[float, float]]:
    return [(float(x), round(float(y), 6)) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def curves(axes: Axes, style: str, color: str = PALETTE[0]) -> list[Line2D]:
    """Lines of a task, by style: "-" ours, ":" published, "--" levels."""
    return [line for line in axes.lines if line.get_linestyle() == style and line.get_color() == color]


def caption(asked: Request) -> str:
    (legend,) = layer_plot(join(asked)).legends
    return " ".join(legend.get_title().get_text().split())


def labels(asked: Request) -> list[str]:
    (legend,) = layer_plot(join(asked)).legends
    return [text.get_text() for text in legend.get_texts()]


def line_of(grid: Grid, group: str, label: str) -> Line:
    found = next(entry for entry in grid.groups if entry.name == group)
    return next(line for line in found.lines if line.label.startswith(label))


def shown(asked: Request) -> tuple[Page, Grid]:
    made = page(asked)
    (grid,) = made.grids
    return made, grid


# ---- bytes -------------------------------------------------------------------------------------------------------


def test_measured_megabytes_stand_against_c_of_the_papers_layers(records: list[RunRecord]) -> None:
    axes = panel(request(records), "measured, all-MiniLM-L6-v2")
    (line,) = axes.lines
    assert points(line) == [(0, 0), (6, 30), (12, 60)]  # c of 12; 0, 3 and 6 layers of 6, 10 MB each
    assert [text.get_text() for text in axes.texts] == ["0", "30", "60"]
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert ticks == ["0\n(0 of 6)", "4\n(2 of 6)", "6\n(3 of 6)", "8\n(4 of 6)", "10\n(5 of 6)", "12\n(6 of 6)"]


def test_derived_megabytes_are_those_of_the_papers_encoder(records: list[RunRecord]) -> None:
    (line,) = panel(request(records), "derived, bert-base-uncased").lines
    assert points(line) == [(c, 85 * c) for c in (0, 4, 6, 8, 10, 12)]  # run or not
    titles = [axes.get_title() for axes in layer_plot(join(request(records, derived=False))).axes]
    assert titles == ["measured, all-MiniLM-L6-v2", "test scores"]


def test_at_the_papers_depth_c_stands_alone(layer_of: LayerOf) -> None:
    asked = request([layer_of("c6", "mrpc", 0.8, scale="paper")], "paper")
    axes = panel(asked, "measured")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "4", "6", "8", "10", "12"]
    assert points(axes.lines[0]) == [(6, 60)]
    _, grid = shown(asked)
    assert [group.name for group in grid.groups] == [
        "Majority-class baseline, by client †", "c = 12", "c = 10", "c = 8", "c = 6", "c = 4", "c = 0",
    ]  # fmt: skip
    assert "in brackets" not in caption(asked)
    assert "Hollow: reported." in caption(asked)


# ---- scores ------------------------------------------------------------------------------------------------------


def test_ours_is_filled_and_print_is_hollow(records: list[RunRecord]) -> None:
    axes = panel(request(records), "test scores")
    (ours,) = curves(axes, "-")
    assert points(ours) == [(0, 78), (6, 81), (12, 70)]
    (published,) = curves(axes, ":")
    assert points(published) == [(0, 86.21), (4, 85.96), (6, 86.85), (8, 86.15), (10, 86.03), (12, 83.96)]  # Table IV
    assert published.get_markerfacecolor() == "white"
    assert ours.get_marker() == published.get_marker()
    assert [len(curves(axes, ":", color)) for color in PALETTE[:3]] == [1, 0, 0]  # of the task that was run
    assert not curves(axes, "-", PALETTE[1])
    assert "reported (Table IV)" in labels(request(records))
    assert "Hollow: reported, not comparable in level: other encoder/scale." in caption(request(records))
    assert caption(request(records)).endswith("Not run: CoLA, RTE.")


def test_whiskers_are_seed_noise_or_test_noise(records: list[RunRecord]) -> None:
    axes = panel(request(records), "test scores")
    (whiskers,) = (drawn for drawn in axes.collections if isinstance(drawn, LineCollection))
    lengths = [(high[1] - low[1]) / 2 for low, high in whiskers.get_segments()]
    assert lengths == pytest.approx([2, 2**0.5, 2])  # sampling error; sd of 80 and 82; sampling error
    assert "n = 1 to 2 (last round)" in caption(request(records))


def test_rows_without_a_c_are_levels(records: list[RunRecord]) -> None:
    (level,) = curves(panel(request(records), "test scores"), "--")
    assert list(level.get_ydata()) == pytest.approx([81, 81])
    assert "Majority-class baseline, by client †, in the task's colour" in labels(request(records))


def test_the_demo_shows_nothing_published(layer_of: LayerOf) -> None:
    asked = request([layer_of("c6", "mrpc", 0.8, scale="demo")], "demo")
    assert not [line for line in panel(asked, "test scores").lines if line.get_linestyle() == ":"]
    assert not [label for label in labels(asked) if "reported" in label]
    assert "ublished" not in caption(asked)
    _, grid = shown(asked)
    assert all(line.label != "reported" for group in grid.groups for line in group.lines)
    assert "generated data" in " ".join(layer_plot(join(asked)).get_suptitle().split())


def test_nothing_run_is_said_in_both_panels() -> None:
    asked = request([], "demo", derived=False)
    assert [[text.get_text() for text in axes.texts] for axes in layer_plot(join(asked)).axes] == [["not run"]] * 2
    assert "n =" not in caption(asked)
    assert render(lambda: layer_plot(join(asked)), "png")[0].startswith(b"\x89PNG")


# ---- the table ---------------------------------------------------------------------------------------------------


def test_the_table_has_scores_and_bytes_of_every_c(records: list[RunRecord]) -> None:
    made, grid = shown(request(records))
    assert grid.headers == (
        ("MRPC", "Acc"),
        ("CoLA", "Mcc"),
        ("RTE", "Acc"),
        ("MB per round", "measured"),
        ("MB per round", "derived for bert-base-uncased"),
    )
    assert line_of(grid, "c = 6 (3 of 6)", "reproduced").cells == ("81.00", "not run", "not run", "30.00", "510.00")
    assert line_of(grid, "c = 4 (2 of 6)", "reproduced").cells == ("not run", "not run", "not run", "not run", "340.00")
    assert line_of(grid, "c = 6 (3 of 6)", "reported").cells == ("86.85", "51.17", "73.76", "", "")
    assert line_of(grid, "c = 6 (3 of 6)", "± sd (n)").cells[0] == "1.41 (2)"
    assert line_of(grid, "Majority-class baseline, by client †", "reproduced").cells == (
        "81.00",
        "not run",
        "not run",
        "",
        "",
    )
    assert (made.run, made.cells) == (4, 7 * 3)
    assert "Not run: CoLA, RTE." in made.notes
    assert any(note.startswith("reported: Table IV;") for note in made.notes)


def test_all_tasks_run_bring_no_average(layer_of: LayerOf) -> None:
    _, grid = shown(request([layer_of("c6", task, 0.8) for task in COLUMNS]))
    assert len(line_of(grid, "c = 6 (3 of 6)", "reproduced").cells) == len(COLUMNS) + 2


def test_the_frame_says_c_and_both_sizes(records: list[RunRecord]) -> None:
    frame = page(request(records)).frame()
    assert len(frame) == 7 * 3
    (line,) = frame[(frame["row"] == "c6") & (frame["column"] == "mrpc")].to_dict("records")
    assert (line["critical_layer"], line["layers_exchanged"]) == (6, 3)
    assert (line["round_bytes"], line["derived_round_bytes"]) == (30_000_000, 510_000_000)
    assert (line["place"], line["ours"], line["published"]) == ("Figure 5", pytest.approx(81), 86.85)
    assert frame[frame["row"] == "local-majority"]["critical_layer"].isna().all()


def test_best_round_is_named(records: list[RunRecord]) -> None:
    asked = request_for(FIGURE5, FIGURE5.scale("lite"), records, score_at="best")
    assert "(best round)" in caption(asked)
    assert any("best round, chosen on the test score itself" in note for note in page(asked).notes)
