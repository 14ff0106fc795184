"""Methods crossed with variants: which row stands where, what is left out, and the bars."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from rich.console import Console

from benchmarks.fedfreezebert.setup import HEADS, METHODS
from benchmarks.fedfreezebert.table3 import BENCHMARK as TABLE3
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark, View
from reports.evidence.records import request_for
from reports.pages.latex import latex
from reports.pages.page import Grid, Line, Page
from reports.pages.render import markdown, print_page
from reports.views import page
from reports.views.crossed import Crossed, join
from reports.views.crossed_plot import plot as crossed_plot

F1, ACC = "test/f1", "test/accuracy"
RecordOf = Callable[..., RunRecord]
PRINT = (
    "table,row,column,score,value,derivation\n"
    "Table III,fedsplitbert-qat,mrpc,test/accuracy,80,\n"
    "Table III,fedsplitbert,mrpc,test/accuracy,,{fedsplitbert-qat} / 1.25\n"
)
PLACES = {
    "FedSplitBERT": {"fp32": "fedsplitbert", "fp16": "fedsplitbert-qat"},
    "FedAvg": {"fp32": "fedavg", "fp16": "fedavg-fp16"},
    "FedProx": {"fp32": "fedprox"},
}


@pytest.fixture(scope="module")
def table(table3: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Two tasks of Table III, accuracy first: three methods, each in fp32 and two in fp16, and a reference."""
    path = tmp_path_factory.mktemp("published") / "table3.csv"
    path.write_text(PRINT, encoding="utf-8")
    placed = {row_id for rows in PLACES.values() for row_id in rows.values()}
    return replace(
        table3,
        rows=tuple(row for row in table3.rows if row.id in placed | {"majority"}),
        columns=tuple(replace(column, averaged=ACC) for column in table3.columns if column.task in ("mrpc", "rte")),
        published_csv=path,
        view=View("crossed", {"variant": "element type", "methods": PLACES}),
    )


@pytest.fixture
def records(record_of: RecordOf) -> list[RunRecord]:
    """MRPC: two seeds of two rows, one of the reference."""
    return [
        record_of("fedsplitbert", "mrpc", {F1: 0.8, ACC: 0.70}, errors={F1: 0.02, ACC: 0.01}),
        record_of("fedsplitbert", "mrpc", {F1: 0.8, ACC: 0.72}, seed=1, errors={F1: 0.02, ACC: 0.01}),
        record_of("fedavg-fp16", "mrpc", {F1: 0.6, ACC: 0.0}, up=(8, 8), timing={"train_seconds": 90.0}),
        record_of("majority", "mrpc", {F1: 0.5, ACC: 0.65}, up=(0, 0), down=(0, 0)),
    ]


def shown(table: Benchmark, records: Sequence[RunRecord], methods: Sequence[str] = (), scale: str = "lite") -> Page:
    rows = [row for row in table.rows if row.id in methods]
    return page(request_for(table, table.scale(scale), records, rows))


def joined(table: Benchmark, records: Sequence[RunRecord], methods: Sequence[str] = ()) -> Crossed:
    return join(request_for(table, table.scale("lite"), records, [row for row in table.rows if row.id in methods]))


def lines(grid: Grid, name: str) -> Mapping[str, Line]:
    return {line.label: line for group in grid.groups if group.name == name for line in group.lines}


# ---- tables ------------------------------------------------------------------------------------------------------


def test_rows_stand_in_their_lines_and_columns(table: Benchmark, records: list[RunRecord]) -> None:
    scores, other, _ = shown(table, records).grids
    assert scores.headers == other.headers == (("fp32",), ("fp16",))
    assert [group.name for group in scores.groups] == ["Local majority †", "FedSplitBERT", "FedAvg", "FedProx"]
    assert scores.title.endswith("MRPC, Acc, test: 63")  # 20 + 21 + 22; the score that counts comes first
    assert other.title.endswith("MRPC, F1, test: 63")
    assert lines(scores, "FedSplitBERT")["reproduced"].cells == ("71.00", "not run")
    assert lines(scores, "FedSplitBERT")["± sd (n)"].cells == ("1.41 (2)", "–")
    assert lines(scores, "FedSplitBERT")["± SE (test set)"].cells == ("1.00", "–")
    assert lines(scores, "FedAvg")["reproduced"].cells == ("not run", "0.00")
    assert lines(scores, "FedProx")["reproduced"].cells == ("not run", "–")  # no such row
    assert lines(other, "FedSplitBERT")["reproduced"].cells == ("80.00", "not run")


