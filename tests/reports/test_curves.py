"""Curves against rounds, from synthetic records of Figures 3 and 4."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from benchmarks.fedsplitbert.figure3 import BENCHMARK as FIGURE3
from benchmarks.fedsplitbert.figure4 import BENCHMARK as FIGURE4
from benchmarks.record import RunRecord
from benchmarks.spec import View
from reports import ReportError
from reports.evidence.records import Request, request_for
from reports.pages.page import Grid, Line, Page
from reports.pages.plots import render
from reports.pages.render import markdown
from reports.pages.styles import colour_of, mark_of
from reports.views import page
from reports.views.curves import join
from reports.views.curves_plot import plot as curve_plot

RecordOf = Callable[..., RunRecord]
CurveOf = Callable[..., RunRecord]
ROWS = {row.id: row for row in FIGURE3.rows}
COLUMNS = {column.task: column for column in FIGURE3.columns}
FEDAVG = [0.50, 0.52, 0.51]


@pytest.fixture
def curve_of(record_of: RecordOf) -> CurveOf:
    """A record of Figure 3's cell whose rounds have these scores and losses."""

    def build(
        row: str,
        task: str,
        scores: Sequence[float | None],
        losses: Sequence[float] = (),
        seed: int = 0,
        scale: str = "lite",
    ) -> RunRecord:
        base = record_of("fedavg", "mrpc", {"test/f1": 0.5})
        evaluation, metric = COLUMNS[task].averaged.split("/")
        cell = FIGURE3.cell(ROWS[row], COLUMNS[task], FIGURE3.scale(scale), seed)
        rounds = tuple(
            replace(base.rounds[0], round=number, scores={evaluation: {metric: score}}, train_loss=loss)
            for number, (score, loss) in enumerate(zip(scores, losses or [None] * len(scores), strict=True), start=1)
        )
        digests = {name: entry["digest"] for name, entry in base.inputs.items()}
        return replace(base, cell=cell, cell_id=cell.cell_id(digests), rounds=rounds)

    return build


@pytest.fixture
def rte(curve_of: CurveOf) -> list[RunRecord]:
    """Two seeds of FedAvg, one of FedSplitBERT and of the local majority on RTE, at the lite scale."""
    return [
        curve_of("fedavg", "rte", FEDAVG, [0.70, 0.69, 0.66]),
        curve_of("fedavg", "rte", [0.54, 0.56, 0.57], [0.70, 0.67, 0.65], seed=1),
        curve_of("fedsplitbert", "rte", [0.60, 0.66, 0.65], [0.68, 0.5, 0.3]),
        curve_of("local-majority", "rte", [0.7]),
    ]


def request(records: Sequence[RunRecord], scale: str = "lite", tasks: Sequence[str] = ()) -> Request:
    columns = [column for column in FIGURE3.columns if column.task in tasks]
    return request_for(FIGURE3, FIGURE3.scale(scale), records, columns=columns)


def panel(asked: Request, title: str) -> Axes:
    return next(axes for axes in curve_plot(join(asked)).axes if axes.get_title().startswith(title))


def methods(axes: Axes) -> list[Line2D]:
    """The lines with marks: neither levels nor stated facts."""
    return [line for line in axes.lines if line.get_marker() != "None"]


def caption(asked: Request) -> str:
    (legend,) = curve_plot(join(asked)).legends
    return " ".join(legend.get_title().get_text().split())


def labels(asked: Request) -> list[str]:
    (legend,) = curve_plot(join(asked)).legends
    return [text.get_text() for text in legend.get_texts()]


def line_of(grid: Grid, method: str, label: str) -> Line:
    group = next(group for group in grid.groups if group.name == method)
    return next(line for line in group.lines if line.label == label)


def shown(records: Sequence[RunRecord], scale: str = "lite") -> tuple[Page, Grid]:
    made = page(request(records, scale))
    (grid,) = made.grids
    return made, grid


# ---- the figure --------------------------------------------------------------------------------------------------


