"""Scores in LaTeX: deviations as indices, best numbers bold, reported ones beside, bytes apart; and boxes that fit."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.evidence.records import request_for
from reports.pages.latex import latex
from reports.views import page

F1, ACC = "test/f1", "test/accuracy"


@pytest.fixture(scope="module")
def text(table3: Benchmark, record_of: Callable[..., RunResult]) -> str:
    records = [
        record_of(row.id, "mrpc", {F1: value + seed / 50, ACC: 0.8}, seed=seed)
        for row, value in zip(table3.rows, (0.70, 0.72, 0.60, 0.65, 0.65, 0.99, 0.99), strict=True)
        for seed in (0, 1)
    ]
    return latex(page(request_for(table3, table3.scale("lite"), records)))


def test_a_score_has_its_deviation_as_index_and_print_in_a_column_beside(text: str) -> None:
    assert r"\multicolumn{2}{c}{MRPC}" in text
    assert r"FedAvg & $71.00_{\pm 1.41}$/$\mathbf{80.00}_{\pm 0.00}$ & $76.65$/$83.96$ \\" in text
    assert r"FedProx & $\mathbf{73.00}_{\pm 1.41}$/$\mathbf{80.00}_{\pm 0.00}$ & $76.67$/$82.31$ \\" in text


def test_what_no_paper_prints_is_never_bold_and_has_no_reported_value(text: str) -> None:
    assert r"FedAvg + fp16 $\dagger$ & $100.00_{\pm 1.41}$/$80.00_{\pm 0.00}$ & -- \\" in text


def test_bytes_stand_apart_under_a_label_of_their_own(text: str) -> None:
    tables = re.findall(r"\\begin\{table\*\}(.*?)\\end\{table\*\}", text, re.S)
    assert len(tables) == 2
    assert r"\label{tab:fedsplitbert-table3-lite-1}" in tables[0]
    assert r"\label{tab:fedsplitbert-table3-lite-2}" in tables[1]
    assert "uplink" in tables[1]
    assert "uplink" not in tables[0]
    assert all(table.count(r"\caption{") == 1 for table in tables)


def test_a_box_that_does_not_fit_is_found(text: str, latex_complaints: Callable[[dict[str, str]], list[str]]) -> None:
    assert latex_complaints({"whole": text}) == []
    (found,) = latex_complaints({"whole": text, "wide": r"\noindent\rule{30cm}{1pt}\par"})
    assert found.startswith("wide: Overfull")
