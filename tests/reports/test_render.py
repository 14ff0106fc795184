import dataclasses
import io
import itertools
import re
from collections.abc import Callable, Mapping

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark
from reports.evidence.records import request_for
from reports.pages.latex import latex, latex_escape
from reports.pages.render import escape as markdown_escape
from reports.pages.render import markdown, print_page
from reports.pages.text import human_bytes, human_seconds
from reports.views import show
from reports.views.comparison import Comparison, compare
from reports.views.scores import FIELDS, costs_grid, scores_grid

F1, ACC = "test/f1", "test/accuracy"
RecordOf = Callable[..., RunRecord]


@pytest.fixture(scope="module")
def two_tasks(table3: Benchmark, record_of: RecordOf) -> Comparison:
    """All rows on MRPC with two seeds; RTE with one seed of FedAvg alone."""
    records = [
        record_of(
            row.id,
            "mrpc",
            {F1: 0.70 + seed / 50, ACC: 0.8},
            seed=seed,
            errors={F1: 0.03, ACC: 0.01},
            up=(1_030_000_000, 1_030_000_000),
            timing={"train_seconds": 90.0},
        )
        for row, seed in itertools.product(table3.rows, (0, 1))
    ]
    records.append(record_of("fedavg", "rte", {F1: 0.5, ACC: 0.6}, errors={F1: 0.02, ACC: 0.02}))
    return compare(request_for(table3, table3.scale("lite"), records))


@pytest.fixture(scope="module")
def demo(table3: Benchmark, record_of: RecordOf) -> Comparison:
    """Everything at the demo scale, one seed."""
    records = [
        record_of(row.id, column.task, dict.fromkeys(column.scores, 0.5), scale="demo")
        for row, column in itertools.product(table3.rows, table3.columns)
    ]
    return compare(request_for(table3, table3.scale("demo"), records))


def _printed(comparison: Comparison, width: int) -> str:
    file = io.StringIO()
    print_page(show("scores", comparison), Console(file=file, width=width))
    return file.getvalue()


def _lines(comparison: Comparison, method: str) -> Mapping[str, tuple[str, ...]]:
    group = next(group for group in scores_grid(comparison).groups if group.name == method)
    return {line.label: line.cells for line in group.lines}


def test_scores_stand_as_the_paper_prints_them(two_tasks: Comparison) -> None:
    grid = scores_grid(two_tasks)
    assert grid.headers == (("MRPC", "F1/Acc", "test: 63"), ("RTE", "F1/Acc", "test: 63"))
    assert _lines(two_tasks, "FedAvg") == {
        "reproduced": ("71.00/80.00", "50.00/60.00"),
        "± sd (n)": ("1.41/0.00 (2)", "– (1)"),  # numbers of seeds differ, so each cell has its own
        "± SE (test set)": ("3.00/1.00", "2.00/2.00"),
        "reported": ("76.65/83.96", "57.66/61.68"),
    }
    assert _lines(two_tasks, "FedProx")["reproduced"] == ("71.00/80.00", "not run")
    assert _lines(two_tasks, "FedProx")["reported"] == ("76.67/82.31", "57.03/64.81")


def test_unprinted_rows_bear_a_dagger_and_no_published_line(two_tasks: Comparison) -> None:
    assert set(_lines(two_tasks, "Local majority †")) == {"reproduced", "± sd (n)", "± SE (test set)"}


def test_columns_without_records_are_dropped_where_others_have_some(two_tasks: Comparison, table3: Benchmark) -> None:
    assert len(scores_grid(two_tasks).headers) == 2
    nothing = compare(request_for(table3, table3.scale("lite"), []))
    assert len(scores_grid(nothing).headers) == 9
    assert "not run" in markdown(show("scores", nothing))
    assert "bytes" not in markdown(show("scores", nothing)).split("\n- ")[0]


def test_demo_shows_no_published_number(demo: Comparison) -> None:
    assert set(_lines(demo, "FedAvg")) == {"reproduced (n = 1)", "± SE (test set)"}
    assert _lines(demo, "FedAvg")["reproduced (n = 1)"][-1] == "50.00"  # the average
    for text in (_printed(demo, 200), markdown(show("scores", demo)), latex(show("scores", demo))):
        tables, _, _ = text.partition("Scale demo: ")
        assert "ublished" not in tables
        assert "ifference" not in tables
        assert "76.65" not in text
    assert pd.read_csv(io.StringIO(show("scores", demo).csv))[["published", "difference"]].isna().all(axis=None)


def test_bytes_by_method(two_tasks: Comparison) -> None:
    grid = costs_grid(two_tasks)
    rows = {group.name: (group.lines[0].label, *group.lines[0].cells) for group in grid.groups}
    # FedAvg also ran RTE: 4000 B a round, 8 kB up, 1.6 kB down, without a time.
    assert rows["FedAvg"] == ("2 of 9 tasks", "4.00 kB … 1.03 GB", "2.06 GB", "3.20 kB", "12.00 kB", "–")
    assert rows["FedProx"] == ("1 of 9 tasks", "1.03 GB", "2.06 GB", "1.60 kB", "12.00 kB", "1.5 min")


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.50 kB"), (26_130_000, "26.13 MB"), (257_000_000, "0.26 GB")],
)
def test_bytes_in_readable_units(count: int, text: str) -> None:
    assert human_bytes(count) == text