def test_a_reference_holds_for_every_variant(table: Benchmark, records: list[RunRecord]) -> None:
    made = shown(table, records)
    for grid, expected in zip(made.grids, ("65.00", "50.00"), strict=False):
        assert lines(grid, "Local majority †")["reproduced"].cells == (expected, expected)
    assert made.notes[0] == "Columns: element type; the same in every column: Local majority."
    alone = shown(table, records, ["majority"])
    assert alone.grids[0].headers == (("fp32",), ("fp16",))
    assert [group.name for group in alone.grids[0].groups] == ["Local majority †"]


def test_published_values_stand_where_there_are_some(table: Benchmark, records: list[RunRecord]) -> None:
    scores, other, _ = shown(table, records).grids
    split = lines(scores, "FedSplitBERT")
    assert split["reported"].cells == ("≈ 64.00", "80.00")
    assert "difference" not in split  # at this scale levels are not comparable
    assert "reported" not in lines(scores, "FedAvg")
    assert "reported" not in lines(other, "FedSplitBERT")
    demo = shown(table, [], scale="demo")
    assert not any(line.label == "reported" for grid in demo.grids for group in grid.groups for line in group.lines)


def test_bytes_by_method_and_variant(table: Benchmark, records: list[RunRecord]) -> None:
    *_, sent = shown(table, records).grids
    assert [group.name for group in sent.groups] == ["Local majority †", "FedSplitBERT", "FedAvg"]  # what was run
    avg = lines(sent, "FedAvg")
    assert avg["per round"].cells == ("–", "8 B")
    assert avg["uplink, all rounds"].cells == ("–", "16 B")
    assert avg["downlink, all rounds"].cells == ("–", "1.60 kB")
    assert avg["one-time model distribution"].cells == ("–", "12.00 kB")
    assert avg["training"].cells == ("–", "1.5 min")
    assert lines(sent, "Local majority †")["uplink, all rounds"].cells == ("0 B", "0 B")


def test_a_part_leaves_out_the_rest(table: Benchmark, records: list[RunRecord]) -> None:
    part = joined(table, records, ["fedsplitbert-qat", "fedavg-fp16"])
    assert part.variants == ("fp16",)
    assert [method.name for method in part.methods] == ["FedSplitBERT", "FedAvg"]
    scores, *_ = shown(table, records, ["fedsplitbert", "fedavg-fp16"]).grids
    assert lines(scores, "FedSplitBERT")["reproduced"].cells == ("71.00", "–")
    assert lines(scores, "FedAvg †")["reproduced"].cells == ("–", "0.00")  # what is left of it is in no paper


def test_several_tasks_have_tables_of_their_own_and_no_average(
    table: Benchmark, records: list[RunRecord], record_of: RecordOf
) -> None:
    made = shown(table, [*records, record_of("fedsplitbert", "rte", {F1: 0.3, ACC: 0.4})])
    titles = [grid.title.removeprefix(made.request.heading) for grid in made.grids]
    assert [title.split(",")[0] for title in titles] == [": MRPC"] * 3 + [": RTE"] * 3
    assert all(len(line.cells) == 2 for grid in made.grids for group in grid.groups for line in group.lines)
    assert len(crossed_plot(joined(table, [*records, record_of("majority", "rte", {F1: 0.5, ACC: 0.5})])).axes) == 2


def test_nothing_run_is_said(table: Benchmark) -> None:
    made = shown(table, [])
    assert (made.run, made.cells) == (0, 12)
    assert lines(made.grids[0], "FedProx")["reproduced"].cells == ("not run", "–")
    assert not [grid for grid in made.grids if "bytes" in grid.title]


