"""One table of scores in every format: Markdown, terminal, LaTeX, CSV, figures."""

import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.evidence.records import request_for
from reports.pages.files import write_report
from reports.pages.latex import latex, latex_escape
from reports.pages.page import Grid, Group, Line, Page
from reports.pages.render import markdown
from reports.site.tables import matrix
from reports.views import page
from reports.views.comparison import Comparison

F1, ACC = "test/f1", "test/accuracy"
RecordOf = Callable[..., RunResult]


@pytest.fixture(scope="module")
def shown(table3: Benchmark, record_of: RecordOf) -> Page:
    """All rows on MRPC with two seeds; RTE with one seed of FedAvg alone."""
    levels = (0.70, 0.80, 0.60, 0.65, 0.65, 0.99, 0.99)
    records = [
        record_of(
            row.id,
            "mrpc",
            {F1: level + seed / 50, ACC: 0.8},
            seed=seed,
            errors={F1: 0.03, ACC: 0.01},
            up=(1_030_000_000, 1_030_000_000),
            timing={"train_seconds": 90.0},
        )
        for (row, level), seed in itertools.product(zip(table3.rows, levels, strict=True), (0, 1))
    ]
    records.append(record_of("fedavg", "rte", {F1: 0.5, ACC: 0.6}, errors={F1: 0.02, ACC: 0.02}))
    return page(request_for(table3, table3.scale("lite"), records))


def test_the_same_numbers_are_bold_in_every_format(shown):
    """F1: only FedProx, above rows that the paper lacks; accuracy: all equal rows. A single method is never best."""
    best = {group.name: group.lines[0].best[0] for group in shown.grids[0].groups}
    assert best["FedProx"] == (True, True)
    assert best["FedAvg"] == (False, True)
    assert best["FedAvg + fp16 †"] == (False, False)
    assert "| **81.00**/**80.00** | not run |" in markdown(shown)
    assert "| 71.00/**80.00** | 50.00/60.00 |" in markdown(shown)
    text = latex(shown)
    assert r"FedAvg & $71.00_{\pm 1.41}$/$\mathbf{80.00}_{\pm 0.00}$ & $76.65$/$83.96$ & $50.00$/$60.00$" in text
    assert r"FedProx & $\mathbf{81.00}_{\pm 1.41}$/$\mathbf{80.00}_{\pm 0.00}$ & $76.67$/$82.31$ & not run" in text
    assert r"FedAvg + fp16 $\dagger$ & $100.00_{\pm 1.41}$/$80.00_{\pm 0.00}$ & -- &" in text


def test_a_method_that_seeds_do_not_tell_from_the_best_is_bold_too(table3, record_of):
    """Gains of 1 and 9 points leave the order open, gains of 4 and 5 do not."""
    scores = {"fedavg": (0.80, 0.80), "fedprox": (0.79, 0.71), "fedadam": (0.76, 0.75)}
    records = [
        record_of(row, "qqp", {ACC: value}, seed=seed, errors={ACC: 0.001})
        for row, values in scores.items()
        for seed, value in enumerate(values)
    ]
    request = request_for(table3, table3.scale("lite"), records)
    groups = page(request).grids[0].groups
    best = {group.name: any(map(any, group.lines[0].best)) for group in groups}
    assert [best[name] for name in ("FedAvg", "FedProx", "FedAdam")] == [True, True, False]
    on_site = {line[0].text: any(entry.kind == "best" for entry in line) for line in matrix(Comparison(request)).lines}
    assert on_site == best  # one rule for tables, LaTeX and the site


@given(st.text())
def test_latex_text_is_harmless(text):
    escaped = latex_escape(text)
    bare = re.sub(r"\\[&%$#_{}]", "", escaped)  # without escaped specials
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not set("&%#~\n") & set(bare)
    assert all(ord(character) <= 0x17F for character in escaped)


def test_powers_are_formulas():
    assert latex_escape("F1^PN of 10^9") == "$F_1^{PN}$ of $10^{9}$"


def test_latex_leaves_out_empty_lines_and_columns(shown):
    scores, empty = Line("a line", ("1.00", "–")), Line("another", ("not run", "–"))
    grid = Grid("bytes", (("full",), ("nothing",)), (Group("one", (scores, empty)), Group("two", (empty,))))
    text = latex(replace(shown, grids=(grid,)))
    assert "one & a line & 1.00" in text
    assert not any(word in text for word in ("nothing", "another", "two"))


def test_a_report_is_seven_files_written_twice_alike(shown, tmp_path):
    names = ["table.md", "table.tex", "notes.tex", "table.csv", "plot.png", "plot.svg", "plot.pdf"]
    first, second = write_report(shown, tmp_path / "a" / "deep"), write_report(shown, tmp_path / "b")
    assert [path.name for path in first] == names
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == sorted(names)  # no temporary file stays
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    svg = first[5].read_text()
    assert "<dc:date>" not in svg
    assert ">MRPC, F1</" in svg  # text as text