def test_gigabytes_are_the_papers() -> None:
    assert human_bytes(1024 * 10**6, 1024 * 10**6) == "1.00 GB"
    assert human_bytes(2**30) == "1.07 GB"


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999 B"), (2**11, "2.00 KiB"), (30_841_344, "29.41 MiB"), (2**29, "512.00 MiB"), (3 * 2**30, "3.00 GiB")],
)
def test_a_binary_gigabyte_has_binary_units_below(count: int, text: str) -> None:
    assert human_bytes(count, 2**30) == text


def test_seconds_in_readable_units() -> None:
    assert [human_seconds(value) for value in (12.34, 90.0, 5400.0)] == ["12.3 s", "1.5 min", "1.5 h"]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_terminal_shows_every_cell_at_any_width(demo: Comparison, two_tasks: Comparison, width: int) -> None:
    text = _printed(demo, width)
    assert all(len(line) <= width for line in text.splitlines())
    assert text.count("50.00") >= 7 * (9 + 4 + 1)  # seven rows; four columns of two scores; an average
    assert "…" not in text  # nothing was cut off
    assert "scale lite: real data, MiniLM" in " ".join(_printed(two_tasks, width).split())


def test_terminal_text_is_no_markup(two_tasks: Comparison) -> None:
    assert "[bold]" not in _printed(two_tasks, 100)
    assert "± sd (n)" in _printed(two_tasks, 100)


def test_markdown_tables_are_rectangular(two_tasks: Comparison) -> None:
    text = markdown(show("scores", two_tasks))
    assert text.startswith("# FedSplitBERT, Table III · scale lite: real data, MiniLM\n")
    tables = re.findall(r"(?:^\|.*\n)+", text, re.M)
    assert [len(table.splitlines()) for table in tables] == [2 + 5 * 4 + 2 * 3, 2 + 7]
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert "| **FedAvg** | reproduced | **71.00/80.00** | **50.00/60.00** |" in text
    assert all(f"- {markdown_escape(note)}" in text for note in two_tasks.notes)


def test_markdown_escapes_what_it_would_read() -> None:
    assert markdown_escape("a|b_c*<i>") == r"a\|b\_c\*\<i\>"


def test_latex_tables_have_even_lines(two_tasks: Comparison) -> None:
    text = latex(show("scores", two_tasks))
    tables = re.findall(r"\\begin\{tabular\}\{(\w+)\}\n(.*?)\\end\{tabular\}", text, re.S)
    assert [columns for columns, _ in tables] == ["lrrrr", "llrrrrr"]
    for columns, body in tables:
        lines = [line for line in body.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
        assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(columns) - 1}
        assert body.count(r"\toprule") == body.count(r"\bottomrule") == 1
    assert r"Local majority $\dagger$" in text
    assert text.isascii()


@given(st.text())
def test_latex_text_is_harmless(text: str) -> None:
    escaped = latex_escape(text)
    bare = re.sub(r"\\[&%$#_{}]", "", escaped)  # without escaped specials
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not set("&%#~\n") & set(bare)
    assert all(ord(character) <= 0x17F for character in escaped)


def test_latex_greek_and_signs() -> None:
    assert latex_escape("λ ± 5 % · α_1") == r"$\lambda$ $\pm$ 5 \% $\cdot$ $\alpha$\_1"
    assert latex_escape("雪") == "[U+96EA]"


def test_csv_is_long_and_complete(two_tasks: Comparison) -> None:
    table = pd.read_csv(io.StringIO(show("scores", two_tasks).csv), dtype={"seeds": str})
    assert list(table.columns) == FIELDS
    assert len(table) == 7 * (9 + 4 + 1)
    line = table.query("row == 'fedavg' and column == 'mrpc' and score == 'test/f1'").iloc[0]
    assert line["status"] == "run"
    assert line["ours"] == pytest.approx(71)
    assert line["seeds"] == "0 1"
    assert line["published"] == 76.65
    assert pd.isna(line["difference"])
    assert (line["n_test"], line["rounds"], line["round_bytes"]) == (63, 2, 1_030_000_000)
    assert (line["scale"], line["scale_label"]) == ("lite", "real data, MiniLM")
    missing = table.query("row == 'fedprox' and column == 'rte'")
    assert set(missing["status"]) == {"not run"}
    assert missing[["ours", "up_bytes", "n_test"]].isna().all(axis=None)
    average = table.query("row == 'fedavg' and column == 'average'").iloc[0]
    assert (average["published"], average["status"]) == (72.25, "not run")


def test_partial_data_are_marked_in_the_header(table3: Benchmark, record_of: RecordOf) -> None:
    whole = record_of("fedavg", "qnli", {ACC: 0.8})
    inputs = {**whole.inputs, "data": {**whole.inputs["data"], "notes": ["partial: train.tsv not found"]}}
    partial = dataclasses.replace(whole, inputs=inputs)
    for record, text in ((whole, "test: 63"), (partial, "test: 63, partial")):
        assert scores_grid(compare(request_for(table3, table3.scale("lite"), [record]))).headers[0][-1] == text
