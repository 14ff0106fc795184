"""The contract of all pages: every table and figure is shown in every format, whether it has results or not.

The numbers of pages are frozen in tests/expected/tables.csv.gz, their texts in the papers' READMEs.
"""

import io
import re
from functools import cache

import pytest
from rich.console import Console

from benchmarks.api import page as page_of
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.selection import part_of
from reports.pages.latex import latex
from reports.pages.page import Page
from reports.pages.plots import render
from reports.pages.render import markdown, print_page
from tests.contract.project import committed_records

IDS = benchmark_ids()
WITH_DEMO = [name for name in IDS if "demo" in {scale.id for scale in benchmark(name).scales}]
SLOW = {"fedbert-table2": [pytest.mark.slow], "fedpeft-bytes": [pytest.mark.slow]}  # traces of many models
PLACES = [
    *(pytest.param(name, "demo", marks=SLOW.get(name, [])) for name in WITH_DEMO),
    *(pytest.param(name, "lite", marks=pytest.mark.slow) for name in IDS),
]


@cache
def page(name: str, scale: str) -> Page:
    """A page of the committed records; the demo scale has none."""
    records = tuple(committed_records().values()) if scale == "lite" else ()
    return page_of(part_of(name, scale), records)


def separators(line: str, sign: str) -> int:
    return len(re.findall(rf"(?<!\\){sign}", line))


@pytest.mark.parametrize(("name", "scale"), PLACES)
def test_every_format_holds_the_whole_table(name, scale):
    shown = page(name, scale)
    grids = [grid for grid in shown.grids if grid.groups]
    tables = re.findall(r"(?:^\|.*\n)+", f"{markdown(shown)}\n", re.M)
    assert len(tables) >= len(grids)
    for table in tables:
        assert len({separators(line, r"\|") for line in table.splitlines()}) == 1
    text = latex(shown)
    assert text.count(r"\caption{") == text.count(r"\label{") == text.count(r"\begin{table*}")
    for columns, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}\n(.*?)\\end\{tabular\}", text, re.S):
        lines = [line for line in body.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
        assert {separators(line, "&") for line in lines} == {len(columns) - 1}
    stream = io.StringIO()
    print_page(shown, Console(file=stream, width=80))
    printed = stream.getvalue()
    assert max(map(len, printed.splitlines())) <= 80
    for grid in grids:
        for number in {cell for group in grid.groups for line in group.lines for cell in line.cells}:
            assert not re.fullmatch(r"\d+\.\d\d", number) or number in printed


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, [])) for name in WITH_DEMO])
def test_the_demo_is_held_against_no_published_number(name):
    frame = page(name, "demo").frame()
    if {"score", "difference"} <= {*frame}:  # published costs are shown next to derived ones at any scale
        scores = frame[frame.score.astype(str).str.startswith("test/")]
        assert scores[["published", "difference"]].isna().all(axis=None)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "scale"), PLACES)
def test_every_figure_can_be_drawn(name, scale):
    figure = page(name, scale).figure
    if figure is not None:
        svg, png = render(figure, "svg", "png")
        assert b"<svg" in svg
        assert png.startswith(b"\x89PNG")
