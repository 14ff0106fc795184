"""A paper's README, its pages, and the first page's findings, as rendered."""

from dataclasses import replace

import pytest

from benchmarks.claims import Claim
from benchmarks.experiment import Benchmark
from reports import ReportError
from reports.claims.criterion import Criterion, Evidence
from reports.claims.hypothesis import Assertion, Hypothesis, decide
from reports.claims.judge import Judgement
from reports.evidence.records import request_for
from reports.front.readme import BEGIN, END, lead, update_readme, write_paper
from reports.front.state import MEASURED, Headline, Standing, coverage, front_markdown, headlines
from reports.views import page


def test_a_paper_is_written_between_the_markers_and_pages_that_it_lacks_are_removed(table3, tmp_path):
    readme, stale, manual = tmp_path / "README.md", tmp_path / "pages" / "old.md", tmp_path / "pages" / "own.md"
    readme.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe end.\n")
    stale.parent.mkdir()
    stale.write_text("<!-- written by `make readme` -->\n")
    manual.write_text("A reader's own page.\n")
    write_paper(readme, [page(request_for(table3, table3.scale("lite"), []))], {}, [], [])
    text = readme.read_text()
    assert text.startswith(f"# Title\n\n{BEGIN}\nLite scale: ")
    assert text.endswith(f"\n{END}\n\nThe end.\n")
    written = {"deviations.md", "fedsplitbert-table3.md", "own.md"}
    assert {path.name for path in (tmp_path / "pages").iterdir()} == written


def test_a_table_names_its_best_method_only_with_three_seeds(table3, record_of, opened):
    scores = {"fedsplitbert": (0.90, 0.002), "fedavg": (0.60, -0.002)}
    for seeds in (1, 4):
        records = [
            record_of(row, "qqp", {"test/accuracy": score + step * seed}, seed=seed)
            for row, (score, step) in scores.items()
            for seed in range(seeds)
        ]
        table, records = opened(table3, records)
        best = "Best on QQP: FedSplitBERT."
        assert (lead(page(request_for(table, table.scale("lite"), records))) == best) is (seeds == 4)


@pytest.mark.parametrize("content", ["no markers", f"{END} before {BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_readme_without_its_markers_is_refused_and_kept(tmp_path, content):
    readme = tmp_path / "README.md"
    readme.write_text(content)
    with pytest.raises(ReportError, match=r"README\.md: expected the markers .*reproduced:begin.*found \d and \d"):
        update_readme(readme, "new")
    assert readme.read_text() == content


def judged(table: Benchmark, evidence: Evidence, readings: dict[str, Evidence]) -> Judgement:
    def verdict(effect: Evidence) -> object:
        return decide((Hypothesis((Assertion("Table III", ("mrpc",), "A - B", Criterion(least=1.0), effect),)),))

    claim = Claim("1", "A gains a point", "Abstract", (), headline="A gains {value:.1f} points")
    others = {name: (verdict(reading), verdict(reading)) for name, reading in readings.items()}
    return Judgement(claim, "FedSplitBERT", table.scale("lite"), verdict(evidence), verdict(evidence), others)  # type: ignore[arg-type]


def test_a_headline_is_decided_by_all_of_its_readings(table3):
    """The verdict follows the numbers; a claim whose readings differ is neither supported nor contradicted."""
    yes, no = (Evidence(value, (value, value), 3, is_derived=True) for value in (2.0, 0.5))
    for readings, word in (({}, "supported"), ({"other": no}, "depends on the interpretation")):
        standing = Standing(table3.paper, "page", {}, [judged(table3, yes, readings)], ())
        (headline,) = headlines(standing)
        assert headline.summary == "A gains 2.0 points"
        assert headline.verdict.startswith(word)


def test_the_first_page_has_two_findings_of_a_paper_and_studies_of_the_protocol_first(table3):
    yes = Evidence(2.0, (2.0, 2.0), 3, is_derived=True)
    told = {"study": "table", "page": "docs/study.md", "is_planned": True, "test": "Equality is undecided"}
    study = Headline("B is better", "", MEASURED, "+1.0", **told)
    first = Standing(table3.paper, "page", {}, [judged(table3, yes, {})] * 3, ())
    text = front_markdown([first, replace(first, studies=(study,))], "", "lite")
    bullets = [line for line in text.splitlines() if line.startswith("- ")]
    assert bullets[0] == "- B is better (lite). Equality is undecided. [Study](docs/study.md)."
    assert len(bullets) == 4


def test_the_first_sentence_counts_the_papers_columns_and_names_ours(table3):
    cells = {"Table III": {"a": True, "b": True, "c": False}, "orders": {"a": True, "d": False}}  # both show cell a
    lite = Standing(table3.paper, "page", cells, (), (), (), {"RTE, a part": 4})
    text = coverage([lite], (0, 63), "lite")
    assert text.startswith(
        "2 of 4 cells (method × task) of the papers' tables and figures, and of our studies, have at least one"
    )
    assert text.endswith(
        "columns that the papers do not have, with their finished cells: FedSplitBERT on RTE, a part (4)."
    )
