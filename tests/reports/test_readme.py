"""A paper's README, its pages, and the first page's findings, as rendered."""

import pytest

from benchmarks.claims import Claim
from benchmarks.experiment import Benchmark
from reports import ReportError
from reports.claims.criterion import Criterion, Evidence
from reports.claims.hypothesis import Assertion, Hypothesis, decide
from reports.claims.judge import Judgement
from reports.evidence.records import request_for
from reports.front.readme import BEGIN, END, update_readme, write_paper
from reports.front.state import Standing, coverage, headlines
from reports.views import page


def test_a_readme_has_a_line_a_table_and_the_numbers_are_on_pages(table3, record_of, tmp_path):
    records = [
        record_of(row, "qqp", {"test/accuracy": level}, seed=seed, errors={"test/accuracy": 0.001})
        for row, level in (("fedavg", 0.80), ("fedprox", 0.70))
        for seed in (0, 1)
    ]
    shown = page(request_for(table3, table3.scale("lite"), records))
    readme, stale = tmp_path / "README.md", tmp_path / "pages" / "old.md"
    readme.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe end.\n")
    stale.parent.mkdir()
    stale.write_text("<!-- written by `make readme` -->\n")
    write_paper(readme, [shown], {"fedsplitbert-table3": tmp_path / "pictures" / "a.png"}, [], [])
    best = "Best of the paper's methods, or not distinguishable from the best"
    sentence = f"{best}, of one column with results: FedAvg on 1."
    line = f"| [Table III](pages/fedsplitbert-table3.md) | 2 of 63 | – | {sentence} |"
    text = readme.read_text()
    assert line in text.splitlines()
    assert text.startswith("# Title")
    assert text.endswith("The end.\n")
    lines = (tmp_path / "pages" / "fedsplitbert-table3.md").read_text().splitlines()
    assert lines[3] == f"**{sentence}**"
    assert "![FedSplitBERT, Table III · scale lite: real data, MiniLM](../pictures/a.png)" in lines
    assert any("**80.00**" in line for line in lines)
    assert not stale.exists()


def test_a_reading_that_decides_an_open_claim_stands_on_the_readme(table3, tmp_path):
    """Like FedFreezeBERT's orderings on SST-2, our column, for claims about tweets."""
    clear, vague = (Evidence(2.0, (2.0, 2.0), 3), Evidence(2.0, None, 1))
    found = judged(table3, vague, {"the same ordering on SST-2, a column of ours": clear})
    readme = tmp_path / "README.md"
    readme.write_text(f"{BEGIN}{END}")
    shown = page(request_for(table3, table3.scale("lite"), []))
    write_paper(readme, [shown], {}, [[found]], [])
    told = "supported, read as the same ordering on SST-2, a column of ours"
    assert f"- 1: {told}" in readme.read_text().splitlines()
    line = next(
        line for line in (tmp_path / "pages" / "claims.md").read_text().splitlines() if line.startswith("| 1 |")
    )
    result, evidence, effect = (cell.split("<br>") for cell in line.split(" | ")[3:6])
    assert result[0].startswith("undecided")
    assert result[-1].startswith("read as the same ordering on SST-2, a column of ours: supported")
    assert (evidence, effect) == (["run at reduced scale (n = 1)"], ["A - B +2.00"])
    write_paper(readme, [shown], {}, [[judged(table3, clear, {})]], [])
    assert "another reading" not in readme.read_text()


@pytest.mark.parametrize("content", ["no markers", f"{END} before {BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_readme_without_its_markers_is_refused_and_kept(tmp_path, content):
    readme = tmp_path / "README.md"
    readme.write_text(content)
    with pytest.raises(ReportError, match=r"README\.md: expected the markers .*reproduced:begin.*found \d and \d"):
        update_readme(readme, "new")
    assert readme.read_text() == content


def judged(table: Benchmark, evidence: Evidence, readings: dict[str, Evidence]) -> Judgement:
    def verdict(found: Evidence) -> object:
        return decide((Hypothesis((Assertion("Table III", ("mrpc",), "A - B", Criterion(least=1.0), found),)),))

    claim = Claim("1", "A gains a point", "Abstract", (), headline="A gains {value:.1f} points")
    others = {name: (verdict(found), verdict(found)) for name, found in readings.items()}
    return Judgement(claim, "FedSplitBERT", table.scale("lite"), verdict(evidence), verdict(evidence), others)  # type: ignore[arg-type]


def test_a_headline_is_decided_by_all_of_its_readings(table3):
    """The verdict follows the numbers; a claim whose readings differ is neither supported nor contradicted."""
    yes, no = (Evidence(value, (value, value), 3, is_derived=True) for value in (2.0, 0.5))
    for readings, word in (({}, "supported"), ({"other": no}, "depends on the reading")):
        standing = Standing(table3.paper, "page", {}, [judged(table3, yes, readings)], ())
        (found,) = headlines(standing)
        assert found.summary == "A gains 2.0 points"
        assert found.verdict.startswith(word)


def test_the_first_sentence_counts_the_papers_columns_and_names_ours(table3):
    cells = {"Table III": {"a": True, "b": True, "c": False}, "orders": {"a": True, "d": False}}  # both show cell a
    lite = Standing(table3.paper, "page", cells, (), (), (), {"RTE, a part": 4})
    text = coverage([lite], (0, 63), "lite")
    assert text.startswith(
        "2 of 4 cells of the papers' tables and figures, and of our studies, are finished, with small encoders"
    )
    assert ". No run yet with the papers' encoders." in text
    assert "Columns that we added are not counted: FedSplitBERT on RTE, a part (4)." in text
