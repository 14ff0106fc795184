"""Bytes on the wire as records have them: sums, gains, what is not run, the long form and the plot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.axes import Axes

from benchmarks.cli.report import show_report
from benchmarks.cli.select import Selection
from benchmarks.fedfreezebert.table4 import BENCHMARK as TABLE4
from benchmarks.record import RunRecord
from benchmarks.settings import Settings
from reports import ReportError
from reports.evidence.records import Request
from reports.pages.page import Grid, Line
from reports.pages.plots import render
from reports.pages.render import terminal_tables
from reports.views import page
from reports.views.costs import join
from reports.views.costs_plot import plot as cost_plot

Asked = Callable[..., Request]
BytesOf = Callable[..., RunRecord]
FEDAVG, FEDSPLITBERT = "fedavg-ordinary", "fedsplitbert-ordinary"


@pytest.fixture
def records(bytes_of: BytesOf) -> list[RunRecord]:
    """Two rounds each: 80 MB and 40 MB of weights, and 20 MB by C- on average over two seeds."""
    return [
        bytes_of(FEDAVG, {"parameters": 20_000_000}),
        bytes_of(FEDSPLITBERT, {"parameters": 10_000_000}),
        *(
            bytes_of("c-psum", {"features": size, "masks": 1000, "labels": 500, "parameters": 249_250}, seed=seed)
            for seed, size in enumerate((9_000_000, 10_000_000))
        ),
    ]


def line(grid: Grid, name: str) -> Line:
    (found,) = next(entry for entry in grid.groups if entry.name == name).lines
    return found


def test_measured_bytes_are_the_ledgers(asked: Asked, records: list[RunRecord]) -> None:
    *_, measured = page(asked(records)).grids
    assert [header[-1] for header in measured.headers] == [
        "seeds", "uplink", "downlink", "both", "ordinary", "ordinary",
        "features", "masks", "labels", "weights", "distribution",
    ]  # fmt: skip
    nothing = "–"
    assert line(measured, "FedAvg · ordinary").cells == (
        "1", "40.00 MB", "40.00 MB", "80.00 MB", "1.00", "0.50", nothing, nothing, nothing, "80.00 MB", "12.00 kB",
    )  # fmt: skip
    assert line(measured, "C-FedFreezeBERT · P-SUM") == Line(
        "4 layers",
        (
            *("2", "19.50 MB", "498.50 kB", "20.00 MB", "4.00", "2.00"),
            *("19.00 MB", "2.00 kB", "1.00 kB", "997.00 kB", "12.00 kB"),
        ),
    )
    assert line(measured, "C-FedFreezeBERT · H-SUM").cells == ("not run", *[""] * 10)


def test_what_each_method_sends_of_a_text_is_said(asked: Asked) -> None:
    _, derived, measured = page(asked()).grids
    sent = {
        "FedAvg · ordinary": "–",
        "D-FedFreezeBERT · P-SUM": "–",
        "C-FedFreezeBERT · ordinary †": "[CLS]",
        "C-FedFreezeBERT · average †": "1 layer",
        "C-FedFreezeBERT · P-SUM": "4 layers",
        "C-FedFreezeBERT · H-SUM": "4 layers",
        "C-FedFreezeBERT · P-SUM, trimmed †": "4 layers",
    }
    for grid in (derived, measured):
        assert {name: line(grid, name).label for name in sent} == sent
    assert line(derived, "C-FedFreezeBERT · P-SUM, trimmed †").cells[0] == "depends on texts"


def test_gains_need_no_baseline_among_the_rows_shown(asked: Asked, records: list[RunRecord]) -> None:
    rows = [row for row in TABLE4.rows if row.id == "c-psum"]
    shown = page(asked(records, rows=rows))
    assert [len(grid.groups) for grid in shown.grids] == [1, 1, 1]
    assert line(shown.grids[-1], "C-FedFreezeBERT · P-SUM").cells[4:6] == ("4.00", "2.00")


def test_without_its_baseline_there_is_no_gain(asked: Asked, records: list[RunRecord]) -> None:
    *_, measured = page(asked(records[1:])).grids
    assert line(measured, "C-FedFreezeBERT · P-SUM").cells[4:6] == ("–", "2.00")


def test_a_ledger_that_was_changed_is_refused(asked: Asked, records: list[RunRecord]) -> None:
    first = records[0]
    changed = replace(first, ledger=first.ledger[:-1])
    with pytest.raises(ReportError, match="expected one sum of bytes down, found 20000000 in its ledger"):
        page(asked([changed]))


def test_only_the_measured_table_is_of_a_scale(asked: Asked, bytes_of: BytesOf) -> None:
    demo = page(asked([bytes_of(FEDAVG, {"parameters": 4000}, scale="demo")], scale="demo"))
    lite = page(asked())
    assert demo.grids[:-1] == lite.grids[:-1]
    assert all(grid.title.endswith("the same at every scale") for grid in demo.grids[:-1])
    assert "scale demo: generated data" in demo.grids[-1].title
    assert line(demo.grids[-1], "FedAvg · ordinary").cells[3] == "16.00 kB"  # two directions, two rounds


def test_every_number_is_in_the_long_form(asked: Asked, records: list[RunRecord]) -> None:
    frame = page(asked(records)).frame()
    known = frame[(frame["row"] == "c-psum")].set_index(["counted", "quantity", "over"])["value"]
    measured = known["wire, measured"].droplevel("over")
    sent = [measured[f"{name}_bytes"] for name in ("features", "masks", "labels", "weights")]
    assert sum(sent) == measured["bytes"] == measured["up_bytes"] + measured["down_bytes"] == 20_000_000
    assert known["wire, measured", "gain", FEDAVG] == 4
    assert known["wire, derived", "gain", FEDAVG] == pytest.approx(1.6, abs=0.005)
    assert known["equation, consistent bytes", "gain", FEDSPLITBERT] == pytest.approx(4.87, abs=0.005)
    published = frame[(frame["row"] == "c-psum") & frame["published"].notna()]
    assert dict(zip(published["over"], published["published"], strict=True)) == {FEDAVG: 6.2, FEDSPLITBERT: 5}
    assert set(published["counted"]) == {"equation, as printed"}
    states = frame[frame["value"].isna()]
    assert set(zip(states["row"], states["quantity"], strict=True)) >= {
        ("c-psum-trimmed", "depends on texts"),
        ("c-psum-trimmed", "not run"),
    }


# ---- the page ----------------------------------------------------------------------------------------------------


def panels(asked: Request) -> list[Axes]:
    return cost_plot(join(asked)).axes


def test_bars_are_stacked_by_kind_with_the_equation_beside_them(asked: Asked, records: list[RunRecord]) -> None:
    measured, derived = panels(asked(records))
    assert [measured.get_title(), derived.get_title()] == ["measured, arabic-mini", "derived, MARBERT"]
    place = next(number for number, row in enumerate(TABLE4.rows) if row.id == "c-psum")
    bars = [bar for bar in measured.patches if round(bar.get_y() + bar.get_height() / 2) == place]
    assert [round(bar.get_width(), 3) for bar in bars] == [0.997, 19.0]  # MB of weights, then of features
    assert [round(bar.get_x(), 3) for bar in bars] == [0, 0.997]
    assert [text.get_text() for text in measured.texts][place] == "20.00 MB, 4× and 2×"
    assert [text.get_text() for text in measured.texts][-1] == "not run"
    assert [text.get_text() for text in derived.texts][-2] == "depends on texts"
    diamonds = {round(mark.get_ydata()[0]): round(mark.get_xdata()[0], 2) for mark in derived.lines}
    assert diamonds[place] == 5.37  # GB of one layer's embeddings
    assert diamonds[0] == 31.81
    assert len(diamonds) == len(TABLE4.closed_forms)


def test_nothing_run_and_nothing_derived_is_drawn_all_the_same(asked: Asked) -> None:
    bare = asked(derived=False)
    (measured,) = panels(bare)
    assert {text.get_text() for text in measured.texts} == {"not run"}
    assert render(lambda: cost_plot(join(bare)), "png")[0].startswith(b"\x89PNG")
    assert len(page(bare).grids) == 2


def test_tables_fit_a_terminal(asked: Asked, records: list[RunRecord]) -> None:
    tables = list(terminal_tables(page(asked(records)), 120))
    assert len(tables) == 1 + 2 + 2  # equations whole, bytes in two parts each


def test_the_command_line_derives_what_the_page_asks_for(
    records: list[RunRecord], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = Selection(TABLE4, TABLE4.scale("lite"), TABLE4.rows, TABLE4.columns, [0, 1])
    shown, files = show_report(chosen, records, Settings(results_dir=tmp_path))
    assert len(shown.grids) == 3
    assert {path.name for path in files} == {"table.md", "table.tex", "table.csv", "plot.png", "plot.svg", "plot.pdf"}
    assert "depends on texts" in capsys.readouterr().out
