import io
import itertools
import re
from collections.abc import Callable, Mapping

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.evidence.records import request_for
from reports.pages.latex import latex_escape
from reports.pages.render import escape as markdown_escape
from reports.pages.render import print_page
from reports.views import show
from reports.views.comparison import Comparison, compare
from reports.views.scores import FIELDS, scores_grid

F1, ACC = "test/f1", "test/accuracy"
RecordOf = Callable[..., RunResult]


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


def test_terminal_text_is_no_markup(two_tasks: Comparison) -> None:
    assert "[bold]" not in _printed(two_tasks, 100)
    assert "± sd (n)" in _printed(two_tasks, 100)


def test_markdown_escapes_what_it_would_read() -> None:
    assert markdown_escape("a|b_c*<i>") == r"a\|b\_c\*\<i\>"


@given(st.text())
def test_latex_text_is_harmless(text: str) -> None:
    escaped = latex_escape(text)
    bare = re.sub(r"\\[&%$#_{}]", "", escaped)  # without escaped specials
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not set("&%#~\n") & set(bare)
    assert all(ord(character) <= 0x17F for character in escaped)


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