def test_a_line_is_the_mean_over_seeds_against_rounds(rte: list[RunRecord]) -> None:
    fedavg, fedsplitbert = methods(panel(request(rte), "RTE"))
    assert list(fedavg.get_xdata()) == [1, 2, 3]
    assert list(fedavg.get_ydata()) == pytest.approx([52, 54, 54])  # (50, 52, 51) and (54, 56, 57)
    assert list(fedsplitbert.get_ydata()) == pytest.approx([60, 66, 65])


def test_a_band_spans_the_seeds_where_there_are_several(rte: list[RunRecord]) -> None:
    axes = panel(request(rte), "RTE")
    (band,) = (drawn for drawn in axes.collections if isinstance(drawn, PolyCollection))  # FedAvg's alone
    corners = {(round(x), round(y)) for x, y in band.get_paths()[0].vertices}
    assert corners >= {(1, 50), (1, 54), (2, 52), (2, 56), (3, 51), (3, 57)}
    assert "n = 1 to 2" in caption(request(rte))
    assert "band from the lowest to the highest seed" in caption(request(rte))
    single = [record for record in rte if record.cell.seed == 0]
    assert "n = 1)" in caption(request(single))
    assert "band" not in caption(request(single))


def test_colour_and_mark_belong_to_the_method_in_every_figure(curve_of: CurveOf) -> None:
    names = ("fedavg", "fedprox", "fedadam", "fedsplitbert")
    records = [curve_of(name, "wnli", [0.5, 0.6], [0.7, 0.6]) for name in names]
    whole = methods(panel(request(records), "WNLI"))
    shown = [ROWS[name].name for name in names]
    assert [line.get_color() for line in whole] == list(map(colour_of, shown))
    assert [line.get_marker() for line in whole] == list(map(mark_of, shown))
    assert len({(line.get_color(), line.get_marker()) for line in whole}) == 4
    assert len({line.get_linewidth() for line in whole}) == 4  # one under another of the same values still shows
    part = request_for(FIGURE4, FIGURE4.scale("lite"), records, rows=[ROWS["fedsplitbert"]])
    (alone,) = methods(panel(part, "WNLI"))
    assert (alone.get_color(), alone.get_marker()) == (colour_of("FedSplitBERT"), mark_of("FedSplitBERT"))


def test_the_local_majority_is_a_level(rte: list[RunRecord]) -> None:
    axes = panel(request(rte), "RTE")
    (level,) = (line for line in axes.lines if line.get_linestyle() == "--")
    assert list(level.get_ydata()) == pytest.approx([70, 70])
    assert "Majority-class baseline, by client †" in labels(request(rte))


def test_what_the_text_states_is_marked_in_its_panel_alone(rte: list[RunRecord], curve_of: CurveOf) -> None:
    asked = request([*rte, curve_of("fedsplitbert", "mrpc", [0.8, 0.8])])
    dotted = [line for line in panel(asked, "RTE").lines if line.get_linestyle() == ":"]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in dotted] == [
        ([0, 1], [64, 64]),  # across the panel at 64 %
        ([3, 3], [0, 1]),  # up the panel at round 3
    ]
    assert "stated" in [text.get_text() for text in panel(asked, "RTE").texts]
    assert not [line for line in panel(asked, "MRPC").lines if line.get_linestyle() == ":"]
    assert "stated: FedSplitBERT on RTE > 64 within 3 rounds" in labels(asked)
    assert "comparable in level at the paper scale only" in caption(asked)


def test_at_the_paper_scale_levels_are_comparable(curve_of: CurveOf) -> None:
    words = caption(request([curve_of("fedsplitbert", "rte", [0.6, 0.66], scale="paper")], "paper"))
    assert "stated in the paper's text." in words
    assert "comparable" not in words