def test_the_frame_is_that_of_scores(table: Benchmark, records: list[RunRecord]) -> None:
    frame = shown(table, records).frame()
    assert len(frame) == 6 * 2 * 2  # rows, tasks, scores; no line of an average
    (line,) = frame[(frame["row"] == "fedsplitbert") & (frame["score"] == ACC) & (frame["task"] == "MRPC")].to_dict(
        "records"
    )
    assert (line["ours"], line["published"], line["derivation"]) == (71.0, 64.0, "{fedsplitbert-qat} / 1.25")


def test_every_renderer_draws_it(table: Benchmark, records: list[RunRecord]) -> None:
    made = shown(table, records)
    stream = io.StringIO()
    print_page(made, Console(file=stream, width=120))
    for text in (stream.getvalue(), markdown(made)):
        assert "≈ 64.00" in text
        assert "derived from the text's relative gains" in text
        assert "Deviation encoder" in text
    assert r"$\approx$ 64.00" in latex(made)


# ---- bars --------------------------------------------------------------------------------------------------------


def test_bars_are_variants_and_references_levels(table: Benchmark, records: list[RunRecord]) -> None:
    figure = crossed_plot(joined(table, records))
    (axes,) = figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["FedSplitBERT", "FedAvg"]  # what was run
    heights = [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert sorted(heights) == pytest.approx([0, 71])
    assert [text.get_text() for text in axes.texts] == ["0"]  # FedAvg's fp16 was run, and its bar cannot be seen
    (level,) = (line for line in axes.lines if line.get_linestyle() == "--")
    assert np.asarray(level.get_ydata()).tolist() == pytest.approx([65, 65])
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["fp32", "fp16", "reported", "derived from the paper's text", "Local majority †"]
    caption = " ".join(legend.get_title().get_text().split())
    assert caption.startswith("Bars of a group: element type.")
    assert "not comparable in level" in caption


def test_references_alone_can_be_drawn(table: Benchmark, records: list[RunRecord]) -> None:
    (axes,) = crossed_plot(joined(table, records, ["majority"])).axes
    assert len(axes.lines) == 1
    assert not axes.patches


# ---- the definition ----------------------------------------------------------------------------------------------


def test_table_3_places_every_row_once() -> None:
    options: Mapping[str, Any] = TABLE3.view.options
    placed = [row_id for rows in options["methods"].values() for row_id in rows.values()]
    references = [row.id for row in TABLE3.rows if row.id not in placed]
    assert references == ["overall-majority", "local-majority", "linear"]
    assert len(set(placed)) == len(placed) == len(TABLE3.rows) - len(references)
    by_id = {row.id: row for row in TABLE3.rows}
    for name in (method.name for method in METHODS):
        rows = options["methods"][name]
        assert list(rows) == list(HEADS.values())
        assert [by_id[row_id].name for row_id in rows.values()] == [f"{name} · {variant}" for variant in rows]
    others = set(options["methods"]) - {method.name for method in METHODS}
    assert others == {"FedAvg · ordinary, at 0.0005"}  # one aggregation architecture alone


def test_table_3_fits_120_columns() -> None:
    made = page(request_for(TABLE3, TABLE3.scale("paper"), []))
    stream = io.StringIO()
    print_page(replace(made, notes=()), Console(file=stream, width=120))
    assert stream.getvalue().count("Method") == len(made.grids) == 2  # no table is cut in two


@pytest.mark.parametrize("methods", [("c-psum", "d-fedavg-psum"), ("c-psum", "d-fedavg-hsum")])
def test_table_3_in_part(methods: tuple[str, ...]) -> None:
    scores, _ = page(
        request_for(TABLE3, TABLE3.scale("paper"), [], [row for row in TABLE3.rows if row.id in methods])
    ).grids
    assert [group.name for group in scores.groups] == ["D-FedFreezeBERT, FedAvg", "C-FedFreezeBERT"]
    one = len({method.split("-")[-1] for method in methods}) == 1
    assert [header[0] for header in scores.headers] == (["P-SUM"] if one else ["P-SUM", "H-SUM"])
    assert lines(scores, "C-FedFreezeBERT")["reproduced"].cells == (("not run",) if one else ("not run", "–"))
    assert lines(scores, "C-FedFreezeBERT")["reported"].cells[0] == "75.26"
