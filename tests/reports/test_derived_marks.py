"""Published values that follow from a paper's text are marked wherever they, or what rests on them, are shown."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.text import Text
from rich.console import Console

from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.evidence.records import request_for
from reports.pages.latex import latex
from reports.pages.page import Page
from reports.pages.render import markdown, print_page
from reports.pages.text import DERIVED, marked
from reports.views import show
from reports.views.comparison import Comparison, compare
from reports.views.scores import scores_grid

F1, ACC = "test/f1", "test/accuracy"
RecordOf = Callable[..., RunResult]
PRINT = (
    "table,row,column,score,value,derivation\n"
    "Table III,fedsplitbert,mrpc,test/f1,80,\n"
    "Table III,fedsplitbert,mrpc,test/accuracy,90,\n"
    "Table III,fedavg,mrpc,test/f1,70,\n"
    "Table III,fedavg,mrpc,test/accuracy,,{fedsplitbert} / 1.2\n"
)


@pytest.fixture
def compared(table3: Benchmark, record_of: RecordOf, tmp_path: Path) -> Callable[[str], Comparison]:
    path = tmp_path / "table3.csv"
    path.write_text(PRINT, encoding="utf-8")
    table = replace(table3, published_csv=path)

    def build(scale: str) -> Comparison:
        records = [record_of(row, "mrpc", {F1: 0.70, ACC: 0.76}, scale=scale) for row in ("fedavg", "fedsplitbert")]
        rows = [row for row in table.rows if row.id in ("fedavg", "fedsplitbert")]
        return compare(request_for(table, table.scale(scale), records, rows, table.columns[:1]))

    return build


def test_the_score_says_how_its_published_value_is_derived(compared: Callable[[str], Comparison]) -> None:
    (printed, derived), others = (cell.scores for cell in compared("paper").cells)
    assert (printed.published, printed.is_derived) == (70.0, False)
    assert (derived.published, derived.derivation, derived.is_derived) == (75.0, "{fedsplitbert} / 1.2", True)
    assert not any(score.is_derived for score in others)


def test_cells_differences_and_verdicts_are_marked(compared: Callable[[str], Comparison]) -> None:
    fedavg, split = scores_grid(compared("paper")).groups
    lines = {line.label: line.cells for line in fedavg.lines}
    assert lines["reported"] == ("70.00/≈ 75.00",)
    assert lines["difference"] == ("+0.00/≈ +1.00",)
    assert lines["verdict"] == ("undecided/≈ undecided",)
    assert DERIVED not in "".join(cell for line in split.lines for cell in line.cells)


def test_every_renderer_shows_mark_and_note(compared: Callable[[str], Comparison]) -> None:
    page: Page = show("scores", compared("lite"))
    note = (
        "≈ derived from the text's relative gains, the printed table was not at hand: FedAvg = FedSplitBERT / 1.2. "
        "What rests on such a number is marked too."
    )
    assert note in page.notes
    console = Console(file=io.StringIO(), width=200)
    print_page(page, console)
    terminal = console.file.getvalue()  # type: ignore[attr-defined]
    for text in (markdown(page), terminal):
        assert "70.00/≈ 75.00" in text
        assert "≈ derived from the text's relative gains" in text
    assert r"/$\approx$ 75.00" in latex(page)
    assert r"$\approx$ derived from the text" in latex(page)
    lines = page.frame().set_index(["row", "score"])["derivation"].to_dict()
    assert lines["fedavg", ACC] == "{fedsplitbert} / 1.2"
    assert lines["fedavg", F1] == lines["fedsplitbert", ACC] == ""
    assert "75.0,{fedsplitbert} / 1.2," in page.csv


def test_bars_draw_another_sign(compared: Callable[[str], Comparison], table3: Benchmark) -> None:
    comparison = compared("lite")
    by_accuracy = replace(
        comparison,
        request=replace(
            comparison.request, columns=tuple(replace(column, averaged=ACC) for column in comparison.request.columns)
        ),
        cells=tuple(replace(cell, column=replace(cell.column, averaged=ACC)) for cell in comparison.cells),
    )
    for shown, expected in ((comparison, ["reported"]), (by_accuracy, ["reported", "derived from the paper's text"])):
        figure = show("scores", shown).figure
        assert figure is not None
        drawn = figure()
        labels = [text.get_text() for text in drawn.legends[0].get_texts()]
        assert labels[2:] == expected
        written = " ".join(text.get_text() for text in drawn.findobj(Text)).replace("\n", " ")
        assert ("circles: derived" in written) == (len(expected) == 2)


def test_the_demo_scale_shows_neither(compared: Callable[[str], Comparison]) -> None:
    page = show("scores", compared("demo"))
    assert DERIVED not in markdown(page)


def test_a_dash_stays_a_dash() -> None:
    assert (marked("–", True), marked("1.00", True), marked("1.00", False)) == ("–", "≈ 1.00", "1.00")