def test_the_demo_shows_nothing_of_the_paper(curve_of: CurveOf) -> None:
    asked = request([curve_of("fedsplitbert", "rte", [0.6, 0.66], scale="demo")], "demo")
    axes = panel(asked, "RTE")
    assert len(methods(axes)) == len(axes.lines) == 1
    assert not axes.texts
    assert "tated" not in caption(asked) + " ".join(labels(asked))
    title = curve_plot(join(asked)).get_suptitle()
    assert "generated data" in " ".join(title.split())
    assert "stated" not in markdown(page(asked)).replace("The figure's c is not stated", "")


def test_tasks_without_a_curve_have_no_panel_and_are_named(rte: list[RunRecord], curve_of: CurveOf) -> None:
    level = curve_of("local-majority", "mrpc", [0.8])  # a reference's level alone is no curve
    asked = request([*rte, level])
    assert [axes.get_title() for axes in curve_plot(join(asked)).axes] == ["RTE: Acc (%)"]
    assert "no line: not run" in caption(asked)
    assert caption(asked).endswith("Not run: MRPC, STS-B, WNLI, QNLI, CoLA.")
    other = request([curve_of("fedavg", "mrpc", [0.8, 0.8])])
    assert "tated" not in caption(other) + " ".join(labels(other))  # on RTE, which has no panel


def test_where_nothing_was_run_every_panel_says_so() -> None:
    drawn = curve_plot(join(request([], "demo"))).axes
    assert [axes.get_title() for axes in drawn] == [
        "RTE: Acc (%)", "MRPC: Acc (%)", "STS-B: Pearson (%)", "WNLI: Acc (%)", "QNLI: Acc (%)", "CoLA: Mcc (%)",
    ]  # fmt: skip
    assert [[text.get_text() for text in axes.texts] for axes in drawn] == [["not run"]] * 6
    assert render(lambda: curve_plot(join(request([], "demo"))), "png")[0].startswith(b"\x89PNG")


@pytest.mark.parametrize("tasks", [["rte"], ["rte", "mrpc"], ["rte", "mrpc", "wnli", "cola"]])
def test_any_number_of_tasks_can_be_drawn(curve_of: CurveOf, tasks: list[str]) -> None:
    records = [curve_of("fedavg", task, [0.5, 0.6]) for task in tasks]
    panels = [axes for axes in curve_plot(join(request(records, tasks=tasks))).axes if axes.axison]
    assert len(panels) == len(tasks)


def test_an_undefined_score_is_a_gap(curve_of: CurveOf) -> None:
    records = [curve_of("fedavg", "stsb", [None, 0.4, 0.5])]
    (line,) = methods(panel(request(records), "STS-B"))
    first, *others = line.get_ydata()
    assert math.isnan(first)
    assert others == pytest.approx([40, 50])
    made, grid = shown(records)
    assert line_of(grid, "FedAvg", "round 1").cells[2] == "undefined"
    assert "FedAvg, STS-B: undefined for some seeds, which the mean leaves out, in rounds 1." in made.notes


def test_training_loss_has_its_own_axis_and_no_majority(rte: list[RunRecord]) -> None:
    asked = request_for(FIGURE4, FIGURE4.scale("lite"), rte)
    axes = panel(asked, "RTE")
    fedavg, fedsplitbert, alike = methods(axes)
    assert list(fedavg.get_ydata()) == pytest.approx([0.70, 0.68, 0.655])
    assert list(fedsplitbert.get_ydata()) == pytest.approx([0.68, 0.5, 0.3])
    assert list(alike.get_ydata()) == list(fedsplitbert.get_ydata())  # one cell, where neither was tuned
    assert len(axes.lines) == 3
    assert axes.get_ylabel() == "training loss"
    assert labels(asked) == ["FedAvg", "FedSplitBERT", "FedSplitBERT, c = 6, at FedAvg's rate †"]  # those that were run


# ---- the table ---------------------------------------------------------------------------------------------------


