import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports import ReportError
from reports.evidence.records import request_for
from reports.pages.files import BEGIN, END, render_state, update_readme, write_report
from reports.views import show
from reports.views.comparison import Comparison, compare

F1, ACC = "test/f1", "test/accuracy"
RecordOf = Callable[..., RunResult]


@pytest.fixture(scope="module")
def comparison(table3: Benchmark, record_of: RecordOf) -> Comparison:
    records = [
        record_of("fedavg", "mrpc", {F1: 0.7, ACC: 0.8}, seed=0, errors={F1: 0.03, ACC: 0.01}),
        record_of("fedavg", "mrpc", {F1: 0.72, ACC: 0.8}, seed=1, errors={F1: 0.03, ACC: 0.01}),
        record_of("fedprox", "mrpc", {F1: 0.6, ACC: 0.8}, errors={F1: 0.03, ACC: 0.01}),
        record_of("majority", "mrpc", {F1: 0.5, ACC: 0.65}),
    ]
    return compare(request_for(table3, table3.scale("lite"), records))


def test_a_report_is_six_files_written_twice_alike(comparison: Comparison, tmp_path: Path) -> None:
    names = ["table.md", "table.tex", "table.csv", "plot.png", "plot.svg", "plot.pdf"]
    first = write_report(show("scores", comparison), tmp_path / "a" / "deep")
    second = write_report(show("scores", comparison), tmp_path / "b")
    assert [path.name for path in first] == names
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == sorted(names)  # no temporary file stays
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert first[3].read_bytes().startswith(b"\x89PNG")
    svg = first[4].read_text()
    assert "<svg" in svg
    assert "<dc:date>" not in svg
    assert ">MRPC</" in svg  # text as text
    assert first[5].read_bytes().startswith(b"%PDF")


def test_the_readme_is_replaced_between_its_markers(comparison: Comparison, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe end.\n")
    state = render_state([show("scores", comparison)])
    assert "### FedSplitBERT, Table III · scale lite: real data, MiniLM" in state
    assert "3 of 63 cells run" in state
    assert "71.00/80.00" in state
    assert update_readme(readme, state) is True
    assert readme.read_text() == f"# Title\n\n{BEGIN}\n{state}\n{END}\n\nThe end.\n"
    assert update_readme(readme, state) is False
    assert render_state([]) == "Nothing has been run yet."


@pytest.mark.parametrize(
    "content", ["no markers", f"{BEGIN} alone", f"{END} before {BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"]
)
def test_a_readme_without_its_markers_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(content)
    with pytest.raises(ReportError, match=r"README\.md: expected the markers .*reproduced:begin.*found \d and \d"):
        update_readme(readme, "new")
    assert readme.read_text() == content


def test_reports_import_neither_torch_nor_pyplot() -> None:
    code = (
        "import sys, reports.pages.files, reports.pages.render, reports.views.scores_plot; "
        "assert not {'torch', 'matplotlib.pyplot'} & set(sys.modules)"
    )
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
