"""What MLflow is told of a real table, and the link at the end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cli.arguments import build_parser
from benchmarks.cli.main import main
from benchmarks.cli.select import Selection, selection
from benchmarks.cli.tracked import about, group_tags, shown_cells
from benchmarks.tracking import Shown


def chosen(scale: str, *words: str, table: str = "fedsplitbert-table3") -> Selection:
    """What the words of a run choose."""
    return selection(build_parser().parse_args(["run", table, "--scale", scale, "--tasks", "mrpc", *words]))


def shown(part: Selection) -> dict[str, Shown]:
    """Row id -> how the table shows its cell."""
    found = shown_cells(part)
    return {row.id: found[cell.definition_id] for row, _, cell in part.cells()}


def test_methods_have_their_names_and_what_the_paper_reports_of_them() -> None:
    found = shown(chosen("lite", "--methods", "fedprox,central"))
    assert found["fedprox"] == Shown(("fedprox",), "FedProx", "test/f1", 0.7667)
    assert found["central"] == Shown(("central",), "Centralised training †", "test/f1", None, is_reference=True)
    assert shown(chosen("demo", "--methods", "fedprox"))["fedprox"].reported is None


def test_a_figure_that_prints_no_numbers_has_those_of_its_table() -> None:
    reported = [one.reported for one in shown(chosen("lite", table="fedsplitbert-figure5")).values()]
    assert [value for value in reported if value is not None]


def test_the_table_and_its_paper_are_described() -> None:
    part = chosen("lite", "--seeds", "2")
    words = about(part)
    assert "Zhengyang Li" in words.paper
    assert words.table.startswith("FedSplitBERT, Table III: ")
    assert words.params == {
        "benchmark": "fedsplitbert-table3",
        "paper": "fedsplitbert",
        "place": "Table III",
        "scale": "lite",
    }
    assert group_tags(part).items() >= {"tasks": "mrpc", "seeds": "0,1"}.items()
    assert group_tags(chosen("lite", "--seeds", "5-7"))["seeds"] == "5,6,7"


def test_a_run_ends_with_the_link_to_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "fedsplitbert-table3", "--tasks", "mrpc", "--methods", "local-majority", "--workers", "1"]
    assert main([*words, "--results-dir", str(tmp_path)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Its runs in MLflow, while `make ui` runs: http://127.0.0.1:5000/#/experiments/")
    assert "viewStateShareKey=fedsplitbert-table3-demo-mrpc" in last