def test_the_table_has_a_line_a_round(rte: list[RunRecord]) -> None:
    made, grid = shown(rte)
    assert grid.headers[0] == ("RTE", "Acc (%)")
    assert [line_of(grid, "FedAvg", f"round {number}").cells[0] for number in (1, 2, 3)] == ["52.00", "54.00", "54.00"]
    assert line_of(grid, "FedAvg", "highest (round)").cells[0] == "54.00 (2)"  # the first of equals
    assert line_of(grid, "FedAvg", "± sd, last round").cells[0] == "4.24"  # of 51 and 57: 6 / √2
    assert line_of(grid, "FedAvg", "seeds (n)").cells[:2] == ("2", "–")
    assert line_of(grid, "FedAvg", "round 1").cells[1] == "not run"
    assert line_of(grid, "FedAvg", "round 2").cells[1] == "–"
    assert line_of(grid, "FedProx", "round 1").cells == ("not run",) * 6
    assert line_of(grid, "FedSplitBERT", "stated (within rounds)").cells[0] == "> 64.00 (3)"
    assert line_of(grid, "Majority-class baseline, by client †", "every round").cells[0] == "70.00"
    assert (made.run, made.cells) == (3, 5 * 6)
    assert "Not run: MRPC, STS-B, WNLI, QNLI, CoLA." in made.notes


def test_the_lowest_loss_is_shown_with_three_decimals(rte: list[RunRecord]) -> None:
    (grid,) = page(request_for(FIGURE4, FIGURE4.scale("lite"), rte)).grids
    assert line_of(grid, "FedSplitBERT", "lowest (round)").cells[0] == "0.300 (3)"
    assert line_of(grid, "FedAvg", "round 3").cells[0] == "0.655"


def test_the_frame_keeps_every_seed(rte: list[RunRecord]) -> None:
    made, _ = shown(rte)
    frame = made.frame()
    fedavg = frame[(frame["row"] == "fedavg") & (frame["column"] == "rte")]
    assert list(fedavg["round"]) == [1, 2, 3, 1, 2, 3]
    assert list(fedavg["seed"]) == [0, 0, 0, 1, 1, 1]
    assert list(fedavg["value"]) == pytest.approx([50, 52, 51, 54, 56, 57])
    assert set(fedavg["quantity"]) == {"test/accuracy"}
    assert (frame["status"] == "not run").sum() == 5 * 6 - 3
    assert frame[frame["status"] == "not run"]["value"].isna().all()
    assert made.csv.splitlines()[0].endswith("quantity,status,round,seed,value")


# ---- wrong inputs ------------------------------------------------------------------------------------------------


def test_a_record_without_the_score_is_named(curve_of: CurveOf) -> None:
    record = curve_of("fedavg", "rte", [0.5])
    damaged = replace(record, rounds=(replace(record.rounds[0], scores={"test": {"f1": 0.5}}),))
    with pytest.raises(ReportError, match=r"lite-rte-fedavg-s0-.*expected the score 'test/accuracy' of every round"):
        page(request([damaged]))


def test_an_unknown_quantity_is_refused() -> None:
    wrong = replace(FIGURE3, view=View("curves", {"quantity": "speed"}))
    with pytest.raises(ReportError, match="expected a quantity of score, train_loss, found 'speed'"):
        page(request_for(wrong, wrong.scale("lite"), []))


def test_a_curve_that_diverged_says_so(curve_of: CurveOf) -> None:
    whole = curve_of("fedavg", "rte", FEDAVG)
    stopped = replace(whole, rounds=whole.rounds[:1], diverged={"round": 2, "reason": "no finite loss"})
    shown = page(request([stopped, curve_of("fedsplitbert", "rte", [0.6, 0.7, 0.7])], tasks=["rte"]))
    lines = {group.name: group.lines for group in shown.grids[0].groups}
    assert lines["FedAvg"][0].cells == ("diverged in round 2",)
    assert lines["FedProx"][0].cells == ("not run",)
    assert set(shown.frame().query("row == 'fedavg'").status) == {"diverged in round 2"}
    assert shown.figure is not None
    assert render(shown.figure, "png")
